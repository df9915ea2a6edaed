"""Figures of jmlr2018, drawn again: the toy example (3 to 6), the simulation (7, 8), faces (10)."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from scipy.stats import norm

from studies.laws import bivariate_normal
from studies.papers.gaussian_simulation import rmse_by_cell
from studies.papers.toy_example import discriminability, favorability, generalization_accuracy

# Okabe and Ito's colours, told apart in every form of colour blindness.
_PALETTE = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00"
_DASHES = ("-", "--", ":", "-.")
_RHO = 0.7
_RHOS = (0.3, 0.5, 0.7, 0.9)
_LARGEST_K = 10
_LABELS = (-1.2, 0.2, 1.5)  # of the problem in Figure 3
_POSTERIOR = "BayesianExtrapolator"
_WITH_CURVES = ("ClassExReg", "KDE(bcv)", "KDE(ucv)", _POSTERIOR, "BayesianExtrapolator(ranks)")


def _axes(rows: int, columns: int, width: float, height: float) -> tuple[Any, Any]:
    return plt.subplots(rows, columns, figsize=(width, height), layout="constrained")


def _style(place: int) -> dict[str, Any]:
    """Colour and line style of a series."""
    return {"color": _PALETTE[place], "linestyle": _DASHES[place % len(_DASHES)]}


def figure3() -> Any:
    """Draw the joint density of label and instance, and the densities and regions of 3 labels.

    Bivariate normal with correlation 0.7; the Bayes rule takes the label of the highest density.
    """
    sd = np.sqrt(1 - _RHO**2)
    grid = np.linspace(-3, 3, 241)
    y, x = np.meshgrid(grid, grid)
    figure, axes = _axes(1, 2, 10.0, 4.5)
    joint = norm.pdf(y) * norm.pdf(x, _RHO * y, sd)
    axes[0].contour(y, x, joint, 8, cmap="viridis")
    axes[0].set(xlabel="label y", ylabel="instance x", title=f"Joint density, rho = {_RHO}")
    densities = norm.pdf(grid[:, None], _RHO * np.array(_LABELS), sd)
    best = densities.argmax(axis=1)
    for place, label in enumerate(_LABELS):
        style = _style(place)
        axes[1].plot(grid, densities[:, place], **style)
        top = _RHO * label, densities[:, place].max()
        axes[1].annotate(
            f"y = {label}", top, (0, 4), textcoords="offset points", ha="center",
            color=style["color"],
        )  # fmt: skip
        axes[1].fill_between(
            grid, -0.08, -0.02, where=best == place, color=style["color"], linewidth=0
        )
    title = "Density of x given 3 labels; bar: choice of the Bayes rule"
    axes[1].set(xlabel="instance x", ylabel="density", ylim=(-0.1, 0.65))
    axes[1].set_title(title, fontsize=10)
    return figure


def figure4(n_sets: int = 2000) -> Any:
    """Draw the distribution of the accuracy :math:`GA_k` of `n_sets` random label sets, k = 2..10.

    Bivariate normal with correlation 0.7; points are means of the drawn sets, the line is the
    exact average :math:`AGA_k`.
    """
    rng = np.random.default_rng(0)
    law, k = bivariate_normal(_RHO), np.arange(2, _LARGEST_K + 1)
    drawn = [generalization_accuracy(rng.normal(size=(n_sets, size)), _RHO) for size in k]
    figure, axes = _axes(1, 1, 7.0, 4.5)
    axes.violinplot(drawn, k, widths=0.8, showextrema=False)
    axes.plot(k, law.accuracy(k), color=_PALETTE[1], label="average, exact (AGA)")
    means = [values.mean() for values in drawn]
    axes.plot(k, means, "o", mfc="none", color="black", label="mean of the drawn label sets")
    axes.set(xlabel="number of classes k", ylabel="generalization accuracy", ylim=(0, 1))
    axes.set_title(f"Accuracy of random label sets, bivariate normal, rho = {_RHO}")
    axes.legend(frameon=False)
    return figure


def figure5() -> Any:
    """Draw the favorability U_x(y) and its distribution function D(u), for correlation 0.7."""
    grid = np.linspace(-3, 3, 241)
    x, y = np.meshgrid(grid, grid)
    figure, (left, right) = _axes(1, 2, 10.0, 4.5)
    levels = left.contour(x, y, favorability(x, y, _RHO), np.arange(0.1, 1.0, 0.1), cmap="viridis")
    left.clabel(levels, fontsize=8)
    left.set(xlabel="test instance x", ylabel="label y", title="Favorability U of label y at x")
    u = np.linspace(0, 1, 400)
    right.plot(u, discriminability(u, _RHO))
    right.set(xlabel="u", ylabel="D(u)", title="Distribution of the true label's favorability")
    return figure


def figure6() -> Any:
    """Draw AGA_k and D(u) for correlations 0.3, 0.5, 0.7 and 0.9."""
    figure, (left, right) = _axes(1, 2, 10.0, 4.5)
    k, u = np.arange(2, _LARGEST_K + 1), np.linspace(0, 1, 400)
    for place, rho in enumerate(_RHOS):
        law, style = bivariate_normal(rho), _style(place)
        left.plot(k, law.accuracy(k), marker="o", **style, label=f"rho = {rho}")
        right.plot(u, discriminability(u, rho), **style, label=f"rho = {rho}")
    left.set(xlabel="number of classes k", ylabel="AGA", ylim=(0, 1), title="Average accuracy")
    right.set(xlabel="u", ylabel="D(u)", title="Discriminability function")
    right.legend(frameon=False)
    return figure


def figure7(trials: pd.DataFrame) -> Any:
    """Draw the root mean square error of every estimator against the true accuracy.

    `trials` are of `studies.papers.gaussian_simulation.gaussian_trials` for one k1; one panel for
    each target number of classes.
    """
    return _against_truth(trials, "rmse", "root mean square error")


def figure8(trials: pd.DataFrame) -> Any:
    """Draw the bias of every estimator against the true accuracy, as in `figure7`."""
    return _against_truth(trials, "bias", "mean predicted minus true accuracy")


def figure10(trials: pd.DataFrame) -> Any:
    """Draw the curves predicted from single pilots and the accuracy of the whole test.

    `trials` are of `studies.papers.faces.face_trials`. One row of panels for each size of the
    pilots, one column for each estimator: those of jmlr2018 and ours with posteriors.
    """
    fitted = trials.dropna(subset="mean")
    wanted = [name for name in _WITH_CURVES if name in fitted["estimator"].unique()]
    sizes = sorted(fitted["cell"].astype(int).unique())
    truth = fitted.groupby("k")["truth"].first()
    figure, axes = plt.subplots(
        len(sizes), len(wanted), figsize=(1 + 2.4 * len(wanted), 0.8 + 2.2 * len(sizes)),
        layout="constrained", sharex=True, sharey=True, squeeze=False,
    )  # fmt: skip
    for row, size in zip(axes, sizes, strict=True):
        of_size = fitted[fitted["cell"].astype(int) == size]
        for panel, name in zip(row, wanted, strict=True):
            _pilot_curves(panel, of_size[of_size["estimator"] == name], size)
            panel.plot(truth.index, truth, color="black", linewidth=2.0)
        row[0].set_ylabel(f"from {size:,} classes\naccuracy")
    for panel, name in zip(axes[0], wanted, strict=True):
        panel.set_title(name, fontsize=10)
    for panel in axes[-1]:
        panel.set_xlabel("number of classes")
    lowest = np.floor(10 * min(fitted["mean"].min(), truth.min())) / 10
    ends = truth.index.min(), truth.index.max()
    axes[0, 0].set(xscale="log", xlim=ends, ylim=(lowest, 1.02))
    axes[0, 0].xaxis.set_major_formatter("{x:,.0f}")
    many = int(truth.index.max())
    figure.suptitle(
        f"Black: average accuracy of the test of {many:,} classes. Coloured: predictions from one "
        "pilot each; dotted: its size", fontsize=11,
    )  # fmt: skip
    return figure


def _pilot_curves(panel: Any, trials: pd.DataFrame, size: int) -> None:
    """One curve for each pilot of one size by one estimator, with their RMSE at all classes."""
    curves = trials.pivot(index="k", columns="simulation", values="mean")
    opacity = max(0.15, min(0.8, 8 / max(curves.shape[1], 1)))
    panel.plot(curves.index, curves.to_numpy(), color=_PALETTE[1], linewidth=0.8, alpha=opacity)
    panel.axvline(size, color="gray", linewidth=0.8, linestyle=":")
    at_all = trials[trials["k"] == trials["k"].max()]
    if len(at_all):
        rmse = np.sqrt(np.mean((at_all["mean"] - at_all["truth"]) ** 2))
        box = {"facecolor": panel.get_facecolor(), "edgecolor": "none", "pad": 1.5}
        where = {"transform": panel.transAxes, "zorder": 5}
        panel.text(0.04, 0.06, f"RMSE {rmse:.3f}", fontsize=9, bbox=box, **where)


def _against_truth(trials: pd.DataFrame, column: str, label: str) -> Any:
    cells = rmse_by_cell(trials).reset_index()
    targets = sorted(cells["k"].unique())
    figure, axes = _axes(-(-len(targets) // 2), min(len(targets), 2), 10.0, 9.5)
    panels = np.atleast_1d(axes).ravel()
    for place, name in enumerate(cells["estimator"].unique()):
        style = _style(place)
        if name == _POSTERIOR:
            style = {"color": "black", "linewidth": 3.0}
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
