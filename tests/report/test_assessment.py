"""The first screen of the report: one verdict, the driving evidence, and caveats."""

import re
import warnings

import numpy as np
import pytest
from page_reader import Page

import classex_bayes as cb
from classex_bayes.bayes.checks.sensitivity import BY_ASSUMPTION
from classex_bayes.exceptions import ExtrapolationWarning

DRAWS = {"draws": 500, "tune": 400, "chains": 2}
SOUND, CARE, FAULT = "The checks found no fault", "Read with care", "Do not rely on this number"


def scores_of(k1, repeats, lead, seed=3):
    """Normal scores, the true class ahead by `lead`, and labels."""
    y = np.repeat(np.arange(k1), repeats)
    scores = np.random.default_rng(seed).normal(size=(y.size, k1))
    scores[np.arange(y.size), y] += lead
    return scores, y


@pytest.fixture(scope="module")
def reports(fit, tmp_path_factory):
    """Page, model, task and k by the name of a case."""
    folder, pages = tmp_path_factory.mktemp("pages"), {}
    scores, y = scores_of(60, 3, 2.5)
    few, few_y = scores_of(8, 4, 3)
    cases = {
        "sound": (cb.SourceTask.from_scores(scores, y), 300),
        "reversed": (cb.SourceTask.from_scores(-scores, y), 300),
        "few classes": (cb.SourceTask.from_scores(few, few_y), 5000),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, (task, k) in cases.items():
            model = fit(task, **DRAWS)
            path = cb.write_report(model, k, folder / f"{name}.html", target=0.5)
            pages[name] = Page(path), model, task, k
    return pages


def test_the_page_has_one_verdict_the_worst(reports):
    for page, *_ in reports.values():
        assert sum(verdict in page.unfolded for verdict in (SOUND, CARE, FAULT)) == 1
        assert "random sample of those to come" in page.unfolded
    wrong, few = reports["reversed"][0].unfolded, reports["few classes"][0].unfolded
    assert FAULT in wrong and "sign of the scores is reversed" in wrong
    assert CARE in few and "8 classes are few" in few and "625 times as many" in few


def test_a_page_without_a_caveat_says_so(reports):
    page, model, task, _ = reports["sound"]
    notes = [check for check in cb.diagnose(task, random_seed=1) if check.is_note]
    prior = page.numbers["sensitivity"][0]["diagnosis"]
    clean = not notes and prior in ("data decide", *BY_ASSUMPTION, "at the threshold")
    clean &= cb.posterior_checks(model).passed and not model.diagnosis_.problems
    assert (SOUND in page.unfolded) is clean


@pytest.mark.filterwarnings("ignore")
def test_what_drives_a_prediction_is_that_of_bounds_and_sensitivity(reports):
    for page, model, task, k in reports.values():
        expected = cb.MomentBounds().fit(task).predict(k).interval().to_numpy()[0]
        stated = re.search(r"allow ([\d.]+) to ([\d.]+)%", page.unfolded)
        limits = [float(limit) / 100 for limit in stated.groups()]
        assert limits == pytest.approx(expected, abs=1e-3)
        expected = cb.sensitivity(model, k).table.loc[k]
        (row,) = page.numbers["sensitivity"]
        assert row["k"] == k and row["diagnosis"] == expected["diagnosis"]
        named = f"{row['diagnosis'].capitalize()} at k = {k:,}: "
        assert page.text.count(row["diagnosis"].capitalize()) == page.text.count(named) == 1
        for name in ("prior", "likelihood", "prior_share"):
            assert row[name] == pytest.approx(expected[name])
        if row["diagnosis"] == "prior dominates":
            assert "The prior decides more than the data" in page.unfolded


def test_words_of_statistics_are_folded(reports):
    words = r"\bnats\b|Pareto|\bp \d|r_hat|quasi-multinomial|NUTS"
    for page, *_ in reports.values():
        assert not re.search(words, page.unfolded) and re.search(words, page.text)


@pytest.mark.usefixtures("short_pages")
def test_a_distant_k_is_warned_of_once_and_read_with_care(fitted, tmp_path):
    with pytest.warns(ExtrapolationWarning) as caught:
        path = cb.write_report(fitted, 10**6, tmp_path / "a.html", references=[])
    assert len(caught) == 1
    assert CARE in Page(path).unfolded


def test_the_sensitivity_is_that_of_the_metric(fitted):
    accuracy, recall = (cb.sensitivity(fitted, 1000, metric=m) for m in ("accuracy", "recall@10"))
    mean = recall.table.loc[1000, "mean"]
    assert mean == pytest.approx(fitted.predict(1000, metric="recall@10").mean[1000])
    lower, upper = recall.prediction.rank_bounds.interval().to_numpy()[0]
    assert lower < mean < upper and mean > accuracy.table.loc[1000, "mean"]
    same = cb.sensitivity(fitted, 1000, metric="recall@1").table.drop(columns="diagnosis")
    expected = accuracy.table.drop(columns="diagnosis")
    np.testing.assert_allclose(same.to_numpy(float), expected.to_numpy(float))
