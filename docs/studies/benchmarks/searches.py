"""Ranks of embeddings as users of other libraries compute them."""

import multiprocessing
import re
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from classex_bayes import SourceTask
from classex_bayes.typing import FloatArray, IntArray
from studies.benchmarks.measurement import Measurement, Setup, Skipped, seconds
from studies.benchmarks.ranking import embeddings

Search = Callable[[FloatArray, FloatArray, IntArray], Any]
_BLOCK = 1_000  # probes whose scores of all classes are in memory together
_OURS = "from_embeddings"
_PEAK = Path("/proc/self/clear_refs")


def _ours(probes: FloatArray, gallery: FloatArray, y: IntArray) -> IntArray:
    return SourceTask.from_embeddings(probes, gallery, y, untested="competitors").ranks


def _numpy(probes: FloatArray, gallery: FloatArray, y: IntArray) -> IntArray:
    half_norms = (gallery**2).sum(axis=1) / 2

    def ranks(probes: FloatArray, y: IntArray) -> IntArray:
        scores = probes @ gallery.T - half_norms
        return 1 + (scores > np.take_along_axis(scores, y[:, None], 1)).sum(axis=1)

    return _in_blocks(ranks, probes, y)


def _scikit_learn(probes: FloatArray, gallery: FloatArray, y: IntArray) -> IntArray:
    from sklearn.metrics import pairwise_distances_chunked

    def ranks(distances: FloatArray, start: int) -> IntArray:
        true_class = y[start : start + len(distances), None]
        return 1 + (distances < np.take_along_axis(distances, true_class, 1)).sum(axis=1)

    return np.concatenate([*pairwise_distances_chunked(probes, gallery, reduce_func=ranks)])


def _faiss(probes: FloatArray, gallery: FloatArray, y: IntArray) -> IntArray:
    index = _index(gallery)

    def ranks(probes: FloatArray, y: IntArray) -> IntArray:
        _, classes = index.search(probes, len(gallery))
        return 1 + (classes == y[:, None]).argmax(axis=1)

    return _in_blocks(ranks, probes, y)


def _faiss_nearest(probes: FloatArray, gallery: FloatArray, y: IntArray) -> Any:
    return _index(gallery).search(probes, 1)[1][:, 0] == y


def _scikit_learn_nearest(probes: FloatArray, gallery: FloatArray, y: IntArray) -> Any:
    from sklearn.metrics import pairwise_distances_argmin

    return pairwise_distances_argmin(probes, gallery) == y


def _index(gallery: FloatArray) -> Any:
    import faiss

    index = faiss.IndexFlatL2(gallery.shape[1])
    index.add(gallery)
    return index


def _in_blocks(
    ranks: Callable[[FloatArray, IntArray], IntArray], probes: FloatArray, y: IntArray
) -> IntArray:
    starts = range(0, y.size, _BLOCK)
    return np.concatenate([ranks(probes[i : i + _BLOCK], y[i : i + _BLOCK]) for i in starts])


RANKS: dict[str, Search] = {
    _OURS: _ours,
    "FAISS": _faiss,
    "scikit-learn": _scikit_learn,
    "NumPy": _numpy,
}
# Whether the true class is nearest: the accuracy at k1, and nothing to extrapolate from.
CORRECT: dict[str, Search] = {
    "FAISS, nearest class alone": _faiss_nearest,
    "scikit-learn, nearest class alone": _scikit_learn_nearest,
}


def searches(setup: Setup) -> list[Measurement]:
    """Ranks of embeddings: time of other libraries, relative to ours.

    Embeddings have 128 coordinates. FAISS searches all classes and looks for the true one
    (`IndexFlatL2`). scikit-learn counts nearer classes in `pairwise_distances_chunked`, NumPy in
    blocks of a matrix product. Each runs in a process of its own, in turn. Memory is the peak above
    the embeddings. The nearest class alone gives the accuracy, but no ranks.
    """
    n = 300 if setup.small else 20_000
    runs: dict[str, list[Any]] = {name: [] for name in (RANKS | CORRECT)}
    for _ in range(1 if setup.small else 3):
        for name in runs:
            runs[name].append(_alone(name, n))
    times = {name: [took for took, _, _ in several] for name, several in runs.items()}
    answers = {name: several[0][2] for name, several in runs.items()}
    measurements = []
    for name in runs:
        text, peak = f"{name}, {n:,} x {n:,}", max(run[1] for run in runs[name])
        if name == _OURS:
            measurements.append(Measurement(text, times[name], None, "seconds", True, peak))
            continue
        ratios = [theirs / ours for theirs, ours in zip(times[name], times[_OURS], strict=True)]
        target = 1 if name in RANKS else None
        measurements.append(Measurement(text, ratios, target, "times our time", megabytes=peak))
    equal = [float(np.mean(answers[name] == answers[_OURS])) for name in RANKS]
    equal += [float(np.mean(answers[name] == (answers[_OURS] == 1))) for name in CORRECT]
    text = f"smallest share of answers that equal ours, {n:,} x {n:,}"
    return [*measurements, Measurement(text, [min(equal)], 0.999, "of the answers")]


def _alone(name: str, n: int) -> tuple[float, float, Any]:
    """Seconds, megabytes and answers of a search in a process of its own."""
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn) as process:
        return process.submit(_search, name, n).result()


def _search(name: str, n: int) -> tuple[float, float, Any]:
    if not _PEAK.exists():
        raise Skipped("needs Linux, which alone lets a process forget its peak memory")
    search = (RANKS | CORRECT)[name]
    probes, gallery, y = embeddings(n, n, 2.2)
    search(probes[:100], gallery, y[:100])  # loads and compiles
    _PEAK.write_text("5")  # the peak starts again
    before = _peak()
    answers = []
    took = seconds(lambda: answers.append(search(probes, gallery, y)))
    return took, _peak() - before, answers[0]


def _peak() -> float:
    """Peak memory of this process in megabytes."""
    [kilobytes] = re.findall(r"VmHWM:\s*(\d+)", Path("/proc/self/status").read_text())
    return int(kilobytes) * 1024 / 1e6
