"""Rates of open-set identification: FNIR against FPIR (DET), and both against the threshold."""

from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
import xarray as xr

from classex_bayes.arguments import class_counts, source_task, whole_number
from classex_bayes.exceptions import DataError
from classex_bayes.open_set.observed_rates import open_set_rates
from classex_bayes.open_set.open_set import OpenSetExtrapolator
from classex_bayes.open_set.open_set_prediction import OpenSetPrediction
from classex_bayes.plots.drawing import Drawing, plot_function
from classex_bayes.results.draws import SAMPLE_DIMS
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import ClassCounts, FloatArray, IntArray

if TYPE_CHECKING:
    from classex_bayes.plots.panels import Panel

_N_THRESHOLDS, _N_RATES = 30, 100
_SMALLEST = 1e-6  # smaller rates are drawn at it on a logarithmic axis


@plot_function("ci_band", "mean", "best_wrong", "truth")
def plot_det(
    panel: "Panel",
    model: OpenSetExtrapolator,
    k: ClassCounts | None = None,
    *,
    truth: SourceTask | None = None,
    rank: int = 1,
    ci_prob: float | None = None,
    ci_kind: str | None = None,
    **drawing: Unpack[Drawing],
) -> None:
    """Draw FNIR against FPIR (detection error tradeoff), a curve for each number of classes.

    Each draw of the posterior is a DET curve: FNIR and FPIR of the same draw at 30 thresholds,
    which are even along the curve of the means. Between them FNIR is interpolated linearly in log
    FPIR. The ribbon has mean and limits of FNIR over these curves at a given FPIR, as far as the
    curves of the draws reach. A point on a curve is where the mean FPIR is that of the best wrong
    score of the pilot, or of the non-mated probes of the fit: left of it, FPIR depends on the tail
    and not on data.

    Parameters
    ----------
    model : OpenSetExtrapolator
        A fitted model.
    k : int or array-like of int, optional
        Numbers of enrolled classes, 2..10^12; those of the pilot and 10 and 100 times as many by
        default.
    truth : SourceTask, optional
        Task whose exact rates (`open_set_rates`) on the numbers of `k` up to its k1 - 1 are drawn
        as lines, at the thresholds of the curves.
    rank : int
        Length of the lists of candidates that FNIR is of.
    {shared}

    Raises
    ------
    DataError
        A k or rank out of range; a truth with too few classes or without scores.
    NotFittedError
        The model was not fitted.

    References
    ----------
    Martin et al., The DET curve in assessment of detection task performance, Eurospeech 1997;
    ISO/IEC 19795-1:2021.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> gallery = rng.normal(size=(100, 8))
    >>> probes = gallery + 0.4 * rng.normal(size=(100, 8))
    >>> task = SourceTask.from_embeddings(probes, gallery, range(100))
    >>> model = OpenSetExtrapolator().fit(task, sampler={"draws": 100}, random_seed=1)
    >>> plot_det(model, [50, 1000]).get_ylabel()
    'FNIR'
    """
    counts, rank = _counts(model, k), whole_number(rank, "rank", 1)
    task, tested = _exact_counts(truth, counts)
    limit = model.best_wrong_score_
    seen: list[tuple[float, float]] = []
    exact: list[Any] = []
    for size in counts.tolist():
        thresholds = model.thresholds(size, _N_THRESHOLDS)
        at = np.clip(limit, thresholds.min(), thresholds.max())
        rates = model.predict(size, threshold=np.unique([*thresholds, at]), rank=rank)
        grid, draws = _fnir_at_fpir(rates, panel.interval[0])
        panel.draws(f"{size:,} enrolled", grid, draws)
        mean = draws.mean(SAMPLE_DIMS).values
        fpir = rates.fpir.sel(threshold=at).mean().item()
        if at == limit and grid[0] <= fpir <= grid[-1]:
            seen.append((fpir, float(np.exp(np.interp(np.log(fpir), np.log(grid), np.log(mean))))))
        if size in tested:
            exact.append(open_set_rates(task, size, thresholds, rank=rank).isel(k=0))
    for fpir, fnir in seen:
        name = model.best_wrong_name_
        panel.points(name, [fpir], [fnir], "best_wrong")
    for curve in exact:
        shown = (curve.fpir >= _SMALLEST) & (curve.fnir >= _SMALLEST)
        known = curve.fpir[shown], curve.fnir[shown]
        panel.reference("truth", *known, "truth", linestyle="--")
    title = f"Detection error tradeoff, from a pilot of {rates.n_classes:,} enrolled classes"
    panel.label(title, "FPIR", _fnir(rank), log_y=True)


