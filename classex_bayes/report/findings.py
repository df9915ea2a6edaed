"""A fitted model and its references: the data of tables, figures and pages."""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress
from typing import TYPE_CHECKING, Any

import numpy as np

from classex_bayes.arguments import class_counts
from classex_bayes.assumptions.diagnosis import TaskReport, diagnose
from classex_bayes.bayes.checks.class_ranks import class_ranks
from classex_bayes.bayes.checks.posterior_checks import PredictiveReport, posterior_checks
from classex_bayes.bayes.checks.sensitivity import Sensitivity, sensitivity
from classex_bayes.bayes.extrapolator import BayesianExtrapolator
from classex_bayes.bayes.fitted import FittedModel
from classex_bayes.core.metrics import named_metric
from classex_bayes.core.subsets import log_spaced
from classex_bayes.estimators.base import Estimator, prediction_of
from classex_bayes.estimators.published import literature
from classex_bayes.evaluate.compare import Comparison, compare
from classex_bayes.evaluate.extrapolation_check import ExtrapolationCheck, extrapolation_check
from classex_bayes.exceptions import DataError, DataWarning, ExtrapolationWarning, Interrupted
from classex_bayes.formatting import capitalized
from classex_bayes.report.assessment import (
    Caveat,
    DrivingEvidence,
    driving_evidence,
    faults_of_fit,
)
from classex_bayes.results.draws import interval_settings
from classex_bayes.results.extrapolation import (
    FARTHEST_FACTOR,
    ClassesUntil,
    Estimand,
    Extrapolation,
    checked_level,
)
from classex_bayes.task.rules import Finding
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import ClassCounts, IntArray, RandomSeed

if TYPE_CHECKING:
    from classex_bayes.open_set.open_set import OpenSetExtrapolator
    from classex_bayes.open_set.open_set_prediction import OpenSetPrediction

_FAULTY = {
    "data": "the data are probably faulty",
    "model": "the model does not fit the pilot",
    "draws": "the computation did not converge",
}


