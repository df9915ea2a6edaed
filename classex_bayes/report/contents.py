"""Contents of the page: sentences, charts and numbers for the template."""

import datetime
import hashlib
import platform
from collections.abc import Mapping
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from classex_bayes._version import __version__
from classex_bayes.formatting import capitalized
from classex_bayes.open_set.nonmated_searches import NonmatedSearches
from classex_bayes.report import page_charts
from classex_bayes.report.assessment import Assessment
from classex_bayes.report.document import by_limits, document, finite, records
from classex_bayes.report.findings import Findings
from classex_bayes.report.verdicts import checks_sentence, convergence_sentence, fit_sentence
from classex_bayes.results import Bounds, Extrapolation, interval_name, interval_settings
from classex_bayes.results.sentences import (
    errors_sentence,
    headline,
    pilot_accuracy,
    pilot_sentence,
    score_direction,
)
from classex_bayes.results.shared_estimand import whose_notes
from classex_bayes.task.source_task import SourceTask

_N_POINTS = 100
_KINDS = {"eti": "equal tails", "hdi": "highest density"}
_VERSIONS = ("numpy", "scipy", "numba", "nutpie", "arviz-stats")


def contents(findings: Findings, source: str, date: datetime.date) -> dict[str, Any]:
    """Return the variables of the template by name."""
    model, task, level = findings.model, findings.task, findings.ci_prob
    assessment, estimand = findings.assessment, findings.prediction.estimand
    curves = findings.curves(_N_POINTS)
    numbers = _numbers(findings, curves[0], assessment)
    rows = _rows(findings)
    until = None
    if findings.target is not None:
        until = f"{capitalized(model.classes_until(findings.target).describe(level))}."
    drawn = _charts(findings, curves)
    shown = findings.shown
    references = shown.predictions[1:]
    largest, accuracy = pilot_accuracy(task)
    return {
        "headline": _headline(findings, rows[-1]),
        "metric": estimand,
        "units": estimand.units,
        "source": source,
        "date": date,
        "estimator": findings.prediction.estimator,
        "level": interval_name(level),
        "interval": f"{interval_name(level)}, {_KINDS[interval_settings(None, None)[1]]}",
        "target": findings.target,
        "task": task,
        "pilot_sentence": pilot_sentence(task, estimand),
        "evidence": numbers["evidence"],
        "scales": model.fit_.record.scales_text,
        "pilot": {"k": largest, "accuracy": accuracy},
        "rows": rows,
        "references": [reference.estimator for reference in references],
        "point_estimates": [p.estimator for p in references if not isinstance(p, Bounds)],
        "bounds": ", ".join(p.estimator for p in references if isinstance(p, Bounds)),
        "resampled": any(p.interval_type == "bootstrap" for p in references),
        "notes": {note: ", ".join(names) for note, names in whose_notes(shown.predictions).items()},
        "left_out": shown.skipped,
        "until": until,
        "open_set": _open_set(findings, numbers["open_set"]),
        "assessment": assessment,
        "checks": assessment.checks,
        "errors": errors_sentence(task),
        "replicates": assessment.replicates,
        "replicates_sentence": checks_sentence(assessment.replicates),
        "diagnosis": model.diagnosis_,
        "convergence": convergence_sentence(model.diagnosis_, numbers["fit"]["sampler"]),
        "fit": fit_sentence(model.fit_gap_) if numbers["fit"]["prior"] else None,
        "sensitivity": findings.sensitivity,
        "numbers": {"date": date.isoformat(), "source": source, **numbers},
        "charts": drawn,
        "readings": {key: chart.readings for key, chart in drawn.items()},
        "answers": [_headline(findings, row).removeprefix("On ") for row in numbers["curve"]],
    }


def _headline(findings: Findings, row: Mapping[str, Any]) -> str:
    """The answer of one row in a sentence."""
    answer = {name: row[name] for name in ("k", "mean", "lower", "upper")}
    return headline(**answer, ci_prob=findings.ci_prob, estimand=findings.prediction.estimand)


