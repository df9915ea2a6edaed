"""The tables and figures of the papers, computed again: docs/papers.md.

The folder keeps finished trials and the figures.
"""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib import pyplot as plt
from PIL import Image

from studies.pages import FIGURES, markdown, publish, version
from studies.papers import paper_figures as figures
from studies.papers import paper_tables as cells
from studies.papers.faces import face_task, face_trials, pilot_sizes, read_faces, stand_in
from studies.papers.gaussian_simulation import NOISE_VARIANCES, gaussian_trials
from studies.papers.nips_table import nips_trials
from studies.papers.telugu import telugu_table
from studies.shared import Options, read_options, study_estimators

Part = Callable[[Options], dict[str, str]]
SHOWN = {
    "BayesianExtrapolator", "BayesianExtrapolator(ranks)", "ClassExReg", "KDE(ucv)", "KDE(bcv)",
    "TwoParameter",
}  # fmt: skip


def _estimators() -> list[Any]:
    """Estimators with printed numbers, the posterior, and the nearly right two-parameter law."""
    return [estimator for estimator in study_estimators() if estimator.name in SHOWN]


def table1(options: Options) -> dict[str, str]:
    """Table 1, and Figures 7 and 8 from its first part."""
    sizes = {50: 2} if options.small else {500: 20, 5000: 4}
    variances = NOISE_VARIANCES[::12] if options.small else NOISE_VARIANCES
    texts = {}
    for k1, n_tasks in sizes.items():
        trials = gaussian_trials(
            _estimators(), k1, variances, n_simulations=n_tasks, n_jobs=options.jobs,
            store=options.out / f"table1-k{k1}",
        )  # fmt: skip
        texts[f"table1-k{k1}"] = _text(
            f"Largest RMSE over {len(variances)} noise levels (tasks at each: {n_tasks}), with the "
            "printed one in brackets; the paper has 50 levels.",
            cells.table1_cells(trials, k1),
        )
        if k1 == min(sizes):
            _save(figures.figure7(trials), "figure7", options)
            _save(figures.figure8(trials), "figure8", options)
    return texts


def table2(options: Options) -> dict[str, str]:
    """Table 2 and Figure 10, whose files bear the name of the data."""
    name = options.embeddings.stem if options.embeddings else "characters"
    task = face_task(*(read_faces(options.embeddings) if options.embeddings else stand_in()))
    n_pilots = options.repeats(30)
    trials = face_trials(
        _estimators(), task, options.k1 or pilot_sizes(task.n_classes),
        n_simulations=n_pilots, n_jobs=options.jobs, store=options.out / f"table2-{name}",
    )  # fmt: skip
    _save(figures.figure10(trials), f"figure10-{name}", options)
    return {
        f"table2-{name}": _text(
            f"RMSE on predicting the accuracy on all {task.n_classes:,} classes of {name}, "
            f"{task.accuracy(task.n_classes).item():.3f}, from {n_pilots} pilots of each number of "
            "classes; in brackets the printed RMSE on faces.",
            cells.table2_cells(trials),
        )
    }


def table3(options: Options) -> dict[str, str]:
    """Table 3."""
    table = telugu_table(options.telugu, _estimators())
    about = "Predicted accuracy and 90% interval."
    return {"table3": _text(about, cells.table3_cells(table))}


def nips(options: Options) -> dict[str, str]:
    """The table of the submission to NIPS 2016."""
    n_subsets = options.repeats(100)
    about = (
        "Printed numbers; those of EXP and CON with the range of ours over "
        f"{n_subsets} subsets of 20 of the 100 published characters whose accuracy is within 0.01 "
        "of the paper's."
    )
    return {"nips2016": _text(about, cells.nips_cells(nips_trials(options.telugu, n_subsets)))}


def toy(options: Options) -> dict[str, str]:
    """Figures 3 to 6, of the toy example."""
    for draw in (figures.figure3, figures.figure4, figures.figure5, figures.figure6):
        _save(draw(), draw.__name__, options)
    return {}


PARTS: dict[str, Part] = {
    "table1": table1, "table2": table2, "table3": table3, "nips": nips, "toy": toy,
}  # fmt: skip
OF_TELUGU = {"table3", "nips"}


def _text(about: str, table: pd.DataFrame) -> str:
    """Version, date, a sentence on the computation, and the table."""
    return f"{version()} {about}\n\n{markdown(table.reset_index())}"


def _save(figure: Any, name: str, options: Options) -> None:
    """Save a figure in the folder, or for the page."""
    path = (FIGURES if options.write else options.out) / f"{name}.png"
    figure.savefig(path)
    plt.close(figure)
    # Few colours make the files several times smaller, and look the same.
    Image.open(path).convert("RGB").quantize(64).save(path, optimize=True)
    print(f"wrote {path}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Compute parts by name, all by default, and print them or write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "parts", nargs="*", metavar="PART", help=f"among {', '.join(PARTS)}; all by default"
    )
    parser.add_argument(
        "--telugu", type=Path, metavar="FILE", help="telugu_scores.npz, for table3 and nips"
    )
    parser.add_argument(
        "--embeddings", type=Path, metavar="FILE",
        help=".npz with embeddings and labels of faces, for table2; characters by default",
    )  # fmt: skip
    parser.add_argument(
        "--k1", type=int, nargs="+", metavar="N",
        help="sizes of the pilots of table2; 100, 200, 400, or 1/16, 1/8, 1/4 of few persons",
    )  # fmt: skip
    options = read_options(parser, arguments)
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"found {', '.join(sorted(unknown))}, expected parts among {', '.join(PARTS)}")
    for name in options.parts or PARTS:
        if name in OF_TELUGU and options.telugu is None:
            print(f"{name} is left out: it needs --telugu telugu_scores.npz")
        else:
            publish({"papers.md": PARTS[name](options)}, options.write)
