"""Options of the verbs: each is declared here once, in the order in which help pages show them.

The data and what is predicted come first. Panels follow: how files are read, the fit, the output.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial, wraps
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from classex_bayes.cli.console import Terminal

_input = partial(typer.Option, rich_help_panel="Input")
_model = partial(typer.Option, rich_help_panel="Model")
_output = partial(typer.Option, rich_help_panel="Output")


def examples(*lines: str) -> str:
    """The end of a help page: commands that can be copied."""
    return "\n\n".join(["Examples:", *lines])


def with_options(**groups: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a verb a terminal, and the fields of some dataclasses as options.

    `groups` has the dataclasses, whose values are defaults, by the parameter that takes them. The
    options of the terminal are last. Warnings of the whole verb are notes.
    """
    groups["terminal"] = OutputOptions()

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        parameters = [_keyword("context", typer.Context)]
        for name, parameter in inspect.signature(function).parameters.items():
            if name in groups:
                parameters += [
                    _keyword(field.name, field.type, getattr(groups[name], field.name))
                    for field in fields(groups[name])
                ]
            else:
                parameters.append(parameter)

        @wraps(function)
        def flat(*, context: typer.Context, **values: Any) -> None:
            for name, group in groups.items():
                options = {field.name: values.pop(field.name) for field in fields(group)}
                values[name] = type(group)(**options)
            output = values["terminal"]
            # The name of the program may be several words, as of `python -m`.
            verb = context.command_path.removeprefix(context.find_root().command_path).strip()
            values["terminal"] = Terminal(output.quiet, output.as_json, verb)
            with values["terminal"].warnings_as_notes():
                function(**values)

        # Typer reads this attribute, which functions may have and their type does not name.
        flat.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        return flat

    return decorate


def _keyword(
    name: str, annotation: Any, default: Any = inspect.Parameter.empty
) -> inspect.Parameter:
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
    )


def present(files: list[Path] | Path | None) -> list[Path] | Path | None:
    """Files that are there, checked before anything is loaded."""
    from classex_bayes.exceptions import no_such_file

    for file in files if isinstance(files, list) else [files] if files else []:
        if not file.exists() or (file.is_dir() and file.suffix != ".zarr"):
            raise no_such_file(file)
    return files


def share(text: Any) -> float:
    """A number between 0 and 1, also as a percentage, checked before anything is read."""
    number = str(text).strip()
    try:
        value = float(number.removesuffix("%")) / (100 if number.endswith("%") else 1)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a number.") from None
    if not 0 < value < 1:
        raise typer.BadParameter(f"expected a share such as 0.9 or 90%, found {text}.")
    return value


