"""The first screen of the report: one state, what decides, what to doubt."""

import json
import re
import warnings

import numpy as np
import pytest

import classex_bayes as cb
from classex_bayes.estimators.classexreg.classexreg import ClassExReg
from classex_bayes.estimators.kde.kde import KDE
from classex_bayes.exceptions import ExtrapolationWarning
from classex_bayes.report import page_charts
from classex_bayes.report.findings import findings_of

DRAWS = {"draws": 500, "tune": 400, "chains": 2}


def scores_of(k1, repeats, lead, seed=3):
    """Normal scores, the true class ahead by `lead`, and labels."""
    y = np.repeat(np.arange(k1), repeats)
    scores = np.random.default_rng(seed).normal(size=(y.size, k1))
    scores[np.arange(y.size), y] += lead
    return scores, y


@pytest.fixture(scope="module")
def reports(fit, tmp_path_factory):
    """Text of the report of a task, by the task's name."""
    folder, texts = tmp_path_factory.mktemp("pages"), {}
    scores, y = scores_of(60, 3, 2.5)
    few, few_y = scores_of(8, 4, 3)
    cases = {
        "sound": (cb.SourceTask.from_scores(scores, y), 300),
        "reversed": (cb.SourceTask.from_scores(-scores, y), 300),
        "number of classes": (cb.SourceTask.from_scores(few, few_y), 5000),
    }
    with warnings.catch_warnings():
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
    assert states["reversed"] == "fault" and states["number of classes"] == "doubt"
    wrong = first_screen(reports["reversed"][0])
    assert "Do not rely on this number: the data are probably faulty." in wrong
    assert "the sign of the scores is reversed" in wrong
    few = first_screen(reports["number of classes"][0])
    assert "Read with care" in few and "8 classes are few" in few and "625 times as many" in few
    for text, *_ in reports.values():
        assert "random sample of those to come" in first_screen(text)
        assert not re.search('class="good"|verdict good', text)


def test_a_page_without_any_doubt_says_so(reports):
    text, model, task, _ = reports["sound"]
    doubts = [check for check in cb.diagnose(task, random_seed=1) if check.is_note]
    prior = script(text, "numbers")["sensitivity"][0]["diagnosis"]
    clean = not doubts and prior in ("data decide", "at the threshold")
    clean &= cb.posterior_checks(model).passed and not model.diagnosis_.problems
    assert (state(text) == "sound") is clean
    assert ("The checks found no fault" in first_screen(text)) is clean


@pytest.mark.filterwarnings("ignore")
def test_what_decides_is_that_of_bounds_and_sensitivity(reports):
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


def test_checks_are_named_after_what_is_checked(reports):
    for text, *_ in reports.values():
        shown = " ".join(re.sub("<[^>]+>", " ", text[text.index('class="checks"') :]).split())
        assert "Number of classes:" in shown and "Number of errors:" in shown
        assert "Few classes" not in shown and "ok." not in shown[:3000]


def test_words_of_statistics_are_folded(reports):
    for text, *_ in reports.values():
        body = text[text.index("<header>") : text.index("<footer>")]
        while "<details" in body:
            body = re.sub(r"<details(?:(?!<details).)*?</details>", "", body, flags=re.S)
        assert not re.search(r"\bnats\b|Pareto|\bp \d|r-hat|quasi-multinomial|NUTS", body)
        assert re.search(r"nats|r-hat", text)


def test_slider_and_headline_agree(reports):
    for text, _, _, k in reports.values():
        answers, curve = script(text, "answers"), script(text, "numbers")["curve"]
        title = re.search("<title>On (.*?)</title>", text)[1]
        assert answers[[row["k"] for row in curve].index(k)] == title
        readings = {read["series"]: read for read in script(text, "readings")["accuracy"]}
        for answer, read in zip(answers, readings["posterior"]["y"], strict=True):
            mean, span = re.fullmatch(r"(.*) \((.*)\)", read).groups()
            assert f": {mean}, " in answer and answer.endswith(f" {span}")
    assert ": under 0.01%, 89% interval under 0.01%" in reports["reversed"][0]


