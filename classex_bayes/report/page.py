"""The report: one self-contained HTML file."""

import datetime
import json
import platform
from collections.abc import Sequence
from dataclasses import asdict, replace
from importlib import resources
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from classex_bayes import formatting
from classex_bayes._version import __version__
from classex_bayes.arguments import class_counts, file_path, source_task
from classex_bayes.bayes.extrapolator import BayesianExtrapolator, checked_model
from classex_bayes.estimators.base import Estimator, require_estimator
from classex_bayes.exceptions import DataError, require_extra
from classex_bayes.io.whole_files import write_text
from classex_bayes.report.document import by_limits, document, records
from classex_bayes.report.findings import (
    Findings,
    findings_of,
    usual_references,
    warned_of_distance,
)
from classex_bayes.results.draws import interval_name, interval_settings
from classex_bayes.results.extrapolation import Bounds, Extrapolation
from classex_bayes.results.reference_values import whose_notes
from classex_bayes.results.sentences import (
    errors_sentence,
    headline,
    pilot_accuracy,
    pilot_sentence,
    score_direction,
)
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import ClassCounts

if TYPE_CHECKING:
    from classex_bayes.open_set.open_set import OpenSetExtrapolator
    from classex_bayes.open_set.open_set_prediction import OpenSetPrediction

_N_POINTS = 100
_KINDS = {"eti": "equal tails", "hdi": "highest density"}
_VERSIONS = ("numpy", "scipy", "numba", "nutpie", "arviz-stats")


def write_report(
    model: BayesianExtrapolator,
    k: ClassCounts,
    path: str | Path,
    *,
    metric: str = "accuracy",
    task: SourceTask | None = None,
    references: Sequence[Estimator] | None = None,
    target: float | None = None,
    open_set: "OpenSetExtrapolator | None" = None,
    fpir: float = 0.003,
    ci_prob: float | None = None,
    n_resamples: int | None = None,
    source: str = "",
    date: datetime.date | None = None,
) -> Path:
    """Write the results of a fitted model as one HTML page that needs no network.

    docs/command_line.md describes the page. Its element with id "numbers" holds all numbers as
    JSON. The same fit gives the same page, except for the date.

    The page makes the `classex_bayes.extrapolation_check`, and the model keeps its result. If the
    check fails, later predictions of the model, also from files saved later, have a note on it.

    Parameters
    ----------
    model : BayesianExtrapolator
        A fitted model.
    k : int or array-like of int
        Numbers of classes. The headline shows the largest.
    path : str or Path
        Name of the file, ending in .html. The file is written completely or not at all.
    metric : str
        Metric of headline, curve and table, as in `BayesianExtrapolator.predict`.
    task : SourceTask, optional
        The task that the model was fitted to. A model that was read from a file requires it.
    references : sequence of Estimator, optional
        Estimators to compare with the posterior. By default ClassExReg, KDE(ucv) and KDE(bcv) for
        accuracy, and `SampledMetrics` for other metrics.
    target : float, optional
        Wanted value of the metric: at least this share in (0, 1), of ranks at most this rank.
    open_set : OpenSetExtrapolator, optional
        A model fitted to the same task. It adds a section on open-set identification: FNIR and FPIR
        at the thresholds that keep FPIR below `fpir`, and the DET curves.
    fpir : float
        Limit of FPIR. Each threshold keeps FPIR below it with probability 0.95.
    ci_prob : float, optional
        Level of the intervals; by default 0.9, or ArviZ's changed rcParams.
    n_resamples : int, optional
        Number of resamples for bootstrap intervals of the references, as in `compare`. By default
        the references have no intervals.
    source : str
        Name of the data, such as the name of their file.
    date : date, optional
        Date of the page; today by default.

    Returns
    -------
    Path
        Path of the page.

    Raises
    ------
    DataError
        If the model is not fitted to this task, `path` does not end in .html, or another argument
        is invalid.
    NotFittedError
        If the model has no draws.
    ImportError
        If jinja2 is not installed.
    OSError
        If the file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> import classex_bayes as cb
    >>> task = cb.SourceTask.from_ranks([1] * 45 + [2, 3, 6, 10, 31], range(50), n_classes=50)
    >>> model = cb.BayesianExtrapolator().fit(
    ...     task, sampler={"draws": 500, "tune": 500, "chains": 2}, random_seed=1, progressbar=False
    ... )
    >>> path = cb.write_report(model, [100, 1000], f"{tempfile.mkdtemp()}/report.html", target=0.8)
    >>> "<title>On 1,000 classes: " in path.read_text(encoding="utf-8")
    True
    """
    require_libraries()
    where = page_path(path, "path")
    checked_model(model)
    seeds = model.attributes_.seeds
    if len(model.tasks) > 1:
        raise DataError(
            f"model: found a model of {len(model.tasks)} tasks, expected one of a single task; fit "
            "and report each of them, or merge parts of one test (SourceTask.merge)"
        )
    task = model.task if task is None else task
    if task is None:
        raise DataError(
            "task: found none, expected the task that the model was fitted to; a model that was "
            "read from a file does not contain it, so pass task="
        )
    source_task(task)
    if not model.is_fitted_to(task):
        raise DataError("task: the model was fitted to another task or with other parameters")
    if not isinstance(date, datetime.date | None):
        raise DataError(f"date: expected a datetime.date, found {date!r}")
    counts = class_counts(k)
    rates = None
    if open_set is not None:
        if not open_set.is_fitted_to(task):
            raise DataError(
                "open_set: expected a model that is fitted to this task with its present "
                "parameters; call fit(task) first"
            )
        with warned_of_distance():
            rates = open_set, open_set.predict(counts, fpir=fpir)
    if references is None:
        references = usual_references(seeds, metric)
    if not isinstance(references, Sequence):
        raise DataError(f"references: expected a list of estimators, found {references!r}")
    for reference in references:
        require_estimator(reference, "references")
    names = [model.name, *(reference.name for reference in references)]
    if twice := [name for name in names if names.count(name) > 1]:
        raise DataError(
            f"references: found {twice[0]} twice, the model included; expected other estimators"
        )
    findings = findings_of(
        model,
        references,
        task,
        counts,
        metric=metric,
        ci_prob=ci_prob,
        target=target,
        n_resamples=n_resamples,
        random_seed=seeds,
    )
    return write_page(replace(findings, open_set=rates), where, source=source, date=date)


