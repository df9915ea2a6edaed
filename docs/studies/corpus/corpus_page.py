"""Tables of corpus.md and scores.md on real populations, sentences of README.md, and a figure.

They come from the tables that the command wrote into its folder.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy.special import ndtri

from studies.corpus.catalogue import recipes
from studies.pages import FIGURES, markdown, paragraph, version

OURS, BY_RANKS = "BayesianExtrapolator", "BayesianExtrapolator(ranks)"
# Names of populations stand at this number of classes, at least so far apart.
_NAMES, _LINE = 45_000, 0.125
_HEADERS = {"n_source": "pilot", "scores": "kind of score"}
_FORMATS = {
    **dict.fromkeys(["RMSE", "worst tenth", "width"], ".3f"),
    **dict.fromkeys(["coverage", "worst population"], ".2f"),
    **dict.fromkeys(["RMSE / ClassExReg", "ranks / ClassExReg"], ".2f"),
}
SHOWN = ["10", "100", "1000", "10000", "all"]


def population_table(facts: pd.DataFrame, cells: pd.DataFrame) -> str:
    """What every population is, its size, and the errors of the posterior, by kind of score."""
    table = facts.join(expectations(cells, ["population"])).reset_index()
    described = table["population"].map(recipes())
    table["what is recognised; classifier"] = [recipe.summary for recipe in described]
    columns = ["population", "what is recognised; classifier", "classes", "coverage", "RMSE"]
    parts = []
    for kind, of_kind in table.groupby("scores"):
        parts += [pd.DataFrame({"population": [f"**{kind}**"]}), of_kind]
    return markdown(pd.concat(parts)[columns], _FORMATS | {"classes": ",.0f"})


def with_errors(table: pd.DataFrame, name: str, spec: str) -> list[str]:
    """Values with standard errors in brackets, as text, each where there is one."""
    pairs = zip(table[name], table[f"{name}_se"], strict=True)
    shown = [(f"{a:{spec}}", "" if np.isnan(b) else f" ({b:{spec}})") for a, b in pairs]
    return ["" if text == "nan" else text + error for text, error in shown]


def ranking_table(ranking: pd.DataFrame) -> str:
    """Every estimator with its errors, their standard errors and the coverage.

    Errors of all populations and at the largest targets are divided by those of ClassExReg. Left
    out are variants: those that demand the accuracy on k1 classes differ little from those without,
    and `HighDimensional(k=all)` is less accurate than the default.
    """
    table = ranking[~ranking.index.str.contains("moment|k=all")]
    errors = table[["rmse", "rmse_farthest"]].set_axis(["all", "farthest"], axis="columns")
    shown = pd.DataFrame(
        {
            "RMSE": with_errors(table, "rmse", ".4f"),
            "bias": table["bias"],
            "coverage": with_errors(table, "coverage", ".2f"),
        },
        index=table.index,
    ).join(errors / errors.loc["ClassExReg"])
    formats = dict.fromkeys(errors.columns, ".2f") | {"bias": "+.3f"}
    return markdown(shown.reset_index(), formats)


def expectations(cells: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """What is to be expected of the posterior, by some of the cells' names."""
    groups = cells[cells["estimator"] == OURS].groupby(by)
    return pd.DataFrame(
        {
            "populations": groups["population"].nunique(),
            "coverage": groups["coverage"].mean(),
            "RMSE": groups["rmse"].median(),
            "worst tenth": groups["rmse"].quantile(0.9),
            "width": groups["width"].median(),
        }
    )


def size_table(cells: pd.DataFrame) -> str:
    """Coverage, RMSE and width: a row for each size of pilots, a column for each target."""
    table = expectations(cells, ["n_source", "factor"])[["coverage", "RMSE", "width"]]
    shown = {name: values.map(f"{{:{_FORMATS[name]}}}".format) for name, values in table.items()}
    by_target = pd.DataFrame(shown).agg(" ".join, axis="columns").unstack().add_suffix(" times")
    return markdown(by_target.reset_index().rename(columns=_HEADERS))


def kind_table(cells: pd.DataFrame, rankings: pd.DataFrame) -> str:
    """What is to be expected by the kind of score, and errors divided by those of ClassExReg."""
    table = expectations(cells, ["scores"])
    ours = cells[cells["estimator"] == OURS]
    covered = ours.groupby(["scores", "population"])["coverage"].mean()
    table["worst population"] = covered.groupby("scores").min()
    rmse = rankings["rmse"].unstack("estimator")
    ratios = {"RMSE / ClassExReg": OURS, "ranks / ClassExReg": BY_RANKS}
    for name, estimator in ratios.items():
        table[name] = rmse[estimator] / rmse["ClassExReg"]
    errors = ["RMSE", "worst tenth", "width", *ratios]
    columns = ["populations", "coverage", "worst population", *errors]
    return markdown(table[columns].reset_index().rename(columns=_HEADERS), _FORMATS)


