"""Options of the verbs: each is declared here once, in the order in which help pages show them.

The data and what is asked come first. Panels follow: how files are read, the fit, the output.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import typer

from classex_bayes.cli.config import read_config
from classex_bayes.cli.console import Terminal

_INPUT, _MODEL, _OUTPUT = "Input", "Model", "Output"
_Likeness = Literal["sqeuclidean", "cosine", "dot"]  # of embeddings


def examples(*lines: str) -> str:
    """The end of a help page: commands that can be copied."""
    return "\n\n".join(["Examples:", *lines])


def with_options(**groups: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a verb a terminal, and the fields of some dataclasses as options.

    `groups` has the dataclasses, whose values are defaults, by the parameter that takes them. The
    options of the terminal are last. Warnings of the whole verb are notes.
    """
    groups["terminal"] = OutputOptions()

    def decorate(verb: Callable[..., None]) -> Callable[..., None]:
        parameters = [_CONTEXT]
        for name, parameter in inspect.signature(verb).parameters.items():
            parameters += _parameters(groups[name]) if name in groups else [parameter]

        @wraps(verb)
        def flat(*, context: typer.Context, **values: Any) -> None:
            for name, group in groups.items():
                options = {field.name: values.pop(field.name) for field in fields(group)}
                values[name] = type(group)(**options)
            shown = values["terminal"]
            terminal = Terminal(shown.quiet, shown.as_json, str(context.info_name))
            values["terminal"] = terminal
            with terminal.warnings_as_notes():
                verb(**values)

        # Typer reads this attribute, which functions may have and their type does not name.
        flat.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        return flat

    return decorate


_CONTEXT = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)


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


def present(files: list[Path] | Path | None) -> list[Path] | Path | None:
    """Files that are there, checked before anything is loaded."""
    from classex_bayes.exceptions import no_such_file

    for file in files if isinstance(files, list) else [files] if files else []:
        try:
            exists = file.exists()
        except (OSError, ValueError):  # who reads it says what is wrong with the name
            continue
        if not exists:
            raise no_such_file(file)
    return files


def _share(setting: typer.CallbackParam, value: float | None) -> float | None:
    """A number between 0 and 1, checked before anything is read."""
    if value is not None:
        from classex_bayes.arguments import probability

        probability(value, setting.opts[0])
    return value


def _number(text: Any) -> float:
    """A number as it is typed; a percentage is refused with the share to write."""
    try:
        return float(text)
    except ValueError:
        number = str(text).strip().removesuffix("%")
        try:
            share = f"{float(number) / 100:.12g}"
        except ValueError:
            raise typer.BadParameter(f"{text!r} is not a number.") from None
        raise typer.BadParameter(f"found {text}, expected a share; write {share}.") from None


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
        help="Scores, embeddings, ranks, search results or runs of TREC: .npz, .npy, .csv, "
        ".parquet, .zarr, HDF5. Several files: parts of the test instances.",
        show_default=False,
        callback=present,
    ),
]
Counts = Annotated[
    str, typer.Option("--k", metavar="K,K,...", help="Numbers of classes to predict for.")
]
Predicted = Annotated[
    str,
    typer.Option(
        "--metric",
        metavar="METRIC",
        help="accuracy, accuracy@5 (recall@5), mrr, mrr@10, ndcg, ndcg@10, mean_rank or "
        "median_rank.",
        callback=_metric,
    ),
]
Target = Annotated[
    float | None,
    typer.Option(
        metavar="ACCURACY",
        help="Accuracy wanted: until how many classes?",
        parser=_number,
        callback=_share,
    ),
]
Required = Annotated[
    float | None,
    typer.Option(
        metavar="PROB",
        help="End with exit code 5 if the probability of the target is below it at any K.",
        parser=_number,
        callback=_share,
    ),
]
WantedFpir = Annotated[
    float | None,
    typer.Option(
        "--fpir",
        metavar="FPIR",
        help="FPIR wanted: thresholds keep below it with probability 0.95.",
        parser=_number,
        callback=_share,
    ),
]
Every = Annotated[
    bool, typer.Option("--all/--usual", help="All that take seconds, not only ClassExReg and KDE.")
]
Slow = Annotated[
    bool, typer.Option("--slow/--not-slow", help="All, and CleaneX, which takes minutes.")
]
Resamples = Annotated[
    int | None,
    typer.Option(
        "--n-resamples",
        min=2,
        metavar="N",
        help="Resamples for bootstrap intervals of point estimates, such as 200.",
    ),
]
Seed = Annotated[
    int, typer.Option(min=0, metavar="N", help="Seed of everything random.", rich_help_panel=_MODEL)
]
Level = Annotated[
    float | None,
    typer.Option(
        metavar="PROB",
        help="Level of the intervals; ArviZ's rcParams (0.89) if not given.",
        parser=_number,
        callback=_share,
        rich_help_panel=_MODEL,
    ),
]
Jobs = Annotated[
    int,
    typer.Option(metavar="N", help="Processes; -1 for one a processor.", rich_help_panel=_MODEL),
]
RESULTS = Path("classex-bayes-results")


