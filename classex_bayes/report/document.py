"""Numbers as JSON has them: one document for `--json` and for the page."""

import json
import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the command line starts without what a fit needs
    from classex_bayes.bayes.fitted import FittedModel
    from classex_bayes.open_set.open_set import OpenSetExtrapolator
    from classex_bayes.open_set.open_set_prediction import OpenSetPrediction
    from classex_bayes.report.findings import Findings
    from classex_bayes.task.source_task import SourceTask


def document(findings: "Findings") -> dict[str, Any]:
    """All findings in the types of JSON; numbers that are not finite are null."""
    from classex_bayes.bayes.checks.posterior_checks import classes_at_random

    model, comparison = findings.model, findings.comparison
    numbers: dict[str, Any] = {
        **_facts(model),
        "metric": findings.metric,
        "ci_prob": findings.ci_prob,
        "predictions": records(by_limits(comparison.table)),
        "left_out": comparison.skipped,
        "diagnostics": {
            "r_hat": finite(model.diagnosis_.r_hat),
            "ess_bulk": finite(model.diagnosis_.ess_bulk),
            "divergences": model.diagnosis_.divergences,
            "problems": list(model.diagnosis_.problems),
        },
        "doubts": list(findings.task.doubts),
        "classes_at_random": classes_at_random(model, findings.task),
        "fit_gap": _fit_gap(model.fit_gap_),
        "notes": {p.estimator: list(p.notes) for p in comparison.predictions},
    }
    if findings.open_set is not None:
        numbers["open_set"] = _rates(*findings.open_set, findings.ci_prob)
    if findings.target is None:
        return numbers
    reached = findings.prediction.prob_at_least(findings.target).to_dict()
    numbers["prob_at_least"] = {
        "accuracy": findings.target,
        "predictions": [{"k": k, "probability": share} for k, share in reached.items()],
    }
    until = model.classes_until(findings.target)
    lower, upper = until.interval(findings.ci_prob)
    numbers["classes_until"] = {
        "accuracy": findings.target,
        "median": finite(until.median),
        "lower": finite(lower),
        "upper": finite(upper),
        "largest": until.largest,
    }
    return numbers


def open_set_document(
    model: "OpenSetExtrapolator", task: "SourceTask", rates: "OpenSetPrediction", ci_prob: float
) -> dict[str, Any]:
    """Rates of open-set identification in the types of JSON."""
    numbers = {**_facts(model), "ci_prob": ci_prob, **_rates(model, rates, ci_prob)}
    return {**numbers, "doubts": list(task.doubts)}


def _facts(model: "FittedModel") -> dict[str, Any]:
    """Version, seed and task of a fit."""
    attributes = model.idata.attrs
    return {
        "version": attributes["modeling_interface_version"],
        "seed": json.loads(attributes["random_seed"]),
        "task": {
            "task_kind": attributes["task_kind"],
            "n_classes": int(attributes["n_classes"]),
            "n_test": int(attributes["n_test"]),
            "design_effect": float(attributes["design_effect"]),
        },
    }


def _rates(
    model: "OpenSetExtrapolator", rates: "OpenSetPrediction", ci_prob: float
) -> dict[str, Any]:
    """FNIR and FPIR at their thresholds, with what must be known of them."""
    return {
        "description": rates.description,
        "rank": rates.rank,
        "predictions": records(by_limits(rates.summary(ci_prob, round_to="none"))),
        "pareto_k": finite(model.pareto_k_),
        "notes": list(rates.notes),
    }


def by_limits(table: Any) -> Any:
    """Table whose names of limits are without the level of the intervals, which is `ci_prob`."""
    ends = {"_lb": "lower", "_ub": "upper"}
    return table.rename(columns=lambda name: ends.get(name[-3:], name))


def _fit_gap(gap: Any) -> dict[str, float] | None:
    """Nats by which the posterior lies below the best law on the knots."""
    if gap is None:
        return None
    return {
        "mean": gap.mean,
        "best_draw": gap.best_draw,
        "replicates": float(gap.replicated.mean()),
        "p_value": gap.p_value,
    }


def records(frame: Any) -> list[dict[str, Any]]:
    """Rows of a data frame and its index: missing numbers are null."""
    flat = frame.reset_index()
    return flat.astype(object).where(flat.notna(), None).to_dict(orient="records")


def finite(value: float) -> float | None:
    """The number, or null where it is infinite or missing."""
    return value if math.isfinite(value) else None
