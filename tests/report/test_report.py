"""The report as a file: its numbers, its sentences, and what it refuses."""

import datetime
import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import ndtri

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
from classex_bayes.report import page as report_page

K, DATE = [1000, 5000, 200], datetime.date(2026, 1, 2)


class Page(HTMLParser):
    """Text of the elements with an id, JSON of the scripts, and the number of every tag."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.text, self.ids, self._open = {}, [], {}, []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags[tag] = self.tags.get(tag, 0) + 1
        self._open.append((tag, dict(attributes).get("id")))

    def handle_endtag(self, tag):
        while self._open and self._open.pop()[0] != tag:
            pass

    def handle_data(self, data):
        if self._open and self._open[-1][0] not in ("script", "style"):
            self.text.append(data)
        for _, name in self._open:
            if name:
                self.ids[name] = self.ids.get(name, "") + data

    def json(self, name):
        return json.loads(self.ids[name])

    @property
    def visible_text(self):
        return " ".join(" ".join(self.text).split())


@pytest.fixture(scope="module")
def page(written):
    return Page(written.read_text(encoding="utf-8"))


def test_numbers_are_those_of_the_model(page, fitted, pilot):
    numbers = page.json("numbers")
    predicted = fitted.predict(K)
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
    assert chances == fitted.predict(K).prob_at_least(0.6).to_dict()
    assert numbers["classes_until"]["median"] == fitted.classes_until(0.6).median
    assert numbers["date"] == "2026-01-02" and numbers["source"] == "pilot & co.npz"
    assert numbers["seed"] == 1 and numbers["fit"]["sampler"]["draws"] == 500
    assert numbers["versions"]["numpy"] == np.__version__
    assert {check["name"] for check in numbers["checks"]} >= {"ties", "number of errors"}
    assert "ranks: distance" in [row["discrepancy"] for row in numbers["posterior_checks"]]


def test_headline_and_table_have_these_numbers(page, written, fitted):
    mean, (lower, upper) = (
        fitted.predict(5000).mean[5000],
        fitted.predict(5000).interval(0.8).loc[5000],
    )
    stated = f"{100 * mean:.1f}%, 80% interval {100 * lower:.1f} to {100 * upper:.1f}%"
    assert f"On 5,000 classes: {stated}" in page.visible_text
    assert f"{100 * mean:.1f}% (80% interval {100 * lower:.1f} to" in page.ids["paragraph"]
    assert f"5,000 {100 * mean:.1f}% {100 * lower:.1f}% to {100 * upper:.1f}%" in page.visible_text
    table = re.search(r'<table id="predictions".*?</table>', written.read_text("utf-8"), re.S)[0]
    cells = [float(value) for value in re.findall(r'<data value="([^"]+)"', table)]
    numbers = page.json("numbers")
    rows = {(row["estimator"], row["k"]): row for row in numbers["predictions"]}
    chances = {row["k"]: row["probability"] for row in numbers["prob_at_least"]["predictions"]}
    expected = []
    for k in sorted(K):
        row = rows["BayesianExtrapolator", k]
        expected += [k, row["mean"], row["lower"], row["upper"], chances[k]]
        expected.append(rows["ClassExReg", k]["mean"])  # the data contradict both KDEs
    assert cells == expected


def test_curves_are_those_of_the_model(page, written, read_chart, fitted, pilot):
    text = written.read_text(encoding="utf-8")
    drawn = read_chart(text, "accuracy")
    # Both KDEs lie outside the limits of the ranks, so only ClassExReg is drawn.
    lower, upper = MomentBounds().fit(pilot.task).predict(K).interval(0.99).to_numpy().T
    for bandwidth in ("ucv", "bcv"):
        mean = KDE(bandwidth).fit(pilot.task).predict(K).mean.to_numpy()
        assert np.any((mean < lower) | (mean > upper))
        assert f"Left out: KDE({bandwidth}): the data contradict" in page.visible_text
    assert set(drawn) == {"interval", "inner", "reference-1", "posterior", "target", "pilot"}
    curve = page.json("numbers")["curve"]
    grid = np.array([row["k"] for row in curve])
    assert set(K) <= set(grid) and grid[0] == 2 and grid[-1] == 5000
    predicted = fitted.predict(grid)
    close = {"atol": 2e-4}  # what a drawing can show
    x, y = drawn["posterior"]["line"]
    assert_allclose(x, np.log10(grid), atol=1e-3)
    assert_allclose(y, predicted.mean, **close)
    for key, prob in (("interval", 0.8), ("inner", 0.5)):
        bounds = predicted.interval(prob, "eti")
        outline = [*bounds["upper"], *bounds["lower"][::-1]]
        assert_allclose(drawn[key]["band"][1], outline, **close)
    assert_allclose(drawn["target"]["line"][1], 0.6, **close)
    k = np.rint(10 ** drawn["pilot"]["dots"][0]).astype(int)
    assert (k[0], k[-1]) == (2, 200) and 6 < k.size < 14
    seen = pilot.task.accuracy(k)
    assert_allclose(drawn["pilot"]["dots"][1], seen, **close)
    # 80% of a normal law lie within 1.2816 standard deviations.
    half = 1.2815515655446004 * np.sqrt(np.diag(pilot.task.accuracy_cov(k)))
    low, high = drawn["pilot"]["error"][1].reshape(-1, 2).T
    assert_allclose(low, seen - half, **close)
    assert_allclose(high, np.minimum(seen + half, 1), **close)
    z, share = read_chart(text, "discriminability", lambda n: -ndtri(1 / np.array(n)))["posterior"][
        "line"
    ]
    expected = float(fitted.discriminability(0.99).mean())
    assert np.interp(-ndtri(0.01), z, share) == pytest.approx(expected, abs=1e-3)
    _, reached = read_chart(text, "reaching")["reaching"]["line"]
    assert_allclose(reached, predicted.prob_at_least(0.6), **close)


def test_values_under_the_pointer_are_those_of_the_curves(page, fitted):
    readings = page.json("readings")
    (posterior,) = (r for r in readings["accuracy"] if r["series"] == "posterior")
    for row, k, text in zip(
        page.json("numbers")["curve"], posterior["x"], posterior["y"], strict=True
    ):
        assert k == f"{row['k']:,} classes"
        stated = [float(value) for value in re.findall(r"[\d.]+", text)]
        assert stated == pytest.approx(
            [100 * row[name] for name in ("mean", "lower", "upper")], abs=0.0501
        )
    # The table has some of them.
    assert f"{posterior['x'][0]} {posterior['y'][0]}" in page.visible_text
    (tail,) = readings["discriminability"]
    assert tail["x"][0] == "one in 2" and tail["x"][-1] == "one in 10,000"


def test_a_page_is_small_and_is_drawn_without_a_script(written, page):
    assert written.stat().st_size < 300_000
    assert "identification" not in page.ids and page.json("numbers")["open_set"] is None
    assert page.tags["g"] >= 8 and "needs JavaScript" not in page.visible_text


def test_record_method_and_citation(page):
    text = page.visible_text
    assert "pilot & co.npz" in text and "2 January 2026" in text
    assert "tested 200 classes with 400 instances" in page.ids["paragraph"]
    assert "local tails of the scores, as given" in page.ids["paragraph"]
    assert "seed 1" in page.ids["paragraph"] and "  " not in page.ids["paragraph"].strip()
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
def test_without_target_and_references(fitted, read_chart, tmp_path):
    path = write_report(fitted, 300, tmp_path / "a.html", references=[], ci_prob=0.4)
    text = path.read_text(encoding="utf-8")
    page = Page(text)
    assert "reaching" not in page.json("readings") and page.json("numbers")["classes_until"] is None
    assert list(read_chart(text, "accuracy")) == ["interval", "posterior", "pilot"]
    assert page.json("numbers")["date"] == datetime.date.today().isoformat()


def test_a_bare_curve(fitted_curve, tmp_path):
    path = write_report(fitted_curve, 1000, tmp_path / "a.html", target=0.5)
    page = Page(path.read_text(encoding="utf-8"))
    assert "Left out: KDE(ucv), KDE(bcv): task: " in page.visible_text  # one reason, one line
    assert (
        "curve without ranks" in page.visible_text and "normal likelihood" in page.ids["paragraph"]
    )


@pytest.mark.usefixtures("short_pages")
def test_a_model_from_a_file(fitted, pilot, written, tmp_path):
    kept = load(save(fitted, tmp_path / "a.nc"))
    with pytest.raises(DataError, match="task: found none"):
        write_report(kept, K, tmp_path / "a.html")
    path = write_report(kept, K, tmp_path / "a.html", task=pilot.task, references=[], ci_prob=0.8)
    ours, theirs = (
        Page(p.read_text(encoding="utf-8")).json("numbers")["predictions"] for p in (path, written)
    )
    assert ours == theirs[: len(ours)] and len(ours) == len(K)


def test_names_are_escaped(hostile, attack, page):
    attacked = Page(hostile.read_text(encoding="utf-8"))
    scripts = {name: page.tags[name] for name in ("script", "style", "body")}
    assert {name: attacked.tags[name] for name in scripts} == scripts and "img" not in attacked.tags
    sentence = f"Two classes account for 50% of the 32 errors: {attack}0, {attack}1."
    assert sentence in attacked.visible_text
    assert f"{attack}<!--<img src=x>.npz" in attacked.visible_text
    assert attacked.json("numbers")["source"].startswith(attack)
    assert f"{attack}0" in str(attacked.json("numbers")["checks"])


# Refused


def test_refused(fitted, pilot, small_task, tmp_path):
    page = tmp_path / "a.html"
    (tmp_path / "folder.html").mkdir()
    for arguments, options, message in [
        ((fitted, 9, tmp_path / "a.pdf"), {}, "path: expected a name ending in .html"),
        ((fitted, 9, tmp_path / "folder.html"), {}, "path: expected a file, found the folder"),
        ((fitted, 1, page), {}, "k: expected numbers in 2"),
        ((fitted, 9, page), {"target": 1.0}, "target: expected a number between 0 and 1"),
        ((fitted, 9, page), {"ci_prob": 90}, "ci_prob: expected a number between 0 and 1"),
        ((fitted, 9, page), {"task": small_task()}, "task: the model was fitted to another task"),
        ((fitted, 9, page), {"task": 3}, "task: expected a SourceTask"),
        ((ClassExReg(), 9, page), {}, "model: expected a BayesianExtrapolator"),
    ]:
        with pytest.raises(DataError, match=message):
            write_report(*arguments, **options)
    with pytest.raises(NotFittedError):
        write_report(BayesianExtrapolator(), 9, page)
    assert not page.exists()


def test_what_to_install(fitted, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ImportError, match=r'pip install "classex-bayes\[report\]"'):
        write_report(fitted, 9, "never.html")


def test_a_page_that_fails_leaves_the_old_one(fitted, monkeypatch, tmp_path):
    path = tmp_path / "a.html"
    path.write_text("old")

    def fail(self, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", fail)
    monkeypatch.setattr(report_page, "html", lambda *_: "new")
    with pytest.raises(OSError, match="No space"):
        write_report(fitted, 300, path, references=[])
    assert path.read_text() == "old" and [p.name for p in tmp_path.iterdir()] == ["a.html"]


# Columns


@pytest.mark.usefixtures("short_pages")
def test_references_with_bootstrap_intervals(fitted, pilot, tmp_path):
    given = {"references": [ClassExReg(0.5)], "ci_prob": 0.8, "n_resamples": 5}
    text = write_report(fitted, 300, tmp_path / "a.html", **given).read_text(encoding="utf-8")
    numbers = json.loads(re.search(r'id="numbers"[^>]*>(.*?)</script>', text, re.S)[1])
    posterior, reference = numbers["predictions"]
    assert (posterior["interval_type"], reference["interval_type"]) == ("credible", "bootstrap")
    cell = re.search(r'<td class="reference".*?</td>', text, re.S)[0]
    shown = [float(value) for value in re.findall(r'<data value="([^"]+)"', cell)]
    assert shown == [reference[name] for name in ("mean", "lower", "upper")]
    assert shown[1] < shown[0] < shown[2] and "leave out the bias of the estimator" in text


@pytest.mark.usefixtures("short_pages")
def test_bounds_are_a_band_and_a_column(fitted, tmp_path, read_chart, pilot):
    path = write_report(fitted, [1000], tmp_path / "page.html", references=[MomentBounds()])
    text = path.read_text(encoding="utf-8")
    drawn = read_chart(text, "accuracy")
    bounds = MomentBounds().fit(pilot.task)
    k = np.rint(10 ** drawn["posterior"]["line"][0]).astype(int)
    limits = bounds.predict(k).interval()
    outline = [*limits["upper"], *limits["lower"][::-1]]
    assert_allclose(drawn["bounds"]["band"][1], outline, atol=2e-3)
    lower, upper = bounds.predict(1000).interval().to_numpy()[0]
    assert f"{100 * lower:.1f}% to {100 * upper:.1f}%" in Page(text).visible_text
    assert "MomentBounds gives the limits" in " ".join(text.split())
    assert "90% limits without a prior" in text and "ranks alone" not in text
