"""Whether a prediction can be relied on: which evidence drives it, faults and caveats."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from classex_bayes.assumptions.diagnosis import TaskReport, diagnose
from classex_bayes.bayes.checks.posterior_checks import PredictiveReport, posterior_checks
from classex_bayes.bayes.checks.sensitivity import (
    ADVICE,
    BY_ASSUMPTION,
    NARROWED,
    PRIOR_NAMES,
    Sensitivity,
    sensitivity,
)
from classex_bayes.bayes.extrapolator import checked_model_with_prior
from classex_bayes.bayes.fitted import FittedModel
from classex_bayes.bayes.law_model import LawModel
from classex_bayes.core.metrics import MeanMetric, named_metric
from classex_bayes.evaluate.extrapolation_check import ExtrapolationCheck
from classex_bayes.exceptions import DataError
from classex_bayes.formatting import capitalized
from classex_bayes.results.extrapolation import FARTHEST_FACTOR, Extrapolation
from classex_bayes.task.source_task import SourceTask

_WIDEST = 0.5  # widest limits of the ranks that are informative
_FAULTY = {
    "data": "the data are probably faulty",
    "model": "the model does not fit the pilot",
    "draws": "the computation did not converge",
}
_LITTLE_MOVED = "A stronger or weaker prior would change little."
_BY_PRIOR = {
    f"{name} {diagnosis}": title.format(name=name)
    for name in PRIOR_NAMES.values()
    for diagnosis, title in {
        "dominates": "The {name} decides more than the data",
        "and data disagree": "The {name} and the data disagree",
        "matters": "The data decide, and the {name} matters",
    }.items()
}


@dataclass(frozen=True)
class Caveat:
    """A reason for care with a prediction. Do not rely on one with a fault.

    `part` is its subject: "data", "model", "draws" or "prediction". `place` is the id of the part
    of the page that says more. `details` are for those who know the method.
    """

    part: str
    sentence: str
    place: str
    is_fault: bool = False
    details: str = ""

    def __str__(self) -> str:
        """All in one line."""
        return f"{self.part}: {self.sentence}{f' ({self.details})' if self.details else ''}"


@dataclass(frozen=True)
class DrivingEvidence:
    """Evidence that drives a prediction, as title and sentences, and whether it needs care."""

    title: str
    sentences: str
    needs_care: bool = False


@dataclass(frozen=True, eq=False)
class Assessment:
    """Checks of the data and of the fit, the driving evidence, and caveats, faults first.

    `within` holds extrapolations within the pilot, or the reason why they could not be made.
    """

    checks: TaskReport
    replicates: PredictiveReport
    within: ExtrapolationCheck | str
    driver: DrivingEvidence
    caveats: tuple[Caveat, ...]

    @property
    def left_out(self) -> str:
        """Checks that could not be made, after a semicolon; empty if there are none."""
        n_unmade = sum(check.passed is None for check in self.checks)
        names = [f"{n_unmade} checks of other data"] * bool(n_unmade)
        names += ["extrapolation within the pilot"] * isinstance(self.within, str)
        return f"; not made: {', '.join(names)}" * bool(names)

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
        """The state in a sentence."""
        reasons = dict.fromkeys(_FAULTY[fault.part] for fault in self.faults)
        if reasons:
            return f"Do not rely on this number: {' and '.join(reasons)}."
        if self.state == "sound":
            return f"The checks found no fault{self.left_out}."
        title = self.driver.title
        why = f": {title[0].lower()}{title[1:]}" if self.driver.needs_care else ""
        return f"Read with care{why}{self.left_out}."


def assess(
    model: LawModel,
    others: Sequence[FittedModel],
    task: SourceTask,
    prediction: Extrapolation,
    ci_prob: float,
    sensitive: Sensitivity | None,
    within: ExtrapolationCheck | str,
) -> Assessment:
    """Check data and fits, and find the evidence that drives the prediction on the most classes.

    `model` predicts; `others` are fits to the same task. The model has kept the result `within`.
    """
    checks = diagnose(task, random_seed=model.attributes_.seeds)
    replicates = posterior_checks(model, task)
    caveats = []
    farthest, k1 = int(prediction.k.max()), prediction.n_classes
    if farthest > FARTHEST_FACTOR * k1:
        sentence = (
            f"{farthest:,} {prediction.estimand.units} are {farthest / k1:,.0f} times as many "
            "as were tested. So far out the pilot cannot check the model"
        )
        caveats.append(Caveat("prediction", sentence, "curve"))
    for check in checks:
        if check.passed is False or check.is_note:
            sentence = f"{capitalized(check.name)}: {check.sentence}"
            caveats.append(Caveat("data", sentence, "data-checks", check.passed is False))
    for fitted in (model, *others):
        caveats += faults_of_fit(fitted)
    # Extrapolation and tails are faults of the fit already.
    of_fit = "extrapolation", "tails"
    unusual = [name for name in replicates.unusual if not name.startswith(of_fit)]
    if unusual:
        sentence = (
            f"The model does not reproduce the pilot in {len(unusual)} of "
            f"{len(replicates.table)} respects"
        )
        caveats.append(Caveat("model", sentence, "model-checks", True, ", ".join(unusual)))
    caveats.sort(key=lambda caveat: not caveat.is_fault)
    driver = _driver(model, prediction, ci_prob, sensitive)
    return Assessment(checks, replicates, within, driver, tuple(caveats))


def faults_of_fit(model: FittedModel) -> list[Caveat]:
    """Faults of a fit: checks that it fails, and draws that did not converge."""
    faults = [Caveat("model", capitalized(f), "model-checks", True) for f in model.faults_]
    if problems := "; ".join(model.diagnosis_.problems):
        sentence = f"Other draws might give another answer; {model.diagnosis_.remedy}"
        faults.append(Caveat("draws", sentence, "convergence", is_fault=True, details=problems))
    return faults


def sensitivity_of(model: LawModel, prediction: Extrapolation) -> Sensitivity | None:
    """Sensitivity of a prediction to the prior; None without a prior, or with too few draws."""
    with warnings.catch_warnings():  # of a distant k and of few draws, which the page mentions
        warnings.simplefilter("ignore")
        try:
            with_prior = checked_model_with_prior(model, "sensitivity")
            return sensitivity(with_prior, prediction.k, metric=prediction.estimand.metric)
        except DataError:
            return None


def _driver(
    model: LawModel, prediction: Extrapolation, ci_prob: float, sensitive: Sensitivity | None
) -> DrivingEvidence:
    """Evidence that drives the prediction on the most classes."""
    k = int(prediction.k.max())
    diagnosis = "" if sensitive is None else str(sensitive.table["diagnosis"][k])
    title = _BY_PRIOR.get(diagnosis, "")
    advice = f"{capitalized(ADVICE[diagnosis])}." if title else ""
    metric, limits = named_metric(prediction.estimand.metric), prediction.rank_limits
    if limits is None or not isinstance(metric, MeanMetric):
        if not diagnosis:
            return DrivingEvidence(
                "Data and model",
                f"For {metric.label} neither limits from the ranks nor the sensitivity to the "
                "prior is known, so it is unknown how much the prior decides.",
            )
        usual = _LITTLE_MOVED if diagnosis == "data decide" else "The prior may matter."
        return DrivingEvidence(title or "The data decide", advice or usual, bool(title))
    lower, upper = limits.at(metric, np.array([k]), ci_prob)[:, 0]
    width = float(prediction.interval(ci_prob).loc[k].diff()["upper"])
    narrowed = width < NARROWED * (upper - lower)
    span = prediction.estimand.numerals.span(lower, upper)
    sentences = f"Without a prior, the ranks of the pilot allow {span}."
    by_scores = "scores" in prediction.evidence
    if narrowed:
        narrowing = "Scores and prior narrow" if by_scores else "The prior, a smooth law, narrows"
        sentences += f" {narrowing} this to the interval of the prediction."
    if title:
        if narrowed and diagnosis.endswith(" matters"):
            title = "Scores and prior decide" if by_scores else "Ranks and prior decide"
        return DrivingEvidence(title, f"{sentences} {advice}", needs_care=True)
    if not narrowed and not metric.is_rank and upper - lower > _WIDEST:
        return DrivingEvidence(
            "The data do not determine this number", f"{sentences} Test more classes.", True
        )
    if narrowed:
        title = "The scores decide" if by_scores else "The model decides beyond the pilot"
    else:
        title = "The ranks of the pilot decide"
    if diagnosis in ("data decide", *BY_ASSUMPTION):
        sentences += f" {_LITTLE_MOVED}"
        sentences += " But that the tails are power laws is assumed." * by_scores
    return DrivingEvidence(title, sentences)
