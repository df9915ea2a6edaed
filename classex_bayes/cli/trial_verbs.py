"""`plan` and `backtest`: pilots before they are drawn, and pilots of a large task."""

from functools import partial
from pathlib import Path
from typing import Annotated, Any, cast

import classex_bayes as cb
from classex_bayes.cli.options import (
    Chains,
    Draws,
    Files,
    FileVerb,
    Folder,
    Jobs,
    Level,
    Metric,
    ReferenceVerb,
    Seed,
    option,
    verb,
)
from classex_bayes.cli.terminal import parse_counts, ready_folder, table
from classex_bayes.exceptions import DataError, Interrupted, require_extra
from classex_bayes.report.document import listed, note_records, records, scored_records

_COST = "classes", "repeats", "instances"
_GUESS_INSTANCES = 200
_DESIGN = *_COST, "width", "width_sd", "reached", "power", "error"


@verb(
    "plan",
    "classex-bayes plan --k 10000 --width 0.1",
    "classex-bayes plan scores.npz --k 10000 --width 0.1 --classes 200,400 --repeats 1,2",
    "classex-bayes plan --guess 100=0.9 --k 10000 --excludes 0.5",
)
class PlanVerb(FileVerb):
    """Find how many classes and instances a pilot needs, from a small pilot, a guess or nothing."""

    files: Files = cast(list[Path], ())
    k: Annotated[str, option("K", "Number of classes to predict for.")]
    width: Annotated[float | None, option("WIDTH", "Wanted width of the interval at K.")] = None
    excludes: Annotated[
        float | None, option("VALUE", "Accuracy that the interval should exclude.")
    ] = None
    guess: Annotated[
        str, option("K=A,...", "Guessed accuracies, such as 100=0.9, instead of files.")
    ] = ""
    metric: Metric = "accuracy"
    classes: Annotated[
        str | None,
        option("N,N,...", "Numbers of classes to try; by default 1, 2, 4, 8 times the pilot's."),
    ] = None
    repeats: Annotated[
        str | None,
        option("N,N,...", "Instances of a class to try; at 0.25 every fourth class has one."),
    ] = None
    n_pilots: Annotated[int, option("N", "Simulated pilots of each design.", min=2)] = 20
    seed: Seed = 1
    ci_prob: Level = None

    def run(self) -> None:
        counts = parse_counts(self.k)
        if len(counts) > 1:
            raise DataError(f"--k: expected one number of classes, found {self.k}")
        if self.files and self.guess:
            raise DataError("--guess: found with files; give a pilot or a guess")
        if self.width is None and self.excludes is None:
            raise DataError("--width, --excludes: expected one of them or both, found neither")
        sizes = None if self.classes is None else parse_counts(self.classes, "--classes")
        repeats = None if self.repeats is None else _numbers(self.repeats)
        task: Any = self.read() if self.files else _guessed(self.guess) if self.guess else None
        result = cb.plan(
            task,
            counts[0],
            width=self.width,
            excludes=self.excludes,
            metric=self.metric,
            classes=sizes,
            repeats=repeats,
            n_pilots=self.n_pilots,
            ci_prob=self.ci_prob,
            random_seed=self.seed,
            progressbar=self.terminal.shows_progress,
        )
        for note in result.notes:
            self.terminal.message(f"note: {note}")
        try:
            cheapest = _design(result.cheapest())
        except DataError:
            cheapest = None  # the advice says why
        stated = "k", "metric", "width", "excludes", "ci_prob", "ci_kind", "n_pilots"
        mean, sd = result.assumed
        numbers = {name: getattr(result, name) for name in stated} | {
            "seed": self.seed,
            "assumed": {"mean": mean, "sd": sd},
            "designs": records(result.table, _DESIGN),
            "cheapest": cheapest,
            "nearest": _design(result.nearest),
            "advice": result.advice,
            "notes": note_records(result.notes),
        }
        self.terminal.result([table(result.header, result.table), result.advice], numbers)


def _design(row: Any) -> dict[str, int | float]:
    """Sizes of a design, whole where they are."""
    return {name: int(row[name]) if row[name] % 1 == 0 else float(row[name]) for name in _COST}


