"""Whether a prediction can be relied on: which evidence drives it, faults and caveats."""

from dataclasses import dataclass

import numpy as np

from classex_bayes.bayes.checks.sensitivity import (
    ADVICE,
    BY_ASSUMPTION,
    PRIOR_NAMES,
    Sensitivity,
    narrowed,
)
from classex_bayes.bayes.fitted import FittedModel
from classex_bayes.core.metrics import MeanMetric, named_metric
from classex_bayes.formatting import capitalized
from classex_bayes.results.extrapolation import Extrapolation

_WIDEST = 0.5  # widest limits of the ranks that are informative
_LITTLE_MOVED = f"{capitalized(ADVICE['data decide'])}."
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


def faults_of_fit(model: FittedModel) -> list[Caveat]:
    """Faults of a fit: checks that it fails, and draws that did not converge."""
    faults = [Caveat("model", capitalized(s), "model-checks", True) for s in model.warnings_]
    if problems := "; ".join(model.diagnosis_.problems):
        sentence = f"Other draws might give another answer; {model.diagnosis_.remedy}"
        faults.append(Caveat("draws", sentence, "convergence", is_fault=True, details=problems))
    return faults


def driving_evidence(
    prediction: Extrapolation, ci_prob: float, sensitive: Sensitivity | None
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
    is_narrowed = narrowed(width, upper - lower)
    span = prediction.estimand.numerals.span(lower, upper)
    data = prediction.bounding_data
    sentences = f"Without a prior, the {data} of the pilot allow {span}."
    by_scores = "scores" in prediction.evidence
    if is_narrowed:
        narrowing = "Scores and prior narrow" if by_scores else "The prior, a smooth law, narrows"
        sentences += f" {narrowing} this to the interval of the prediction."
    if title:
        if is_narrowed and diagnosis.endswith(" matters"):
            title = (
                "Scores and prior decide" if by_scores else f"{capitalized(data)} and prior decide"
            )
        return DrivingEvidence(title, f"{sentences} {advice}", needs_care=True)
    if not is_narrowed and not metric.is_rank and upper - lower > _WIDEST:
        return DrivingEvidence(
            "The data do not determine this number", f"{sentences} Test more classes.", True
        )
    if is_narrowed:
        title = "The scores decide" if by_scores else "The model decides beyond the pilot"
    else:
        title = f"The {data} of the pilot decide"
    if diagnosis in ("data decide", *BY_ASSUMPTION):
        sentences += f" {_LITTLE_MOVED}"
        sentences += " The tails are assumed to be power laws." * by_scores
    return DrivingEvidence(title, sentences)
