"""Ranks from scores and embeddings: speed relative to the limits of the machine."""

import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from classex_bayes import SourceTask
from classex_bayes.core.rank_pass import rank_statistics
from classex_bayes.core.ranks.embeddings import EmbeddingScores
from classex_bayes.core.ranks.sources import ScoreMatrix
from classex_bayes.core.ranks.threads import available_threads
from classex_bayes.core.subsets import log_spaced
from classex_bayes.typing import FloatArray, IntArray
from studies.benchmarks.measurement import Measurement, Setup, time_ratios

_DIM = 128
# Test instances, classes, standard deviation of a probe about its template. Accuracies are 0.8,
# 0.95 and near chance.
_EMBEDDINGS = {
    "20,000 x 20,000": (20_000, 20_000, 2.2),
    "100,000 x 1,000": (100_000, 1_000, 2.2),
    "20,000 x 20,000, near chance": (20_000, 20_000, 20.0),
}
_SMALL = {"300 x 200": (300, 200, 2.2)}


def embeddings(
    n: int, n_classes: int, noise: float, dim: int = _DIM
) -> tuple[FloatArray, FloatArray, IntArray]:
    """Draw probes about the templates of a gallery, and their classes."""
    rng = np.random.default_rng(1)
    gallery = rng.standard_normal((n_classes, dim), dtype=np.float32)
    y = rng.permutation(n_classes)[np.arange(n) % n_classes]
    probes = gallery[y] + np.float32(noise) * rng.standard_normal((n, dim), dtype=np.float32)
    return probes, gallery, y


def _covariance(source: EmbeddingScores | ScoreMatrix, y: IntArray) -> IntArray:
    n_classes = source.shape[1]
    k = log_spaced(2, n_classes, 12)
    statistics = rank_statistics(source, y, np.full(y.size, 1 / y.size), k)
    statistics.influence.covariance(np.bincount(y, minlength=n_classes) / y.size)
    return statistics.n_better


def products(setup: Setup) -> list[Measurement]:
    """Speed of ranks of embeddings, relative to a matrix product.

    Ranks of embeddings are compared with a matrix product, and ranks of scores with the memory
    bandwidth, that of a sum of the scores in as many threads. Our times include the covariance of
    the accuracies.
    """
    size = 256 if setup.small else 4096
    square = np.random.default_rng(2).random((size, size), dtype=np.float32)
    out = np.empty_like(square)
    measurements = []
    for name, (n, n_classes, noise) in (_SMALL if setup.small else _EMBEDDINGS).items():
        probes, gallery, y = embeddings(n, n_classes, noise)
        source = EmbeddingScores(probes, gallery, np.arange(n_classes), "sqeuclidean", "max")
        ratios = time_ratios(
            lambda: np.matmul(square, square, out=out), partial(_covariance, source, y)
        )
        shares = [n * n_classes * _DIM / size**3 * ratio for ratio in ratios]
        unit = "of the rate of a bare matrix product"
        measurements.append(Measurement(f"embeddings, {name}", shares, 0.5, unit))
    return measurements


def bandwidth(setup: Setup) -> list[Measurement]:
    """Speed of ranks of scores, relative to the memory bandwidth."""
    n = 200 if setup.small else 20_000
    rng = np.random.default_rng(3)
    y = rng.permutation(n)
    measurements = []
    for dtype in (np.float32, np.float64):
        scores = rng.random((n, n), dtype=dtype)
        scores[np.arange(n), y] = 1 - rng.random(n) * 0.4 / n  # accuracy 0.8
        rows = np.array_split(scores, available_threads())

        def read(rows: list[FloatArray] = rows) -> None:
            with ThreadPoolExecutor(len(rows)) as threads:
                list(threads.map(np.sum, rows))

        ratios = time_ratios(read, partial(_covariance, ScoreMatrix(scores), y))
        name = f"scores, {n:,} x {n:,} {np.dtype(dtype)}"
        measurements.append(Measurement(name, ratios, 0.35, "of the memory bandwidth"))
    return measurements


def memory(setup: Setup) -> list[Measurement]:
    """Peak memory of a task, relative to its input."""
    n, n_classes = (3_000, 500) if setup.small else (40_000, 5_000)
    rng = np.random.default_rng(4)
    y = rng.permutation(np.arange(n) % n_classes)
    with TemporaryDirectory() as folder:
        file = Path(folder) / "scores.npy"
        scores = np.lib.format.open_memmap(file, "w+", np.float32, (n, n_classes))
        for part in np.array_split(np.arange(n), 50):
            scores[part] = rng.standard_normal((part.size, n_classes), dtype=np.float32)
        mapped = np.load(file, mmap_mode="r")
        # Compile and load everything that stays in memory.
        SourceTask.from_scores(mapped[:, :3], y % 3)
        tracemalloc.start()
        SourceTask.from_scores(mapped, y, untested="competitors")
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    limit = 10.0 if setup.small else 0.1
    return [
        Measurement(
            "peak memory of a task, memory map of scores",
            [peak / scores.nbytes],
            limit,
            "of the size of the scores",
            True,
        )
    ]
