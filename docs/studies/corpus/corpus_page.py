"""Tables of corpus.md, scores.md and README.md on real populations, and the figure of their curves.

They come from the tables that the command wrote into its folder.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy.special import ndtri

from studies.corpus.catalogue import recipes
from studies.pages import FIGURES, markdown, version

OURS, BY_RANKS = "BayesianExtrapolator", "BayesianExtrapolator(ranks)"
# Names of populations stand at this number of classes, at least so far apart.
_NAMES, _LINE = 45_000, 0.09
SHOWN = ["10", "100", "1000", "10000", "all"]


def population_table(facts: pd.DataFrame) -> str:
    """Kind, size and accuracies of every population."""
    table = facts.reset_index()
    table["instances a class"] = table.pop("instances") / table["classes"]
    table = table[["population", "kind", "classes", "instances a class", *SHOWN]]
    formats = dict.fromkeys(SHOWN, ".3f") | {"classes": ",d", "instances a class": ".2g"}
    return markdown(table, formats)


def with_errors(table: pd.DataFrame, name: str, spec: str) -> list[str]:
    """Values with standard errors in brackets, as text, each where there is one."""
    pairs = zip(table[name], table[f"{name}_se"], strict=True)
    shown = [(f"{a:{spec}}", "" if np.isnan(b) else f" ({b:{spec}})") for a, b in pairs]
    return ["" if text == "nan" else text + error for text, error in shown]


def ranking_table(ranking: pd.DataFrame) -> str:
    """Every estimator with its errors, their standard errors and the coverage."""
    table = ranking.reset_index()
    reference = ranking.loc["ClassExReg"]
    table["RMSE"] = with_errors(table, "rmse", ".4f")
    table["/ ClassExReg"] = table["rmse"] / reference["rmse"]
    table["farthest"] = table["rmse_farthest"] / reference["rmse_farthest"]
    table["90% intervals held"] = with_errors(table, "coverage", ".2f")
    table = table.rename(columns={"crps": "CRPS", "interval_score": "interval score"})
    columns = [
        "estimator",
        "RMSE",
        "/ ClassExReg",
        "farthest",
        "CRPS",
        "bias",
        "90% intervals held",
    ]
    formats = {
        "/ ClassExReg": ".2f",
        "farthest": ".2f",
        "CRPS": ".4f",
        "bias": "+.3f",
        "interval score": ".3f",
    }
    return markdown(table[[*columns, "interval score"]], formats)


def summary(cells: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """What is to be expected of the posterior, by some of the cells' names."""
    groups = cells.groupby(by, sort=True)
    return pd.DataFrame(
        {
            "populations": groups["rmse"].size(),
            "held": groups["coverage"].mean(),
            "bias": groups["bias"].mean(),
            "RMSE": groups["rmse"].median(),
            "RMSE, worst tenth": groups["rmse"].quantile(0.9),
            "width": groups["width"].median(),
            "width, widest tenth": groups["width"].quantile(0.9),
        }
    ).reset_index()


def expectation_table(cells: pd.DataFrame, by: list[str]) -> str:
    """`summary` as Markdown, with the columns named as on the page."""
    names = {"n_source": "pilot", "factor": "times as many classes"}
    table = summary(cells, by).rename(columns=names)
    if "population" in by or "kind" in by:
        table = table.drop(columns="populations")
    formats = dict.fromkeys(
        ["RMSE", "RMSE, worst tenth", "width", "width, widest tenth"], ".3f"
    ) | {"held": ".2f", "bias": "+.3f"}
    return markdown(table, formats)


def score_tables(cells: pd.DataFrame) -> dict[str, str]:
    """Errors, coverage and widths from ranks and scores, and from ranks alone."""
    index = ["population", "n_source", "factor"]
    ours, both = (cells[cells["estimator"] == name].set_index(index) for name in (BY_RANKS, OURS))
    log_ratio = np.log(both["rmse"] / ours["rmse"])
    by_target, by_population = [], {}
    for (pilot, factor), ratios in log_ratio.groupby(["n_source", "factor"]):
        ranks, scores = (t.xs((pilot, factor), level=[1, 2]) for t in (ours, both))
        by_target.append(
            {
                "pilot": f"{pilot:,}",
                "target": f"{factor} times",
                "populations": f"{len(scores)}",
                "errors (RMSE, ratio)": f"{np.exp(ratios.mean()):.2f}",
                "widths (ratio)": f"{np.exp(np.log(scores['width'] / ranks['width']).mean()):.2f}",
                "interval score": f"{scores['interval_score'].mean():.3f} for "
                f"{ranks['interval_score'].mean():.3f}",
                "90% intervals held": f"{scores['coverage'].mean():.2f} for "
                f"{ranks['coverage'].mean():.2f}",
            }
        )
    for name, ratios in log_ratio.groupby("population", sort=False):
        of_it = {"ranks": ours.loc[name], "scores": both.loc[name]}
        by_population[name] = (
            {f"RMSE, {n}": f"{np.exp(np.log(t['rmse']).mean()):.3f}" for n, t in of_it.items()}
            | {"ratio": f"{np.exp(ratios.mean()):.2f}"}
            | {f"held, {n}": f"{t['coverage'].mean():.2f}" for n, t in of_it.items()}
            | {f"width, {n}": f"{t['width'].mean():.2f}" for n, t in of_it.items()}
        )
    named = pd.DataFrame.from_dict(by_population, "index").rename_axis("population")
    return {
        "by target": markdown(pd.DataFrame(by_target)),
        "by population": markdown(named.reset_index()),
    }


