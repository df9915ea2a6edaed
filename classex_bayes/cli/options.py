"""Options that several commands share."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from classex_bayes.cli.config import read_config

_DATA, _FIT, _OUTPUT = "Data", "Fit", "Output"


def examples(*lines: str) -> str:
    """The end of a help page: commands that can be copied."""
    return "\n\n".join(["Examples:", *lines])


def _share(setting: typer.CallbackParam, value: float | None) -> float | None:
    """A number between 0 and 1, checked before anything is read."""
    if value is not None:
        from classex_bayes.task.validation import probability

        probability(value, setting.opts[0])
    return value


Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        help="TOML file with settings, by their names here; the command line goes before it.",
        callback=read_config,
        is_eager=True,
        rich_help_panel=_OUTPUT,
    ),
]
Files = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILES",
        help="Scores, embeddings or ranks: .npz, .npy (with --labels), .csv, .parquet, .zarr or "
        "HDF5. Several files: parts of the test instances.",
        show_default=False,
    ),
]
Counts = Annotated[
    str, typer.Option("--k", metavar="K,K,...", help="Numbers of classes to predict for.")
]
Target = Annotated[
    float | None, typer.Option(help="Accuracy wanted: until how many classes?", callback=_share)
]
Labels = Annotated[
    Path | None, typer.Option(help="Labels (.npy) of scores in .npy.", rich_help_panel=_DATA)
]
Metric = Annotated[
    Literal["sqeuclidean", "cosine", "dot"] | None,
    typer.Option(help="Of embeddings; sqeuclidean if not given.", rich_help_panel=_DATA),
]
Distances = Annotated[
    bool,
    typer.Option("--distances/--scores", help="Smaller scores are better.", rich_help_panel=_DATA),
]
Untested = Annotated[
    Literal["error", "competitors"] | None,
    typer.Option(
        help="Classes without test instances: refused, or competitors.", rich_help_panel=_DATA
    ),
]
NTest = Annotated[
    int | None,
    typer.Option(help="Test instances behind a bare accuracy curve.", rich_help_panel=_DATA),
]
NClasses = Annotated[
    int | None,
    typer.Option(help="Source classes behind a bare accuracy curve.", rich_help_panel=_DATA),
]
Seed = Annotated[int, typer.Option(min=0, help="Seed of everything random.", rich_help_panel=_FIT)]
Level = Annotated[
    float | None,
    typer.Option(
        help="Level of the credible intervals; that of ArviZ's rcParams (0.89) if not given.",
        callback=_share,
        rich_help_panel=_FIT,
    ),
]
Draws = Annotated[
    int, typer.Option(min=1, help="Posterior draws in each chain.", rich_help_panel=_FIT)
]
Chains = Annotated[int, typer.Option(min=1, help="Number of chains.", rich_help_panel=_FIT)]
Slow = Annotated[
    bool, typer.Option("--slow/--not-slow", help="All, and CleaneX, which takes minutes.")
]
Every = Annotated[
    bool, typer.Option("--all/--usual", help="All that take seconds, not only ClassExReg and KDE.")
]
Jobs = Annotated[int, typer.Option(help="Processes; -1 for one a processor.", rich_help_panel=_FIT)]
Out = Annotated[
    Path,
    typer.Option("--out", "-o", help="Folder for figure and posterior.", rich_help_panel=_OUTPUT),
]
AsJson = Annotated[
    bool,
    typer.Option(
        "--json/--no-json", help="Print one JSON object instead of tables.", rich_help_panel=_OUTPUT
    ),
]
Quiet = Annotated[
    bool,
    typer.Option("--quiet/--loud", "-q", help="No progress and no notes.", rich_help_panel=_OUTPUT),
]