@dataclass(frozen=True, eq=False)
class Findings:
    """Predictions of a fitted model and of its references, and the target.

    The first prediction is that of the model. `open_set` is a model of open-set identification with
    the rates that it predicts, or None.
    """

    model: BayesianExtrapolator
    task: SourceTask
    comparison: Comparison
    ci_prob: float
    target: float | None
    open_set: "tuple[OpenSetExtrapolator, OpenSetPrediction] | None" = None
    progressbar: bool = False

    @property
    def models(self) -> list[FittedModel]:
        """The model, and that of open-set identification if there is one."""
        return [self.model, *([] if self.open_set is None else self.open_set[:1])]

    @property
    def prediction(self) -> Extrapolation:
        """Prediction of the model."""
        return self.comparison.predictions[0]

    @cached_property
    def until(self) -> ClassesUntil | None:
        """Number of classes up to which the target is reached; None without a target."""
        if self.target is None:
            return None
        return self.model.classes_until(self.target, metric=self.prediction.estimand.metric)

    @cached_property
    def sensitivity(self) -> Sensitivity | None:
        """Sensitivity of the prediction to the prior; None if the draws are too few."""
        prediction = self.prediction
        with warnings.catch_warnings():  # of a distant k and of few draws, which the page mentions
            warnings.simplefilter("ignore")
            try:
                return sensitivity(self.model, prediction.k, metric=prediction.estimand.metric)
            except DataError:
                return None

    @cached_property
    def within(self) -> ExtrapolationCheck | str:
        """Extrapolations within the pilot, or the reason why they could not be made."""
        with warnings.catch_warnings():  # the page says what fails
            warnings.simplefilter("ignore", DataWarning)
            try:
                return extrapolation_check(
                    self.shown.estimators, self.task, progressbar=self.progressbar
                )
            except DataError as error:
                return str(error)

    # Whether the prediction of the model can be relied on

    @cached_property
    def checks(self) -> TaskReport:
        """Checks of the data."""
        return diagnose(self.task, random_seed=self.model.attributes_.seeds)

    @cached_property
    def replicates(self) -> PredictiveReport:
        """Checks of the model, after the extrapolations within the pilot, whose result it keeps."""
        _ = self.within
        return posterior_checks(self.model, self.task)

    @property
    def listed_of_model(self) -> list[Finding]:
        """Checks of the model, without the discrepancies that are as usual."""
        usual = self.replicates.discrepancies
        return [c for c in self.replicates if c.name not in usual or c.is_note or not c.passed]

    @cached_property
    def driver(self) -> DrivingEvidence:
        """Evidence that drives the prediction on the most classes."""
        return driving_evidence(self.prediction, self.ci_prob, self.sensitivity)

    @cached_property
    def caveats(self) -> list[Caveat]:
        """Reasons for care with the prediction, faults first."""
        caveats = []
        farthest, k1 = int(self.prediction.k.max()), self.prediction.n_classes
        if farthest > FARTHEST_FACTOR * k1:
            sentence = (
                f"{farthest:,} {self.prediction.estimand.units} are {farthest / k1:,.0f} times as "
                "many as were tested. So far out the pilot cannot check the model"
            )
            caveats.append(Caveat("prediction", sentence, "curve"))
        for check in self.checks:
            if check.passed is False or check.is_note:
                sentence = f"{capitalized(check.name)}: {check.sentence}"
                caveats.append(Caveat("data", sentence, "data-checks", check.passed is False))
        replicates = self.replicates
        for model in self.models:
            caveats += faults_of_fit(model)
        of_fit = self.model.checks_
        if unlike := [check.name for check in replicates.warnings if check not in of_fit]:
            sentence = (
                f"The model does not reproduce the pilot in {len(unlike)} of "
                f"{len(replicates.checks)} respects"
            )
            caveats.append(Caveat("model", sentence, "model-checks", True, ", ".join(unlike)))
        return sorted(caveats, key=lambda caveat: not caveat.is_fault)

    @property
    def faults(self) -> list[Caveat]:
        """Caveats because of which the prediction is not reliable."""
        return [caveat for caveat in self.caveats if caveat.is_fault]

    @property
    def state(self) -> str:
        """The worst result of all checks: "fault", "caveat" or "sound"."""
        if self.faults:
            return "fault"
        return "caveat" if self.caveats or self.driver.needs_care else "sound"

    @property
    def verdict(self) -> str:
        """The state in a sentence, with the checks that could not be made."""
        if reasons := dict.fromkeys(_FAULTY[fault.part] for fault in self.faults):
            return f"Do not rely on this number: {' and '.join(reasons)}."
        n_unmade = sum(check.passed is None for check in self.checks)
        names = [f"{n_unmade} checks of other data"] * bool(n_unmade)
        names += ["extrapolation within the pilot"] * isinstance(self.within, str)
        left_out = f"; not made: {', '.join(names)}" * bool(names)
        if self.state == "sound":
            return f"The checks found no fault{left_out}."
        noted = " and ".join(dict.fromkeys(caveat.part for caveat in self.caveats))
        title = self.driver.title
        why = f"{title[0].lower()}{title[1:]}" if self.driver.needs_care else f"note on the {noted}"
        return f"Read with care: {why}{left_out}."

    @cached_property
    def classes_at_random(self) -> str | None:
        """Sentence on classes that seem to be answered at random; None if there are none."""
        try:
            found = class_ranks(self.model, self.task).at_random
        except DataError:
            return None
        return None if found.passed else found.sentence

    @property
    def excluded(self) -> dict[str, str]:
        """Reasons not to use the estimates of some references, by name."""
        # Without the other checks of the assessment, which take seconds.
        few = next(check for check in self.task.checks if check.name == "number of classes")
        reasons = {
            prediction.estimator: few.sentence
            for prediction in self.comparison.predictions
            if few.is_note and prediction.interval_type == "none"
        }
        return reasons | self.comparison.contradicted

    @cached_property
    def shown(self) -> Comparison:
        """The comparison without the excluded estimates, which count as left out."""
        whole, excluded = self.comparison, self.excluded
        kept = [prediction.estimator not in excluded for prediction in whole.predictions]
        return replace(
            whole,
            table=whole.table[~whole.table.index.isin(excluded, level="estimator")],
            predictions=[*compress(whole.predictions, kept)],
            estimators=[*compress(whole.estimators, kept)],
            skipped=whole.skipped | excluded,
        )

    def grid(self, n_points: int) -> IntArray:
        """Log-spaced numbers of classes from 2 to the largest, with those of the prediction."""
        farthest = max(int(self.prediction.k.max()), self.task.n_classes)
        return np.union1d(log_spaced(2, farthest, n_points), self.prediction.k)

    def curves(self, n_points: int) -> list[Extrapolation]:
        """Predictions of the model and of the references that are shown, on the grid."""
        grid, metric = self.grid(n_points), self.prediction.estimand.metric
        with warned_of_distance():
            return [prediction_of(model, grid, metric) for model in self.shown.estimators]


@contextmanager
def warned_of_distance() -> Iterator[None]:
    """Silence further warnings of a distant k, because `findings_of` warns of it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExtrapolationWarning)
        yield


def findings_of(
    model: BayesianExtrapolator,
    references: Sequence[Estimator],
    task: SourceTask,
    k: ClassCounts,
    *,
    ci_prob: float | None = None,
    target: float | None = None,
    **settings: Any,
) -> Findings:
    """Predict with a fitted model, and with references that are fitted to its task.

    Arguments, and further ones, are those of `compare`. `target` is a value of the metric.

    Raises
    ------
    DataError
        If an argument is invalid.
    Interrupted
        If the user stops it. Its `partial` holds the findings with the references fitted so far,
        or None.
    """
    level, _ = interval_settings(ci_prob, None)
    metric = settings.get("metric", "accuracy")
    model.law_of(named_metric(metric))  # a model that lacks it would be left out like a reference
    if target is not None:
        estimand = Estimand(metric=metric)
        target = checked_level(estimand, target, "target", int(class_counts(k).max()))
    try:
        comparison = compare([model, *references], task, k, ci_prob=level, **settings)
    except Interrupted as stop:
        if stop.partial is not None:
            stop.partial = Findings(model, task, stop.partial, level, target)
        raise
    bars = bool(settings.get("progressbar", True))
    return Findings(model, task, comparison, level, target, progressbar=bars)


def usual_references(random_seed: RandomSeed = None, metric: str = "accuracy") -> list[Estimator]:
    """Return the default references, the first three of the literature.

    For accuracy these are ClassExReg, KDE(ucv) and KDE(bcv).
    """
    return literature(random_seed, metric=metric)[:3]
