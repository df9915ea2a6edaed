"""Rates of open-set identification: FNIR against FPIR (DET), and both against the threshold."""

from typing import Any

import numpy as np
import xarray as xr
from arviz_plots import PlotCollection

from classex_bayes.arguments import class_counts, whole_number
from classex_bayes.exceptions import DataError
from classex_bayes.open_set.nonmated_searches import NonmatedSearches
from classex_bayes.open_set.observed_rates import open_set_rates
from classex_bayes.open_set.open_set import OpenSetExtrapolator
from classex_bayes.open_set.open_set_prediction import OpenSetPrediction
from classex_bayes.plots.chart import INK, MUTED, Chart, Ribbon, Visuals, require_type
from classex_bayes.results import interval_label, interval_settings
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import ClassCounts, IntArray

TRUTH = "truth"
_RATES = "fpir", "fnir"
_VISUALS = "ci_band", "mean", "best_wrong", "truth"
_N_THRESHOLDS, _N_RATES = 30, 100
_SMALLEST = 1e-6  # rates below it are not told apart on a logarithmic axis


def plot_det(
    model: OpenSetExtrapolator,
    k: ClassCounts | None = None,
    *,
    truth: SourceTask | None = None,
    rank: int = 1,
    ci_prob: float | None = None,
    ci_kind: str | None = None,
    visuals: Visuals | None = None,
    plot_collection: PlotCollection | None = None,
    ax: Any = None,
    backend: str | None = None,
    **pc_kwargs: Any,
) -> PlotCollection:
    """Draw FNIR against FPIR (detection error tradeoff), a curve for each number of classes.

    Each draw of the posterior is a DET curve: FNIR and FPIR of the same draw along 30 thresholds,
    between which FNIR is interpolated linearly in log FPIR. The ribbon has mean and limits of FNIR
    over these curves at a given FPIR, as far as the curves of the draws reach. A point on a curve
    is where the mean FPIR is that of the best wrong score of the pilot, or of the non-mated probes
    of the fit: left of it, FPIR rests on the tail and not on data.

    Parameters
    ----------
    model : OpenSetExtrapolator
        A fitted model.
    k : int or array-like of int, optional
        Numbers of enrolled classes, 2..10^12; the source classes and 10 and 100 times as many by
        default.
    truth : SourceTask, optional
        Task whose exact rates (`open_set_rates`) on the numbers of `k` up to its k1 - 1 are drawn
        as lines, at the thresholds of the curves.
    rank : int
        Length of the lists of candidates that FNIR is of.
    ci_prob, ci_kind : optional
        Level and kind of the ribbons; ArviZ's rcParams by default.
    visuals : mapping, optional
        Removes (False) or styles (a mapping of arguments) what has this name: "ci_band", "mean",
        "best_wrong", "truth", "title", "xlabel", "ylabel" or "legend".
    plot_collection, ax, backend : optional
        A collection or axes of matplotlib to draw in, and the plotting library ("matplotlib",
        "plotly", "bokeh" or "none"); see `classex_bayes.plots.chart.Chart.draw`.
    **pc_kwargs
        `figure_kwargs` and `col_wrap`, as of `arviz_plots.PlotCollection.wrap`.

    Returns
    -------
    PlotCollection

    Raises
    ------
    DataError
        Another model; k or rank out of range; a truth with too few classes or without scores.
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
    >>> model = OpenSetExtrapolator().fit(task, draws=100, random_seed=1)
    >>> plot_det(model, [50, 1000], backend="none").backend
    'none'
    """
    return det_chart(model, k, truth, rank, ci_prob, ci_kind).draw(
        visuals, plot_collection, ax, backend, **pc_kwargs
    )


def det_chart(
    model: OpenSetExtrapolator,
    k: ClassCounts | None = None,
    truth: SourceTask | None = None,
    rank: int = 1,
    ci_prob: float | None = None,
    ci_kind: str | None = None,
) -> Chart:
    """Return the chart of `plot_det`: ribbons in the order of k, then the truth."""
    counts, best = _checked(model, k, truth, rank)
    prob, kind = interval_settings(ci_prob, ci_kind)
    names = {size: _name(size, prob, kind) for size in counts.tolist()}
    best_wrong = NonmatedSearches.of(model.idata).best_score
    others = {best_wrong: INK} | ({} if truth is None else {TRUTH: INK})
    chart = Chart({**dict.fromkeys(names.values()), **others}, visuals=_VISUALS, log_y=True)
    exact, limit = [], model.best_wrong_score_
    for size, name in names.items():
        thresholds = model.thresholds(size, _N_THRESHOLDS)
        at = np.clip(limit, thresholds.min(), thresholds.max())
        rates = model.predict(size, threshold=[*thresholds, at], rank=best)
        ribbon = _det_ribbon(rates, prob, kind)
        chart.ribbon(name, ribbon)
        fpir = rates.fpir[..., -1].mean().item()
        if at == limit and ribbon.x[0] <= fpir <= ribbon.x[-1]:
            there = np.exp(np.interp(np.log(fpir), np.log(ribbon.x), np.log(ribbon.mean)))
            chart.points(best_wrong, np.array([fpir]), np.array([there]), visual="best_wrong")
        if truth is not None and size < truth.n_classes:
            known = open_set_rates(truth, size, thresholds, rank=best).isel(k=0)
            known = known.isel(threshold=(known.fpir >= _SMALLEST) & (known.fnir >= _SMALLEST))
            exact.append((known.fpir.values, known.fnir.values))
    for fpir, fnir in exact:
        chart.line(TRUTH, fpir, fnir, visual="truth", linestyle="C1")
    title = f"Detection error tradeoff, from {rates.n_classes:,} source classes"
    return chart.labelled(title, "FPIR", _fnir(best))


