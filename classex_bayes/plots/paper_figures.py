"""Figures of jmlr2018, drawn again: the toy example (4, 5, 6) and the simulation (7, 8)."""

from typing import Any

import numpy as np
import pandas as pd

from classex_bayes.arguments import how_many, seed_sequence
from classex_bayes.exceptions import DataError
from classex_bayes.plots.chart import palette_place
from classex_bayes.plots.libraries import LIBRARIES
from classex_bayes.simulate import BivariateNormal
from classex_bayes.studies.gaussian_simulation import rmse_by_cell
from classex_bayes.typing import RandomSeed

_RHO = 0.7
_RHOS = (0.3, 0.5, 0.7, 0.9)
_LARGEST_K = 10
_POSTERIOR = "BayesianExtrapolator"
_DASHES = ("-", "--", ":", "-.")
_LIBRARY = LIBRARIES["matplotlib"]


def _axes(rows: int, columns: int, width: float, height: float) -> tuple[Any, Any]:
    from matplotlib import pyplot as plt

    return plt.subplots(rows, columns, figsize=(width, height), layout="constrained")


def _style(place: int) -> dict[str, Any]:
    """Colour and line style of a series."""
    color, dash = palette_place(place, _LIBRARY.palette())
    return {"color": color, "linestyle": _DASHES[dash]}


def figure4(n_sets: int = 2000, random_seed: RandomSeed = 0) -> Any:
    """Draw the distribution of the accuracy :math:`GA_k` of `n_sets` random label sets, k = 2..10.

    Bivariate normal with correlation 0.7; points are means of the drawn sets, the line is the
    exact average :math:`AGA_k`.
    """
    n = how_many(n_sets, "n_sets", 2)
    rng = np.random.default_rng(seed_sequence(random_seed))
    law, k = BivariateNormal(_RHO), np.arange(2, _LARGEST_K + 1)
    drawn = [law.generalization_accuracy(rng.normal(size=(n, size))) for size in k]
    figure, axes = _axes(1, 1, 7.0, 4.5)
    axes.violinplot(drawn, k, widths=0.8, showextrema=False)
    axes.plot(k, law.accuracy(k), color=_LIBRARY.palette()[1], label="average, exact (AGA)")
    means = [values.mean() for values in drawn]
    axes.plot(k, means, "o", mfc="none", color=_LIBRARY.ink(), label="mean of the drawn label sets")
    axes.set(xlabel="number of classes k", ylabel="generalization accuracy", ylim=(0, 1))
    axes.set_title(f"Accuracy of random label sets, bivariate normal, rho = {_RHO}")
    axes.legend(frameon=False)
    return figure


def figure5() -> Any:
    """Draw the favorability U_x(y) and its distribution function D(u), for correlation 0.7."""
    law = BivariateNormal(_RHO)
    grid = np.linspace(-3, 3, 241)
    x, y = np.meshgrid(grid, grid)
    figure, (left, right) = _axes(1, 2, 10.0, 4.5)
    levels = left.contour(x, y, law.favorability(x, y), np.arange(0.1, 1.0, 0.1), cmap="viridis")
    left.clabel(levels, fontsize=8)
    left.set(xlabel="test instance x", ylabel="label y", title="Favorability U of label y at x")
    u = np.linspace(0, 1, 400)
    right.plot(u, law.discriminability(u))
    right.set(xlabel="u", ylabel="D(u)", title="Distribution of the true label's favorability")
    return figure


def figure6() -> Any:
    """Draw AGA_k and D(u) for correlations 0.3, 0.5, 0.7 and 0.9."""
    figure, (left, right) = _axes(1, 2, 10.0, 4.5)
    k, u = np.arange(2, _LARGEST_K + 1), np.linspace(0, 1, 400)
    for place, rho in enumerate(_RHOS):
        law, style = BivariateNormal(rho), _style(place)
        left.plot(k, law.accuracy(k), marker="o", **style, label=f"rho = {rho}")
        right.plot(u, law.discriminability(u), **style, label=f"rho = {rho}")
    left.set(xlabel="number of classes k", ylabel="AGA", ylim=(0, 1), title="Average accuracy")
    right.set(xlabel="u", ylabel="D(u)", title="Discriminability function")
    right.legend(frameon=False)
    return figure


def figure7(trials: pd.DataFrame) -> Any:
    """Draw the root mean square error of every estimator against the true accuracy.

    `trials` are of `classex_bayes.studies.gaussian_simulation.gaussian_trials` for one k1; one
    panel for each target number of classes.
    """
    return _against_truth(trials, "rmse", "root mean square error")


def figure8(trials: pd.DataFrame) -> Any:
    """Draw the bias of every estimator against the true accuracy, as in `figure7`."""
    return _against_truth(trials, "bias", "mean predicted minus true accuracy")


def _shared(trials: pd.DataFrame) -> pd.DataFrame:
    """Trials of the tasks that every estimator met."""
    met = trials.groupby(["cell", "simulation"])["estimator"].transform("nunique")
    shared = trials[met == trials["estimator"].nunique()]
    if shared.empty:
        raise DataError("trials: there is no task that every estimator was tried on")
    return shared


def _against_truth(trials: pd.DataFrame, column: str, label: str) -> Any:
    cells = rmse_by_cell(_shared(trials)).reset_index()
    if cells.empty:
        raise DataError("trials: no estimator was fitted in any of them")
    targets = sorted(cells["k"].unique())
    figure, axes = _axes(-(-len(targets) // 2), min(len(targets), 2), 10.0, 9.5)
    panels = np.atleast_1d(axes).ravel()
    for place, name in enumerate(cells["estimator"].unique()):
        style = _style(place)
        if name == _POSTERIOR:
            style = {"color": _LIBRARY.ink(), "linewidth": 3.0}
        for panel, k in zip(panels, targets, strict=False):
            rows = cells[(cells["k"] == k) & (cells["estimator"] == name)].sort_values("truth")
            panel.plot(rows["truth"], rows[column], marker=".", label=name, **style)
    for panel, k in zip(panels, targets, strict=False):
        panel.set(title=f"{k:,} classes", xlabel="true accuracy", ylabel=label, xlim=(0, 1))
        panel.axhline(0, color="gray", linewidth=0.5)
    for panel in panels[len(targets) :]:
        panel.remove()
    handles, names = panels[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=3, frameon=False)
    return figure
