"""`classex-bayes study table1 | faces | table3 | nips | figures | all`: the papers again."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer
from rich.table import Table

from classex_bayes.cli.analysis import written_lines
from classex_bayes.cli.console import Terminal, bad_data, flat_table, parse_counts, ready_folder
from classex_bayes.cli.options import (
    Jobs,
    Seed,
    Slow,
    examples,
    present,
    with_options,
)
from classex_bayes.report.document import listed, records, scored_records

if TYPE_CHECKING:
    from studies.papers.section import Section

papers = typer.Typer()
Folder = Annotated[
    Path,
    typer.Option(
        "--out",
        "-o",
        metavar="FOLDER",
        help="Folder of tables and figures.",
        rich_help_panel="Output",
    ),
]
OUT = Path("classex-bayes-studies")
_N_LEVELS = 13
Levels = Annotated[int, typer.Option(min=1, max=_N_LEVELS, help="Noise levels, of 13.")]
Labels = Annotated[
    Path | None, typer.Option(help="Labels (.npy) of embeddings in .npy.", callback=present)
]
Sizes = Annotated[
    str,
    typer.Option(
        "--k1",
        metavar="N,N,...",
        help="Sizes of the pilots; 100,200,400, or 1/16, 1/8, 1/4 of few persons, if empty.",
    ),
]
Pilots = Annotated[int, typer.Option(min=2, help="Pilots of each size.")]
Subsets = Annotated[int, typer.Option(min=2, help="Subsets of 20 characters.")]
Telugu = Annotated[
    Path,
    typer.Argument(metavar="FILE", help="telugu_scores.npz, or its folder.", callback=present),
]


@dataclass(frozen=True)
class StudyOptions:
    """Options of studies that fit no estimator, or only a few."""

    seed: Seed = 0
    out: Folder = OUT


@dataclass(frozen=True)
class TrialOptions:
    """Options of studies that fit every estimator to many tasks."""

    seed: Seed = 0
    jobs: Jobs = 1
    out: Folder = OUT


class _PaperTable(NamedTuple):
    """A table of a paper: for readers, for programs, and the files that were written."""

    section: "Section"
    rows: list[dict[str, Any]]
    files: dict[str, Path]


class _Settings(NamedTuple):
    """Options that all studies share."""

    slow: bool
    seed: int
    jobs: int
    out: Path
    terminal: Terminal


def study_estimators(slow: bool) -> list[Any]:
    """Estimators of every study: ours with posteriors, and those of the literature."""
    from classex_bayes.bayes.extrapolator import BayesianExtrapolator
    from classex_bayes.estimators.literature import literature
    from classex_bayes.score_informed.score_informed import ScoreInformedExtrapolator

    return [BayesianExtrapolator(), ScoreInformedExtrapolator(), *literature(slow=slow)]


@papers.command(epilog=examples("classex-bayes study table1 --k1 500 --n-simulations 20 --jobs 2"))
@with_options(study=TrialOptions())
def table1(
    *,
    k1: Annotated[int, typer.Option("--k1", min=3, help="Source classes: 500 or 5000.")] = 500,
    n_simulations: Annotated[int, typer.Option(min=1, help="Tasks for each noise level.")] = 20,
    levels: Levels = _N_LEVELS,
    slow: Slow = False,
    study: TrialOptions,
    terminal: Terminal,
) -> None:
    """Largest errors in the Gaussian simulation of jmlr2018 (Table 1), every estimator.

    Finished tasks are kept in a .csv in the folder, and a study begun again goes on from there.
    """
    settings = _settings(study, terminal, slow)
    _show(_table1(settings, k1, n_simulations, levels), settings.terminal)


@papers.command(
    epilog=examples(
        "classex-bayes study faces --embeddings faces.npz",
        "classex-bayes study faces --embeddings faces.npz --k1 5,10,20 --n-pilots 20",
    )
)
@with_options(study=TrialOptions())
def faces(
    *,
    embeddings: Annotated[
        Path,
        typer.Option(
            help=".npz with embeddings and labels, or .npy with --labels.", callback=present
        ),
    ],
    k1: Sizes = "",
    n_pilots: Pilots = 100,
    slow: Slow = False,
    labels: Labels = None,
    study: TrialOptions,
    terminal: Terminal,
) -> None:
    """Face recognition on your embeddings: Table 2 and Figure 10 of jmlr2018.

    One picture of each person is the template, another the probe. Pilots of some persons predict
    the accuracy on all. Finished pilots are kept in a .csv in the folder, and a study begun again
    goes on from there.
    """
    settings = _settings(study, terminal, slow)
    _show(_faces(settings, embeddings, labels, k1, n_pilots), settings.terminal)


@papers.command(epilog=examples("classex-bayes study table3 telugu_scores.npz"))
@with_options(study=StudyOptions())
def table3(
    *,
    data: Telugu,
    slow: Slow = False,
    study: StudyOptions,
    terminal: Terminal,
) -> None:
    """Extrapolate the Telugu classifiers (jmlr2018, Table 3), beside the printed values."""
    settings = _settings(study, terminal, slow)
    _show(_table3(settings, data), settings.terminal)


@papers.command(epilog=examples("classex-bayes study nips telugu_scores.npz --n-subsets 40"))
@with_options(study=StudyOptions())
def nips(
    *,
    data: Telugu,
    n_subsets: Subsets = 100,
    study: StudyOptions,
    terminal: Terminal,
) -> None:
    """Extrapolate from 20 to 400 Telugu characters as the submission to NIPS 2016 does."""
    settings = _settings(study, terminal)
    _show(_nips(settings, data, n_subsets), settings.terminal)


@papers.command(epilog=examples("classex-bayes study figures --out classex-bayes-studies"))
@with_options(study=StudyOptions())
def figures(
    *,
    study: StudyOptions,
    terminal: Terminal,
) -> None:
    """Draw Figures 3 to 6 of jmlr2018, and 7, 8 and 10 from the trials in the folder."""
    ready_folder(study.out)
    files = dict(_figures(study.out, study.seed))
    table = Table("figure", "file")
    for name, path in files.items():
        table.add_row(name, str(path))
    terminal.result(table, [], {"files": listed(files)})


@papers.command(
    name="all",
    epilog=examples(
        "classex-bayes study --all",
        "classex-bayes study all --telugu telugu_scores.npz --embeddings faces.npz --jobs 2",
    ),
)
@with_options(study=TrialOptions())
def every(
    *,
    telugu: Annotated[
        Path | None,
        typer.Option(
            help="telugu_scores.npz, or its folder: Table 3 and nips2016.", callback=present
        ),
    ] = None,
    embeddings: Annotated[
        Path | None,
        typer.Option(help="Faces as of `study faces`: Table 2 and Figure 10.", callback=present),
    ] = None,
    k1: Sizes = "",
    n_simulations: Annotated[
        int, typer.Option(min=1, help="Table 1: tasks for each noise level, 500 source classes.")
    ] = 2,
    n_simulations_5000: Annotated[
        int, typer.Option(min=1, help="Table 1: the same, 5000 source classes.")
    ] = 1,
    levels: Levels = _N_LEVELS,
    n_pilots: Pilots = 10,
    n_subsets: Subsets = 40,
    slow: Slow = False,
    labels: Labels = None,
    study: TrialOptions,
    terminal: Terminal,
) -> None:
    """Every table and figure of the papers, on one page (papers.md) in the folder.

    The sizes are small, for a first look within minutes. A study begun again goes on from the
    trials in the folder. The page tells which data the tables need that are left out.
    """
    from studies.papers.section import write_papers

    settings = _settings(study, terminal, slow)
    studies: list[_PaperTable] = []
    missing: dict[str, str] = {}
    # Studies of data come first: what is wrong with a file is told before simulations take minutes.
    if telugu is None:
        needs = "needs the scores of the Telugu classifiers: --telugu telugu_scores.npz"
        missing |= dict.fromkeys(("JMLR 2018, Table 3", "NIPS 2016, table"), needs)
    else:
        studies += [_table3(settings, telugu), _nips(settings, telugu, n_subsets)]
    if embeddings is None:
        missing["JMLR 2018, Table 2 and Figure 10"] = (
            "need embeddings of faces, two pictures or more of each person: --embeddings faces.npz"
        )
    else:
        studies.insert(0, _faces(settings, embeddings, labels, k1, n_pilots))
    simulated = {500: n_simulations, 5000: n_simulations_5000}
    studies[:0] = [_table1(settings, size, n, levels) for size, n in simulated.items()]
    drawn = dict(_figures(study.out, study.seed))
    sections = [part.section for part in studies]
    page = write_papers(sections, drawn, missing, study.out, _command())
    files = {"page": page, **drawn}
    for part in studies:
        files |= {f"{part.section.name}, {what}": path for what, path in part.files.items()}
    table = Table("result", "file or what it needs")
    for name, path in files.items():
        table.add_row(name, str(path))
    for name, needs in missing.items():
        table.add_row(name, needs)
    needed = [{"result": name, "needs": needs} for name, needs in missing.items()]
    terminal.result(table, [], {"files": listed(files), "missing": needed})


def _command() -> str:
    """The command as it was typed."""
    import shlex
    import sys

    return shlex.join(["classex-bayes", *sys.argv[1:]])


def _settings(
    study: StudyOptions | TrialOptions, terminal: Terminal, slow: bool = False
) -> _Settings:
    ready_folder(study.out)
    jobs = study.jobs if isinstance(study, TrialOptions) else 1
    return _Settings(slow, study.seed, jobs, study.out, terminal)


def _show(study: _PaperTable, terminal: Terminal) -> None:
    section = study.section
    terminal.result(
        flat_table(section.title, section.table.reset_index()),
        [section.text, *written_lines(study.files)],
        {"title": section.title, "rows": study.rows, "files": listed(study.files)},
    )


def _table1(settings: _Settings, k1: int, n_simulations: int, levels: int) -> _PaperTable:
    import numpy as np

    from studies.papers.section import Section
    from studies.papers.gaussian_simulation import (
        NOISE_VARIANCES,
        gaussian_trials,
        rmse_table,
    )
    from studies.papers.paper_tables import table1_cells

    places = np.unique(np.rint(np.linspace(0, _N_LEVELS - 1, levels)).astype(int))
    store = settings.out / f"table1-k{k1}-seed{settings.seed}.csv"
    trials = gaussian_trials(
        study_estimators(settings.slow),
        n_classes=k1,
        noise_variances=[NOISE_VARIANCES[place] for place in places],
        n_simulations=n_simulations,
        random_seed=settings.seed,
        n_jobs=settings.jobs,
        store=store,
        progressbar=settings.terminal.shows_progress,
    )
    section = Section(
        f"table1-k{k1}",
        f"JMLR 2018, Table 1: simulated recognition, {k1:,} source classes",
        f"Largest RMSE (se) over {levels} noise levels (tasks at each: {n_simulations}); the paper "
        "has 50 levels.",
        table1_cells(trials, k1),
    )
    files = {"table": section.write(settings.out), "trials": store}
    return _PaperTable(section, records(rmse_table(trials)), files)


@bad_data()
def _faces(
    settings: _Settings, embeddings: Path, labels: Path | None, k1: str, n_pilots: int
) -> _PaperTable:
    from studies.papers.paper_figures import figure10
    from studies.papers.section import Section
    from studies.papers.faces import face_table, face_task, face_trials, read_faces
    from studies.papers.paper_tables import table2_cells
    from studies.papers.published import CI_PROB

    task = face_task(*read_faces(embeddings, labels), settings.seed)
    stem = f"{embeddings.stem}-seed{settings.seed}"
    store = settings.out / f"table2-{stem}.csv"
    trials = face_trials(
        study_estimators(settings.slow),
        task,
        parse_counts(k1, "--k1") if k1 else None,
        n_pilots=n_pilots,
        random_seed=settings.seed,
        n_jobs=settings.jobs,
        store=store,
        progressbar=settings.terminal.shows_progress,
    )
    section = Section(
        f"table2-{embeddings.stem}",
        "JMLR 2018, Table 2: recognition of faces",
        f"RMSE (se) on predicting the accuracy on all {task.n_classes:,} classes of "
        f"{embeddings.name}, {task.accuracy(task.n_classes).item():.3f}, from {n_pilots} pilots of "
        "each number of classes. The printed errors are those of 1,672 persons of Labeled Faces in "
        "the Wild and 100 pilots.",
        table2_cells(trials),
    )
    path = settings.out / f"figure10-{stem}.png"
    _save(figure10(trials), path)
    files = {"table": section.write(settings.out), "figure10": path, "trials": store}
    return _PaperTable(section, scored_records(face_table(trials), CI_PROB), files)


@bad_data()
def _table3(settings: _Settings, data: Path) -> _PaperTable:
    from studies.papers.section import Section
    from studies.papers.paper_tables import table3_cells
    from studies.papers.telugu import telugu_table

    table = telugu_table(
        data,
        study_estimators(settings.slow),
        random_seed=settings.seed,
        progressbar=settings.terminal.shows_progress,
    )
    path = settings.out / "table3.csv"
    table.to_csv(path)
    section = Section(
        "table3",
        "JMLR 2018, Table 3: Telugu characters",
        "Predicted accuracy; a column has the numbers of classes from and to.",
        table3_cells(table),
    )
    files = {"table": section.write(settings.out), "numbers": path}
    return _PaperTable(section, records(table), files)


@bad_data()
def _nips(settings: _Settings, data: Path, n_subsets: int) -> _PaperTable:
    from studies.papers.section import Section
    from studies.papers.nips_table import nips_table, nips_trials
    from studies.papers.paper_tables import nips_cells, nips_remark

    trials = nips_trials(data, n_subsets=n_subsets, random_seed=settings.seed)
    path = settings.out / "nips2016.csv"
    trials.to_csv(path, index=False)
    section = Section(
        "nips2016",
        "NIPS 2016 submission: 400 Telugu characters from 20",
        f"Mean and range are over {n_subsets} subsets of 20 of the 100 published characters whose "
        f"accuracy is within 0.01 of the paper's. {nips_remark()}",
        nips_cells(trials),
    )
    files = {"table": section.write(settings.out), "numbers": path}
    rows = nips_table(trials).rename(columns={"at 20": "measured", "at 400": "truth"})
    return _PaperTable(section, records(rows.rename(columns=_underscored)), files)


def _underscored(name: str) -> str:
    return name.replace(" ", "_")


def _figures(out: Path, seed: int) -> Iterator[tuple[str, Path]]:
    """Draw the figures of the toy example, and those of trials in the folder."""
    from classex_bayes.evaluate.trial_store import read_trials
    from studies.papers import paper_figures as drawn

    draw: dict[str, Callable[[], Any]] = {
        "figure3": drawn.figure3,
        "figure4": partial(drawn.figure4, random_seed=seed),
        "figure5": drawn.figure5,
        "figure6": drawn.figure6,
    }
    of_trials = {"table1": (drawn.figure7, drawn.figure8), "table2": (drawn.figure10,)}
    for kind, figures_of in of_trials.items():
        for store in sorted(out.glob(f"{kind}-*.csv")):
            trials, which = read_trials(store), store.stem.removeprefix(kind)
            draw |= {f"{f.__name__}{which}": partial(f, trials) for f in figures_of}
    for name, figure in draw.items():
        yield name, _save(figure(), out / f"{name}.png")


def _save(figure: Any, path: Path) -> Path:
    from matplotlib import pyplot as plt

    figure.savefig(path)
    plt.close(figure)
    return path
