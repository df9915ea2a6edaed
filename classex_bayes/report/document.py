"""Results as JSON: one document for `--json` and for the page."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the command line starts without the slow imports of a fit
    from classex_bayes.bayes.fitted import FittedModel
    from classex_bayes.open_set.open_set import OpenSetExtrapolator
    from classex_bayes.open_set.open_set_prediction import OpenSetPrediction
    from classex_bayes.report.findings import Findings
    from classex_bayes.task.source_task import SourceTask


# Increased when a key of the documents changes its name, place or meaning.
SCHEMA = 1
_ROW = ("estimator", "k", "mean", "lower", "upper", "interval_type", "truth", "error", "covered")
_COMPONENTS = "prior", "tail_prior", "likelihood"
_SENSITIVITIES = (
    *_COMPONENTS,
    *(f"{part}_pull" for part in _COMPONENTS),
    "prior_mcse",
    "tail_prior_mcse",
)
_SENSITIVITY = "k", "mean", "sd", *_SENSITIVITIES, "prior_share", "diagnosis"


def document(findings: "Findings") -> dict[str, Any]:
    """Return all findings as JSON types; numbers that are not finite or not requested are null."""
    model, comparison, level = findings.model, findings.comparison, findings.ci_prob
    diagnosis, gap, until = model.diagnosis_, model.fit_gap_, findings.until
    below_best = reached = last = rates = sensitive = None
    estimand = findings.prediction.estimand
    if gap is not None:
        replicates = float(gap.replicated.mean())
        below_best = {"mean": gap.mean, "best_draw": gap.best_draw, "replicates": replicates}
        below_best["p_value"] = gap.p_value
    if findings.sensitivity is not None:
        sensitive = records(findings.sensitivity.table, _SENSITIVITY)
    if findings.open_set is not None:
        rates = _rates(*findings.open_set, level)
    if until is not None:
        shares = findings.prediction.prob_reached(until.level).to_dict()
        rows = [{"k": k, "probability": share} for k, share in shares.items()]
        reached = {"target": until.level, "predictions": rows}
        lower, upper = until.interval(level)
        numbers = {"median": until.median, "lower": lower, "upper": upper}
        last = {name: finite(number) for name, number in numbers.items()}
        last = {"target": until.level, **last, "largest": until.largest}
    return {
        "schema": SCHEMA,
        **facts(model, findings.task),
        "evidence": findings.prediction.evidence or None,
        "metric": estimand.metric,
        "ci_prob": level,
        "predictions": records(by_limits(comparison.table), _ROW),
        "left_out": [
            {"estimator": name, "reason": reason} for name, reason in comparison.skipped.items()
        ],
        "diagnostics": {
            "r_hat": finite(diagnosis.r_hat),
            "ess_bulk": finite(diagnosis.ess_bulk),
            "divergences": diagnosis.divergences,
            "problems": list(diagnosis.problems),
        },
        "warnings": list(findings.task.warnings),
        "classes_at_random": findings.classes_at_random,
        "fit_gap": below_best,
        "sensitivity": sensitive,
        "notes": [
            row for p in comparison.predictions for row in note_records(p.notes, p.estimator)
        ],
        "prob_at_least": None if estimand.less_is_better else reached,
        "prob_at_most": reached if estimand.less_is_better else None,
        "classes_until": last,
        "open_set": rates,
    }


def open_set_document(
    model: "OpenSetExtrapolator", task: "SourceTask", rates: "OpenSetPrediction", ci_prob: float
) -> dict[str, Any]:
    """Return the rates of open-set identification as JSON types."""
    numbers = {**facts(model, task), "ci_prob": ci_prob, **_rates(model, rates, ci_prob)}
    return {**numbers, "warnings": list(task.warnings)}


def facts(model: "FittedModel", task: "SourceTask") -> dict[str, Any]:
    """Return version, seed and task of a fit."""
    known = model.attributes_
    return {
        "version": known.modeling_interface_version,
        "seed": known.random_seed,
        "task": {
            "made_from": known.made_from,
            "distance": task.table.distance,
            "n_classes": int(known.n_classes),
            "n_test": int(known.n_test),
            "design_effect": float(known.design_effect),
        },
    }


def _rates(
    model: "OpenSetExtrapolator", rates: "OpenSetPrediction", ci_prob: float
) -> dict[str, Any]:
    """FNIR and FPIR at their thresholds, with settings, Pareto k and notes."""
    return {
        "description": rates.description,
        "rank": rates.rank,
        "n_nonmated": model.n_nonmated_,
        "predictions": records(by_limits(rates.summary(ci_prob, round_to="none"))),
        "pareto_k": finite(model.pareto_k_),
        "notes": note_records(rates.notes, model.name),
    }


def by_limits(table: Any) -> Any:
    """Return a table whose limits are named "lower" and "upper", without the level `ci_prob`."""
    ends = {"_lb": "lower", "_ub": "upper"}
    return table.rename(columns=lambda name: ends.get(name[-3:], name))


def records(frame: Any, names: Sequence[str] | None = None) -> list[dict[str, Any]]:
    """Return the rows of a data frame with its index, or only the columns `names`.

    Numbers that are not finite are null.
    """
    flat = frame.reset_index()
    flat = flat if names is None else flat.reindex(columns=names)
    known = flat.notna() & ~flat.isin([math.inf, -math.inf])
    return flat.astype(object).where(known, None).to_dict(orient="records")


def note_records(notes: Iterable[Any], estimator: str | None = None) -> list[dict[str, Any]]:
    """Return notes as rows; the estimator is null if they concern all estimators."""
    return [{"estimator": estimator, "note": note} for note in notes]


def listed(files: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return the names and paths of files as rows."""
    return [{"name": name, "path": str(path)} for name, path in files.items()]


def finite(value: float) -> float | None:
    """Return the number, or None if it is infinite or NaN."""
    return value if math.isfinite(value) else None
