"""Whether a prediction can be relied on: what decides it, and what there is to doubt."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from classex_bayes.assumptions.diagnosis import diagnose
from classex_bayes.assumptions.task_report import TaskReport
from classex_bayes.bayes.checks.posterior_checks import PredictiveReport, posterior_checks
from classex_bayes.bayes.checks.sensitivity import Sensitivity, sensitivity
from classex_bayes.bayes.extrapolator import checked_model_with_prior
from classex_bayes.bayes.fitted import FittedModel
from classex_bayes.bayes.law_model import LawModel
from classex_bayes.core.metrics import MeanMetric, named_metric
from classex_bayes.exceptions import DataError
from classex_bayes.formatting import capitalized
from classex_bayes.results import Extrapolation
from classex_bayes.results.extrapolation import FARTHEST_FACTOR
from classex_bayes.task.source_task import SourceTask

# Share of the doubt of the ranks that may be removed where they still decide.
_DECISIVE = 0.5
_WIDEST = 0.5  # limits of the ranks that still decide something
_FAULTY = {
    "data": "the data are probably faulty",
    "model": "the model does not fit the pilot",
    "draws": "the computation did not converge",
}
_LITTLE_MOVED = "A stronger or weaker prior would change little"
_BY_PRIOR = {
    "prior dominates": (
        "The prior decides more than the data",
        "Another prior would give another answer. Test more classes",
    ),
    "prior and data disagree": (
        "Prior and data disagree",
        "The prior and the data pull the answer in opposite directions. Test more classes",
    ),
    "prior matters": (
        "The data decide, and the prior matters",
        "Another prior would move the answer",
    ),
}


@dataclass(frozen=True)
class Doubt:
    """A reason to doubt a prediction.

    A fault forbids to rely on it. `part` says what is doubted: "data", "model", "draws" or
    "prediction". The place on the page that says more has the id `place`. `details` are for those
    who know the method.
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
class Decision:
    """What decides a prediction, in a few words and in a sentence. It may be a doubt."""

    title: str
    sentence: str
    is_doubt: bool = False


@dataclass(frozen=True, eq=False)
class Assessment:
    """Checks of the data and of the fit, what decides the prediction, and doubts, faults first."""

    checks: TaskReport
    replicates: PredictiveReport
    decision: Decision
    doubts: tuple[Doubt, ...]

    @property
    def faults(self) -> list[Doubt]:
        """Doubts that forbid to rely on the prediction."""
        return [doubt for doubt in self.doubts if doubt.is_fault]

    @property
    def state(self) -> str:
        """The worst that was found: "fault", "doubt" or "sound"."""
        if self.faults:
            return "fault"
        return "doubt" if self.doubts or self.decision.is_doubt else "sound"

    @property
    def verdict(self) -> str:
        """The state in a sentence."""
        reasons = dict.fromkeys(_FAULTY[doubt.part] for doubt in self.faults)
        if reasons:
            return f"Do not rely on this number: {' and '.join(reasons)}."
        if self.state == "sound":
            left_out = sum(check.passed is None for check in self.checks)
            made = f"; {left_out} of {len(self.checks.checks)} could not be made" * bool(left_out)
            return f"The checks found no fault{made}."
        title = self.decision.title
        why = f": {title[0].lower()}{title[1:]}" if self.decision.is_doubt else ""
        return f"Read with care{why}."