def _numbers(text: str) -> list[float]:
    """Numbers that need not be whole, which the library judges."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise DataError(
            f"--repeats: expected numbers separated by commas, found {text!r}"
        ) from None


def _guessed(text: str) -> Any:
    """Task of accuracies by numbers of classes, each as certain as 200 independent instances."""
    try:
        pairs = [part.split("=") for part in text.split(",")]
        k, accuracy = [int(size) for size, _ in pairs], [float(value) for _, value in pairs]
    except ValueError:
        raise DataError(f"--guess: expected K=ACCURACY,..., found {text!r}") from None
    return cb.SourceTask.from_accuracies(
        k, accuracy, n_test=_GUESS_INSTANCES, n_classes=max(*k, 3), design_effect=1
    )


@verb(
    "backtest",
    "classex-bayes backtest everything.npz --n-source 50,100",
    "classex-bayes backtest everything.npz --n-source 100 --n-pilots 20 --jobs 2 --all --json",
)
class BacktestVerb(FileVerb, ReferenceVerb):
    """Extrapolate from many pilots of a large task, and compare with the accuracy on all classes.

    The folder --out keeps finished pilots. A back-test that was interrupted continues from there
    when it is started again.
    """

    n_source: Annotated[str, option("N,N,...", "Numbers of classes of the pilots.")]
    k: Annotated[
        str | None,
        option(
            "K,K,...", "By default 1, 2, 4, 10 and 20 times the classes of the pilots, and all."
        ),
    ] = None
    metric: Metric = "accuracy"
    n_pilots: Annotated[int, option("N", "Pilots of each size.", min=2)] = 100
    seed: Seed = 0
    draws: Draws = 500
    chains: Chains = 2
    ci_prob: Level = None
    jobs: Jobs = 1
    out: Folder = None

    def run(self) -> None:
        sizes, terminal = parse_counts(self.n_source, "--n-source"), self.terminal
        counts = None if self.k is None else parse_counts(self.k)
        if self.out is not None:
            require_extra("plots", "--out", "matplotlib")
            ready_folder(self.out)
        task = self.read()
        from classex_bayes.results.draws import interval_settings

        stem = self.name + ("" if self.metric == "accuracy" else f"-{self.metric}")
        store = None if self.out is None else self.out / f"{stem}-backtest.jsonl"
        ci_prob, _ = interval_settings(self.ci_prob, "eti")
        try:
            result = cb.backtest(
                [cb.BayesianExtrapolator(), *self.references(self.metric)],
                task,
                sizes,
                counts,
                metric=self.metric,
                n_pilots=self.n_pilots,
                ci_prob=ci_prob,
                random_seed=self.seed,
                sampler=self.sampler | {"tune": self.draws},
                n_jobs=self.jobs,
                store=store,
                progressbar=self.terminal.shows_progress,
            )
        except Interrupted as stop:
            if stop.partial is None:
                raise
            again = "; started again, the back-test continues from there" if store else ""
            result, terminal.interruption = stop.partial, f"{stop}{again}"
        level = f"{100 * ci_prob:g}"
        if store is not None:
            trials = store.with_suffix(".csv")
            terminal.write("trials", trials, partial(result.trials.to_csv, index=False))
            for size in result.scores.index.unique("n_source"):
                for score in ("rmse", f"coverage{level}"):
                    path = store.with_name(f"{stem}-{score}-{size}.png")
                    name = f"{score} from {size} classes"
                    terminal.write(name, path, partial(_draw, result, score, int(size)))
        title = f"Back-test on {task.n_classes} classes"
        title += f": {self.metric}" if self.metric != "accuracy" else ""
        numbers = {
            "metric": self.metric,
            "ci_prob": ci_prob,
            "seed": self.seed,
            "rows": scored_records(result.scores, ci_prob),
            "files": listed(terminal.files),
        }
        scores = _compact(result.scores, level)
        self.terminal.result([table(title, scores)], numbers)
        terminal.end([])


def _compact(scores: Any, level: str) -> Any:
    """Columns that fit on a terminal; all scores are in the JSON."""
    shown = scores[["n", "truth"]].rename(columns={"n": "pilots"})
    text = {name: scores[name].map("{:.3f}".format) for name in ("rmse", "rmse_se")}
    shown["RMSE (se)"] = text["rmse"] + " (" + text["rmse_se"] + ")"
    shown["bias"], shown["width"] = scores["bias"], scores["width"]
    shown[f"{level}% coverage"] = scores[f"coverage{level}"]
    return shown.reset_index()


def _draw(result: Any, score: str, size: int, path: Path) -> None:
    """One figure of errors or coverage of pilots of one size."""
    from matplotlib import pyplot as plt

    cb.plots.plot_backtest(result, score, size, backend="matplotlib").savefig(path)
    plt.close("all")
