"""Checks of a task: silent on sound tasks, loud on built defects, exact by formula."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.stats import t as student
from trained_classifiers import GaussianClasses, qda_scores

from classex_bayes.assumptions import score_facts
from classex_bayes.assumptions.confusion_graph import exchange_ends, linked_share, mean_degree
from classex_bayes.assumptions.diagnosis import diagnose
from classex_bayes.assumptions.marginality import check_marginality
from classex_bayes.assumptions.score_facts import facts_of_scores
from classex_bayes.assumptions.task_report import TaskReport
from classex_bayes.estimators.moment_bounds import MomentBounds
from classex_bayes.exceptions import DataError
from classex_bayes.simulate import GaussianNearestNeighbor, HierarchicalNormal, UniformSphere
from classex_bayes.task.check import Check
from classex_bayes.task.data_checks import notes_of, participation
from classex_bayes.task.source_task import SourceTask

LAW = GaussianNearestNeighbor(dim=10, noise_variance=0.2)
SHAPES = (
    "copies of instances",
    "copies of classes",
    "concentration of errors",
    "groups of classes",
)


def scores_of(n_classes, repeats=1, seed=0):
    probes, gallery, y = LAW.sample(n_classes, repeats=repeats, random_seed=seed)
    return -((probes[:, None] - gallery) ** 2).sum(axis=2), y


@pytest.mark.parametrize("n_classes", [20, 100, 400])
def test_sound_tasks_pass(n_classes):
    for seed, repeats in enumerate((1, 3)):
        near = SourceTask.from_embeddings(*LAW.sample(n_classes, repeats=repeats, random_seed=seed))
        sample = UniformSphere(16, 0.01).sample(n_classes, repeats=repeats, random_seed=seed)
        for task in (near, SourceTask.from_embeddings(*sample, distance="cosine")):
            report = diagnose(task, random_seed=seed)
            names = {check.name for check in report.warnings}
            assert not names


def test_same_seed_same_report():
    task = SourceTask.from_scores(*scores_of(60))
    reports = [diagnose(task, random_seed=3) for _ in range(2)]
    assert repr(reports[0]) == repr(reports[1])


# Defects


def test_decisions_are_named():
    scores, y = scores_of(60)
    task = SourceTask.from_scores(1.0 * (scores == scores.max(axis=1, keepdims=True)), y)
    assert "two different values" in diagnose(task)["scores that rank the classes"].sentence
    assert "scores that rank the classes" not in failed(SourceTask.from_scores(scores, y))


def failed(task):
    return {check.name for check in diagnose(task, random_seed=0).warnings}


@pytest.mark.parametrize("kind", ["scores", "embeddings"])
def test_duplicated_instances(kind):
    probes, gallery, y = LAW.sample(100, repeats=2, random_seed=1)
    scores, _ = scores_of(100, 2, 1)
    for copies, expected in ((2, set()), (3, {"copies of instances"})):
        twice = np.concatenate([np.arange(200), np.arange(copies)])
        if kind == "scores":
            task = SourceTask.from_scores(scores[twice], y[twice])
        else:
            task = SourceTask.from_embeddings(probes[twice], gallery, y[twice])
        check = diagnose(task)["copies of instances"]
        assert check.value == pytest.approx(copies / (200 + copies))
        assert ({check.name} if check.passed is False else set()) == expected


def test_many_confusions_are_thinned_to_those_among_some_classes(constants):
    task = SourceTask.from_scores(*scores_of(100, 4))
    whole = facts_of_scores(task.table, np.random.default_rng(1))
    with constants(score_facts, _MOST_EDGES=40):
        some = facts_of_scores(task.table, np.random.default_rng(1))
    assert len(some.edges) < len(whole.edges) / 2
    pairs = {tuple(edge) for edge in whole.edges}
    assert some.edges.size and {tuple(edge) for edge in some.edges} <= pairs


def test_copies_among_few_classes():
    # Real numbers of 5 classes are no less distinctive, whole ones are.
    scores = np.random.default_rng(1).normal(size=(60, 5)) + 2 * np.eye(5)[np.arange(60) % 5]
    scores[:12] = scores[20:32]
    check = diagnose(SourceTask.from_scores(scores, np.arange(60) % 5))["copies of instances"]
    assert check.value == pytest.approx(12 / 60) and check.passed is False
    coarse = diagnose(SourceTask.from_scores((9 * scores).round(), np.arange(60) % 5))
    assert coarse["copies of instances"].passed is None


def test_saturated_rows_are_not_called_copies():
    y = np.arange(40) % 20
    check = diagnose(SourceTask.from_scores(np.eye(20)[y], y))["copies of instances"]
    assert check.passed is None
    assert np.isnan(check.value)


def test_identical_classes_are_named():
    probes, gallery, y = LAW.sample(100, repeats=2, random_seed=2)
    gallery[70] = gallery[30]
    names = [f"class {j}" for j in range(100)]
    task = SourceTask.from_embeddings(probes, gallery, [names[j] for j in y], classes=names)
    check = diagnose(task)["copies of classes"]
    assert check.passed is False
    assert "'class 30' and 'class 70'" in check.sentence


def test_ties_of_copies_are_no_matter_of_digits_first():
    probes, gallery, y = LAW.sample(60, repeats=3, random_seed=2)
    gallery[:12] = gallery[12:24]
    task = SourceTask.from_embeddings(probes, gallery, y)
    (warning,) = task.warnings
    merge, digits = warning.index("Merge classes that are copies"), warning.index("more digits")
    assert merge < digits and diagnose(task)["copies of classes"].passed is False


@pytest.mark.parametrize(("copies", "passed"), [(1, True), (2, False)])
def test_half_a_percent_of_duplicated_classes_is_allowed(copies, passed):
    scores = np.random.default_rng(0).normal(size=(200, 200))
    scores[:, :copies] = scores[:, 100 : 100 + copies]
    check = diagnose(SourceTask.from_scores(scores, np.arange(200)))["copies of classes"]
    assert check.value == copies / 200 and check.passed is passed


def test_a_ruled_out_class_is_no_trouble():
    scores, y = scores_of(60, 2)
    scores[5, (y[5] + 1) % 60] = -np.inf
    assert not set(SHAPES) & failed(SourceTask.from_scores(scores, y))


def test_hubs():
    scores, y = scores_of(100, 3, seed=4)
    scores[:, :5] += 8.0
    report = diagnose(SourceTask.from_scores(scores, y), random_seed=0)
    assert report["concentration of errors"].passed is False
    assert set(np.argsort(report.class_errors.beaten)[-5:]) == set(range(5))


def test_reversed_sign():
    scores, y = scores_of(40)
    assert "accuracy on few classes" in failed(SourceTask.from_scores(-scores, y))


@pytest.mark.parametrize("seed", range(3))
def test_groups(seed):
    law = HierarchicalNormal(5, class_variance=0.1, noise_variance=0.05)
    task = SourceTask.from_embeddings(*law.sample(200, repeats=2, random_seed=seed))
    check = diagnose(task, random_seed=seed)["groups of classes"]
    assert check.passed is False
    # Pieces are the five groups, of sizes that vary about equal ones.
    assert 0.19 < check.value < 0.3


def test_ties():
    scores, y = scores_of(30)
    task = SourceTask.from_scores(np.round(scores / 4), y, random_seed=1)
    check = diagnose(task)["ties"]
    assert check.passed is False
    others = np.round(scores / 4)
    true = others[np.arange(y.size), y]
    above = (others > true[:, None]).sum(axis=1)
    tied = (others == true[:, None]).sum(axis=1) - 1
    moved = np.mean(above == 0) - np.mean(above + tied == 0)
    standard_error = task.accuracy_cov(task.grid())[-1, -1] ** 0.5
    assert check.value >= moved / standard_error * (1 - 1e-9) > check.limit


@pytest.mark.parametrize("log", [False, True])
def test_probabilities_bring_a_note(log):
    scores, y = scores_of(30)
    share = np.exp(scores - scores.max(axis=1, keepdims=True))
    share /= share.sum(axis=1, keepdims=True)
    task = SourceTask.from_scores(np.log(share) if log else share, y)
    check = diagnose(task)["normalisation of scores"]
    assert check.passed
    assert check.value == 1
    assert ("log probabilities" in check.sentence) is log
    assert diagnose(SourceTask.from_scores(scores, y))["normalisation of scores"].value == 0


def test_standardised_rows_bring_a_note():
    scores, y = scores_of(30)
    standardised = (scores - scores.mean(axis=1, keepdims=True)) / scores.std(axis=1, keepdims=True)
    # Scaling by one number keeps the moments equal; rounding to 4 decimals hardly moves them.
    for values in (standardised, (7 * standardised + 3).round(4)):
        check = diagnose(SourceTask.from_scores(values, y))["normalisation of scores"]
        assert check.is_note and "z-norm" in check.sentence
    centred = scores - scores.mean(axis=1, keepdims=True)
    assert not diagnose(SourceTask.from_scores(centred, y))["normalisation of scores"].is_note


# What cannot be checked


def test_sorted_names_explain_why_neighbours_are_confused():
    rng = np.random.default_rng(1)
    y = np.repeat(np.arange(60), 3)
    place = np.arange(60) + 0.5 * rng.normal(size=60)
    scores = -np.abs(place[y][:, None] + rng.normal(size=(180, 1)) - place)
    names = [f"class {j:02d}" for j in range(60)]
    for classes, is_note in ((None, True), (names[::-1], True), (names, False)):
        check = diagnose(SourceTask.from_scores(scores, y, classes=classes))["order of classes"]
        assert check.is_note is is_note and ("alphabetical" in check.sentence) is not is_note


def test_tasks_without_scores():
    task = SourceTask.from_scores(*scores_of(50, 2))
    bare = SourceTask.from_ranks(task.ranks, task.y, n_classes=50)
    report = diagnose(bare)
    unknown = {check.name for check in report if check.passed is None}
    assert unknown == {*SHAPES, "ties", "order of classes", "normalisation of scores"}
    assert report["number of errors"].value == diagnose(task)["number of errors"].value
    curve = SourceTask.from_accuracies([2, 10, 50], [0.99, 0.95, 0.85], n_test=100, n_classes=50)
    report = diagnose(curve)
    unknown |= {"number of errors", "reach of the ranks"}
    assert {check.name for check in report if check.passed is None} == unknown
    assert report.class_errors is None


def test_a_curve_of_one_point_and_below_chance():
    curve = SourceTask.from_accuracies([50], [0.01], n_test=100, n_classes=50)
    assert failed(curve) == {"accuracy on few classes"}


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
    facts = facts_of_scores(task.table, np.random.default_rng(0))
    assert facts.as_competitor.sum() == pytest.approx(task.table.weight @ task.table.n_better)


@pytest.mark.parametrize(("n_classes", "is_note"), [(30, True), (400, False)])
def test_reach_is_that_of_the_bounds(n_classes, is_note):
    ranks = np.where(np.arange(n_classes) % 3, 1, np.arange(n_classes) % 5 + 1)
    task = SourceTask.from_ranks(ranks, np.arange(n_classes), n_classes=n_classes)
    check = diagnose(task)["reach of the ranks"]
    assert check.value == MomentBounds().fit(task).reach()
    assert check.passed and check.is_note is is_note
    assert (check.value < n_classes) is is_note


edge_lists = st.lists(
    st.tuples(st.integers(0, 9), st.integers(0, 9)).filter(lambda pair: pair[0] != pair[1]),
    min_size=1, max_size=40, unique=True,
).map(np.array)  # fmt: skip


@given(edges=edge_lists, seed=st.integers(0, 99))
def test_rewired_graphs_keep_degrees(edges, seed):
    before, rng = edges.copy(), np.random.default_rng(seed)
    for _ in range(5):
        exchange_ends(edges, rng)
    for side in (0, 1):
        assert np.array_equal(np.bincount(edges[:, side]), np.bincount(before[:, side]))
    assert len(np.unique(edges, axis=0)) == len(edges)
    assert (edges[:, 0] != edges[:, 1]).all()
    assert 0 < linked_share(edges) <= 1
    assert 1 <= mean_degree(edges) <= 9


@given(squares=st.lists(st.floats(0.1, 10), min_size=1, max_size=20), zeros=st.integers(0, 5))
def test_participation(squares, zeros):
    values = np.array(squares + [0.0] * zeros)
    assert participation(values) >= 1 - 1e-12
    assert participation(values) <= len(squares) * (1 + 1e-12)
    assert participation(np.array([3.0] * len(squares) + [0.0] * zeros)) == pytest.approx(
        len(squares)
    )


# Marginality


def trained(n_classes, seed):
    law = GaussianClasses(dim=4, noise_variance=0.3)
    train, train_y, test, y = law.sample(n_classes, n_train=10, n_test=4, random_seed=seed)
    return qda_scores(train, train_y, test), y


def test_marginal_classifiers_pass():
    reports = [
        check_marginality(
            SourceTask.from_scores(*trained(80, 3 * seed)),
            SourceTask.from_scores(*trained(20, 3 * seed + 1)),
        )
        for seed in range(10)
    ]
    z = np.array([report.checks[0].value for report in reports])
    assert sum(not report.passed for report in reports) <= 1
    assert abs(z.mean()) < 1
    assert z.std() < 1.5


def test_a_classifier_that_suffers_from_competitors():
    """Every class adds noise to all scores, so small tasks beat what a large one promises."""
    scores, y = trained(100, 1)
    noise = 8 * np.random.default_rng(0).standard_normal(scores.shape)
    large = SourceTask.from_scores(scores + noise, y)
    small = [SourceTask.from_scores(*trained(20, seed)) for seed in (2, 3)]
    report = check_marginality(large, small)
    assert not report.passed
    for check in report:  # two tests share the level of 1%
        assert check.limit == pytest.approx(student.isf(0.01 / 2 / 2, 19))
    worst = min(report, key=lambda check: check.value)
    assert worst.value < -3
    assert "falls faster" in worst.sentence


def test_marginality_without_what_it_needs():
    large = SourceTask.from_accuracies([2, 50], [0.99, 0.9], n_test=100, n_classes=50)
    small = SourceTask.from_scores(*scores_of(20))
    assert check_marginality(large, small).checks[0].passed is None
    scores, y = scores_of(50)
    decisions = SourceTask.from_scores(np.eye(50)[scores.argmax(axis=1)], y)
    blind = check_marginality(decisions, small)
    assert blind.checks[0].passed is None and "nothing found" not in repr(blind)
    assert "no check could be made" in repr(blind) and "a decision shows only" in repr(blind)
    # At the 50 classes of the decisions themselves both accuracies are known.
    assert check_marginality(SourceTask.from_scores(*scores_of(60)), decisions).checks[0].value
    perfect = [SourceTask.from_ranks(np.ones(k, int), np.arange(k), n_classes=k) for k in (20, 10)]
    assert check_marginality(*perfect).checks[0].passed is None


# Reports and refusals


def test_report_text():
    report = TaskReport(
        (Check("a<b", False, "x & y", 1.0, 2.0), Check("c", None, "unknown")), "title"
    )
    assert repr(report).splitlines() == [
        "title: 1 warning", "WARNING      a<b: x & y", "not checked  c: unknown",
    ]  # fmt: skip
    assert "a&lt;b" in report._repr_html_()
    assert "x &amp; y" in report._repr_html_()
    assert not report.passed
    assert report.table.loc["c", "passed"] is None
    assert list(report.table.columns) == ["passed", "value", "limit", "sentence"]
    with pytest.raises(DataError, match=r"^name"):
        report["d"]


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda task: diagnose(LAW), "task"),
        (lambda task: diagnose(task, random_seed=-1), "random_seed"),
        (lambda task: check_marginality(task, []), "smaller_tasks"),
        (lambda task: check_marginality(task, [task]), "smaller_tasks"),
        (lambda task: check_marginality(task, [4]), "smaller_tasks"),
    ],
)
def test_refused(call, name):
    with pytest.raises(DataError, match=f"^{name}"):
        call(SourceTask.from_scores(*scores_of(10)))
