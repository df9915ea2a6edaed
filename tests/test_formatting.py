"""How results show themselves: folded, escaped, short, without colours."""

import re

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

from classex_bayes import (
    KDE,
    BayesianExtrapolator,
    ClassExReg,
    Extrapolation,
    MixturePrior,
    Sampling,
    SourceTask,
    TailPrior,
    diagnose,
    load_glyphs,
)
from classex_bayes.bayes.convergence import Diagnosis
from classex_bayes.formatting import (
    DECIMALS,
    PERCENTAGES,
    RATES,
    Display,
    brief,
    call,
    html_facts,
    percent,
    with_error,
)
from classex_bayes.results import ClassesUntil
from classex_bayes.simulate import GaussianNearestNeighbor
from studies.laws import FavorabilityLaw

HOSTILE = "<img src=x onerror=alert(1)> & co"
TABLE = pd.DataFrame({"a": [0.123456, np.nan], HOSTILE: ["x", HOSTILE]}, pd.Index([1, 2], name="k"))


def test_what_holds_arrays_is_shown_in_a_line():
    glyphs, ranks = load_glyphs(), FavorabilityLaw((0.0,), (1.0,)).sample(300, random_seed=1)
    embedded = GaussianNearestNeighbor().sample(300, random_seed=1)
    task = SourceTask.from_embeddings(*embedded)
    for shown, arrays in (
        (glyphs, ["probes=<ndarray 8895 x 48>", "gallery=<ndarray 2965 x 48>"]),
        (embedded, ["probes=<ndarray 300 x 10>", "y=<ndarray 300>"]),
        (ranks, ["ranks=<ndarray 300>", "n_classes=300"]),
        (Sampling(groups=np.arange(300) // 2), ["groups=<ndarray 300>"]),
        (Sampling(groups=dict.fromkeys(range(300), 1)), ["groups={0: 1, 1: 1"]),
        (task.nearest_classes, ["classes=<ndarray 300 x 32>", "true=<ndarray 300>"]),
        (task.table, ["y=<ndarray 300>", "n_classes=300"]),
        (SourceTask.from_scores(np.eye(300), range(300)).scores, ["matrix=<ndarray 300 x 300>"]),
        (diagnose(task).class_errors, ["missed=<ndarray 300>"]),
    ):
        text = repr(shown)
        assert text.startswith(f"{type(shown).__name__}(") and all(a in text for a in arrays)
        assert len(text) < 700 and "\n" not in text and text == str(shown)
    # Settings at their defaults are left out.
    assert repr(Sampling()) == "Sampling()"


def test_text_and_html_say_the_same():
    shown = Display("header", TABLE, ("first note",), decimals=2)
    for said in (shown.text(), shown.html()):
        assert said.index("header") < said.index("0.12") < said.index("first note")
        assert "0.123" not in said and "nan" not in said.lower()
    assert len(shown.text().splitlines()) == 5


def test_long_words_are_folded():
    wide = pd.DataFrame({f"column {j}": [0.5] for j in range(30)})
    lines = Display("word " * 50, wide, ("note " * 50,)).text().splitlines()
    assert max(map(len, lines)) <= 100
    assert sum(line.count("column") for line in lines) == 30


def test_html_is_escaped_and_has_no_colours():
    for html in (Display(HOSTILE, TABLE, (HOSTILE,)).html(), html_facts({HOSTILE: HOSTILE})):
        assert "<img" not in html and "&lt;img" in html
        assert not re.search(
            r"(?<!current)color(?!:inherit)|#[0-9a-f]{3}|rgb|white|black", html, re.IGNORECASE
        )


@given(st.floats(0, 1), st.floats(1e-9, 1))
def test_errors_have_two_digits(value, error):
    shown = re.fullmatch(r"([\d.]+) \(se ([\d.]+)\)", with_error(value, error))
    assert float(shown[2]) == pytest.approx(error, rel=0.051)
    assert abs(float(shown[1]) - value) <= 0.06 * error
    assert len(shown[1].partition(".")[2]) == len(shown[2].partition(".")[2])


@given(st.floats(0, 1), st.integers(0, 3))
def test_percent_never_claims_certainty(share, digits):
    text = percent(share, digits)
    number = float(text.removesuffix("%").removeprefix("over ").removeprefix("under "))
    if text.startswith(("over", "under")):
        assert share < number / 100 if text.startswith("under") else share > number / 100
        assert min(number, 100 - number) == pytest.approx(10.0 ** -max(digits, 2))
    else:
        assert number == pytest.approx(100 * share, abs=0.5 * 10.0**-digits)
        assert (number == 100) == (share == 1) and (number == 0) == (share == 0)


@given(st.lists(st.floats(0, 1), min_size=3, max_size=3))
def test_a_mean_and_its_limits_agree(values):
    lower, mean, upper = sorted(values)
    for numerals in (PERCENTAGES, RATES, DECIMALS):
        shown = numerals.estimate(mean, lower, upper)
        texts = [shown.lower, shown.mean, shown.upper]
        scale = 100 if numerals.in_percent else 1
        numbers = [float(re.sub("[^0-9.]", "", text)) / scale for text in texts]
        assert numbers == sorted(numbers)
        for value, text, number in zip((lower, mean, upper), texts, numbers, strict=True):
            if text.startswith(("under", "<")):
                assert 0 < value < number
            elif text.startswith(("over", ">")):
                assert number < value < 1
            else:  # never rounded to an end
                assert (number == 0) == (value == 0) and (number == 1) == (value == 1)
        # All have the same decimals; exact ends need none.
        places = {len(text.partition(".")[2].rstrip("%")) for text in texts} - {0}
        assert len(places) <= 1 and max(places, default=0) <= numerals.most
        first = shown.lower.removesuffix("%") if shown.lower[0].isdigit() else shown.lower
        assert shown.span in (shown.upper, f"{first} to {shown.upper}")


def test_limits_below_a_skewed_mean_are_shown_as_they_are():
    shown = RATES.estimate(0.000005, 1e-12, 1e-7)
    assert (shown.mean, shown.span) == ("0.0005%", "under 0.0001%")
    assert DECIMALS.estimate(0.000005, 1e-9, 1e-7).span == "<0.000001"
    assert DECIMALS.estimate(0.02, 1e-3, 0.004).span == "0.0010 to 0.0040"


# What users print


def test_counts_are_written_out():
    index = pd.MultiIndex.from_product([["a"], [10, 2000]], names=["estimator", "k"])
    table = pd.DataFrame({"mean": [0.9, 0.8]}, index)
    for shown in (Display("", table), Display("", table.droplevel(0))):
        assert "2,000" in shown.text() and "2,000</th>" in shown.html()
    assert index.levels[1].tolist() == [10, 2000] == table.index.get_level_values(1).tolist()
    pred = Extrapolation.from_point([2000], [0.5], "point", n_classes=1000)
    assert repr(pred).startswith("point: expected accuracy, from 1,000 source classes")
    assert "2,000" in repr(pred) and pred.summary().index.tolist() == [2000]


def test_how_many_classes_until():
    draws = xr.DataArray([[900.0, 1100.0, 2000.0]], dims=("chain", "draw"))
    html = ClassesUntil(0.8, draws, 10**12, 10**10)._repr_html_()
    for said in ("accuracy falls to 80% at 1,100 classes", "90% credible interval: 900 to 2,000"):
        assert said in html


def test_fitted_estimators_say_so():
    task = SourceTask.from_ranks([1, 1, 1, 2], [0, 1, 2, 3], n_classes=4)
    estimator = ClassExReg(0.5)
    assert repr(estimator) == "ClassExReg(bandwidth=0.5)"
    assert repr(estimator.fit(task)) == "ClassExReg(bandwidth=0.5) (fitted)"


def test_only_what_was_changed_is_shown():
    assert repr(MixturePrior()) == "MixturePrior()"
    assert repr(MixturePrior(tail=1, scale=1)) == "MixturePrior(scale=1.0, tail=1.0)"
    prior = MixturePrior(deviation=0)
    # Printed, a prior shows all its numbers.
    assert eval(str(prior)) == prior and str(prior).count("=") == len(vars(prior))
    assert eval(str(TailPrior())) == TailPrior() and "slope_sd=0.25" in str(TailPrior())
    assert repr(BayesianExtrapolator(prior)) == f"BayesianExtrapolator(prior={prior!r})"
    assert repr(ClassExReg()) == "ClassExReg()"
    assert eval(repr(KDE("bcv"))).get_params() == KDE("bcv").get_params()


def test_values_are_brief():
    assert brief(np.eye(3)) == "<ndarray 3 x 3>" and brief("text") == "'text'"
    assert brief(list(range(1000))).endswith("...") and len(brief(list(range(1000)))) == 60
    array = np.arange(3)
    assert call("A", {"x": array, "y": 1}, {"x": None, "y": 1}) == "A(x=<ndarray 3>)"
    assert call("A", {"x": array}, {"x": array}) == "A()"


def test_task():
    ranks, y = np.repeat([1, 4], [60, 40]), np.arange(100) // 5 % 20
    task = SourceTask.from_ranks(ranks, y, n_classes=20)
    error = np.sqrt(task.accuracy_cov(20).item())
    assert f"accuracy 0.60 (se {error:.2f})>" in repr(task)
    html = task._repr_html_()
    for fact in ("20", "100", "ranks", f"0.60 (se {error:.2f})", f"{task.design_effect():.3g}"):
        assert f">{fact}</td>" in html
    large = SourceTask.from_ranks([1, 2] * 100_000, range(200_000), n_classes=200_000)
    assert "200,000 classes" in repr(large) and max(map(len, repr(large).splitlines())) <= 100


def test_diagnosis_says_what_is_known():
    assert repr(Diagnosis(1.0012, 812.3, 640.0, 0, (), "")) == (
        "converged (of predictions: r_hat 1.001, bulk ess 812, tail ess 640, divergent 0)"
    )
    unknown = Diagnosis(np.nan, np.nan, np.nan, 2, ("too few", "one chain"), "draw more")
    assert repr(unknown) == "not converged: too few; one chain (of predictions: divergent 2)"