def against_ranks(cells: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Compare predictions from ranks and scores with those from ranks alone.

    The table is indexed by some of the cells' names. It has the ratios of errors and widths, and
    the coverage of both.
    """
    names = ["population", "scores", "n_source", "factor"]
    both, ranks = (cells[cells["estimator"] == name] for name in (OURS, BY_RANKS))
    pairs = both.merge(ranks, on=names, suffixes=("", " of ranks"))
    for name in ("rmse", "width"):
        pairs[f"log {name}"] = np.log(pairs[name] / pairs[f"{name} of ranks"])
    groups = pairs.groupby(by)
    return pd.DataFrame(
        {
            "RMSE / ranks": np.exp(groups["log rmse"].mean()),
            "width / ranks": np.exp(groups["log width"].mean()),
            "coverage": groups["coverage"].mean(),
            "coverage, ranks": groups["coverage of ranks"].mean(),
        }
    )


def ratio_table(cells: pd.DataFrame) -> str:
    """Errors, widths and coverage beyond the pilot against those of ranks alone.

    A row is a kind of score, and has the numbers at each multiple of the pilot's classes.
    """
    table = against_ranks(cells[cells["factor"] > 1], ["scores", "factor"])
    shown = {
        name: values.map("{:.2f}".format).groupby("scores").agg(" ".join)
        for name, values in table.items()
    }
    return markdown(pd.DataFrame(shown).reset_index().rename(columns=_HEADERS))


def summary(facts: pd.DataFrame, ours: pd.DataFrame, ranking: pd.DataFrame) -> str:
    """Two sentences: how often intervals contain the true accuracy, and how large errors are."""
    simulated = int(facts["kind"].str.startswith("simulated").sum())
    covered = ours.groupby("population")["coverage"].mean().sort_values()
    worst = recipes()[covered.index[0]].summary
    typical = ours.query("n_source == 100 and factor == 10")[["rmse", "width"]].median()
    ratio = ranking.loc[OURS, "rmse"] / ranking.loc["ClassExReg", "rmse"]
    return (
        f"On {len(facts) - simulated} real and {simulated} simulated populations of up to "
        f"{facts['classes'].max():,} classes, 90% intervals contained the true accuracy in "
        f"{ranking.loc[OURS, 'coverage']:.0%} of the cases, and in {covered.iloc[0]:.0%} in the "
        f"worst population ({worst}). From 100 classes to 1,000 the median RMSE of the accuracy is "
        f"{typical['rmse']:.2f}, and the median width of the intervals {typical['width']:.2f}. "
        f"The RMSE is {ratio:.2f} times that of ClassExReg, the regression of Zheng et al. (2018)."
    )


def read_facts(folder: Path) -> pd.DataFrame:
    """Kind, size and accuracies of every population, as the command wrote them."""
    return pd.read_csv(folder / "corpus-populations.csv", index_col="population")


def draw_curves(folder: Path) -> None:
    """Accuracy against the number of classes, a panel for each kind of score.

    Every population has a line. Its colour only tells it from the lines next to it.
    """
    facts = read_facts(folder)
    groups = list(facts.groupby("scores"))
    figure, panels = plt.subplots(
        2, 3, figsize=(18, 11), sharex=True, sharey=True, layout="constrained"
    )
    levels = [0.1, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95, 0.98, 0.995]
    for axes, (scores, of_kind) in zip(panels.flat, groups, strict=False):
        ends = []
        for place, (name, row) in enumerate(of_kind.iterrows()):
            k = np.array([10, 100, 1000, 10_000, row["classes"]], dtype=float)
            accuracy = row[SHOWN].to_numpy(dtype=float)
            kept = np.isfinite(accuracy)
            colour = f"C{place}"
            axes.plot(k[kept], ndtri(accuracy[kept]), color=colour, marker=".", lw=1)
            ends.append((ndtri(accuracy[-1]), k[-1], name, colour))
        height = -np.inf
        for end, k, name, colour in sorted(ends):
            height = max(end, height + _LINE)
            axes.plot([k, _NAMES], [end, height], color=colour, lw=0.7, ls=":")
            axes.text(_NAMES, height, f" {name}", fontsize=9, color="0.2", va="center")
        axes.set_title(scores)
        axes.set_yticks(ndtri(levels), [f"{level:g}" for level in levels])
        axes.set(xscale="log", xlim=(8, 9e5))
    figure.supxlabel("classes")
    figure.supylabel("accuracy (probit scale)")
    figure.savefig(FIGURES / "corpus.png", dpi=110)


def page_parts(folder: Path) -> dict[str, dict[str, str]]:
    """Parts of the pages."""
    facts = read_facts(folder)
    cells = pd.read_csv(folder / "corpus-cells.csv")
    ranking = pd.read_csv(folder / "corpus-ranking.csv", index_col="estimator")
    rankings = pd.read_csv(folder / "corpus-rankings.csv", index_col=["scores", "estimator"])
    cells = cells.join(facts["scores"], on="population")
    in_short = summary(facts, cells[cells["estimator"] == OURS], ranking)
    linked = in_short.replace("populations", "[populations](docs/corpus.md)", 1)
    return {
        "corpus.md": {
            "version": version(),
            "by kind of score": f"{paragraph(in_short)}\n\n{kind_table(cells, rankings)}",
            "populations": population_table(facts, cells),
            "ranking": ranking_table(ranking),
            "cells": size_table(cells),
        },
        "scores.md": {"by kind of score": ratio_table(cells)},
        "../README.md": {"corpus": paragraph(linked)},
    }
