"""`demo`, `extrapolate`, `compare`, `report` and `open-set`: predictions for more classes."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import classex_bayes as cb
from classex_bayes.cli.options import (
    Counts,
    DataOptions,
    FileVerb,
    FitVerb,
    Folder,
    Fpir,
    Level,
    ReferenceVerb,
    Resamples,
    Seed,
    TargetOptions,
    files_argument,
    flag,
    option,
    output,
    share,
    verb,
)
from classex_bayes.cli.terminal import (
    bad_data,
    faults_of,
    parse_counts,
    ready_folder,
    table,
    target_gates,
)
from classex_bayes.exceptions import DataError, Interrupted
from classex_bayes.report.document import by_limits, document, listed, open_set_document

if TYPE_CHECKING:  # slow
    from classex_bayes.report.findings import Findings

_DECIMALS = 4  # of all rows of a comparison


@dataclass(frozen=True, kw_only=True)
class PredictionVerb(FitVerb):
    """A verb that predicts with a posterior, and with other estimators."""

    evidence: Annotated[
        Literal["all", "ranks"],
        option("KIND", "all uses scores, too, where they can be used; ranks does not.", "Model"),
    ] = "all"
    ci_prob: Level = None

    def find(
        self,
        task: "cb.SourceTask",
        counts: list[int],
        references: Sequence[Any],
        place: Path | None,
        **question: Any,
    ) -> "Findings":
        """Fit and predict, and save the posterior next to a file; an interruption leaves a part."""
        from classex_bayes.report.findings import findings_of

        terminal, bars = self.terminal, self.terminal.shows_progress
        terminal.message("Sampling ...")
        model = cb.BayesianExtrapolator(evidence=self.evidence)
        fitting = {"sampler": self.sampler, "random_seed": self.seed, "progressbar": bars}
        try:
            with bad_data():
                model.fit(task, **fitting)
        except Interrupted as stop:
            if stop.partial is None:
                raise
            terminal.interruption = str(stop)
        terminal.save(model, place)
        question |= {"ci_prob": self.ci_prob, "random_seed": self.seed, "progressbar": bars}
        try:
            references = [] if terminal.interruption else references
            return findings_of(model, references, task, counts, **question)
        except KeyboardInterrupt as stop:
            terminal.interruption = str(stop) or "interrupted"
            if (findings := getattr(stop, "partial", None)) is None:
                where = terminal.files.get("posterior", "no file")
                raise Interrupted(f"{terminal.interruption}; the posterior is in {where}") from None
            return findings

    def show(
        self, findings: "Findings", strict: bool = False, require: float | None = None
    ) -> None:
        """Print findings, and end with their exit code.

        If it is `strict`, all checks of data and fit are requirements, and the first lines of the
        result say what fails.
        """
        strict = strict and not self.terminal.interruption
        shown = findings.shown if strict else findings.comparison
        self.terminal.notes(shown.notes, findings.task)
        if findings.classes_at_random:
            self.terminal.message(f"note: {findings.classes_at_random}")
        failed, first, lines, required = faults_of(findings.model), [], [], None
        if strict:
            failed = [str(fault) for fault in findings.faults]
            if "posterior" in self.terminal.files:  # with the result of the last check
                self.terminal.save(findings.model, Path(self.terminal.files["posterior"]))
        is_met = not failed
        if findings.until is not None:
            lines = [findings.until.describe(findings.ci_prob)]
        met: list[str] = []
        if require is not None and findings.target is not None:
            passed = target_gates(findings.prediction, findings.target, require)
            enough = all(passed.values())
            required, is_met = {"probability": require, "is_met": enough}, is_met and enough
            for line, line_is_met in passed.items():
                (met if line_is_met or not strict else failed).append(line)
        if strict:
            sound = [findings.verdict, findings.driver.sentences, *map(str, findings.caveats)]
            first = [f"failed: {fault}" for fault in failed] or sound
        tables = [_comparison_table(shown, findings.ci_prob)]
        if findings.open_set is not None:
            tables.append(_rates_table(findings.open_set[1], findings.task, findings.ci_prob))
        numbers: dict[str, Any] = {}
        if self.as_json:
            numbers = document(findings) | {"failed": failed, "required": required}
            numbers["files"] = listed(self.terminal.files)
        self.terminal.result([*first, *met, *tables, *lines], numbers)
        self.terminal.end(findings.models, is_met, names_faults=strict)


def _draw(findings: "Findings", truth: Any, path: Path) -> None:
    """The figure of the accuracy curve."""
    curves, level = findings.curves(50), findings.ci_prob
    axes = cb.plot_accuracy(curves, findings.task, truth, findings.target, ci_prob=level)
    axes.figure.savefig(path)


def _comparison_table(comparison: Any, ci_prob: float) -> str:
    """Predictions with intervals and, if it is known, the true accuracy."""
    from classex_bayes.formatting import DECIMALS, capitalized
    from classex_bayes.results.draws import interval_name

    def text(values: Any) -> Any:
        shown = values.map(lambda value: DECIMALS.value(value, _DECIMALS), na_action="ignore")
        return shown.astype(object).fillna("-")

    rows, whole = by_limits(comparison.table).reset_index(), comparison.predictions[0]
    limits = zip(rows["lower"], rows["upper"], strict=True)
    shown = rows[["estimator", "k"]].assign(**{whole.estimand.label: text(rows["mean"])})
    shown[interval_name(ci_prob)] = [
        DECIMALS.span(*pair, _DECIMALS) if pair[0] == pair[0] else "-" for pair in limits
    ]
    if "truth" in rows:
        covered = rows["covered"].astype(object).map({True: "yes", False: "no"}).fillna("-")
        shown = shown.assign(truth=text(rows["truth"]), covered=covered)
    if shown["estimator"].nunique() == 1:  # the title has it
        shown = shown.drop(columns="estimator")
    title = f"{capitalized(whole.description)}, from {whole.n_classes} {whole.estimand.source}"
    title += f" ({whole.estimator}: {whole.evidence})" if whole.evidence else ""
    return table(title, shown)


def _rates_table(rates: Any, task: "cb.SourceTask", ci_prob: float) -> str:
    """FNIR and FPIR with their thresholds and intervals."""
    from classex_bayes.formatting import DECIMALS, capitalized
    from classex_bayes.results.draws import interval_name
    from classex_bayes.results.sentences import score_direction

    # If no threshold keeps a limit for some k, a note says so.
    rows = by_limits(rates.summary(ci_prob, round_to="none")).reset_index()
    rows = rows[rows["threshold"].notna()]
    limits = zip(rows["mean"], rows["lower"], rows["upper"], strict=True)
    texts = [DECIMALS.estimate(*row) for row in limits]
    shown = rows[["rate", "k"]].assign(
        threshold=rows["threshold"].map("{:.15g}".format),
        mean=[text.mean for text in texts],
        **{interval_name(ci_prob): [text.span for text in texts]},
    )
    title = f"{capitalized(rates.description)}, from {task.table.made_from} of {rates.pilot}"
    return table(f"{title} ({score_direction(task)})", shown)


@verb(
    "demo",
    "classex-bayes demo",
    "classex-bayes demo --out figures",
    "classex-bayes demo --seed 7 --n-classes 300",
)
class DemoVerb(PredictionVerb):
    """Predict the accuracy on 2965 printed characters from a pilot of 100, with the true one."""

    n_classes: Annotated[int, option("N", "Classes in the pilot.")] = 100
    seed: Seed = 3
    out: Folder = None

    def run(self) -> None:
        # Each pilot has a place of its own.
        place = self.terminal.place(self.out, f"demo-{self.n_classes}-seed{self.seed}.png")
        self.terminal.message("Scoring 8895 probes against 2965 characters ...")
        whole = cb.load_glyphs().task()
        pilot = whole.subsample(self.n_classes, random_seed=self.seed)
        more = [k for k in (300, 1000) if k > self.n_classes]
        counts = sorted({self.n_classes, *more, whole.n_classes})
        findings = self.find(pilot, counts, [], place, truth=whole)
        self.terminal.write("figure", place, partial(_draw, findings, whole))
        self.show(findings)


@dataclass(frozen=True, kw_only=True)
class QuestionVerb(TargetOptions, DataOptions, FileVerb, PredictionVerb):
    """A verb that predicts a metric of a task on K classes, with requirements on it."""

    require: Annotated[
        float | None,
        option("PROB", "Probability of the target at every K, or exit code 5.", parser=share),
    ] = None
    bounds: Annotated[bool, flag("Limits of the ranks without a prior.", "--bounds")] = False

    def counts(self) -> list[int]:
        """Numbers of classes, with other checks that come before anything is read."""
        if self.require is not None and self.target is None:
            raise DataError(
                f"--require: found {self.require:g} without --target; give the value that is to be "
                "reached with this probability"
            )
        return super().counts()

    def with_bounds(self, references: Sequence[Any]) -> list[Any]:
        """Estimators that are compared with the posterior."""
        return [*references, *[cb.MomentBounds()] * self.bounds]


@verb(
    "extrapolate",
    "classex-bayes extrapolate scores.npz --k 1000,10000 --target 0.9",
    "classex-bayes extrapolate scores.npz --k 10000 --target 0.9 --require 0.95 --strict",
    "classex-bayes extrapolate ranks.npz --k 1000000 --metric ndcg@10",
    "classex-bayes extrapolate distances.npy --labels y.npy --lower-is-better --k 5000 --json",
    "classex-bayes extrapolate part-*.npz --k 1000 --ci-prob 95% --draws 2000",
)
class ExtrapolateVerb(QuestionVerb):
    """Predict the accuracy, or another metric, on K classes, with credible intervals."""

    strict: Annotated[
        bool, flag("A gate: make all checks, say first what fails; exit code 3 or 5.", "--strict")
    ] = False
    out: Folder = None

    def run(self) -> None:
        self.answer(self.counts(), [])

    def answer(
        self, counts: list[int], references: Sequence[Any], suffix: str = "", **question: Any
    ) -> None:
        """Predict, draw and print."""
        place = self.terminal.place(self.out, f"{self.name}{suffix}.png")
        task, references = self.read(), self.with_bounds(references)
        question |= {"metric": self.metric, "target": self.target}
        findings = self.find(task, counts, references, place, **question)
        self.terminal.write("figure", place, partial(_draw, findings, None))
        self.show(findings, self.strict, self.require)


@verb(
    "compare",
    "classex-bayes compare scores.csv --k 1000",
    "classex-bayes compare embeddings.npz --distance cosine --k 1000,10000 --all",
    "classex-bayes compare scores.npz --k 1000 --n-resamples 200",
    "classex-bayes compare scores.npz --k 1000,10000 --bounds",
)
class CompareVerb(ExtrapolateVerb, ReferenceVerb):
    """Compare the posterior with the point estimates of the literature, in one table."""

    n_resamples: Resamples = None

    def run(self) -> None:
        counts, references = self.counts(), self.references(self.metric)
        self.answer(counts, references, "-comparison", n_resamples=self.n_resamples)


@verb(
    "report",
    "classex-bayes report scores.npz --k 1000,10000 --target 0.9 -o report.html",
    "classex-bayes report scores.npz --k 1000,10000 --fpir 0.003 -o report.html",
)
class ReportVerb(QuestionVerb, ReferenceVerb):
    """Write prediction, checks, method and record as one HTML page that needs no network."""

    fpir: Fpir = None
    has_references: Annotated[
        bool, flag("Point estimates next to the posterior.", "--references/--no-references")
    ] = True
    n_resamples: Resamples = None
    out: Annotated[Path, output("PAGE", "The page (.html); the posterior goes next to it.")] = Path(
        "report.html"
    )
    posterior: Annotated[
        bool,
        flag("Write the posterior (some MB).", "--posterior/--no-posterior", panel="Output"),
    ] = True

    def run(self) -> None:
        counts = self.counts()
        from classex_bayes.report.page import page_path, require_libraries, write_page

        require_libraries()
        page = page_path(self.out, "--out")
        place = self.terminal.place(page.parent if self.posterior else None, page.name)
        ready_folder(page.parent)
        task, rates = self.read(), None
        if self.fpir is not None:  # before the sampler begins, since it may refuse the scores
            model = _open_set_model(self, self, task)
            rates = model, model.predict(counts, fpir=self.fpir)
        references = self.references(self.metric) if self.has_references else []
        references = self.with_bounds(references)
        question = {"metric": self.metric, "target": self.target, "n_resamples": self.n_resamples}
        findings = replace(self.find(task, counts, references, place, **question), open_set=rates)
        source = ", ".join(file.name for file in self.paths)
        self.terminal.write("report", page, lambda path: write_page(findings, path, source=source))
        self.show(findings, strict=True, require=self.require)


@verb(
    "open-set",
    "classex-bayes open-set scores.npz --k 1000,100000 --fpir 0.003",
    "classex-bayes open-set embeddings.npz --distance cosine --k 5000 --threshold 0.6",
)
class OpenSetVerb(FileVerb, FitVerb):
    """Predict FNIR and FPIR with K enrolled classes, or the threshold that keeps one low."""

    files: Annotated[
        list[Path],
        files_argument("Scores, embeddings or search results with scores, as of `extrapolate`."),
    ] = field()  # required, unlike those of other verbs
    k: Counts
    fpir: Fpir = None
    fnir: Annotated[float | None, option("FNIR", "Wanted FNIR instead.", parser=share)] = None
    threshold: Annotated[
        float | None,
        option("SCORE", "Threshold instead: the worst score, or distance, that is accepted."),
    ] = None
    prob_kept: Annotated[
        float | None,
        option("P", "Probability that the rate is kept; 0.95 if not given.", parser=share),
    ] = None
    rank: Annotated[int, option("N", "Length R of the candidate lists in FNIR.", min=1)] = 1
    ci_prob: Level = None
    out: Folder = None

    def run(self) -> None:
        wanted = {name: getattr(self, name) for name in ("fpir", "fnir", "threshold")}
        if (number := sum(value is not None for value in wanted.values())) != 1:
            raise DataError(f"--fpir, --fnir, --threshold: expected one of them, found {number}")
        if self.prob_kept is not None:
            if self.threshold is not None:
                raise DataError("--prob-kept: found --threshold, which keeps no rate; give --fpir")
            wanted["prob_kept"] = self.prob_kept
        counts, terminal = parse_counts(self.k), self.terminal
        place = terminal.place(self.out, f"{self.name}-det.png")
        task = self.read()
        from classex_bayes.results.draws import interval_settings

        level, _ = interval_settings(self.ci_prob, None)
        model = _open_set_model(self, self, task)
        rates = model.predict(counts, rank=self.rank, **wanted)
        terminal.save(model, place)

        def draw(path: Path) -> None:
            axes = cb.plots.plot_det(model, counts, rank=self.rank, ci_prob=level)
            axes.figure.savefig(path)

        terminal.write("figure", place, draw)
        terminal.notes([f"note: {note}" for note in rates.notes], task)
        numbers = open_set_document(model, task, rates, level) | {"files": listed(terminal.files)}
        self.terminal.result([_rates_table(rates, task, level)], numbers)
        terminal.end([model])


def _open_set_model(data: FileVerb, fit: FitVerb, task: "cb.SourceTask") -> Any:
    """A fitted model of open-set identification, with the non-mated probes of the files."""
    from classex_bayes.io.task_files import read_nonmated

    with bad_data():
        nonmated = read_nonmated(data.paths)
        if nonmated is not None:
            n_probes = len(nonmated[0] if isinstance(nonmated, tuple) else nonmated)
            data.terminal.message(
                f"note: FPIR is that of the {n_probes:,} probes in the array nonmated; "
                "without it, FPIR is that of the mated probes against other classes"
            )
        model = cb.OpenSetExtrapolator()
        return model.fit(task, nonmated=nonmated, sampler=fit.sampler, random_seed=fit.seed)