def assess(
    model: LawModel,
    others: Sequence[FittedModel],
    task: SourceTask,
    prediction: Extrapolation,
    ci_prob: float,
    sensitive: Sensitivity | None,
) -> Assessment:
    """Check data and fits, and weigh what decides the prediction on the most classes.

    `model` predicts; `others` are fits to the same task.
    """
    checks = diagnose(task, random_seed=model.fit_.record.seeds)
    replicates = posterior_checks(model, task)
    doubts = [
        Doubt("data", _named(check.name, check.sentence), "data-checks", is_fault=True)
        for check in checks.warnings
    ]
    doubts += [fault for fitted in (model, *others) for fault in faults_of_fit(fitted)]
    if not replicates.passed:
        sentence = (
            f"The model does not reproduce the pilot in {len(replicates.unusual)} of "
            f"{len(replicates.table)} respects"
        )
        names = ", ".join(replicates.unusual)
        doubts.append(Doubt("model", sentence, "model-checks", is_fault=True, details=names))
    farthest, k1 = int(prediction.k.max()), prediction.n_classes
    if farthest > FARTHEST_FACTOR * k1:
        doubts.append(
            Doubt(
                "prediction",
                f"{farthest:,} {prediction.estimand.units} are {farthest / k1:,.0f} times as many "
                "as were tested. So far out the pilot cannot check the model",
                "curve",
            )
        )
    doubts += [
        Doubt("data", _named(check.name, check.sentence), "data-checks")
        for check in checks
        if check.is_note
    ]
    return Assessment(
        checks, replicates, _decision(model, prediction, ci_prob, sensitive), tuple(doubts)
    )


def faults_of_fit(model: FittedModel) -> list[Doubt]:
    """Faults that every fit looks for: draws that did not converge, and a contradicted pilot."""
    faults = []
    if model.contradiction_:
        sentence = capitalized(model.contradiction_)
        faults.append(Doubt("model", sentence, "model-checks", is_fault=True))
    if problems := "; ".join(model.diagnosis_.problems):
        sentence = "Other draws might give another answer. Fit again with more of them"
        faults.append(Doubt("draws", sentence, "convergence", is_fault=True, details=problems))
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


def _named(name: str, sentence: str) -> str:
    return f"{capitalized(name)}: {sentence}"


def _decision(
    model: LawModel, prediction: Extrapolation, ci_prob: float, sensitive: Sensitivity | None
) -> Decision:
    """What decides the prediction on the most classes."""
    k = int(prediction.k.max())
    diagnosis = "" if sensitive is None else str(sensitive.table["diagnosis"][k])
    metric, limits = named_metric(prediction.estimand.metric), model.fit_.rank_limits
    if limits is None or not isinstance(metric, MeanMetric):
        if not diagnosis:
            return Decision("Data and model", "How much each of them decides is unknown.")
        advice = _LITTLE_MOVED if diagnosis == "data decide" else "The prior may matter"
        title, advice = _BY_PRIOR.get(diagnosis, ("The data decide", advice))
        return Decision(title, f"{advice}.", diagnosis in _BY_PRIOR)
    lower, upper = limits.at(metric, np.array([k]), ci_prob)[:, 0]
    width = float(prediction.interval(ci_prob).loc[k].diff()["upper"])
    narrowed = width < _DECISIVE * (upper - lower)
    span = prediction.estimand.numerals.span(lower, upper)
    sentence = f"Without a prior, the ranks of the pilot allow {span}."
    by_scores = "scores" in prediction.evidence
    if narrowed:
        helpers = "Scores and prior narrow" if by_scores else "The prior, a smooth law, narrows"
        sentence += f" {helpers} this to the interval above."
    if diagnosis in _BY_PRIOR:
        title, advice = _BY_PRIOR[diagnosis]
        if narrowed and diagnosis == "prior matters":
            title = "Scores and prior decide" if by_scores else "Ranks and prior decide"
        return Decision(title, f"{sentence} {advice}.", is_doubt=True)
    if not narrowed and not metric.is_rank and upper - lower > _WIDEST:
        return Decision("Nothing decides yet", f"{sentence} Test more classes.", is_doubt=True)
    if not narrowed:
        title = "The ranks of the pilot decide"
    else:
        title = "The scores decide" if by_scores else "The model decides beyond the pilot"
    moved = f" {_LITTLE_MOVED}." * (diagnosis == "data decide")
    return Decision(title, sentence + moved)
