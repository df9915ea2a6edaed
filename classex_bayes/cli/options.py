"""Verbs of the shell and their options: a verb is a dataclass whose fields are its options.

Typer reads the options from the signature of the class and makes an object of it, which runs.
Verbs inherit the options that they share. On a help page a verb's own options come first. Panels
follow: how files are read, the fit, the output.
"""

import errno
import os
import sys
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, dataclass_transform

import typer
from typer.core import TyperCommand, TyperGroup

import classex_bayes as cb
from classex_bayes.cli.terminal import ExitCode, Terminal, bad_data, parse_counts
from classex_bayes.exceptions import DataError, no_such_file

_PANELS = None, "Input", "Model", "Output"


class _Verbs(TyperGroup):
    """Verbs that end with the exit codes of a shell."""

    def invoke(self, context: Any) -> Any:
        """Run a verb; say what an interruption left, and end in silence if the output is closed."""
        try:
            return super().invoke(context)
        except KeyboardInterrupt as stop:
            print(str(stop) or "interrupted", file=sys.stderr)
            raise typer.Exit(ExitCode.INTERRUPTED) from None
        except OSError as error:
            if error.errno != errno.EPIPE:
                raise
            # The rest of the buffer is discarded, or the interpreter would complain of it.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(ExitCode.READER_GONE) from None


class _VerbCommand(TyperCommand):
    """A verb, which runs when its options are read. Its help is sorted by panels."""

    def __init__(self, *settings: Any, params: list[Any], **more: Any) -> None:
        in_panels = sorted(params, key=lambda option: _PANELS.index(option.rich_help_panel))
        super().__init__(*settings, params=in_panels, **more)

    def parse_args(self, context: Any, args: list[str]) -> list[str]:
        """Read the options. The first of two values would be lost without a word."""
        given = Counter(argument.partition("=")[0] for argument in args)
        for one in self.params:
            may_repeat = getattr(one, "multiple", True) or getattr(one, "is_flag", True)
            if not may_repeat and sum(given[name] for name in one.opts) > 1:
                raise typer.BadParameter(
                    f"{one.opts[0]}: found it twice, expected one value; run the command for each"
                )
        return super().parse_args(context, args)

    def invoke(self, context: Any) -> None:
        """Run the verb. Its warnings are notes, and errors begin with options."""
        verb = super().invoke(context)
        try:
            with verb.terminal.warnings_as_notes():
                verb.run()
        except DataError as error:
            argument, *rest = str(error).split(": ", 1)
            options = {option.name: option.opts[0] for option in self.params}
            raise type(error)(": ".join([options.get(argument, argument), *rest])) from None


_CODES = "; ".join(f"{code.value} {code.meaning}" for code in ExitCode)
app = typer.Typer(
    cls=_Verbs,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    epilog="Messages name the arguments of Python: ties='unknown' is the option --ties unknown, "
    f"and an argument that is no option is an array of the file. Exit codes: {_CODES}.",
)


@dataclass_transform(frozen_default=True, kw_only_default=True)
def verb[T: type[Verb]](name: str, *examples: str) -> Callable[[T], T]:
    """Make a class a verb of the program. Its help ends with examples that can be copied."""
    epilog = "\n\n".join(["Examples:", *examples])

    def registered(cls: T) -> T:
        dataclass(frozen=True, kw_only=True)(cls)
        return app.command(name, cls=_VerbCommand, epilog=epilog)(cls)

    return registered


def option(metavar: str | None, text: str, panel: str | None = None, **more: Any) -> Any:
    """An option with its help; `panel` is "Input", "Model" or "Output" if verbs share it."""
    return typer.Option(metavar=metavar, help=text, rich_help_panel=panel, **more)


def flag(text: str, *names: str, panel: str | None = None) -> Any:
    """An option without a value."""
    return typer.Option(*names, help=text, rich_help_panel=panel)


def output(metavar: str, text: str) -> Any:
    """The option for files that are written."""
    return typer.Option("--out", "-o", metavar=metavar, help=text, rich_help_panel="Output")


def _present(files: list[Path] | Path | None) -> list[Path] | Path | None:
    """Files that are there, checked before anything is loaded."""
    for file in files if isinstance(files, list) else [files] if files else []:
        if str(file) != "-" and not file.is_file():
            raise no_such_file(file)
    return files