def _metric(value: str) -> str:
    """Name of a metric, checked before anything is read."""
    from classex_bayes.core.metrics import named_metric

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
    typer.Option(metavar="ACCURACY", help="Accuracy wanted: until how many classes?", parser=share),
]
Required = Annotated[
    float | None,
    typer.Option(
        metavar="PROB",
        help="End with exit code 5 if the probability of the target is below it at any K.",
        parser=share,
    ),
]
Strict = Annotated[
    bool,
    typer.Option(
        "--strict",
        help="A gate: make all checks of data and fit. What fails is the first line, and the exit "
        "code 5.",
    ),
]
WantedFpir = Annotated[
    float | None,
    typer.Option(
        "--fpir",
        metavar="FPIR",
        help="FPIR wanted: thresholds keep below it with probability 0.95.",
        parser=share,
    ),
]
Every = Annotated[
    bool, typer.Option("--all", help="All that take seconds, not only ClassExReg and KDE.")
]
Slow = Annotated[bool, typer.Option("--slow", help="All, and CleaneX, which takes minutes.")]
WithBounds = Annotated[
    bool,
    typer.Option("--bounds", help="Limits that the ranks alone allow, without a prior."),
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
Seed = Annotated[int, _model(min=0, metavar="N", help="Seed of everything random.")]
Level = Annotated[
    float | None,
    _model(
        metavar="PROB",
        help="Level of the intervals; ArviZ's rcParams (0.89) if not given.",
        parser=share,
    ),
]
Jobs = Annotated[int, _model(metavar="N", help="Processes; -1 for one a processor.")]


@dataclass(frozen=True)
class DataOptions:
    """Options for reading files with instances."""

    labels: Annotated[
        Path | None,
        _input(metavar="FILE", help="Labels (.npy or .txt) of scores in .npy.", callback=present),
    ] = None
    lower_is_better: Annotated[
        bool, _input("--lower-is-better", help="Scores are distances: the smallest is the best.")
    ] = False
    distance: Annotated[
        Literal["sqeuclidean", "cosine", "dot"] | None,
        _input(
            metavar="DISTANCE",
            help="How embeddings are compared: sqeuclidean (default), cosine or dot.",
        ),
    ] = None
    ties: Annotated[
        Literal["auto", "random", "pessimistic", "optimistic", "unknown"] | None,
        _input(
            metavar="RULE",
            help="Equal scores: auto (default), random, pessimistic, optimistic or unknown.",
        ),
    ] = None
    untested: Annotated[
        Literal["error", "competitors"] | None,
        _input(metavar="RULE", help="Classes without instances: error (default) or competitors."),
    ] = None
    truncated_at: Annotated[
        int | None,
        _input(
            metavar="N",
            help="Length of the lists that ranks come from; larger ranks are unknown.",
        ),
    ] = None
    design: Annotated[
        Path | None,
        _input(
            metavar="FILE",
            help="How classes were drawn: a .csv with class, inclusion, group.",
            callback=present,
        ),
    ] = None
    sibling_share: Annotated[
        float | None,
        _input(
            metavar="SHARE",
            help="Share of its own group that larger sets hold; 1 if not given.",
        ),
    ] = None


@dataclass(frozen=True)
class TaskOptions(DataOptions):
    """Options for reading any file, accuracy curves and runs included."""

    n_test: Annotated[int | None, _input(metavar="N", help="Test instances of a curve.")] = None
    n_classes: Annotated[
        int | None, _input(metavar="N", help="Source classes of a curve, documents of a run.")
    ] = None
    qrels: Annotated[
        Path | None,
        _input(metavar="FILE", help="Relevance judgements (TREC) of a run.", callback=present),
    ] = None
    relevance_level: Annotated[
        int | None,
        _input(metavar="N", help="Smallest relevance that counts; 1 if not given."),
    ] = None
    missing: Annotated[
        Literal["error", "unanswered", "unsearched"] | None,
        _input(
            metavar="RULE",
            help="Judged queries that a run lacks: error (default), unanswered or unsearched.",
        ),
    ] = None


@dataclass(frozen=True)
class SamplerOptions:
    """Draws of the posterior and the seed."""

    seed: Seed = 1
    draws: Annotated[int, _model(min=1, metavar="N", help="Draws in each chain.")] = 1000
    chains: Annotated[int, _model(min=1, metavar="N", help="Number of chains.")] = 4


@dataclass(frozen=True)
class FitOptions(SamplerOptions):
    """Draws, seed and level of the intervals."""

    ci_prob: Level = None


@dataclass(frozen=True)
class FileOptions:
    """Where files go, if any are written."""

    out: Annotated[
        Path | None,
        _output("--out", "-o", metavar="FOLDER", help="Write files (posterior, figure) to it."),
    ] = None


@dataclass(frozen=True)
class PageOptions:
    """Where the report goes."""

    out: Annotated[
        Path,
        _output(
            "--out", "-o", metavar="PAGE", help="The page (.html); the posterior goes beside it."
        ),
    ] = Path("report.html")
    posterior: Annotated[
        bool,
        _output(
            "--posterior/--no-posterior", help="Write the posterior (.nc, some MB) beside the page."
        ),
    ] = True


@dataclass(frozen=True)
class OutputOptions:
    """What is printed: options of every verb."""

    as_json: Annotated[bool, _output("--json", help="One JSON object and no tables.")] = False
    quiet: Annotated[
        bool, _output("--quiet", "-q", help="Nothing but errors on standard error.")
    ] = False