def plot_threshold(
    model: OpenSetExtrapolator,
    k: ClassCounts | None = None,
    *,
    truth: SourceTask | None = None,
    rank: int = 1,
    ci_prob: float | None = None,
    ci_kind: str | None = None,
    visuals: Visuals | None = None,
    plot_collection: PlotCollection | None = None,
    ax: Any = None,
    backend: str | None = None,
    **pc_kwargs: Any,
) -> PlotCollection:
    """Draw FPIR and FNIR against the threshold, a curve for each number of classes.

    Thresholds reach from a mean FPIR of 0.9 with the fewest classes to one of 1e-5 with the most,
    or as far as the tails do. A vertical line is at the best wrong score of the pilot, or of
    the non-mated probes of the fit: beyond it, FPIR rests on the tail and not on data. Rates below
    1e-6 are drawn there.

    Parameters
    ----------
    model : OpenSetExtrapolator
        A fitted model.
    k : int or array-like of int, optional
        Numbers of enrolled classes, 2..10^12; the source classes and 10 and 100 times as many by
        default.
    truth : SourceTask, optional
        Task whose exact rates (`open_set_rates`) on the numbers of `k` up to its k1 - 1 are drawn
        as lines.
    rank : int
        Length of the lists of candidates that FNIR is of.
    ci_prob, ci_kind : optional
        Level and kind of the ribbons; ArviZ's rcParams by default.
    visuals : mapping, optional
        Removes (False) or styles (a mapping of arguments) what has this name: "ci_band", "mean",
        "best_wrong", "truth", "title", "xlabel", "ylabel" or "legend".
    plot_collection, ax, backend : optional
        A collection or axes of matplotlib to draw in, and the plotting library ("matplotlib",
        "plotly", "bokeh" or "none"); see `classex_bayes.plots.chart.Chart.draw`.
    **pc_kwargs
        `figure_kwargs` and `col_wrap`, as of `arviz_plots.PlotCollection.wrap`.

    Returns
    -------
    PlotCollection

    Raises
    ------
    DataError
        Another model; k or rank out of range; a truth with too few classes or without scores.
    NotFittedError
        The model was not fitted.
    """
    counts, best = _checked(model, k, truth, rank)
    prob, kind = interval_settings(ci_prob, ci_kind)
    ends = [model.thresholds(int(size), _N_THRESHOLDS) for size in {counts.min(), counts.max()}]
    thresholds = np.unique(np.concatenate(ends))
    rates = model.predict(counts, threshold=thresholds, rank=best)
    names = {size: _name(size, prob, kind) for size in counts.tolist()}
    best_wrong = NonmatedSearches.of(model.idata).best_score
    others = {best_wrong: MUTED} | ({} if truth is None else {TRUTH: INK})
    series = {**dict.fromkeys(names.values()), **others}
    chart = Chart(series, _RATES, visuals=_VISUALS, log_x=False, log_y=True)
    limit = model.best_wrong_score_
    for rate in _RATES:
        for size, name in names.items():
            draws = np.maximum(getattr(rates, rate).sel(k=size), _SMALLEST)
            chart.ribbon(name, Ribbon.of_draws(thresholds, draws, prob, kind), rate)
        if truth is not None:
            known = counts[counts < truth.n_classes]
            exact = open_set_rates(truth, known, thresholds, rank=best)[rate]
            for size in known:
                values = exact.sel(k=size).values
                seen = values >= _SMALLEST
                line = thresholds[seen], values[seen], rate
                chart.line(TRUTH, *line, visual="truth", linestyle="C1")
        lowest = min(mark.y[0].min() for mark in chart.marks if mark.panel == rate)
        at = np.full(2, limit), np.array([lowest, 1.0]), rate
        chart.line(best_wrong, *at, visual="best_wrong", linestyle="C2")
    title = f"Rates from {rates.n_classes:,} source classes"
    accepted = "distances up to" if model.idata.attrs["negated"] else "scores from"
    x_label = f"threshold: {accepted} it are accepted"
    return chart.labelled(title, x_label, "FPIR", _fnir(best)).draw(
        visuals, plot_collection, ax, backend, **pc_kwargs
    )


def _checked(
    model: Any, k: ClassCounts | None, truth: SourceTask | None, rank: Any
) -> tuple[IntArray, int]:
    """Numbers of classes and rank, where all arguments are as they must be."""
    require_type(model, OpenSetExtrapolator, "model")
    if k is None:
        k = model.idata.attrs["n_classes"] * np.array([1, 10, 100])
    counts, best = class_counts(k), whole_number(rank, "rank", 1)
    if truth is not None:
        require_type(truth, SourceTask, "truth")
        if counts.min() >= truth.n_classes:
            raise DataError(
                f"truth: it has {truth.n_classes:,} classes and tells rates on at most "
                f"{truth.n_classes - 1:,}, fewer than k = {counts.min():,}"
            )
    return counts, best


def _name(size: int, prob: float, kind: str) -> str:
    return f"{size:,} enrolled, {interval_label(prob, kind)}"


def _fnir(rank: int) -> str:
    return "FNIR" if rank == 1 else f"FNIR at rank {rank}"


def _det_ribbon(rates: OpenSetPrediction, prob: float, kind: str) -> Ribbon:
    """FNIR at given FPIR over the curves of the draws."""
    # From tight to loose thresholds, as interpolation needs it.
    order = np.argsort(rates.fpir.mean(["chain", "draw", "k"]).values)
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
    draws = xr.DataArray(
        np.maximum(curves, _SMALLEST),
        {name: fnir[name] for name in ("chain", "draw")},
        ("chain", "draw", "fpir"),
    )
    return Ribbon.of_draws(np.exp(grid), draws, prob, kind)
