"""Options of the commands; each is declared here once, with its default."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import typer

from classex_bayes.cli.config import read_config

_DATA, _FIT, _OUTPUT = "Data", "Fit", "Output"
_Likeness = Literal["sqeuclidean", "cosine", "dot"]  # of embeddings


def examples(*lines: str) -> str:
    """The end of a help page: commands that can be copied."""
    return "\n\n".join(["Examples:", *lines])


def with_options(**groups: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the fields of some dataclasses as options, with their values as defaults.

    `groups` has them by the name of the command's parameter that takes the dataclass.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        parameters: list[inspect.Parameter] = []
        for name, parameter in inspect.signature(command).parameters.items():
            if name in groups:
                parameters += _parameters(groups[name])
            else:
                parameters.append(parameter)

        @wraps(command)
        def flat(**values: Any) -> None:
            for name, group in groups.items():
                options = {field.name: values.pop(field.name) for field in fields(group)}
                values[name] = type(group)(**options)
            command(**values)

        # Typer reads this attribute, which functions may have and their type does not name.
        flat.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        return flat

    return decorate


def _parameters(group: Any) -> list[inspect.Parameter]:
    """Fields of a group as parameters whose defaults are its values."""
    return [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=getattr(group, field.name),
            annotation=field.type,
        )
        for field in fields(group)
    ]


def _present(files: list[Path]) -> list[Path]:
    """Files that are there, checked before anything is loaded."""
    from classex_bayes.exceptions import no_such_file

    for file in files:
        try:
            present = file.exists()
        except (OSError, ValueError):  # who reads it says what is wrong with the name
            continue
        if not present:
            raise no_such_file(file)
    return files


def _share(setting: typer.CallbackParam, value: float | None) -> float | None:
    """A number between 0 and 1, checked before anything is read."""
    if value is not None:
        from classex_bayes.arguments import probability

        probability(value, setting.opts[0])
    return value


def _metric(value: str) -> str:
    """Name of a metric, checked before anything is read."""
    from classex_bayes.core.metrics import named_metric
    from classex_bayes.exceptions import DataError

    if value in get_args(_Likeness):
        raise DataError(
            f"--metric: found {value!r}, which is how embeddings are compared; write "
            f"--embedding-metric {value}. --metric is what is predicted, such as mrr"
        )
    return named_metric(value).name


Files = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILES",
        help="Scores, embeddings, ranks or search results: .npz, .npy (with --labels), .csv, "
        ".parquet, .zarr or HDF5; runs of TREC (with --qrels). Several files: parts of the test "
        "instances.",
        show_default=False,
        callback=_present,
    ),
]
Counts = Annotated[
    str, typer.Option("--k", metavar="K,K,...", help="Numbers of classes to predict for.")
]
Target = Annotated[
    float | None, typer.Option(help="Accuracy wanted: until how many classes?", callback=_share)
]
Predicted = Annotated[
    str,
    typer.Option(
        "--metric",
        metavar="METRIC",
        help="What is predicted: accuracy, accuracy@5 (recall@5), mrr, mrr@10, ndcg, ndcg@10, "
        "mean_rank or median_rank.",
        callback=_metric,
    ),
]
WantedFpir = Annotated[
    float | None,
    typer.Option(
        "--fpir",
        help="FPIR wanted: thresholds keep below it with probability 0.95.",
        callback=_share,
    ),
]
Seed = Annotated[int, typer.Option(min=0, help="Seed of everything random.", rich_help_panel=_FIT)]
Jobs = Annotated[int, typer.Option(help="Processes; -1 for one a processor.", rich_help_panel=_FIT)]
Slow = Annotated[
    bool, typer.Option("--slow/--not-slow", help="All, and CleaneX, which takes minutes.")
]
Every = Annotated[
    bool, typer.Option("--all/--usual", help="All that take seconds, not only ClassExReg and KDE.")
]
Resamples = Annotated[
    int | None,
    typer.Option(
        "--n-resamples",
        min=2,
        help="Give point estimates bootstrap intervals from so many resamples, such as 200; none "
        "if not given.",
    ),
]
Out = Annotated[
    Path,
    typer.Option("--out", "-o", help="Folder for figure and posterior.", rich_help_panel=_OUTPUT),
]
RESULTS = Path("classex-bayes-results")


@dataclass(frozen=True)
class DataOptions:
    """Options for reading files with instances."""

    labels: Annotated[
        Path | None, typer.Option(help="Labels (.npy) of scores in .npy.", rich_help_panel=_DATA)
    ] = None
    embedding_metric: Annotated[
        _Likeness | None,
        typer.Option(
            help="How embeddings are compared; sqeuclidean if not given.", rich_help_panel=_DATA
        ),
    ] = None
    distances: Annotated[
        bool,
        typer.Option(
            "--distances/--scores", help="Smaller scores are better.", rich_help_panel=_DATA
        ),
    ] = False
    ties: Annotated[
        Literal["auto", "random", "pessimistic", "optimistic", "unknown"] | None,
        typer.Option(
            help="Does a competitor with the same score win? auto if not given.",
            rich_help_panel=_DATA,
        ),
    ] = None
    truncated_at: Annotated[
        int | None,
        typer.Option(
            help="Length of the lists that ranks come from; ranks above it are not in the list.",
            rich_help_panel=_DATA,
        ),
    ] = None
    untested: Annotated[
        Literal["error", "competitors"] | None,
        typer.Option(
            help="Classes without test instances: refused, or competitors.", rich_help_panel=_DATA
        ),
    ] = None
    design: Annotated[
        Path | None,
        typer.Option(
            help="How classes were drawn: a .csv with class, inclusion, group.",
            rich_help_panel=_DATA,
        ),
    ] = None
    sibling_share: Annotated[
        float | None,
        typer.Option(
            help="Share of a class's own group that larger sets of classes hold; 1 if not given.",
            rich_help_panel=_DATA,
        ),
    ] = None


@dataclass(frozen=True)
class TaskOptions(DataOptions):
    """Options for reading any file, accuracy curves included."""

    n_test: Annotated[
        int | None,
        typer.Option(help="Test instances behind a bare accuracy curve.", rich_help_panel=_DATA),
    ] = None
    n_classes: Annotated[
        int | None,
        typer.Option(
            help="Source classes behind a bare accuracy curve, or documents behind a run.",
            rich_help_panel=_DATA,
        ),
    ] = None
    qrels: Annotated[
        Path | None,
        typer.Option(
            help="Relevance judgements (TREC) of a run, with --n-classes.", rich_help_panel=_DATA
        ),
    ] = None
    relevance_level: Annotated[
        int | None,
        typer.Option(help="Smallest relevance that counts; 1 if not given.", rich_help_panel=_DATA),
    ] = None
    missing: Annotated[
        Literal["error", "unanswered", "unsearched"] | None,
        typer.Option(
            help="Judged queries that a run has not: refused, unanswered or left out.",
            rich_help_panel=_DATA,
        ),
    ] = None


@dataclass(frozen=True)
class FitOptions:
    """Seed, intervals and draws."""

    seed: Seed = 1
    ci_prob: Annotated[
        float | None,
        typer.Option(
            help="Level of the credible intervals; ArviZ's rcParams (0.89) if not given.",
            callback=_share,
            rich_help_panel=_FIT,
        ),
    ] = None
    draws: Annotated[
        int, typer.Option(min=1, help="Posterior draws in each chain.", rich_help_panel=_FIT)
    ] = 1000
    chains: Annotated[int, typer.Option(min=1, help="Number of chains.", rich_help_panel=_FIT)] = 4


@dataclass(frozen=True)
class OutputOptions:
    """Options for printing, and the file of settings."""

    as_json: Annotated[
        bool,
        typer.Option(
            "--json/--no-json",
            help="Print one JSON object instead of tables.",
            rich_help_panel=_OUTPUT,
        ),
    ] = False
    quiet: Annotated[
        bool,
        typer.Option(
            "--quiet/--loud", "-q", help="No progress and no notes.", rich_help_panel=_OUTPUT
        ),
    ] = False
    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            help="TOML file with settings, by their names here; the command line goes before it.",
            callback=read_config,
            is_eager=True,
            rich_help_panel=_OUTPUT,
        ),
    ] = None
