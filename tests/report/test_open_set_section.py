"""The part of the report on open-set identification."""

import copy
import json
import re
from dataclasses import replace

import numpy as np
import pytest

import classex_bayes as cb
from classex_bayes.exceptions import DataError
from classex_bayes.plots.drawing import chart_of

K = [1000, 199]


@pytest.fixture(scope="module")
def model(fit, pilot):
    """Model fitted to some of the classes."""
    return fit(pilot.task.subsample(60, random_seed=1), draws=50, tune=100)


@pytest.fixture(scope="module")
def open_set(model):
    return cb.OpenSetExtrapolator().fit(
        model.task, sampler={"draws": 100, "chains": 2}, random_seed=1
    )


@pytest.fixture(scope="module")
def text(model, open_set, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "page.html"
    given = {"references": [], "open_set": open_set, "fpir": 0.05, "ci_prob": 0.8}
    return cb.write_report(model, K, path, **given).read_text("utf-8")


def script(text, name):
    """JSON of a script of the page."""
    found = re.search(rf'<script type="application/json" id="{name}">(.*?)</script>', text, re.S)
    return json.loads(found[1])


def test_numbers_are_those_of_the_model(text, open_set):
    rates = open_set.predict(K, fpir=0.05)
    stated = script(text, "numbers")["open_set"]
    assert stated["description"] == rates.description
    assert [row["note"] for row in stated["notes"]] == list(rates.notes) != []
    rows = {(row["rate"], row["k"]): row for row in stated["predictions"]}
    for name, draws in rates.rates.items():
        lower, upper = rates.interval(name.lower(), 0.8, "eti").transpose("ci_bound", "k").values
        for place, k in enumerate(K):
            row = rows[name, k]
            assert row["mean"] == pytest.approx(draws.mean(["chain", "draw"])[place].item())
            assert (row["lower"], row["upper"]) == pytest.approx((lower[place], upper[place]))
            assert row["threshold"] == pytest.approx(rates.threshold.sel(k=k).item())
    table = re.search(r'<table id="rates"[^>]*>(.*?)</table>', text, re.S)[1]
    cells = [float(value) for value in re.findall(r'<data value="([^"]+)"', table)]
    columns = ("mean", "lower", "upper")
    expected = [
        value
        for k in sorted(K)
        for value in (
            k,
            rows["FNIR", k]["threshold"],
            *(rows[rate, k][column] for rate in ("FNIR", "FPIR") for column in columns),
        )
    ]
    assert cells == pytest.approx(expected)
    assert "FPIR at most 0.05 with probability 0.95" in text


@pytest.mark.filterwarnings("ignore::classex_bayes.exceptions.ExtrapolationWarning")
def test_a_number_of_classes_that_no_threshold_serves_leaves_the_others(model, open_set, tmp_path):
    k, limit = [60, 10**9], 1e-6
    missing = np.isnan(open_set.predict(k, fpir=limit).threshold.values)
    assert missing.tolist() == [False, True]
    given = {"references": [], "open_set": open_set, "fpir": limit}
    text = cb.write_report(model, k, tmp_path / "page.html", **given).read_text("utf-8")
    rows = script(text, "numbers")["open_set"]["predictions"]
    assert [row["threshold"] is None for row in rows if row["rate"] == "FPIR"] == [False, True]
    table = re.search(r'<table id="rates"[^>]*>(.*?)</table>', text, re.S)[1]
    assert table.count('<th scope="row"') == 1 and "No threshold keeps" in text


def test_rates_that_did_not_converge_are_a_fault_of_the_page(model, open_set, tmp_path, text):
    unreliable = copy.deepcopy(open_set)
    unreliable.fit_.record = replace(unreliable.fit_.record, pareto_k=0.9)
    (problem,) = unreliable.diagnosis_.problems
    given = {"references": [], "open_set": unreliable, "fpir": 0.05}
    page = cb.write_report(model, K, tmp_path / "page.html", **given).read_text("utf-8")
    assert problem in page and problem not in text
    # Ranks have no thresholds, so the advice is another one than for accuracy.
    assert "random_seed" in unreliable.diagnosis_.remedy
    assert "ranks" not in unreliable.diagnosis_.remedy


def test_the_record_says_what_was_searched(text, open_set):
    record = dict(re.findall(r"<div><dt>([^<]+)</dt><dd>([^<]+)</dd></div>", text))
    n = open_set.task.n_test
    assert record["Mated searches"] == f"{n:,}"
    assert record["Non-mated searches"] == f"{n:,} (the mated probes against other classes)"
    assert record["Length of candidate lists"] == "1"
    assert record["Scores"] == "squared distances: smaller is stricter"
    paragraph = re.search(r'<p id="paragraph">(.*?)</p>', text, re.S)[1]
    assert f"{n:,} mated and {n:,} non-mated searches" in paragraph
    rates = open_set.predict(K, fpir=0.05)
    for k in K:
        mean, threshold = 100 * rates.fnir.sel(k=k).mean().item(), rates.threshold.sel(k=k)
        said = f"With {k:,} enrolled, at the threshold {threshold:.5g}: FNIR {mean:.1f}%"
        assert said in paragraph
    assert "Its expected FPIR is therefore lower than the limit" in text
    assert "stricter than the one at the limit" in text


def test_curves_are_those_of_the_plot(text, open_set, read_chart):
    drawn = read_chart(text, "detection", np.log10, np.log10)
    chart = chart_of(cb.plots.plot_det)(open_set, K, ci_prob=0.8)
    marks = [mark for mark in chart.marks if mark.kind == "line"]
    lines = [drawn[f"enrolled-{number}"]["line"] for number in (1, 2)]
    assert len(marks) == 2
    for line, mark in zip(lines, marks, strict=True):
        np.testing.assert_allclose(line, np.log10([mark.x, mark.y[0]]), atol=2e-3)


def test_what_is_refused(model, open_set, pilot, tmp_path):
    path = tmp_path / "page.html"
    other = cb.OpenSetExtrapolator().fit(
        pilot.task.subsample(30, random_seed=1), sampler={"draws": 20}
    )
    with pytest.raises(DataError, match=r"^open_set: "):
        cb.write_report(model, K, path, open_set=other)
    with pytest.raises(DataError, match="fpir: "):
        cb.write_report(model, K, path, open_set=open_set, fpir=2)
    assert not path.exists()
