"""What a pass costs at any size: products, bytes, tasks, hours, and whether it is needed at all.

`python -m classex_bayes.evaluate.scale` prints the tables of docs/scale.md.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import ceil

from scipy.special import ndtri

from classex_bayes.task.dask_sources import FAN_IN
from classex_bayes.task.validation import number, probability, share

N_K = 12  # numbers of classes at which a task keeps its covariance
BYTES_OF_SUM = 8


@dataclass(frozen=True)
class Layout:
    """A pass cut into a grid of cells: row blocks x ranges of classes.

    Attributes
    ----------
    n_test, n_classes : int
        Numbers of probes and of classes, one template each.
    dim : int
        Coordinates of an embedding.
    rows, classes : int
        Probes in a row block and classes in a range (the last ones may be smaller).
    itemsize : int
        Bytes of a coordinate.

    Examples
    --------
    >>> layout = Layout(n_test=10**9, n_classes=10**8, dim=128, rows=10_000, classes=12_500_000)
    >>> layout.cells, layout.multiply_adds
    (800000, 12800000000000000000)
    """

    n_test: int
    n_classes: int
    dim: int
    rows: int
    classes: int
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
    def cells(self) -> int:
        """Number of cells, each one task that compares a row block with a range."""
        return self.row_blocks * self.ranges

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
        """Number of tasks of a graph, but for those that read chunks and find own templates.

        Three for each cell (compare, count, sum), three for each row block (own scores, gains,
        what is kept), and the tree of sums of each range.
        """
        in_tree, parts = 0, self.row_blocks
        while parts > 1:
            parts = ceil(parts / FAN_IN)
            in_tree += parts
        return 3 * self.cells + 3 * self.row_blocks + in_tree * self.ranges

    @property
    def cell_bytes(self) -> int:
        """Bytes that go into all cells: a row block with its own scores, a range of the gallery."""
        own = self.n_test * BYTES_OF_SUM
        return self.ranges * (self.probe_bytes + own) + self.row_blocks * self.gallery_bytes

    @property
    def bit_bytes(self) -> int:
        """Bytes of packed bits that all cells put out; those of one row block live at a time."""
        full, rest = divmod(self.n_classes, self.classes)
        return self.n_test * (full * words(self.classes) + words(rest))

    @property
    def sum_bytes(self) -> int:
        """Bytes of the sums that one row block, or all of them, add to all ranges."""
        return (self.n_classes + self.ranges * N_K) * N_K * BYTES_OF_SUM


def words(n_classes: int) -> int:
    """Bytes that pack a bit for each class."""
    return 8 * ceil(n_classes / 64)


@dataclass(frozen=True)
class Node:
    """A machine with one or more devices that compute; each keeps a range of the classes.

    Attributes
    ----------
    name : str
        What it is.
    devices : int
        Number of devices.
    teraflops : float
        Sustained rate of matrix products of one device, in 10^12 operations a second.
    share : float
        Part of that rate that is left once products are compared and counted.
    memory_rate, link_rate, network_rate : float
        GB/s of a device's memory, of the link from the host to a device, and of the network.
    memory : float
        GB of a device.
    pair_bytes : float
        Bytes of device memory written and read for each pair (instance, class); next to nothing
        where products are counted before they leave the registers or the cache.
    price : float
        Of the node, an hour.
    """

    name: str
    devices: int
    teraflops: float
    share: float
    memory_rate: float
    link_rate: float
    network_rate: float
    memory: float
    pair_bytes: float
    price: float


# Sustained rates are 70 to 80% of the makers' dense peaks; prices are of the order asked on demand.
H100 = Node("8 x H100 80 GB, TF32", 8, 350, 0.7, 2800, 50, 40, 80, 0.25, 24)
NODES = (
    H100,
    replace(H100, name="the same, float32", teraflops=45),
    replace(H100, name="the same, TF32, tiles in memory", pair_bytes=16),
    Node("8 x A100 80 GB, TF32", 8, 120, 0.7, 1600, 25, 20, 80, 0.25, 14),
    Node("1 x L4 24 GB, TF32", 1, 45, 0.7, 250, 12, 3, 24, 0.25, 0.8),
    Node("64 cores, float32", 1, 3, 0.45, 250, 250, 3, 256, 0.25, 3),
)


@dataclass(frozen=True)
class Estimate:
    """Hours that each resource of the nodes is busy, and what the pass takes and costs."""

    products: float
    memory: float
    link: float
    network: float
    hours: float  # of the slowest, for they overlap
    cost: float  # of all nodes


def estimate(
    layout: Layout, node: Node, n_nodes: int = 1, loss_share: float = 1e-4, close: float = 1e-4
) -> Estimate:
    """Hours and cost of a pass.

    Every node keeps the whole gallery, divided between its devices (and read again in as many
    rounds as it does not fit), and takes its part of the row blocks, which visit all its devices.

    Parameters
    ----------
    layout : Layout
        The pass.
    node : Node
        Kind of machine.
    n_nodes : int
        Number of machines.
    loss_share : float
        Share of the pairs in which the competitor beats the true class: each costs the reading
        and writing of 12 sums.
    close : float
        Share of the pairs too close to call, each of which is computed again from two embeddings.

    Returns
    -------
    Estimate

    Examples
    --------
    >>> layout = Layout(n_test=10**9, n_classes=10**8, dim=128, rows=10_000, classes=12_500_000)
    >>> round(estimate(layout, NODES[0]).hours, 1)
    3.6
    """
    n_devices = n_nodes * node.devices
    pairs = layout.n_test * layout.n_classes
    operations = 2 * layout.multiply_adds
    pair_bytes = (
        node.pair_bytes
        + loss_share * 2 * N_K * BYTES_OF_SUM
        + close * 2 * layout.dim * layout.itemsize
    )
    # Half of a device's memory is left to tiles, bits and sums.
    rounds = ceil(layout.gallery_bytes / (node.devices * node.memory * 1e9 / 2))
    busy = {
        "products": operations / (n_devices * node.teraflops * node.share * 1e12),
        "memory": pairs * pair_bytes / (n_devices * node.memory_rate * 1e9),
        "link": (rounds * layout.probe_bytes / n_nodes + layout.gallery_bytes / node.devices)
        / (node.link_rate * 1e9),
        "network": (
            rounds * layout.probe_bytes / n_nodes + layout.gallery_bytes + 2 * layout.sum_bytes
        )
        / (node.network_rate * 1e9),
    }
    hours = {name: seconds / 3600 for name, seconds in busy.items()}
    longest = max(hours.values())
    return Estimate(**hours, hours=longest, cost=longest * n_nodes * node.price)


def enough_probes(
    accuracy: float, half_width: float = 0.001, level: float = 0.95, design_effect: float = 1.0
) -> int:
    r"""Number of probes whose test accuracy is within `half_width` of that of all probes.

    :math:`n = z^2 A (1 - A) \, deff / h^2`: what more probes would still change is less than
    the width asked for. With r probes of each class, :math:`deff = 1 + (r - 1) \rho`, so probes
    of different classes are worth most.

    Parameters
    ----------
    accuracy : float
        Expected accuracy A; 0.5 is the worst case.
    half_width : float
        h, half the width of the interval.
    level : float
        Probability of the interval.
    design_effect : float
        `SourceTask.design_effect` of a pilot, or 1 for probes of different classes.

    Returns
    -------
    int

    Examples
    --------
    >>> enough_probes(0.5), enough_probes(0.9), enough_probes(0.9, design_effect=3)
    (960365, 345732, 1037194)
    """
    accuracy = share(accuracy, "accuracy")
    half_width = probability(half_width, "half_width")
    z = float(ndtri((1 + probability(level, "level")) / 2))
    effect = number(design_effect, "design_effect", 1, whole=False)
    return ceil(z**2 * accuracy * (1 - accuracy) * effect / half_width**2)


def enough_rivals(relative_error: float, kurtosis: float = 20.0) -> int:
    r"""Number of competitors, drawn at random, that give the variance of the accuracy.

    The variance is a sum over competitors of :math:`\psi_j^2`, so a sample of m of them, scaled
    up by k1 / m, has a relative standard error of :math:`\sqrt{(\kappa - 1) / m}`.

    Parameters
    ----------
    relative_error : float
        Relative standard error of the variance.
    kurtosis : float
        :math:`\kappa = E\psi^4 / (E\psi^2)^2`; few hubs that beat many make it large.

    Returns
    -------
    int

    Examples
    --------
    >>> enough_rivals(0.05)
    7600
    """
    relative_error = probability(relative_error, "relative_error")
    return ceil((number(kurtosis, "kurtosis", 1, whole=False) - 1) / relative_error**2)


FULL = Layout(n_test=10**9, n_classes=10**8, dim=128, rows=10_000, classes=12_500_000)
SAMPLED = replace(FULL, n_test=10**6)


COLUMNS = (
    "node",
    "devices",
    "TFLOP/s",
    "share",
    "memory GB/s",
    "link GB/s",
    "network GB/s",
    "memory GB",
    "bytes a pair",
    "$ an hour",
)


def tables() -> str:
    """Tables of docs/scale.md: the assumptions, the full pass, and the sampled one."""
    lines = [_row(COLUMNS), "|---" + "|---:" * 9 + "|"]
    lines += [_row(vars(node).values()) for node in NODES]
    for layout, n_nodes in ((FULL, 4), (SAMPLED, 1)):
        lines += [
            "",
            f"{layout.n_test:.0e} probes x {layout.n_classes:.0e} classes on {n_nodes} "
            f"node{'s' * (n_nodes > 1)}; hours that each resource is busy:".replace("e+0", "e"),
            "",
            "| node | products | device memory | link | network | hours | cost in $ |",
            "|---" + "|---:" * 6 + "|",
        ]
        for node in NODES:
            found = vars(estimate(layout, node, n_nodes))
            lines.append(_row([node.name, *(f"{value:,.3g}" for value in found.values())]))
    return "\n".join(lines)


def _row(cells: Iterable[object]) -> str:
    return f"| {' | '.join(str(cell) for cell in cells)} |"


if __name__ == "__main__":
    print(tables())