def level(text: Any) -> float:
    """A number, also as a percentage."""
    from classex_bayes.arguments import number_of_text

    try:
        return number_of_text(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a number.") from None


def share(text: Any) -> float:
    """A number between 0 and 1, also as a percentage, checked before anything is read."""
    value = level(text)
    if not 0 < value < 1:
        raise typer.BadParameter(f"expected a share such as 0.9 or 90%, found {text}.")
    return value


def _metric(value: str) -> str:
    """Name of a metric, checked before anything is read."""
    from classex_bayes.core.metrics import named_metric

    try:
        return named_metric(value).name
    except DataError as error:
        raise DataError(f"--{error}") from None


def files_argument(text: str) -> Any:
    """The files of a verb."""
    return typer.Argument(metavar="FILES", help=text, show_default=False, callback=_present)


def by_m(text: Any) -> dict[str, float]:
    """Recalls by m, such as 1=.52,5=84.3%."""
    pairs = [pair.split("=") for pair in str(text).split(",")]
    if any(len(pair) != 2 for pair in pairs):
        raise typer.BadParameter(f"expected m=recall, such as 1=.52,5=.843, found {text!r}.")
    return {m.strip(): level(value) for m, value in pairs}


def _input(metavar: str | None, text: str, **more: Any) -> Any:
    callback = _present if metavar == "FILE" else None
    return option(metavar, text, "Input", callback=callback, **more)


Counts = Annotated[list[str], option("K,K,...", "Numbers of classes to predict for.")]
Metric = Annotated[
    str,
    option(
        "METRIC",
        "Such as accuracy@5 (recall@5, hit_rate@5), mrr, ndcg@10 or mean_rank.",
        callback=_metric,
    ),
]
Fpir = Annotated[
    float | None,
    option("FPIR", "Wanted FPIR: thresholds keep it with probability 0.95.", parser=share),
]
Resamples = Annotated[
    int | None,
    option("N", "Resamples for bootstrap intervals of point estimates, such as 200.", min=2),
]
Seed = Annotated[int, option("N", "Random seed.", "Model", min=0)]
Level = Annotated[
    float | None,
    option("PROB", "Level of intervals; 0.9 if not given.", "Model", parser=share),
]
Folder = Annotated[Path | None, output("FOLDER", "Write files (posterior, figure) to it.")]


@dataclass(frozen=True, kw_only=True)
class ScoreOptions:
    """Options of files with scores: arguments of `read_task`."""

    labels: Annotated[Path | None, _input("FILE", "Labels (.npy, .txt) of scores in .npy.")] = None
    higher_is_better: Annotated[
        bool | None,
        flag(
            "Scores, or distances; distances of search results and else scores if not given.",
            "--higher-is-better/--lower-is-better",
            panel="Input",
        ),
    ] = None
    distance: Annotated[
        Literal["sqeuclidean", "cosine", "dot"] | None,
        _input(None, "How embeddings are compared; sqeuclidean if not given."),
    ] = None
    ties: Annotated[
        Literal["auto", "random", "pessimistic", "optimistic", "unknown"] | None,
        _input(None, "How equal scores are ranked; auto if not given."),
    ] = None
    untested: Annotated[
        Literal["error", "competitors"] | None,
        _input(None, "What classes without instances are; error if not given."),
    ] = None
    unanswered: Annotated[
        Path | None,
        _input("FILE", "Labels (.npy, .txt) of instances without an answer: misses at every k."),
    ] = None
    ignore_identical: Annotated[
        bool,
        flag("Lists contain the test instances themselves.", "--ignore-identical", panel="Input"),
    ] = False
    n_classes: Annotated[
        int | None, _input("N", "Source classes if no file has them, documents of a run.")
    ] = None
    qrels: Annotated[Path | None, _input("FILE", "Relevance judgements (TREC) of a run.")] = None
    relevance_level: Annotated[
        int | None, _input("N", "Smallest relevance that counts; 1 if not given.")
    ] = None
    missing: Annotated[
        Literal["error", "unanswered", "unsearched"] | None,
        _input(None, "What judged queries are that a run lacks; error if not given."),
    ] = None


@dataclass(frozen=True, kw_only=True)
class DataOptions(ScoreOptions):
    """Options of all files: further arguments of `read_task`."""

    own_candidates: Annotated[
        bool,
        flag("Each list has all candidates of its query alone.", "--own-candidates", panel="Input"),
    ] = False
    truncated_at: Annotated[
        int | None, _input("N", "Length of lists that ranks come from; larger ranks are unknown.")
    ] = None
    sampling: Annotated[
        Path | None, _input("FILE", "How classes were drawn: a .csv with class, inclusion, group.")
    ] = None
    recalls: Annotated[
        Any, _input("M=R,M=R,...", "Recalls of a printed table in place of FILES.", parser=by_m)
    ] = None
    per_unit: Annotated[
        int | None, _input("N", "Candidates of each class, if recalls count these; 1 if not given.")
    ] = None
    n_negatives: Annotated[int | None, _input("N", "Random negatives of each rank.")] = None
    n_test: Annotated[int | None, _input("N", "Test instances of a curve or of recalls.")] = None


@dataclass(frozen=True, kw_only=True)
class Verb(ABC):
    """A verb with the options of all."""

    context: typer.Context
    as_json: Annotated[bool, flag("One JSON object, no tables.", "--json", panel="Output")] = False
    quiet: Annotated[
        bool, flag("Nothing but errors on standard error.", "--quiet", "-q", panel="Output")
    ] = False

    @abstractmethod
    def run(self) -> None:
        """Answer."""

    @cached_property
    def terminal(self) -> Terminal:
        """The streams of the shell, files that were written, and what failed."""
        return Terminal(self.quiet, self.as_json, self.context.command.name or "")


@dataclass(frozen=True, kw_only=True)
class FileVerb(ScoreOptions, Verb):
    """A verb on the task in some files: one with scores, or any with `DataOptions`."""

    files: Annotated[
        list[Path] | None,
        files_argument(
            "Scores, embeddings, ranks, search results or runs of TREC: .npz, .npy, .csv, .tsv, "
            ".parquet; - is standard input. Several files: parts of the test instances."
        ),
    ] = None

    @property
    def paths(self) -> list[Path]:
        """The files; none of recalls that are an option."""
        return self.files or []

    @property
    def name(self) -> str:
        """Name for files that are made from these."""
        if not self.paths:
            return "recalls"
        more = f"-and-{len(self.paths) - 1}-more" if len(self.paths) > 1 else ""
        stem = "stdin" if str(self.paths[0]) == "-" else self.paths[0].stem
        return f"{stem}{more}"

    def read(self, *files: Path) -> "cb.SourceTask":
        """The task in one file, or in the parts that several files hold; by default in all."""
        arguments: dict[str, Any] = {
            option.name: value
            for option in fields(DataOptions)
            if (value := getattr(self, option.name, option.default)) != option.default
        }
        with self.terminal.reading(), bad_data():
            # Ties are broken by the fixed seed of `read_task`, as in Python.
            task = cb.read_task(files or self.paths, **arguments)
        self.terminal.message(str(task))
        from classex_bayes.core.metrics import named_metric

        task.relevant_ranks(named_metric(getattr(self, "metric", "accuracy")))  # or an error
        return task


@dataclass(frozen=True, kw_only=True)
class TargetOptions:
    """The metric that is predicted, and its target."""

    k: Counts
    metric: Metric = "accuracy"
    target: Annotated[
        float | None,
        option("VALUE", "Wanted value of the metric: at least, or of ranks at most.", parser=level),
    ] = None

    def counts(self) -> list[int]:
        """Numbers of classes; checked with the target before anything is read."""
        counts = parse_counts(self.k)
        if self.target is not None:
            from classex_bayes.results.extrapolation import Estimand, checked_level

            checked_level(Estimand(metric=self.metric), self.target, "--target", max(counts))
        return counts


@dataclass(frozen=True, kw_only=True)
class FitVerb(Verb):
    """A verb that fits a model."""

    seed: Seed = 1
    draws: Annotated[int, option("N", "Draws in each chain.", "Model", min=1)] = 1000
    chains: Annotated[int, option("N", "Number of chains.", "Model", min=1)] = 4

    @property
    def sampler(self) -> dict[str, int]:
        """Settings of the sampler."""
        return {"draws": self.draws, "chains": self.chains}


@dataclass(frozen=True, kw_only=True)
class ReferenceVerb(FitVerb):
    """A verb that fits point estimators, too."""

    every: Annotated[bool, flag("All estimators, not only ClassExReg and KDE.", "--all")] = False

    def references(self, metric: str = "accuracy") -> list[Any]:
        """The point estimators of a metric."""
        if self.every:
            return cb.literature(self.seed, metric=metric)
        from classex_bayes.report.findings import usual_references

        return usual_references(self.seed, metric)
