"""The report as a file: its numbers, its words, and what it refuses."""

import datetime
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from page_reader import Page

from classex_bayes import (
    KDE,
    BayesianExtrapolator,
    ClassExReg,
    MomentBounds,
    load,
    save,
    write_report,
)
from classex_bayes.exceptions import DataError, NotFittedError

K, DATE = [1000, 5000, 200], datetime.date(2026, 1, 2)


@pytest.fixture(scope="module")
def page(written):
    return Page(written)


def test_numbers_are_those_of_the_model(page, fitted, pilot):
    numbers, predicted = page.numbers, fitted.predict(K)
    rows = {
        row["k"]: row
        for row in numbers["predictions"]
        if row["estimator"] == "BayesianExtrapolator"
    }
    interval = predicted.interval(0.8, "eti")
    for k in K:
        assert rows[k]["mean"] == pytest.approx(predicted.mean[k], rel=1e-12)
        assert rows[k]["lower"] == pytest.approx(interval["lower"][k], rel=1e-12)
    for reference in (ClassExReg(random_seed=1), KDE("ucv"), KDE("bcv")):
        own = [r for r in numbers["predictions"] if r["estimator"] == reference.name]
        expected = reference.fit(pilot.task).predict(K).mean
        assert_allclose([r["mean"] for r in own], expected)
    chances = {row["k"]: row["probability"] for row in numbers["prob_at_least"]["predictions"]}
    assert chances == predicted.prob_at_least(0.6).to_dict()
    assert numbers["classes_until"]["median"] == fitted.classes_until(0.6).median
    assert numbers["seed"] == 1 and numbers["open_set"] is None


def test_headline_and_table_have_these_numbers(page, fitted):
    predicted = fitted.predict(K)
    interval, chances = predicted.interval(0.8), predicted.prob_at_least(0.6)
    mean, (lower, upper) = predicted.mean[5000], interval.loc[5000]
    stated = f"{100 * mean:.1f}%, 80% interval {100 * lower:.1f} to {100 * upper:.1f}%"
    assert f"On 5,000 classes: {stated}" in page.unfolded
    assert f"5,000 {100 * mean:.1f}% {100 * lower:.1f}% to {100 * upper:.1f}%" in page.unfolded
    assert f"{100 * mean:.1f}% (80% interval {100 * lower:.1f} to" in page.ids["paragraph"]
    own = {row["k"]: row["mean"] for row in page.numbers["predictions"] if row["estimator"] ==
           "ClassExReg"}  # fmt: skip
    expected = [
        [
            k,
            predicted.mean[k],
            *interval.loc[k],
            chances[k],
            own[k],
        ]  # the data contradict both KDEs
        for k in sorted(K)
    ]
    assert_allclose(np.reshape(page.cells["predictions"], (3, -1)), expected, rtol=1e-12)


def test_estimates_that_the_data_contradict_are_left_out(page, pilot):
    limits = MomentBounds().fit(pilot.task).predict(K).interval(0.99)
    for estimator in (ClassExReg(random_seed=1), KDE("ucv"), KDE("bcv")):
        mean = estimator.fit(pilot.task).predict(K).mean
        inside = mean.between(limits["lower"], limits["upper"]).all()
        assert inside == (estimator.name == "ClassExReg")
        assert inside == (f"Left out: {estimator.name}: the data contradict" not in page.text)


def test_a_page_is_small_and_has_its_figures_without_a_script(written, page):
    assert written.stat().st_size < 300_000
    # The curve, the tail, replicates, the extrapolation within the pilot, and the target.
    assert page.tags["figure"] == 5 <= page.tags.get("svg", 0) + page.tags.get("img", 0)
    assert "Identification at a threshold" not in page.text


def test_figures_are_told_in_words(written, fitted):
    text = written.read_text(encoding="utf-8")
    (label,) = re.findall(r'id="accuracy" role="img" aria-label="([^"]*)"', text)
    first, last = fitted.predict([2, 5000]).mean
    assert label.startswith("Expected accuracy against number of classes k. From left to right: ")
    assert f"BayesianExtrapolator, 80% credible interval, from {first:.3g} to {last:.3g}" in label


def test_record_method_and_citation(page):
    paragraph = page.ids["paragraph"]
    assert "pilot & co.npz" in page.text and "2 January 2026" in page.text
    assert f"numpy {np.__version__}" in page.text
    for fact in ("200 classes", "400 instances", "local tails of the scores", "seed 1"):
        assert fact in paragraph
    cited = Path(__file__).parents[2] / "CITATION.cff"
    stated = cited.read_text(encoding="utf-8")
    for line in stated.splitlines():
        name, _, value = line.strip().removeprefix("- ").partition(": ")
        if name in ("title", "family-names", "given-names", "journal", "volume", "year", "name"):
            assert value.strip('"') in page.ids["citation"]


