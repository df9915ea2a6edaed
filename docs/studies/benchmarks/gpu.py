"""Tasks from arrays on a GPU, beside the loop that a user of PyTorch would write."""

from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from classex_bayes import SourceTask
from classex_bayes.typing import IntArray
from studies.benchmarks.measurement import Measurement, Setup, Skipped, seconds
from studies.benchmarks.ranking import embeddings

_ROWS = 2048  # of the loop
_REPEATS = 3
_SAME = 0.999
_SIZES = {"20,000 x 20,000": 20_000, "100,000 x 100,000": 100_000}
_SCORES = {"20,000 x 20,000 scores": 20_000, "50,000 x 50,000 scores": 50_000}


class Library(NamedTuple):
    """How a library puts arrays on the GPU and waits for it; its peak of memory, if it tells."""

    name: str
    put: Callable[[Any], Any]
    wait: Callable[[], object]
    peak: Callable[[], int | None]


def gpu(setup: Setup) -> list[Measurement]:
    """Time of a task on a GPU, and of a loop in PyTorch.

    Memory is the peak above the arrays, if the library reports it.
    """
    found = list(_libraries(setup.small))
    if not found:
        raise Skipped("needs a GPU that PyTorch, JAX or CuPy sees")
    measurements = []
    for library in found:
        for name, n in ({"300 x 300": 300} if setup.small else _SIZES).items():
            for dim in (128, 512):
                for distance in ("cosine", "sqeuclidean"):
                    probes, gallery, y = embeddings(n, n, 2.2 * np.sqrt(dim / 128), dim)
                    pair = library.put(probes), library.put(gallery)
                    work = partial(SourceTask.from_embeddings, *pair, y, distance=distance)
                    loop = partial(_loop, *pair, y, distance)
                    title = f"{name}, d = {dim}, {distance}, {library.name}"
                    measurements += _compared(library, title, work, loop)
        for name, n in ({"300 x 300 scores": 300} if setup.small else _SCORES).items():
            probes, gallery, y = embeddings(n, n, 2.2, 128)
            scores = library.put(probes) @ library.put(gallery).T
            work = partial(SourceTask.from_scores, scores, y)
            loop = partial(_count, scores, y)
            measurements += _compared(library, f"{name}, {library.name}", work, loop)
    return measurements


def _libraries(small: bool) -> Iterator[Library]:
    if find_spec("torch"):
        import torch

        if torch.cuda.is_available():

            def peak() -> int:
                most = torch.cuda.max_memory_allocated() - torch.cuda.memory_allocated()
                torch.cuda.reset_peak_memory_stats()
                return most

            put = partial(torch.asarray, device="cuda")
            yield Library("PyTorch", put, torch.cuda.synchronize, peak)
    if find_spec("cupy"):
        import cupy

        yield Library("CuPy", cupy.asarray, cupy.cuda.Device().synchronize, lambda: None)
    import jax
    import jax.numpy as jnp

    if small or jax.default_backend() != "cpu":
        yield Library("JAX", jnp.asarray, lambda: None, lambda: None)


def _compared(
    library: Library, name: str, work: Callable[[], SourceTask], loop: Callable[[], Any]
) -> list[Measurement]:
    """Times of the task, and the ratio to those of the loop in PyTorch, after a warm-up."""

    def timed(function: Callable[[], object]) -> float:
        return seconds(lambda: (function(), library.wait()))

    task = work()
    library.peak()
    times = [timed(work) for _ in range(_REPEATS)]
    most = library.peak()
    megabytes = None if most is None else most / 1e6
    measurements = [Measurement(name, times, None, "seconds", True, megabytes)]
    if library.name == "PyTorch":
        # The loop compares in single precision, in which a few pairs are in another order.
        assert np.mean(loop().cpu().numpy() == task.ranks - 1) > _SAME
        ratios = [timed(work) / timed(loop) for _ in range(_REPEATS)]
        unit = "times a loop in PyTorch"
        measurements.append(Measurement(f"{name}, ratio", ratios, 3.0, unit, at_most=True))
    return measurements


def _loop(probes: Any, gallery: Any, y: IntArray, distance: str) -> Any:
    """Numbers of better classes, as a user of PyTorch would count them."""
    import torch

    labels, squares = torch.asarray(y, device=probes.device), 0.0
    if distance == "cosine":
        probes, gallery = (x / x.norm(dim=1, keepdim=True) for x in (probes, gallery))
    else:
        squares = (gallery**2).sum(1) / 2
    parts = [
        _count(probes[rows] @ gallery.T - squares, labels[rows])
        for rows in (slice(i, i + _ROWS) for i in range(0, len(y), _ROWS))
    ]
    return torch.cat(parts)


def _count(scores: Any, y: Any) -> Any:
    import torch

    labels = torch.asarray(y, device=scores.device)
    return (scores > scores.gather(1, labels[:, None])).sum(1)