@dataclass(frozen=True)
class DataOptions:
    """Options for reading files with instances."""

    labels: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Labels (.npy) of scores in .npy.",
            callback=present,
            rich_help_panel=_INPUT,
        ),
    ] = None
    distances: Annotated[
        bool,
        typer.Option(
            "--distances/--scores", help="Smaller scores are better.", rich_help_panel=_INPUT
        ),
    ] = False
    embedding_metric: Annotated[
        _Likeness | None,
        typer.Option(
            metavar="METRIC",
            help="How embeddings are compared: sqeuclidean (default), cosine or dot.",
            rich_help_panel=_INPUT,
        ),
    ] = None
    ties: Annotated[
        Literal["auto", "random", "pessimistic", "optimistic", "unknown"] | None,
        typer.Option(
            metavar="RULE",
            help="Equal scores: auto (default), random, pessimistic, optimistic or unknown.",
            rich_help_panel=_INPUT,
        ),
    ] = None
    untested: Annotated[
        Literal["error", "competitors"] | None,
        typer.Option(
            metavar="RULE",
            help="Classes without instances: error (default) or competitors.",
            rich_help_panel=_INPUT,
        ),
    ] = None
    truncated_at: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Length of the lists that ranks come from; larger ranks are unknown.",
            rich_help_panel=_INPUT,
        ),
    ] = None
    design: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="How classes were drawn: a .csv with class, inclusion, group.",
            callback=present,
            rich_help_panel=_INPUT,
        ),
    ] = None
    sibling_share: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="Share of its own group that larger sets hold; 1 if not given.",
            rich_help_panel=_INPUT,
        ),
    ] = None


@dataclass(frozen=True)
class TaskOptions(DataOptions):
    """Options for reading any file, accuracy curves and runs included."""

    n_test: Annotated[
        int | None,
        typer.Option(metavar="N", help="Test instances of a curve.", rich_help_panel=_INPUT),
    ] = None
    n_classes: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Source classes of a curve, documents of a run.",
            rich_help_panel=_INPUT,
        ),
    ] = None
    qrels: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Relevance judgements (TREC) of a run.",
            callback=present,
            rich_help_panel=_INPUT,
        ),
    ] = None
    relevance_level: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Smallest relevance that counts; 1 if not given.",
            rich_help_panel=_INPUT,
        ),
    ] = None
    missing: Annotated[
        Literal["error", "unanswered", "unsearched"] | None,
        typer.Option(
            metavar="RULE",
            help="Judged queries that a run lacks: error (default), unanswered or unsearched.",
            rich_help_panel=_INPUT,
        ),
    ] = None


@dataclass(frozen=True)
class SamplerOptions:
    """Draws of the posterior and the seed."""

    seed: Seed = 1
    draws: Annotated[
        int, typer.Option(min=1, metavar="N", help="Draws in each chain.", rich_help_panel=_MODEL)
    ] = 1000
    chains: Annotated[
        int, typer.Option(min=1, metavar="N", help="Number of chains.", rich_help_panel=_MODEL)
    ] = 4


@dataclass(frozen=True)
class FitOptions(SamplerOptions):
    """Draws, seed and level of the intervals."""

    ci_prob: Level = None


@dataclass(frozen=True)
class FileOptions:
    """Where files go, if any are written."""

    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            metavar="FOLDER",
            help="Folder of posterior and figure.",
            rich_help_panel=_OUTPUT,
        ),
    ] = RESULTS
    no_files: Annotated[
        bool,
        typer.Option("--no-files/--with-files", help="Write no file.", rich_help_panel=_OUTPUT),
    ] = False

    @property
    def folder(self) -> Path | None:
        """The folder, or None where nothing is to be written."""
        return None if self.no_files else self.out


@dataclass(frozen=True)
class OutputOptions:
    """What is printed, and the file of settings: options of every verb."""

    as_json: Annotated[
        bool,
        typer.Option(
            "--json/--no-json", help="One JSON object and no tables.", rich_help_panel=_OUTPUT
        ),
    ] = False
    quiet: Annotated[
        bool,
        typer.Option(
            "--quiet/--loud",
            "-q",
            help="Nothing but errors on standard error.",
            rich_help_panel=_OUTPUT,
        ),
    ] = False
    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            metavar="FILE",
            help="TOML file with settings; the command line goes before it.",
            callback=read_config,
            is_eager=True,
            rich_help_panel=_OUTPUT,
        ),
    ] = None
