"""The first screen of the report: one state, the driving evidence, and caveats."""

import json
import re
import warnings

import numpy as np
import pytest

import classex_bayes as cb
from classex_bayes import KDE, ClassExReg
from classex_bayes.exceptions import ExtrapolationWarning
from classex_bayes.report import page
from classex_bayes.report.findings import findings_of

DRAWS = {"draws": 500, "tune": 400, "chains": 2}


def scores_of(k1, repeats, lead, seed=3):
    """Normal scores, the true class ahead by `lead`, and labels."""
    y = np.repeat(np.arange(k1), repeats)
    scores = np.random.default_rng(seed).normal(size=(y.size, k1))
    scores[np.arange(y.size), y] += lead
    return scores, y


@pytest.fixture(scope="module")
def reports(fit, constants, tmp_path_factory):
    """Text of the report of a task, by the task's name."""
    folder, texts = tmp_path_factory.mktemp("pages"), {}
    scores, y = scores_of(60, 3, 2.5)
    few, few_y = scores_of(8, 4, 3)
    cases = {
        "sound": (cb.SourceTask.from_scores(scores, y), 300),
        "reversed": (cb.SourceTask.from_scores(-scores, y), 300),
        "number of classes": (cb.SourceTask.from_scores(few, few_y), 5000),
    }
    with warnings.catch_warnings(), constants(page, _N_POINTS=15):
        warnings.simplefilter("ignore")
        for name, (task, k) in cases.items():
            model = fit(task, **DRAWS)
            path = cb.write_report(model, k, folder / f"{name}.html", target=0.5)
            texts[name] = path.read_text("utf-8"), model, task, k
    return texts


def first_screen(text):
    """Visible text of the header, on one line."""
    header = re.search(r"<header>(.*?)</header>", text, re.S)[1]
    return " ".join(re.sub("<[^>]+>", " ", header).split())


def script(text, name):
    return json.loads(re.search(rf'id="{name}">(.*?)</script>', text, re.S)[1])


def state(text):
    (found,) = re.findall(r'<p class="state (\w+)">', text)
    return found


def test_the_page_has_one_state_the_worst(reports):
    states = {name: state(text) for name, (text, *_) in reports.items()}
    assert states["reversed"] == "fault" and states["number of classes"] == "caveat"
    wrong = first_screen(reports["reversed"][0])
    assert "Do not rely on this number: the data are probably faulty." in wrong
    assert "the sign of the scores is reversed" in wrong
    few = first_screen(reports["number of classes"][0])
    assert "Read with care" in few and "8 classes are few" in few and "625 times as many" in few
    for text, *_ in reports.values():
        assert "random sample of those to come" in first_screen(text)


def test_a_page_without_a_caveat_says_so(reports):
    text, model, task, _ = reports["sound"]
    notes = [check for check in cb.diagnose(task, random_seed=1) if check.is_note]
    prior = script(text, "numbers")["sensitivity"][0]["diagnosis"]
    clean = not notes and prior in ("data decide", "at the threshold")
    clean &= cb.posterior_checks(model).passed and not model.diagnosis_.problems
    assert (state(text) == "sound") is clean
    assert ("The checks found no fault" in first_screen(text)) is clean


@pytest.mark.filterwarnings("ignore")
def test_what_drives_a_prediction_is_that_of_bounds_and_sensitivity(reports):
    for text, model, task, k in reports.values():
        lower, upper = cb.MomentBounds().fit(task).predict(k).interval().to_numpy()[0]
        stated = re.search(r"ranks of the pilot allow ([\d.]+) to ([\d.]+)%", first_screen(text))
        assert [float(limit) / 100 for limit in stated.groups()] == pytest.approx(
            [lower, upper], abs=1e-3
        )
        expected = cb.sensitivity(model, k).table.loc[k]
        (row,) = script(text, "numbers")["sensitivity"]
        assert row["k"] == k and row["diagnosis"] == expected["diagnosis"]
        for name in ("prior", "likelihood", "prior_share"):
            assert row[name] == pytest.approx(expected[name])
        if row["diagnosis"] == "prior dominates":
            assert "The prior decides more than the data" in first_screen(text)


def test_words_of_statistics_are_folded(reports):
    for text, *_ in reports.values():
        body = text[text.index("<header>") : text.index("<footer>")]
        while "<details" in body:
            body = re.sub(r"<details(?:(?!<details).)*?</details>", "", body, flags=re.S)
        words = r"\bnats\b|Pareto|\bp \d|r_hat|quasi-multinomial|NUTS"
        assert not re.search(words, body) and re.search(words, text)


def test_slider_and_headline_agree(reports):
    for text, _, _, k in reports.values():
        answers, curve = script(text, "answers"), script(text, "numbers")["curve"]
        title = re.search("<title>On (.*?)</title>", text)[1]
        assert answers[[row["k"] for row in curve].index(k)] == title
        readings = {read["series"]: read for read in script(text, "readings")["accuracy"]}
        for answer, read in zip(answers, readings["posterior"]["y"], strict=True):
            mean, span = re.fullmatch(r"(.*) \((.*)\)", read).groups()
            assert f": {mean}, " in answer and answer.endswith(f" {span}")
    assert ": under 0.01%, 90% interval under 0.01%" in reports["reversed"][0]


def test_point_estimates_of_few_classes_are_left_out(reports):
    text, *_ = reports["number of classes"]
    assert (
        'data-series="reference' not in text
        and "Left out: ClassExReg, KDE(ucv), KDE(bcv): 8 classes are few" in text
    )


@pytest.mark.usefixtures("short_pages")
def test_a_distant_k_is_warned_of_once_and_read_with_care(fitted, tmp_path):
    with pytest.warns(ExtrapolationWarning) as caught:
        path = cb.write_report(fitted, 10**6, tmp_path / "a.html", references=[])
    assert len(caught) == 1
    shown = first_screen(path.read_text("utf-8"))
    assert "Read with care" in shown and "the pilot cannot check the model" in shown


def test_estimates_that_the_data_contradict_are_excluded(fitted, pilot):
    estimators, k = [ClassExReg(0.5), KDE("bcv")], [200, 5000]
    findings = findings_of(fitted, estimators, pilot.task, [5000], ci_prob=0.9)
    limits = cb.MomentBounds().fit(pilot.task).predict(k).interval(0.99)
    means = {one.name: one.fit(pilot.task).predict(k).mean for one in estimators}
    outside = {
        name
        for name, mean in means.items()
        if not mean.between(limits["lower"], limits["upper"]).all()
    }
    assert set(findings.excluded) == outside == {"KDE(bcv)"}
    assert [p.estimator for p in findings.shown.predictions[1:]] == ["ClassExReg(0.5)"]
    assert len(findings.curves(5)) == 2


def test_the_sensitivity_is_that_of_the_metric(fitted):
    accuracy, recall = (cb.sensitivity(fitted, 1000, metric=m) for m in ("accuracy", "recall@10"))
    mean = recall.table.loc[1000, "mean"]
    assert mean == pytest.approx(fitted.predict(1000, metric="recall@10").mean[1000])
    lower, upper = recall.prediction.rank_bounds.interval().to_numpy()[0]
    assert lower < mean < upper and mean > accuracy.table.loc[1000, "mean"]
    same = cb.sensitivity(fitted, 1000, metric="recall@1").table.drop(columns="diagnosis")
    expected = accuracy.table.drop(columns="diagnosis")
    np.testing.assert_allclose(same.to_numpy(float), expected.to_numpy(float))