def sentence(facts: pd.DataFrame, ours: pd.DataFrame, ranking: pd.DataFrame) -> str:
    """Paragraph of the README about the corpus."""
    covered = ours.groupby("population")["coverage"].mean()
    farthest = ranking.loc[OURS, "rmse_farthest"] / ranking.loc["ClassExReg", "rmse_farthest"]
    return (
        f"On [{len(facts)} real populations](docs/corpus.md) of up to {facts['classes'].max():,} "
        "classes (characters, words, sounds, code, molecules, stars and others), 90% intervals\n"
        f"contained the true accuracy in {ranking.loc[OURS, 'coverage']:.0%} of the cases, and in "
        f"{covered.min():.0%} in the worst population. The scales of the prior were chosen on the "
        "same populations.\n"
        f"Errors at the farthest target were {farthest:.2f} times those of ClassExReg."
    )


def datasheets() -> str:
    """One paragraph for each population."""
    parts = []
    for name, recipe in recipes().items():
        packages = "; ".join(recipe.packages)
        parts.append(
            f"**{name}** ({recipe.kind}). {recipe.about} *Classifier.* {recipe.classifier} "
            f"*Packages.* {packages}."
        )
    return "\n\n".join(parts)


def read_facts(folder: Path) -> pd.DataFrame:
    """Kind, size and accuracies of every population, as the command wrote them."""
    return pd.read_csv(folder / "corpus-populations.csv", index_col="population")


def draw_curves(folder: Path) -> None:
    """Accuracy against the number of classes, a line for each population, a colour for a kind."""
    facts = read_facts(folder)
    figure, axes = plt.subplots(figsize=(9, 6))
    kinds = list(dict.fromkeys(facts["kind"]))
    colours = plt.get_cmap("tab10")(np.arange(len(kinds)) % 10)
    ends = []
    for name, row in facts.iterrows():
        k = np.array([10, 100, 1000, 10_000, row["classes"]], dtype=float)
        accuracy = row[SHOWN].to_numpy(dtype=float)
        kept = np.isfinite(accuracy)
        colour = colours[kinds.index(row["kind"])]
        axes.plot(k[kept], ndtri(accuracy[kept]), color=colour, marker=".", lw=1)
        ends.append((ndtri(accuracy[-1]), k[-1], name, colour))
    height = -np.inf
    for end, k, name, colour in sorted(ends):
        height = max(end, height + _LINE)
        axes.plot([k, _NAMES], [end, height], color=colour, lw=0.4, ls=":")
        axes.text(_NAMES, height, f" {name}", fontsize=7, color=colour, va="center")
    levels = [0.1, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95, 0.98, 0.995]
    axes.set_yticks(ndtri(levels), [f"{level:g}" for level in levels])
    axes.set(xscale="log", xlabel="classes", ylabel="accuracy (probit scale)", xlim=(8, 3e5))
    figure.tight_layout()
    figure.savefig(FIGURES / "corpus.png", dpi=110)


def page_parts(folder: Path) -> dict[str, dict[str, str]]:
    """Parts of the pages."""
    facts = read_facts(folder)
    cells = pd.read_csv(folder / "corpus-cells.csv")
    ranking = pd.read_csv(folder / "corpus-ranking.csv", index_col="estimator")
    ours = cells[cells["estimator"] == OURS]
    ours = ours.assign(kind=ours["population"].map(facts["kind"]))
    return {
        "corpus.md": {
            "version": version(),
            "populations": population_table(facts),
            "ranking": ranking_table(ranking),
            "cells": expectation_table(ours, ["n_source", "factor"]),
            "by kind": expectation_table(ours, ["kind"]),
            "by population": expectation_table(ours, ["population"]),
            "datasheets": datasheets(),
        },
        "scores.md": score_tables(cells),
        "../README.md": {"corpus": sentence(facts, ours, ranking)},
    }