def _rows(findings: Findings) -> list[dict[str, Any]]:
    """Rows of the table of predictions, sorted by the number of classes."""
    posterior, *others = findings.shown.predictions
    beside = by_limits(findings.shown.table)
    table = posterior.interval(findings.ci_prob).assign(mean=posterior.mean)
    if findings.target is not None:
        table["reached"] = posterior.prob_at_least(findings.target)
    return [
        {**row, "references": [beside.loc[(other.estimator, row["k"])] for other in others]}
        for row in records(table.sort_index())
    ]


def _open_set(findings: Findings, numbers: dict[str, Any] | None) -> dict[str, Any] | None:
    """Rates, thresholds and settings of open-set identification; None if it is not requested."""
    if findings.open_set is None or numbers is None:
        return None
    model, rates = findings.open_set
    by_rate: dict[str, dict[int, Any]] = {}
    for row in numbers["predictions"]:
        by_rate.setdefault(row["rate"], {})[row["k"]] = row
    fnir, fpir = by_rate["FNIR"], by_rate["FPIR"]
    rows = [{"k": k, "fnir": fnir[k], "fpir": fpir[k]} for k in sorted(fnir)]
    notes = [row["note"] for row in numbers["notes"]]
    return {
        "description": numbers["description"],
        "promise": rates.promise.removeprefix(", "),
        "rows": rows,
        "notes": notes,
        "rank": rates.rank,
        "nonmated": NonmatedSearches.of(model.idata).origin,
        "scores": score_direction(findings.task),
        "scales": model.fit_.record.scales_text,
        "seed": model.fit_.record.random_seed,
        "n_draws": rates.fnir.sizes["chain"] * rates.fnir.sizes["draw"],
    }


def _charts(findings: Findings, curves: list[Extrapolation]) -> dict[str, page_charts.PageChart]:
    drawn = [
        page_charts.accuracy(findings, curves),
        page_charts.discriminability(findings),
        page_charts.predictive(findings),
    ]
    if findings.target is not None:
        drawn.append(page_charts.reaching(curves[0], findings.target))
    if findings.open_set is not None:
        drawn.append(page_charts.detection(*findings.open_set, findings.ci_prob))
    return {chart.key: chart for chart in drawn}


def _numbers(findings: Findings, curve: Extrapolation, assessment: Assessment) -> dict[str, Any]:
    """The document of `--json`, and the further numbers of the page."""
    record, sizes = findings.model.fit_.record, findings.model.idata["posterior"].sizes
    # Of a model that is drawn without a sampler.
    independent = {"chains": sizes["chain"], "draws": sizes["draw"]}
    return {
        **document(findings),
        "fit": {
            "prior": record.parameters.get("prior"),
            "likelihood": record.parameters.get("likelihood"),
            "sampler": independent if record.sampler is None else asdict(record.sampler),
            "spawn_key": list(record.random_seed_spawn_key),
            "fingerprint": fingerprint(findings.task),
        },
        "curve": records(curve.interval(findings.ci_prob).assign(mean=curve.mean)),
        "checks": [
            {**asdict(check), "value": finite(check.value), "limit": finite(check.limit)}
            for check in assessment.checks
        ],
        "posterior_checks": records(assessment.replicates.table),
        "versions": versions(),
    }


def fingerprint(task: SourceTask) -> str:
    """Return the first 16 digits of the SHA-256 of the data that a fit uses."""
    digest = hashlib.sha256(f"{task.n_classes} {task.n_test}".encode())
    for array in task.table.data:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:16]


def versions() -> dict[str, str]:
    """Versions of this package, of Python and of the packages that compute its numbers."""
    installed = {"classex_bayes": __version__, "Python": platform.python_version()}
    for name in _VERSIONS:
        try:
            installed[name] = version(name)
        except PackageNotFoundError:  # packaged under another name
            continue
    return installed
