"""Charts of the page: numbers of their axes, entries of their legends, and what is clipped."""

import warnings

import numpy as np
import pytest

from classex_bayes import ClassExReg, Extrapolation, SourceTask
from classex_bayes.report import page_charts
from classex_bayes.report.findings import findings_of
from classex_bayes.report.page_charts import Axis


@pytest.mark.parametrize(
    ("values", "numbers"),
    [
        ([2, 5000], ["10", "100", "1,000"]),
        ([2, 60], ["2", "5", "10", "20", "50"]),
        ([31, 39], ["32", "34", "36", "38"]),
        ([2, 10**9], ["10", "1,000", "1,000,000", "1,000,000,000"]),
        ([7, 7], ["6.8", "7", "7.2"]),
    ],
)
def test_numbers_of_a_logarithmic_axis(values, numbers):
    axis = Axis.of("k", np.array(values), lambda k: f"{k:,.10g}", log=True)
    assert set(numbers) <= {text for _, text in axis.numbers}
    assert 2 <= len(axis.numbers) <= 9
    for place, text in axis.numbers:
        share = (np.log10(float(text.replace(",", ""))) - axis.low) / (axis.high - axis.low)
        assert place == pytest.approx(100 * share)


@pytest.mark.parametrize(("last", "in_a_decade"), [(5000, 9), (10**9, 1)])
def test_small_ticks_of_a_logarithmic_axis(last, in_a_decade):
    ticks = np.array(Axis.of("k", np.array([2, last]), str, log=True).small_ticks)
    assert np.count_nonzero((ticks > 9.99) & (ticks < 99.9)) == in_a_decade


def test_axes_of_one_value_and_of_none_at_zero():
    assert Axis.of("share", np.array([1.0, 1.0]), str).numbers
    rates = Axis.of("FPIR", np.array([0.0, 0.001, 0.1]), str, log=True)
    assert rates.low > -3.1 and rates.places([0.0]).tolist() == [-100.0]


@pytest.mark.parametrize(
    ("k", "numbers"), [(10**4, ["10", "1,000"]), (10**9, ["10", "10³", "10⁹"])]
)
@pytest.mark.filterwarnings("ignore")
def test_numbers_of_competitors_have_one_form(fitted, pilot, k, numbers):
    chart = page_charts.discriminability(findings_of(fitted, [], pilot.task, [k]))
    shown = [text for _, text in chart.x.numbers]
    assert set(numbers) <= set(shown)
    assert not (any("," in number for number in shown) and any("10³" in n for n in shown))


def test_references_are_told_apart_and_are_not_above_1(fitted, pilot):
    findings = findings_of(fitted, [ClassExReg(0.5)], pilot.task, [500], ci_prob=0.9)
    posterior, _ = findings.curves(5)
    # A regression on accuracies may be above 1 at two classes.
    over = [
        Extrapolation.from_point(posterior.k, 1.01 - posterior.k / 1e4, f"{i}", 200)
        for i in "abcdef"
    ]
    chart = page_charts.accuracy(findings, [posterior, *over])
    entries = [series for series in chart.legend if series.key.startswith("reference")]
    assert len({(series.color, series.dash) for series in entries}) == len(over) == len(entries)
    assert max(series.mark.y[0].max() for series in entries) == 1
    assert len({series.key for series in chart.legend}) == len(chart.legend)
    assert chart.legend[0].key == chart.readings[0]["series"] == "posterior"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("largest", [2, 4, 12])
def test_numbers_of_few_classes_stand_once(largest, fit):
    task = SourceTask.from_ranks([1, 2, 1, 1, 1, 2], [0, 1, 2, 0, 1, 2], n_classes=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the pilot is small
        findings = findings_of(fit(task, draws=50, tune=50), [], task, [largest])
    numbers = [text for _, text in page_charts.accuracy(findings, findings.curves(9)).x.numbers]
    assert numbers and len({*numbers}) == len(numbers)