@plot_function("ci_band", "mean", "best_wrong", "truth", n_panels=2)
def plot_threshold(
    panels: "list[Panel]",
    model: OpenSetExtrapolator,
    k: ClassCounts | None = None,
    *,
    truth: SourceTask | None = None,
    rank: int = 1,
    ci_prob: float | None = None,
    ci_kind: str | None = None,
    **drawing: Unpack[Drawing],
) -> None:
    """Draw FPIR and FNIR against the threshold, a curve for each number of classes.

    Thresholds reach from a mean FPIR of 0.9 with the fewest classes to one of 1e-5 with the most,
    or as far as the tails do. A vertical line is at the best wrong score of the pilot, or of the
    non-mated probes of the fit: beyond it, FPIR depends on the tail and not on data. Rates below
    1e-6 are drawn there.

    Parameters
    ----------
    model : OpenSetExtrapolator
        A fitted model.
    k : int or array-like of int, optional
        Numbers of enrolled classes, as of `plot_det`.
    truth : SourceTask, optional
        Task whose exact rates are drawn as lines, as by `plot_det`.
    rank : int
        Length of the lists of candidates that FNIR is of.
    {shared}

    Raises
    ------
    DataError
        As of `plot_det`.
    NotFittedError
        The model was not fitted.
    """
    counts, rank = _counts(model, k), whole_number(rank, "rank", 1)
    task, tested = _exact_counts(truth, counts)
    few, most = (model.thresholds(int(k), _N_THRESHOLDS) for k in (counts.min(), counts.max()))
    # The first thresholds are the loosest ones. Rates with few classes may be unknown before them.
    low, high = sorted([few[0], most[-1]])
    thresholds = np.unique(np.clip([few, most], low, high))
    rates = model.predict(counts, threshold=thresholds, rank=rank)
    title = f"From a pilot of {rates.n_classes:,} enrolled classes"
    accepted = "distances up to" if model.attributes_.negated else "scores from"
    x_label = f"threshold: {accepted} it are accepted"
    fpir, fnir = panels
    fpir.label(title, x_label, "FPIR", log_x=False, log_y=True)
    fnir.label("", x_label, _fnir(rank), log_x=False, log_y=True)
    for panel, rate in ((fpir, "fpir"), (fnir, "fnir")):
        for size in counts.tolist():
            draws = np.maximum(getattr(rates, rate).sel(k=size), _SMALLEST)
            panel.draws(f"{size:,} enrolled", thresholds, draws)
        for size in tested.tolist():
            curve = open_set_rates(task, size, thresholds, rank=rank)[rate].isel(k=0)
            curve = curve[curve >= _SMALLEST]
            panel.reference("truth", curve.threshold, curve, "truth", linestyle="--")
        panel.vertical(model.best_wrong_name_, model.best_wrong_score_, "best_wrong")


def _counts(model: OpenSetExtrapolator, k: ClassCounts | None) -> IntArray:
    """Numbers of enrolled classes that are drawn."""
    return class_counts(model.attributes_.n_classes * np.array([1, 10, 100]) if k is None else k)


def _exact_counts(truth: Any, counts: IntArray) -> tuple[Any, IntArray]:
    """The task, and numbers of classes on which it has exact rates; none without a task."""
    if truth is None:
        return truth, counts[:0]
    source_task(truth, "truth")
    if counts.min() >= truth.n_classes:
        raise DataError(
            f"truth: it has {truth.n_classes:,} classes and has rates on at most "
            f"{truth.n_classes - 1:,}, fewer than k = {counts.min():,}"
        )
    return truth, counts[counts < truth.n_classes]


def _fnir(rank: int) -> str:
    return "FNIR" if rank == 1 else f"FNIR at rank {rank}"


def _fnir_at_fpir(rates: OpenSetPrediction, prob: float) -> tuple[FloatArray, xr.DataArray]:
    """Rising FPIR that a share `prob` of the draws reach, and FNIR of each draw there."""
    # From tight to loose thresholds, as interpolation needs it.
    order = np.argsort(rates.fpir.mean([*SAMPLE_DIMS, "k"]).values)
    fpir, fnir = (rate.isel(k=0, threshold=order) for rate in (rates.fpir, rates.fnir))
    log_fpir = np.log(np.maximum(fpir.values, np.finfo(float).tiny))
    log_fpir = np.maximum.accumulate(log_fpir, axis=-1)
    # All but a few draws reach so far in both directions.
    lowest = np.quantile(log_fpir[..., 0], (1 + prob) / 2)
    highest = np.quantile(log_fpir[..., -1], (1 - prob) / 2)
    grid = np.linspace(max(lowest, np.log(_SMALLEST)), highest, _N_RATES)
    curves = np.empty((*fpir.shape[:2], _N_RATES))
    for place in np.ndindex(curves.shape[:2]):
        curves[place] = np.interp(grid, log_fpir[place], fnir.values[place])
    return np.exp(grid), xr.DataArray(np.maximum(curves, _SMALLEST), dims=(*SAMPLE_DIMS, "fpir"))
