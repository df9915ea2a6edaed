"""`diagnose` and `classifiers`: checks of data, and comparisons of classifiers."""

from dataclasses import field
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any

import typer

import classex_bayes as cb
from classex_bayes.cli.options import (
    DataOptions,
    FileVerb,
    FitVerb,
    Level,
    Seed,
    TargetOptions,
    files_argument,
    flag,
    option,
    share,
    verb,
)
from classex_bayes.cli.terminal import ExitCode, bad_data, gates, table, target_gates
from classex_bayes.exceptions import DataError
from classex_bayes.report.document import by_limits, note_records, records

_ROW = "classifier", "k", "mean", "sd", "lower", "upper", "prob_best", "prob_reached"


@verb(
    "diagnose",
    "classex-bayes diagnose scores.npz",
    "classex-bayes diagnose embeddings.npz --distance cosine --strict --quiet",
)
class DiagnoseVerb(DataOptions, FileVerb):
    """Check the data for what makes an extrapolation untrustworthy; nothing is fitted."""

    strict: Annotated[
        bool, flag("End with exit code 5 if a check warns; notes are not faults.", "--strict")
    ] = False
    seed: Seed = 1

    def run(self) -> None:
        task = self.read()
        report = cb.diagnose(task, random_seed=self.seed)
        numbers = {
            "title": report.title,
            "passed": report.passed,
            "checks": records(report.table),
            "seed": self.seed,
        }
        self.terminal.result([repr(report)], numbers)
        if self.strict and not report.passed:
            raise typer.Exit(ExitCode.NOT_MET)


@verb(
    "classifiers",
    "classex-bayes classifiers first.npz second.npz --k 1000,10000",
    "classex-bayes classifiers bm25.npz dense.npz --k 100000 --metric recall@10 --json",
    "classex-bayes classifiers new.npz old.npz --k 10000 --metric mrr --require 0.95",
)
class ClassifiersVerb(TargetOptions, DataOptions, FileVerb, FitVerb):
    """Compare classifiers on K classes: each one, their differences, and which is best."""

    files: Annotated[
        list[Path],
        files_argument("One file for each classifier or search engine, as of `extrapolate`."),
    ] = field()  # required, unlike those of other verbs
    require: Annotated[
        float | None,
        option(
            "PROB",
            "Probability at every K, or exit code 5: each classifier reaches the target; without "
            "one, the first classifier is the best.",
            parser=share,
        ),
    ] = None
    paired: Annotated[
        bool,
        flag("Whether row i of every file is the same instance.", "--paired/--no-paired"),
    ] = True
    ci_prob: Level = None

    def run(self) -> None:
        counts = self.counts()
        if len(self.paths) == 1:
            raise DataError(
                f"FILES: expected one for each of several classifiers, found {self.paths[0]}"
            )
        if len(set(self.paths)) < len(self.paths):
            raise DataError("FILES: found a file twice, expected one for each classifier")
        stems = [file.stem for file in self.paths]
        names = stems if len(set(stems)) == len(stems) else [str(file) for file in self.paths]
        tasks = {name: self.read(file) for name, file in zip(names, self.paths, strict=True)}
        self.terminal.message("Sampling ...")
        from classex_bayes.formatting import capitalized
        from classex_bayes.results.draws import interval_settings

        prob, kind = interval_settings(self.ci_prob, None)
        with bad_data():
            result = cb.compare_classifiers(
                tasks,
                counts,
                metric=self.metric,
                paired=self.paired,
                sampler=self.sampler,
                random_seed=self.seed,
                progressbar=self.terminal.shows_progress,
            )
        self.terminal.notes([f"note: {note}" for note in result.notes], *tasks.values())
        summary = result.summary(prob, kind, round_to="none")
        differences: list[dict[str, Any]] = []
        for first, second in combinations(names, 2):
            of_pair = result.difference(first, second).summary(prob, kind, round_to="none")
            differences += records(by_limits(of_pair.assign(first=first, second=second)))
        lines = [
            f"{row['first']} minus {row['second']} at k = {row['k']:,}: {row['mean']:+.4f} "
            f"(sd {row['sd']:.4f}), above 0 with probability {row['prob_above']:.3f}"
            for row in differences
        ]
        passed: dict[str, bool] = {}
        if self.target is not None:
            reached = {n: p.prob_reached(self.target) for n, p in result.predictions.items()}
            summary["prob_reached"] = [chance for name in names for chance in reached[name]]
        if self.require is not None and self.target is not None:
            for name, prediction in result.predictions.items():
                passed |= target_gates(prediction, self.target, self.require, f"{name}: ")
        elif self.require is not None:
            best, units = result.prob_best()[names[0]], result.estimand.units
            passed = gates(f"{names[0]} is the best", best, units, self.require)
        is_met = all(passed.values())
        numbers = {
            "metric": self.metric,
            "paired": self.paired,
            "ci_prob": prob,
            "ci_kind": kind,
            "seed": self.seed,
            "rows": records(by_limits(summary), _ROW),
            "differences": differences,
            "required": self.require and {"probability": self.require, "is_met": is_met},
            "notes": note_records(result.notes),
        }
        title = f"{capitalized(result.estimand.describe())} of {len(names)} classifiers"
        self.terminal.result([*passed, table(title, summary.reset_index()), *lines], numbers)
        self.terminal.end([*result.posterior.models.values()], is_met)
