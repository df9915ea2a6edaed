"""Checks of a task: silent on sound tasks, loud on built defects, exact by formula."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import classex_bayes as cb
from classex_bayes import SourceTask, diagnose
from classex_bayes.assumptions import TaskReport, score_facts
from classex_bayes.assumptions.score_facts import (
    ScoreFacts,
)
from classex_bayes.simulate import GaussianNearestNeighbor
from classex_bayes.task import Check
from classex_bayes.task.data_checks import participation
from classex_bayes.task.task_statistics import notes_of
from studies.laws import HierarchicalNormal, UniformSphere

LAW = GaussianNearestNeighbor(dim=10, noise_variance=0.2)
OF_SCORES = {
    "ties",
    "concentration of errors",
    "copies of instances",
    "copies of classes",
    "groups of classes",
    "order of classes",
    "normalisation of scores",
}


def scores_of(n_classes, repeats=1, seed=0):
    probes, gallery, y = LAW.sample(n_classes, repeats=repeats, random_seed=seed)
    return -((probes[:, None] - gallery) ** 2).sum(axis=2), y


def check_of(name, scores, y, **options):
    return diagnose(SourceTask.from_scores(scores, y, **options), random_seed=0)[name]


@pytest.mark.parametrize("n_classes", [20, 100, 400])
def test_sound_tasks_pass(n_classes):
    for seed, repeats in enumerate((1, 3)):
        near = SourceTask.from_embeddings(*LAW.sample(n_classes, repeats=repeats, random_seed=seed))
        sample = UniformSphere(16, 0.01).sample(n_classes, repeats=repeats, random_seed=seed)
        for task in (near, SourceTask.from_embeddings(*sample, distance="cosine")):
            assert diagnose(task, random_seed=seed).warnings == ()


def test_same_seed_same_report():
    task = SourceTask.from_scores(*scores_of(60))
    reports = [diagnose(task, random_seed=3) for _ in range(2)]
    assert repr(reports[0]) == repr(reports[1])


# Built defects: a check, scores and labels, and how it answers


def with_copies_of_instances(copies, rounded=False):
    scores, y = scores_of(100, 2, 1)
    twice = np.concatenate([np.arange(200), np.arange(copies)])
    return scores[twice].round() if rounded else scores[twice], y[twice]


def with_copies_of_classes(copies):
    scores = np.random.default_rng(0).normal(size=(200, 200))
    scores[:, :copies] = scores[:, 100 : 100 + copies]
    return scores, np.arange(200)


def with_few_classes(scale, decimals):
    # Real numbers of 5 classes are no less distinctive, whole ones are.
    y = np.arange(60) % 5
    scores = np.random.default_rng(1).normal(size=(60, 5)) + 2 * np.eye(5)[y]
    scores[:12] = scores[20:32]
    return (scale * scores).round(decimals), y


def with_hubs(lead):
    scores, y = scores_of(100, 3, seed=4)
    scores[:, :5] += lead
    return scores, y


def with_ruled_out_class():
    scores, y = scores_of(60, 2)
    scores[5, (y[5] + 1) % 60] = -np.inf
    return scores, y


def decided():
    scores, y = scores_of(60)
    return 1.0 * (scores == scores.max(axis=1, keepdims=True)), y


def softmax(log):
    scores, y = scores_of(30)
    share = np.exp(scores - scores.max(axis=1, keepdims=True))
    share /= share.sum(axis=1, keepdims=True)
    return np.log(share) if log else share, y


def standardised(scale, shift, decimals):
    """Scaling by one number keeps moments equal; rounding to 5 decimals hardly moves them."""
    scores, y = scores_of(30)
    rows = scores - scores.mean(axis=1, keepdims=True)
    return (scale * rows / rows.std(axis=1, keepdims=True) + shift).round(decimals), y


def centred():
    scores, y = scores_of(30)
    return scores - scores.mean(axis=1, keepdims=True), y


DEFECTS = [
    ("scores that rank the classes", decided(), "WARNING", "two different values"),
    ("accuracy on few classes", (-scores_of(40)[0], scores_of(40)[1]), "WARNING", "reversed"),
    ("copies of instances", with_copies_of_instances(2), "ok", "2 of 202"),
    ("copies of instances", with_copies_of_instances(3), "WARNING", "3 of 203"),
    ("copies of instances", with_few_classes(1, 12), "WARNING", "12 of 60"),
    ("copies of instances", with_few_classes(9, 0), "not checked", "few different scores"),
    (
        "copies of instances",
        (np.eye(20)[np.arange(40) % 20], np.arange(40) % 20),
        "not checked",
        "",
    ),
    ("copies of classes", with_copies_of_classes(1), "ok", "1 of 200"),
    ("copies of classes", with_copies_of_classes(2), "WARNING", "merge classes"),
    ("concentration of errors", with_hubs(8.0), "WARNING", "effective number"),
    ("concentration of errors", with_hubs(0.0), "ok", ""),
    ("copies of instances", with_ruled_out_class(), "ok", "0 of 120"),
    ("copies of classes", with_ruled_out_class(), "ok", "0 of 60"),
    ("normalisation of scores", softmax(False), "note", "rows are probabilities"),
    ("normalisation of scores", softmax(True), "note", "log probabilities"),
    ("normalisation of scores", standardised(1, 0, 12), "note", "z-norm"),
    ("normalisation of scores", standardised(0.5, 3, 5), "note", "z-norm"),
    ("normalisation of scores", centred(), "ok", "not probabilities"),
]


@pytest.mark.parametrize(("name", "data", "word", "words"), DEFECTS)
def test_defects_are_named(name, data, word, words):
    check = check_of(name, *data)
    assert check.verdict.startswith(f"{word}: ") and words in check.sentence
    assert word != "not checked" or np.isnan(check.value)


def test_copies_among_embeddings_are_named():
    probes, gallery, y = LAW.sample(100, repeats=2, random_seed=2)
    gallery[70] = gallery[30]
    probes, y = np.vstack([probes, probes[:3]]), np.append(y, y[:3])
    names = [f"class {j}" for j in range(100)]
    task = SourceTask.from_embeddings(probes, gallery, [names[j] for j in y], classes=names)
    report = diagnose(task)
    assert "'class 30' and 'class 70'" in report["copies of classes"].sentence
    assert report["copies of instances"].value == pytest.approx(3 / 203)
    assert {"copies of classes", "copies of instances"} <= {c.name for c in report.warnings}


def test_ties_of_copies_are_no_matter_of_digits_first():
    probes, gallery, y = LAW.sample(60, repeats=3, random_seed=2)
    gallery[:12] = gallery[12:24]
    task = SourceTask.from_embeddings(probes, gallery, y)
    (warning,) = task.warnings
    merge, digits = warning.index("Merge classes that are copies"), warning.index("more digits")
    assert merge < digits and diagnose(task)["copies of classes"].passed is False


def test_many_confusions_are_thinned_to_those_among_some_classes(constants):
    task = SourceTask.from_scores(*scores_of(100, 4))
    whole = ScoreFacts(task.table, np.random.default_rng(1))
    with constants(score_facts, _MOST_EDGES=40):
        some = ScoreFacts(task.table, np.random.default_rng(1))
    assert 0 < len(some.edges) < len(whole.edges) / 2
    assert {tuple(edge) for edge in some.edges} <= {tuple(edge) for edge in whole.edges}


@pytest.mark.parametrize("seed", range(3))
def test_groups(seed):
    law = HierarchicalNormal(5, class_variance=0.1, noise_variance=0.05)
    task = SourceTask.from_embeddings(*law.sample(200, repeats=2, random_seed=seed))
    check = diagnose(task, random_seed=seed)["groups of classes"]
    # Pieces are the five groups, of sizes that vary about equal ones.
    assert check.passed is False and 0.19 < check.value < 0.3


def test_sorted_names_explain_why_neighbours_are_confused():
    rng = np.random.default_rng(1)
    y = np.repeat(np.arange(60), 3)
    place = np.arange(60) + 0.5 * rng.normal(size=60)
    scores = -np.abs(place[y][:, None] + rng.normal(size=(180, 1)) - place)
    names = [f"class {j:02d}" for j in range(60)]
    for classes, is_note in ((None, True), (names[::-1], True), (names, False)):
        check = check_of("order of classes", scores, y, classes=classes)
        assert check.is_note is is_note and ("alphabetical" in check.sentence) is not is_note


def test_ties():
    scores, y = scores_of(30)
    rounded = np.round(scores / 4)
    task = SourceTask.from_scores(rounded, y, random_seed=1)
    check, true = diagnose(task)["ties"], rounded[np.arange(y.size), y]
    above = (rounded > true[:, None]).sum(axis=1)
    tied = (rounded == true[:, None]).sum(axis=1) - 1
    moved = np.mean(above == 0) - np.mean(above + tied == 0)
    standard_error = task.accuracy_cov(task.grid())[-1, -1] ** 0.5
    assert check.passed is False
    assert check.value >= moved / standard_error * (1 - 1e-9) > check.limit


def test_tasks_without_scores_or_ranks():
    task = SourceTask.from_scores(*scores_of(50, 2))
    report = diagnose(SourceTask.from_ranks(task.ranks, task.y, n_classes=50))
    assert {check.name for check in report if check.passed is None} == OF_SCORES
    assert report["number of errors"].value == diagnose(task)["number of errors"].value
    curve = SourceTask.from_accuracies([2, 10, 50], [0.99, 0.95, 0.85], n_test=100, n_classes=50)
    report, unknown = diagnose(curve), OF_SCORES | {"number of errors", "reach of the ranks"}
    assert {check.name for check in report if check.passed is None} == unknown
    assert report.class_errors is None
    low = SourceTask.from_accuracies([50], [0.01], n_test=100, n_classes=50)
    assert [check.name for check in diagnose(low).warnings] == ["accuracy on few classes"]


def test_few_classes_and_few_errors():
    task = SourceTask.from_ranks([1, 2, 1, 3] * 5, np.arange(20) % 4, n_classes=4)
    report = diagnose(task)
    notes = {check.name for check in report if check.is_note}
    assert notes == {"number of classes", "number of errors", "reach of the ranks"}
    assert report.passed and not task.warnings, "small pilots have no fault"
    assert set(notes_of([task])) >= {report["number of errors"].sentence}
    assert "until 10 or more are wrong" in report["number of errors"].sentence
    many = SourceTask.from_ranks(np.arange(5000) % 3 + 1, np.arange(5000) % 500, n_classes=500)
    assert diagnose(many)["number of classes"].passed


# Formulas


@pytest.mark.parametrize("repeats", [1, 3])
def test_influences_are_those_of_deletion(repeats):
    y = np.repeat(np.arange(12), repeats)
    scores = np.random.default_rng(5).normal(size=(y.size, 12)) + 2 * np.eye(12)[y]
    task = SourceTask.from_scores(scores, y)
    without = [task.select(np.delete(np.arange(12), j)).accuracy(11)[0] for j in range(12)]
    squares = (np.mean(without) - without) ** 2
    errors = diagnose(task, random_seed=0).class_errors
    assert_allclose(errors.influence, squares / squares.sum(), atol=1e-12)
    # Every instance that a class beats counts for the class.
    defeats = (scores > scores[np.arange(y.size), y][:, None]).mean(axis=0)
    assert_allclose(errors.beaten, defeats, atol=1e-12)


@pytest.mark.parametrize(("n_classes", "is_note"), [(30, True), (400, False)])
def test_reach_is_that_of_the_bounds(n_classes, is_note):
    ranks = np.where(np.arange(n_classes) % 3, 1, np.arange(n_classes) % 5 + 1)
    task = SourceTask.from_ranks(ranks, np.arange(n_classes), n_classes=n_classes)
    check = diagnose(task)["reach of the ranks"]
    assert check.value == cb.MomentBounds().fit(task).reach()
    assert check.passed and check.is_note is is_note
    assert (check.value < n_classes) is is_note


@given(squares=st.lists(st.floats(0.1, 10), min_size=1, max_size=20), zeros=st.integers(0, 5))
def test_participation(squares, zeros):
    values, n = np.array(squares + [0.0] * zeros), len(squares)
    assert 1 - 1e-12 <= participation(values) <= n * (1 + 1e-12)
    assert participation(np.array([3.0] * n + [0.0] * zeros)) == pytest.approx(n)


def test_the_text_of_a_report():
    report = TaskReport(
        (
            Check("a<b", False, "x & y", 1.0, 2.0),
            Check("c", None, "unknown"),
            Check("d", True, "few", is_note=True),
        ),
        "title",
    )
    assert repr(report).splitlines() == [
        "title: 1 warning, 1 note",
        "WARNING      a<b: x & y",
        "not checked  c: unknown",
        "note         d: few",
    ]
    assert "a&lt;b" in report._repr_html_() and "x &amp; y" in report._repr_html_()
    assert not report.passed and report.table.loc["c", "passed"] is None
    assert list(report.table.columns) == ["passed", "value", "limit", "sentence"]
    with pytest.raises(cb.DataError, match=r"^name"):
        report["e"]