def test_point_estimates_of_few_classes_are_left_out(reports):
    text, *_ = reports["number of classes"]
    assert (
        'data-series="reference' not in text and "ClassExReg is left out: 8 classes are few" in text
    )


def test_no_estimate_is_drawn_above_1(fit, read_chart, tmp_path):
    """A regression on accuracies is above 1 at two classes."""
    scores, y = scores_of(40, 2, 4, seed=1)
    wrong = np.arange(y.size) % 4 == 0  # lose to one class each, and to no other
    scores[wrong, (y[wrong] + 1) % 40] = 20
    task = cb.SourceTask.from_scores(scores, y)
    reference = ClassExReg(0.5).fit(task)
    assert reference.predict(2).mean[2] > 1.001
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = fit(task, draws=50, tune=200)
        path = cb.write_report(model, 60, tmp_path / "a.html", references=[reference])
    drawn = read_chart(path.read_text("utf-8"), "accuracy")
    if "reference-1" in drawn:
        assert drawn["reference-1"]["line"][1].max() <= 1.0005


@pytest.mark.parametrize(
    ("k", "numbers"), [(10**4, ["10", "1,000"]), (10**9, ["10", "10³", "10⁹"])]
)
@pytest.mark.filterwarnings("ignore")
def test_an_axis_has_one_form_of_numbers(fitted, pilot, k, numbers):
    chart = page_charts.discriminability(findings_of(fitted, [], pilot.task, [k]))
    shown = [text for _, text in chart.x.numbers]
    assert set(numbers) <= set(shown)
    assert not (any("," in number for number in shown) and any("10³" in n for n in shown))


def test_a_distant_k_is_warned_of_once(fitted, tmp_path):
    with pytest.warns(ExtrapolationWarning) as caught:
        cb.write_report(fitted, 10**6, tmp_path / "a.html")
    assert len(caught) == 1


def test_estimates_that_the_data_contradict_are_set_aside(fitted, pilot):
    estimators, k = [ClassExReg(0.5), KDE("bcv")], [200, 5000]
    findings = findings_of(fitted, estimators, pilot.task, [5000], ci_prob=0.9)
    limits = cb.MomentBounds().fit(pilot.task).predict(k).interval(0.99)
    means = {one.name: one.fit(pilot.task).predict(k).mean for one in estimators}
    outside = {
        name
        for name, mean in means.items()
        if not mean.between(limits["lower"], limits["upper"]).all()
    }
    assert set(findings.set_aside) == outside == {"KDE(bcv)"}
    assert [p.estimator for p in findings.shown.predictions[1:]] == ["ClassExReg(0.5)"]
    assert len(findings.curves(5)) == 2


def test_the_sensitivity_of_another_metric(fitted):
    accuracy, recall = (cb.sensitivity(fitted, 1000, metric=m) for m in ("accuracy", "recall@10"))
    assert recall.table.loc[1000, "mean"] == pytest.approx(
        fitted.predict(1000, metric="recall@10").mean[1000]
    )
    assert recall.table.loc[1000, "mean"] > accuracy.table.loc[1000, "mean"]
    lower, upper = recall.bounds.interval().to_numpy()[0]
    assert lower < recall.table.loc[1000, "mean"] < upper
    same = cb.sensitivity(fitted, 1000, metric="recall@1").table.drop(columns="diagnosis")
    np.testing.assert_allclose(
        same.to_numpy(float), accuracy.table.drop(columns="diagnosis").to_numpy(float)
    )


def test_several_pilots_are_refused(fit, pilot, tmp_path):
    parts = [pilot.task.subsample(40, random_seed=seed) for seed in (1, 2)]
    model = cb.BayesianExtrapolator().fit(
        parts, sampler={"draws": 20, "tune": 50}, random_seed=1, progressbar=False
    )
    with pytest.raises(cb.exceptions.DataError, match="model: found a model of 2 tasks"):
        cb.write_report(model, 100, tmp_path / "a.html")
