"""Prints the tables of docs/scale.md: what a pass of any size costs on assumed machines."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil

from scipy.special import ndtri

from classex_bayes.task.dask_sources import FAN_IN

N_K = 12  # numbers of classes at which a task keeps its covariance
BYTES_OF_SUM = 8
RARE_PAIRS = 1e-4  # share of pairs that are lost, and share of pairs that are too close to call


def packed_bytes(n_classes: int) -> int:
    """Bytes that pack a bit for each class."""
    return 8 * ceil(n_classes / 64)


@dataclass(frozen=True)
class Layout:
    """A pass cut into cells: a row block of probes against a range of classes each."""

    n_test: int
    n_classes: int
    dim: int
    rows: int  # probes in a row block
    classes: int  # classes in a range
    itemsize: int = 4

    @property
    def row_blocks(self) -> int:
        """Number of row blocks."""
        return ceil(self.n_test / self.rows)

    @property
    def ranges(self) -> int:
        """Number of ranges of classes."""
        return ceil(self.n_classes / self.classes)

    @property
    def multiply_adds(self) -> int:
        """Products of coordinates in all cells: n k1 d."""
        return self.n_test * self.n_classes * self.dim

    @property
    def probe_bytes(self) -> int:
        """Bytes of the probes, each of which is read once."""
        return self.n_test * self.dim * self.itemsize

    @property
    def gallery_bytes(self) -> int:
        """Bytes of the gallery, of which every worker keeps its ranges."""
        return self.n_classes * self.dim * self.itemsize

    @property
    def tasks(self) -> int:
        """Tasks of a graph, but for those that read chunks and find the true classes' templates.

        Three for each cell (compare, count, sum), three for each row block (true classes' scores,
        gains, results), and the tree of sums of each range.
        """
        in_tree, parts = 0, self.row_blocks
        while parts > 1:
            parts = ceil(parts / FAN_IN)
            in_tree += parts
        return 3 * self.row_blocks * (self.ranges + 1) + in_tree * self.ranges

    @property
    def cell_bytes(self) -> int:
        """Bytes that go into all cells: probes, their true scores, and ranges of the gallery."""
        true_scores = self.n_test * BYTES_OF_SUM
        return self.ranges * (self.probe_bytes + true_scores) + self.row_blocks * self.gallery_bytes

    @property
    def bit_bytes(self) -> int:
        """Bytes of packed bits that all cells put out; those of one row block live at a time."""
        full, rest = divmod(self.n_classes, self.classes)
        return self.n_test * (full * packed_bytes(self.classes) + packed_bytes(rest))

    @property
    def sum_bytes(self) -> int:
        """Bytes of the sums that one row block, or all of them, add to all ranges."""
        return (self.n_classes + self.ranges * N_K) * N_K * BYTES_OF_SUM


@dataclass(frozen=True)
class Node:
    """A machine whose devices each keep a range of the classes."""

    name: str
    devices: int
    teraflops: float  # sustained, of one device
    share: float  # of the rate that is left once products are compared and counted
    memory_rate: float  # GB/s, as the next two
    link_rate: float
    network_rate: float
    memory: float  # GB of a device
    pair_bytes: float  # of device memory, written and read for each pair of probe and class
    price: float  # of an hour


H100 = Node("8 x H100 80 GB, TF32", 8, 350, 0.7, 2800, 50, 40, 80, 0.25, 24)
NODES = (
    H100,
    replace(H100, name="the same, float32", teraflops=45),
    replace(H100, name="the same, TF32, tiles in memory", pair_bytes=16),
    Node("8 x A100 80 GB, TF32", 8, 120, 0.7, 1600, 25, 20, 80, 0.25, 14),
    Node("1 x L4 24 GB, TF32", 1, 45, 0.7, 250, 12, 3, 24, 0.25, 0.8),
    Node("64 cores, float32", 1, 3, 0.45, 250, 250, 3, 256, 0.25, 3),
)
FULL = Layout(n_test=10**9, n_classes=10**8, dim=128, rows=10_000, classes=12_500_000)
PASSES = ((FULL, 4), (replace(FULL, n_test=10**6), 1))


def hours(layout: Layout, node: Node, n_nodes: int) -> dict[str, float]:
    """Hours that each resource of the nodes is busy.

    Every node keeps the whole gallery, divided between its devices (and reads it again in as many
    rounds as it does not fit), and takes its part of the row blocks, which visit all its devices.
    """
    n_devices = n_nodes * node.devices
    # A lost pair reads and writes 12 sums, a close one reads two embeddings.
    rare = 2 * N_K * BYTES_OF_SUM + 2 * layout.dim * layout.itemsize
    pair_bytes = node.pair_bytes + RARE_PAIRS * rare
    # Half of a device's memory is left to tiles, bits and sums.
    rounds = ceil(layout.gallery_bytes / (node.devices * node.memory * 1e9 / 2))
    probes = rounds * layout.probe_bytes / n_nodes
    seconds = {
        "products": 2 * layout.multiply_adds / (n_devices * node.teraflops * node.share * 1e12),
        "device memory": layout.n_test
        * layout.n_classes
        * pair_bytes
        / (n_devices * node.memory_rate * 1e9),
        "link": (probes + layout.gallery_bytes / node.devices) / (node.link_rate * 1e9),
        "network": (probes + layout.gallery_bytes + 2 * layout.sum_bytes)
        / (node.network_rate * 1e9),
    }
    return {name: value / 3600 for name, value in seconds.items()}


def enough_probes(accuracy: float, design_effect: float) -> int:
    """Number of probes that know the accuracy to 0.1% with probability 95%."""
    return ceil(ndtri(0.975) ** 2 * accuracy * (1 - accuracy) * design_effect / 0.001**2)


def table(columns: list[str], rows: Sequence[Sequence[object]]) -> str:
    """Table in Markdown, all columns but the first ranged right."""
    head, *lines = (f"| {' | '.join(map(str, row))} |" for row in (columns, *rows))
    return "\n".join([head, "|---" + "|---:" * (len(columns) - 1) + "|", *lines])


def tables() -> list[str]:
    """Tables of the page: assumptions, the full pass, the sampled one, numbers of probes."""
    columns = ["node", "devices", "TFLOP/s", "share", "memory GB/s", "link GB/s", "network GB/s"]
    columns += ["memory GB", "bytes a pair", "$ an hour"]
    parts = [table(columns, [list(vars(node).values()) for node in NODES])]
    for layout, n_nodes in PASSES:
        rows = []
        for node in NODES:
            busy = hours(layout, node, n_nodes)
            longest = max(busy.values())  # resources are busy at the same time
            numbers = [*busy.values(), longest, longest * n_nodes * node.price]
            rows.append([node.name, *(f"{number:,.3g}" for number in numbers)])
        parts.append(table(["node", *busy, "hours", "cost in $"], rows))
    accuracies = (0.5, 0.9, 0.99)
    kinds = {"one probe a class": 1.0, "10 a class, rho = 0.3": 1 + 9 * 0.3}
    counts = [
        [name, *(f"{enough_probes(a, d):,}" for a in accuracies)] for name, d in kinds.items()
    ]
    return [*parts, table(["h = 0.1%", *(f"A = {a:g}" for a in accuracies)], counts)]


def main() -> None:
    """Print all tables."""
    print("\n\n".join(tables()))