def require_libraries() -> None:
    """Raise ImportError if what draws and writes a page is not installed."""
    require_extra("report", "a report", "jinja2", "matplotlib")


def page_path(path: str | Path, name: str) -> Path:
    """Return the path of a page; raise `DataError` unless it is a file that ends in .html."""
    where = file_path(path, name)
    if where.suffix != ".html":
        raise DataError(f"{name}: expected a name ending in .html, found {str(path)!r}")
    if where.is_dir():
        raise DataError(f"{name}: expected a file, found the folder {str(path)!r}")
    return where


def write_page(
    findings: Findings, path: Path, *, source: str = "", date: datetime.date | None = None
) -> Path:
    """Write the page of some findings; arguments are those of `write_report`."""
    return write_text(html(findings, source, date or datetime.date.today()), path)


def html(findings: Findings, source: str, date: datetime.date) -> str:
    """Return the page as text."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("classex_bayes.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False}
    numerals = findings.prediction.estimand.numerals
    environment.filters.update(
        estimate=lambda row: numerals.estimate(row["mean"], row["lower"], row["upper"]),
        rate=lambda row: formatting.RATES.estimate(row["mean"], row["lower"], row["upper"]),
        value=numerals.value,
        chance=formatting.chance,
        sentence=formatting.capitalized,
        one_line=lambda text: Markup(" ").join(text.split()),
    )
    here = resources.files("classex_bayes.report")
    # Files of the package are trusted. All text that comes from data is escaped.
    css, js = (Markup(here.joinpath(name).read_text("utf-8")) for name in ("page.css", "page.js"))
    with warned_of_distance():
        variables = contents(findings, source, date)
    return environment.get_template("page.html.jinja").render(**variables, css=css, js=js)


def contents(findings: Findings, source: str, date: datetime.date) -> dict[str, Any]:
    """Return the variables of the template by name: objects, sentences, figures and numbers."""
    # Here, since matplotlib draws them.
    from classex_bayes.report.page_figures import figures

    model, task, level = findings.model, findings.task, findings.ci_prob
    estimand, shown = findings.prediction.estimand, findings.shown
    curves, open_set = findings.curves(_N_POINTS), findings.open_set
    numbers = _numbers(findings, curves[0], source, date)
    rows = _rows(findings)
    references = shown.predictions[1:]
    until = None
    if findings.until is not None:
        until = f"{formatting.capitalized(findings.until.describe(level))}."
    largest, accuracy = pilot_accuracy(task)
    answers = [_headline(findings, row) for row in numbers["curve"]]
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
        "forms": model.attributes_.forms_text,
        "pilot": {"k": largest, "accuracy": accuracy},
        "rows": rows,
        "references": [reference.estimator for reference in references],
        "point_estimates": [p.estimator for p in references if not isinstance(p, Bounds)],
        "bounds": ", ".join(p.estimator for p in references if isinstance(p, Bounds)),
        "resampled": any(p.interval_type == "bootstrap" for p in references),
        "notes": {note: ", ".join(names) for note, names in whose_notes(shown.predictions).items()},
        "left_out": formatting.by_reason(shown.skipped),
        "until": until,
        "open_set": None if open_set is None else _open_set(*open_set, task, numbers["open_set"]),
        "assessment": findings,
        "errors": errors_sentence(task),
        "diagnosis": model.diagnosis_,
        "sensitivity": findings.sensitivity,
        "numbers": numbers,
        "figures": {figure.key: figure for figure in figures(findings, curves)},
        "answers": [answer.removeprefix("On ") for answer in answers],
    }


def _headline(findings: Findings, row: dict[str, Any]) -> str:
    """The answer of one row in a sentence."""
    answer = {name: row[name] for name in ("k", "mean", "lower", "upper")}
    return headline(**answer, ci_prob=findings.ci_prob, estimand=findings.prediction.estimand)


def _rows(findings: Findings) -> list[dict[str, Any]]:
    """Rows of the table of predictions, sorted by the number of classes."""
    posterior, *others = findings.shown.predictions
    by_estimator = by_limits(findings.shown.table)
    table = posterior.interval(findings.ci_prob).assign(mean=posterior.mean)
    if findings.target is not None:
        table["reached"] = posterior.prob_reached(findings.target)
    return [
        {**row, "references": [by_estimator.loc[(other.estimator, row["k"])] for other in others]}
        for row in records(table.sort_index())
    ]


def _open_set(
    model: "OpenSetExtrapolator",
    rates: "OpenSetPrediction",
    task: SourceTask,
    numbers: dict[str, Any],
) -> dict[str, Any]:
    """Rates, thresholds and settings of open-set identification."""
    by_rate: dict[str, dict[int, Any]] = {"FNIR": {}, "FPIR": {}}
    for row in numbers["predictions"]:
        by_rate[row["rate"]][row["k"]] = row
    fnir, fpir = by_rate.values()
    return {
        "description": numbers["description"],
        "promise": rates.promise.removeprefix(", "),
        # If no threshold keeps the promise for some k, a note says so.
        "rows": [
            {"k": k, "fnir": fnir[k], "fpir": fpir[k]}
            for k in sorted(fnir)
            if fnir[k]["threshold"] is not None
        ],
        "notes": rates.notes,
        "rank": rates.rank,
        "nonmated": model.nonmated_origin_,
        "scores": score_direction(task),
        "seed": model.attributes_.random_seed,
        "n_draws": rates.fnir.sizes["chain"] * rates.fnir.sizes["draw"],
    }


def _numbers(
    findings: Findings, curve: Extrapolation, source: str, date: datetime.date
) -> dict[str, Any]:
    """The document of `--json`, and the further numbers of the page."""
    known, within = findings.model.attributes_, findings.within
    parameters = json.loads(findings.model.idata.attrs["parameters"])
    return {
        "date": date.isoformat(),
        "source": source,
        **document(findings),
        "fit": {
            "prior": parameters["prior"],
            "tail_prior": parameters["tail_prior"] if known.forms else None,
            "sampler": known.sampler and asdict(known.sampler),
            "spawn_key": list(known.random_seed_spawn_key),
        },
        "curve": records(curve.interval(findings.ci_prob).assign(mean=curve.mean)),
        "checks": records(findings.checks.table),
        "posterior_checks": records(findings.replicates.table),
        "extrapolation_check": [] if isinstance(within, str) else records(within.table),
        "versions": {
            "classex_bayes": __version__,
            "Python": platform.python_version(),
            **{name: version(name) for name in _VERSIONS},
        },
    }