def test_the_same_fit_gives_the_same_page(written, fitted, few_parts, tmp_path):
    settings = {"target": 0.6, "ci_prob": 0.8, "source": "pilot & co.npz", "date": DATE}
    with few_parts():
        again = write_report(fitted, K, tmp_path / "b.html", **settings)
    assert again.read_bytes() == written.read_bytes()
    # Nothing but the page is left behind.
    assert [p.name for p in tmp_path.iterdir()] == ["b.html"]


@pytest.mark.usefixtures("short_pages")
def test_without_target_and_references(fitted, tmp_path):
    page = Page(write_report(fitted, 300, tmp_path / "a.html", references=[], ci_prob=0.4))
    predicted = fitted.predict(300)
    expected = [300, predicted.mean[300], *predicted.interval(0.4).loc[300]]
    assert_allclose(page.cells["predictions"], expected, rtol=1e-12)
    assert page.numbers["classes_until"] is None and page.tags["figure"] == 3
    assert str(datetime.date.today().year) in page.text


def test_a_bare_curve(fitted_curve, tmp_path):
    page = Page(write_report(fitted_curve, 1000, tmp_path / "a.html", target=0.5))
    assert "Left out: KDE(ucv), KDE(bcv): task: " in page.text  # one reason, one line
    assert "normal likelihood" in page.ids["paragraph"]


@pytest.mark.usefixtures("short_pages")
def test_a_model_from_a_file(fitted, pilot, page, tmp_path):
    kept = load(save(fitted, tmp_path / "a.nc"))
    with pytest.raises(DataError):  # without its task
        write_report(kept, K, tmp_path / "a.html")
    path = write_report(kept, K, tmp_path / "a.html", task=pilot.task, references=[], ci_prob=0.8)
    ours, theirs = Page(path).numbers["predictions"], page.numbers["predictions"]
    assert ours == theirs[: len(ours)] and len(ours) == len(K)


def test_names_are_escaped(hostile, attack, page):
    attacked = Page(hostile)
    for tag in ("script", "body"):
        assert attacked.tags[tag] == page.tags[tag]
    assert f"50% of the 32 errors: {attack}0, {attack}1." in attacked.text
    assert f"{attack}<!--<img src=x>.npz" in attacked.text
    assert attacked.numbers["source"] == f"{attack}<!--<img src=x>.npz"


# Refused


def test_a_model_without_draws_has_no_page(tmp_path):
    with pytest.raises(NotFittedError):
        write_report(BayesianExtrapolator(), 9, tmp_path / "a.html")
    assert not list(tmp_path.iterdir())


def test_what_to_install(fitted, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ImportError, match=r"classex-bayes\[report\]"):
        write_report(fitted, 9, "never.html")


@pytest.mark.usefixtures("short_pages")
def test_a_page_that_fails_leaves_the_old_one(fitted, monkeypatch, tmp_path):
    path = tmp_path / "a.html"
    path.write_text("old")

    def fail(self, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="No space"):
        write_report(fitted, 300, path, references=[])
    assert path.read_text() == "old" and [p.name for p in tmp_path.iterdir()] == ["a.html"]


# Columns


@pytest.mark.usefixtures("short_pages")
def test_references_with_bootstrap_intervals(fitted, tmp_path):
    given = {"references": [ClassExReg(0.5)], "ci_prob": 0.8, "n_resamples": 5}
    page = Page(write_report(fitted, 300, tmp_path / "a.html", **given))
    posterior, reference = page.numbers["predictions"]
    assert (posterior["interval_type"], reference["interval_type"]) == ("credible", "bootstrap")
    shown = page.cells["predictions"][-3:]
    assert shown == [reference[name] for name in ("mean", "lower", "upper")]
    assert shown[1] < shown[0] < shown[2]


@pytest.mark.usefixtures("short_pages")
def test_bounds_are_a_column(fitted, tmp_path, pilot):
    page = Page(write_report(fitted, 1000, tmp_path / "a.html", references=[MomentBounds()]))
    limits = MomentBounds().fit(pilot.task).predict(1000).interval().loc[1000]
    assert_allclose(page.cells["predictions"][-2:], limits)
    assert "MomentBounds, 90% limits" in page.text
