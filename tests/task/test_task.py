"""SourceTask: the four ways to make one agree with each other and with the definitions."""

import gc
import tracemalloc
import weakref
from functools import partial

import numpy as np
import pandas as pd
import pytest
from helpers import between_classes, class_accuracies
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import comb
from scipy.stats import chisquare

from classex_bayes import ClassExReg, SourceTask
from classex_bayes.exceptions import DataError
from classex_bayes.risk import average_test_risk, average_test_risk_cov, noise_amplification
from classex_bayes.simulate import GaussianNearestNeighbor
from classex_bayes.task import accuracy_under_priors
from classex_bayes.task.rank_bins import bin_counts

SEEDS = st.integers(0, 2**32 - 1)


def random_scores(seed=0, n_classes=10, most_repeats=4, shift=1.0):
    rng = np.random.default_rng(seed)
    y = rng.permutation(
        np.repeat(np.arange(n_classes), rng.integers(1, most_repeats + 1, n_classes))
    )
    scores = rng.normal(size=(y.size, n_classes))
    scores[np.arange(y.size), y] += shift
    return scores, y


def assert_same(task, other):
    """Compare all that the estimators see."""
    assert (task.n_classes, task.n_test) == (other.n_classes, other.n_test)
    assert task.ranks.tolist() == other.ranks.tolist() and task.y.tolist() == other.y.tolist()
    k = task.grid()
    np.testing.assert_allclose(task.accuracy(k), other.accuracy(k), rtol=1e-12)
    np.testing.assert_allclose(task.accuracy_cov(k), other.accuracy_cov(k), atol=1e-8)
    assert task.design_effect() == pytest.approx(other.design_effect(), rel=1e-3)


# Four constructors


@given(SEEDS)
def test_all_constructors_see_the_same_task(seed):
    probes, gallery, y = GaussianNearestNeighbor(3, 0.3).sample(8, repeats=2, random_seed=seed)
    distance = ((probes[:, None] - gallery) ** 2).sum(axis=2)
    task = SourceTask.from_embeddings(probes, gallery, y)
    assert_same(task, SourceTask.from_scores(-distance, y))
    assert_same(task, SourceTask.from_scores(np.sqrt(distance), y, higher_is_better=False))
    assert_same(task, SourceTask.from_scores((-distance).tolist(), y.tolist()))
    doubled = np.vstack([gallery, gallery + 1e-9])
    twice = SourceTask.from_embeddings(probes, doubled, y, gallery_y=np.tile(np.arange(8), 2))
    assert_same(task, twice)

    k = np.arange(2, 9)
    from_ranks = SourceTask.from_ranks(task.ranks, y, n_classes=8)
    np.testing.assert_array_equal(from_ranks.accuracy(k), task.accuracy(k))
    np.testing.assert_array_equal(bin_counts(from_ranks.table), bin_counts(task.table))
    curve = SourceTask.from_accuracies(k, task.accuracy(k), n_test=16, n_classes=8)
    np.testing.assert_array_equal(curve.accuracy(k), task.accuracy(k))


@given(seed=SEEDS, metric=st.sampled_from(["sqeuclidean", "cosine", "dot"]))
def test_metrics_and_reductions_by_their_score_matrix(seed, metric):
    rng = np.random.default_rng(seed)
    probes, gallery = rng.normal(size=(30, 4)), rng.normal(size=(15, 4))
    gallery_y, y = rng.permutation(np.repeat(np.arange(5), 3)), np.arange(30) % 5
    length = np.linalg.norm(probes, axis=1)[:, None] * np.linalg.norm(gallery, axis=1)
    by_template = {
        "sqeuclidean": -((probes[:, None] - gallery) ** 2).sum(axis=2),
        "cosine": probes @ gallery.T / length,
        "dot": probes @ gallery.T,
    }[metric]
    for reduce, combine in (("max", np.max), ("mean", np.mean)):
        columns = [combine(by_template[:, gallery_y == j], axis=1) for j in range(5)]
        task = SourceTask.from_embeddings(
            probes, gallery, y, distance=metric, gallery_y=gallery_y, reduce=reduce
        )
        assert_same(task, SourceTask.from_scores(np.stack(columns, axis=1), y))


@pytest.mark.parametrize("templates", [1, 20])
def test_embeddings_never_form_the_score_matrix(templates):
    n, n_classes = 4000, 4000 // templates
    rng = np.random.default_rng(0)
    gallery = rng.normal(size=(4000, 16)).astype("f4")
    gallery_y = np.arange(4000) % n_classes
    probes = gallery + rng.normal(size=gallery.shape).astype("f4")
    tracemalloc.start()
    SourceTask.from_embeddings(probes, gallery, gallery_y, gallery_y=gallery_y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # Of single-precision scores on all templates.
    assert peak < 0.8 * 4 * n * 4000


# Names


def test_names_of_classes():
    scores, y = random_scores(n_classes=4)
    plain = SourceTask.from_scores(scores, y)
    names = np.array(["d", "a", "c", "b"])
    assert plain.classes is None
    named = SourceTask.from_scores(scores, names[y], classes=names)
    assert named.classes == ["d", "a", "c", "b"]
    assert_same(named, plain)
    frame = pd.DataFrame(scores, columns=names)
    assert_same(SourceTask.from_scores(frame, pd.Series(names[y])), plain)
    by_number = SourceTask.from_scores(frame, 10 * y, classes=[0, 10, 20, 30])
    assert by_number.classes == [0, 10, 20, 30]
    assert_same(by_number, plain)
    ranks = SourceTask.from_ranks(plain.ranks, names[y], n_classes=4, classes=names)
    assert ranks.y.tolist() == y.tolist()


def test_names_of_templates():
    scores, y = random_scores(n_classes=3)
    names = np.array(["x", "y", "z"])
    gallery = np.eye(3)[[2, 0, 1]]
    plain = SourceTask.from_scores(scores, y)
    sorted_names = SourceTask.from_embeddings(
        scores, gallery, names[y], distance="dot", gallery_y=["z", "x", "y"]
    )
    assert sorted_names.classes == ["x", "y", "z"]
    assert_same(sorted_names, plain)
    given_order = SourceTask.from_embeddings(
        scores, gallery, names[y], distance="dot", classes=["z", "x", "y"]
    )
    assert given_order.classes == ["z", "x", "y"]
    np.testing.assert_array_equal(given_order.ranks, plain.ranks)


@pytest.mark.parametrize("dtype", ["i1", "u8", "f4", "f8"])
def test_labels_of_any_whole_type(dtype):
    scores, y = random_scores()
    assert_same(SourceTask.from_scores(scores, y.astype(dtype)), SourceTask.from_scores(scores, y))


@pytest.mark.parametrize("size", [5, np.int64(5), np.float32(5), np.array(5)])
def test_a_single_k_gives_a_number(size):
    scores, y = random_scores(1, 8)
    task, cost = SourceTask.from_scores(scores, y), 1 - np.eye(8)
    functions = [
        task.accuracy, task.accuracy_cov, task.accuracy_bounds, lambda k: task.metric("mrr", k),
        partial(accuracy_under_priors, task), partial(average_test_risk, task, cost),
        partial(average_test_risk_cov, task, cost), lambda k: noise_amplification(8, k=k, degree=2),
        GaussianNearestNeighbor().accuracy,
    ]  # fmt: skip
    for function in functions:
        number, array = function(size), function([5])
        assert np.ndim(array) > 0 and np.array_equal(number, np.squeeze(array))
        assert all(isinstance(value, float) for value in np.atleast_1d(number).tolist())
        if not isinstance(number, tuple):
            assert isinstance(number, float)
    assert isinstance(task.metric("accuracy"), float)  # at k1


# Weights and untested classes


@given(seed=SEEDS)
def test_instances_weigh_the_same(seed):
    """Also those without an answer."""
    scores, y = random_scores(seed, 6)
    task = SourceTask.from_scores(scores, y, class_weight="instances")
    assert task.accuracy(6).item() == pytest.approx((task.ranks == 1).mean())
    assert_same(task, SourceTask.from_scores(scores, y, class_weight=np.bincount(y, minlength=6)))
    more = SourceTask.from_scores(scores, y, class_weight="instances", unanswered=y[:3])
    assert more.accuracy(6).item() == pytest.approx((task.ranks == 1).sum() / (y.size + 3))


@given(seed=SEEDS, weighted=st.booleans())
def test_classes_weigh_the_same_or_as_told(seed, weighted):
    scores, y = random_scores(seed, 6)
    weight = np.random.default_rng(seed).uniform(0, 9, 6) if weighted else None
    task = SourceTask.from_scores(scores, y, class_weight=weight)
    share = np.full(6, 1 / 6) if weight is None else weight / weight.sum()
    for k in range(2, 7):
        f = np.array([comb(5 - loss, k - 1) / comb(5, k - 1) for loss in task.ranks - 1])
        expected = sum(share[j] * f[y == j].mean() for j in range(6))
        assert task.accuracy(k) == pytest.approx(expected, rel=1e-12)
    counts = bin_counts(task.table)
    expected = [
        y.size * sum(share[j] * np.mean(task.ranks[y == j] == loss + 1) for j in range(6))
        for loss in range(6)
    ]
    np.testing.assert_allclose(counts, expected, rtol=1e-12)
    assert counts.sum() == pytest.approx(task.n_test)


def test_weights_by_name():
    scores, y = random_scores(n_classes=3)
    by_position = SourceTask.from_scores(scores, y, class_weight=[1, 2, 3])
    assert_same(SourceTask.from_scores(scores, y, class_weight={2: 3, 1: 2, 0: 1}), by_position)
    names = np.array(["a", "b", "c"])
    by_name = {"c": 0.3, "a": 0.1, "b": 0.2}
    for weight in (by_name, pd.Series(by_name), pd.Series(by_name).sort_index()):
        named = SourceTask.from_scores(scores, names[y], classes=names, class_weight=weight)
        assert_same(named, by_position)


def test_untested_classes_compete():
    scores, y = random_scores(n_classes=6)
    scores, y = scores[y != 4], y[y != 4]
    with pytest.raises(DataError):
        SourceTask.from_scores(scores, y)
    task = SourceTask.from_scores(scores, y, untested="competitors")
    own = scores[np.arange(y.size), y][:, None]
    assert task.ranks.tolist() == (1 + (scores > own).sum(axis=1)).tolist()
    right = scores.argmax(axis=1) == y
    balanced = np.mean([right[y == j].mean() for j in (0, 1, 2, 3, 5)])
    assert task.accuracy(6) == pytest.approx(balanced)
    assert np.linalg.eigvalsh(task.accuracy_cov([2, 4, 6])).min() > -1e-12


@pytest.mark.parametrize("given", [[5, 1, 3, 9], {"a": 5, "b": 1, "c": 3, "d": 9}])
def test_untested_classes_have_no_weight(given):
    given = pd.Series(given) if isinstance(given, dict) else given
    for class_weight, expected in ((given, 0.625), (None, 0.5)):
        task = SourceTask.from_ranks(
            [1, 1, 4], list("aac"), n_classes=4, classes=list("abcd"), class_weight=class_weight,
            untested="competitors",
        )  # fmt: skip
        assert task.accuracy(4) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("size", [1e-300, 1.0, 1e308])
def test_weights_of_any_size_sum_to_one(size):
    weight = np.array([1, 1, 0.5]) * size
    task = SourceTask.from_ranks([1, 1, 2], range(3), n_classes=3, class_weight=weight)
    assert task.accuracy(3) == pytest.approx(0.8, rel=1e-14)


DATES = np.arange("2026-01-01", "2026-01-05", dtype="datetime64[D]")


@pytest.mark.parametrize(
    "names",
    [
        [1, "1", 2.5, "b"],
        [("a", 1), ("a", 2), ("b", 1), ("b", 2)],
        [*DATES],
    ],
)
def test_labels_in_a_list_keep_their_types(names):
    rows = [1, 0, 3, 2]
    task = SourceTask.from_ranks([1, 2, 1, 3], [names[c] for c in rows], n_classes=4, classes=names)
    assert task.y.tolist() == rows


def test_dates_in_an_array_are_those_in_a_list():
    for y, classes in ((DATES, [*DATES]), ([*DATES], DATES)):
        weight = {day: 1 + place for place, day in enumerate(classes)}
        task = SourceTask.from_ranks(
            [1, 2, 1, 3], y, n_classes=4, classes=classes, class_weight=weight
        )
        assert task.y.tolist() == [0, 1, 2, 3]
        assert task.accuracy(4) == pytest.approx(0.1 + 0.3, rel=1e-14)


# Ties


def test_tied_pairs_are_reported():
    scores = np.array([[1.0, 1, 0, 1], [0, 1, 1, 0], [0, 0, 1, 0], [1, 0, 0, 0]])
    y = [0, 1, 2, 3]
    for ties, ranks in (("optimistic", [1, 1, 1, 2]), ("pessimistic", [3, 2, 1, 4])):
        task = SourceTask.from_scores(scores, y, ties=ties)
        assert task.ranks.tolist() == ranks
        assert f"ties: 5 ({ties})" in repr(task).replace("\n ", "")

    def random(seed):
        return SourceTask.from_scores(scores, y, ties="random", random_seed=seed).ranks.tolist()

    assert random(1) == random(1) == random(np.random.SeedSequence(1))


# Covariance and design effect


def test_covariance_may_be_asked_for_at_any_k():
    scores, y = random_scores(1, n_classes=40)
    task = SourceTask.from_scores(scores, y)
    k = task.grid()
    assert k[0] == 2 and k[-1] == 40 and np.all(np.diff(k) > 0)
    every = task.accuracy_cov(np.arange(2, 41))
    # The projection to a covariance depends a little on the other k.
    few, all_k = task.accuracy_cov(k), every[np.ix_(k - 2, k - 2)]
    np.testing.assert_allclose(few, all_k, atol=0.01 * np.diag(few).max())
    np.testing.assert_allclose(task.accuracy_cov(k[::-1])[::-1, ::-1], task.accuracy_cov(k))
    assert task.accuracy_cov(7) == task.accuracy_cov([7])[0, 0]


def test_losses_alone_give_the_inflated_clustered_covariance():
    scores, y = random_scores(2, n_classes=20)
    with_scores = SourceTask.from_scores(scores, y)
    task = SourceTask.from_ranks(with_scores.ranks, y, n_classes=20)
    k = np.array([2, 5, 20])
    clustered = between_classes(
        class_accuracies(task.ranks - 1, y, 20, k), np.full((20, 3), 1 / 20)
    )
    np.testing.assert_allclose(task.accuracy_cov(k), 1.25 * clustered)


@pytest.mark.parametrize("known", ["scores", "ranks"])
def test_design_effect_is_the_ratio_of_variances(known):
    scores, y = random_scores(3, n_classes=50)
    task = SourceTask.from_scores(scores, y)
    if known == "ranks":
        task = SourceTask.from_ranks(task.ranks, y, n_classes=50)
    k = task.grid()
    by_class = class_accuracies(task.ranks - 1, y, 50, k)
    f = comb(50 - task.ranks[:, None], k - 1) / comb(49, k - 1)
    weight = 1 / (50 * np.bincount(y)[y])
    independent = weight @ (f - weight @ f) ** 2 / task.n_test
    clustered = np.diag(between_classes(by_class, np.full(by_class.shape, 1 / 50)))
    ratios = np.diag(task.accuracy_cov(k)) / independent
    expected = max(np.median(ratios), np.median(clustered / independent), 1)
    assert task.design_effect() == round(expected, 6)


def test_design_effect_without_enough_errors_is_the_mean_number_of_repeats():
    y = np.repeat(np.arange(8), [1, 2, 3, 4, 1, 2, 3, 4])
    ranks = np.where(y < 4, 2, 1)
    assert SourceTask.from_ranks(ranks, y, n_classes=8).design_effect() == 2.5
    assert SourceTask.from_ranks(0 * ranks + 1, y, n_classes=8).design_effect() == 2.5


@pytest.mark.parametrize("rank", [2, 6, 10])
def test_design_effect_where_no_instance_differs(rank):
    y = np.repeat(np.arange(10), 3)
    assert SourceTask.from_ranks(np.full(30, rank), y, n_classes=10).design_effect() == 3
    worst = SourceTask.from_scores(np.ones((30, 10)), y, ties="pessimistic")
    assert worst.design_effect() == 3


# Subsamples


@given(seed=SEEDS, kind=st.sampled_from(["scores", "distances", "embeddings"]))
def test_subsample_is_the_task_of_the_submatrix(seed, kind):
    scores, y = random_scores(seed, n_classes=9)
    names = np.array(list("abcdefghi"))
    weight = np.arange(1.0, 10)
    options = {"classes": names, "class_weight": weight}
    if kind == "embeddings":
        task = SourceTask.from_embeddings(scores, np.eye(9), names[y], distance="dot", **options)
    else:
        sign = 1 if kind == "scores" else -1
        task = SourceTask.from_scores(
            sign * scores, names[y], higher_is_better=sign == 1, **options
        )
    part = task.subsample(5, random_seed=seed)
    kept = np.searchsorted(names, part.classes)
    assert len(set(part.classes)) == 5
    rows = np.isin(y, kept)
    expected = SourceTask.from_scores(
        scores[np.ix_(rows, kept)],
        names[y[rows]],
        classes=names[kept],
        class_weight=weight[kept],
    )
    assert_same(part, expected)
    again = task.subsample(5, random_seed=seed)
    assert again.classes == part.classes


def test_subsamples_hold_every_class_equally_often():
    task = SourceTask.from_scores(np.eye(10), np.arange(10), classes=range(10))
    seeds = np.random.SeedSequence(0).spawn(500)
    drawn = [task.subsample(4, random_seed=seed).classes for seed in seeds]
    assert chisquare(np.bincount(np.ravel(drawn))).pvalue > 1e-4
    assert sorted(task.subsample(10, random_seed=0).classes) == list(range(10))


def test_subsample_of_ranks_keeps_the_accuracies_on_average():
    ranks, y = np.arange(30) % 20 + 1, np.arange(30)
    task = SourceTask.from_ranks(ranks, y, n_classes=30)
    k, seeds = [2, 5, 10], np.random.SeedSequence(1).spawn(500)
    found = np.array([task.subsample(10, random_seed=seed).accuracy(k) for seed in seeds])
    error = found.std(axis=0) / np.sqrt(500)
    assert np.all(np.abs(found.mean(axis=0) - task.accuracy(k)) < 4 * error)
    assert error.max() < 0.01
    whole = task.subsample(30, random_seed=0)
    assert sorted(whole.ranks) == sorted(ranks)


def test_without_scores_a_subsample_is_one_of_ranks():
    scores, y = random_scores(3, 30, 2)
    task = SourceTask.from_scores(scores, y).without_scores().subsample(10, random_seed=1)
    assert "from ranks" in repr(task)


def test_subsample_without_weight_is_refused():
    task = SourceTask.from_scores(np.eye(20), np.arange(20), class_weight=[1, 1] + [0] * 18)
    with pytest.raises(DataError):
        for seed in range(20):
            task.subsample(3, random_seed=seed)
    assert task.select([0, 1, 5]).n_classes == 3  # two with weight are enough


# Among the m best


HEAVY = {"equal": 0.02, "nearly all": 0.95}


@pytest.mark.parametrize("heaviest", HEAVY.values(), ids=HEAVY)
@pytest.mark.parametrize("scored", [True, False], ids=["scores", "ranks"])
def test_covariance_and_design_effect_under_one_heavy_class(heaviest, scored):
    law, n_classes, repeats, n_tasks = GaussianNearestNeighbor(10, 0.4), 50, 4, 120
    weight = np.full(n_classes, (1 - heaviest) / (n_classes - 1))
    weight[0] = heaviest
    accuracies, estimates, effects = [], [], []
    for seed in range(n_tasks):
        task = SourceTask.from_embeddings(
            *law.sample(n_classes, repeats=repeats, random_seed=seed), class_weight=weight
        )
        if not scored:
            task = SourceTask.from_ranks(
                task.ranks, task.y, n_classes=n_classes, class_weight=weight
            )
        accuracies.append(task.accuracy([10, 50]))
        estimates.append(np.diag(task.accuracy_cov([10, 50])))
        effects.append(task.design_effect())
    true = law.accuracy([10, 50])
    variance = np.mean((np.array(accuracies) - true) ** 2, axis=0)
    # A variance of 120 tasks errs by 13% (normal) to 20% (skewed as here), and so do estimates.
    ratio = np.mean(estimates, axis=0) / variance
    assert np.all((ratio > 0.6) & (ratio < 1.7))
    # Kish: n sum w^2 (1 + (r - 1) rho) / r, rho = .2 to .5 for this law, and the competitors.
    kish = n_classes * repeats * (weight**2).sum()
    within = (np.array(effects) / kish * repeats - 1) / (repeats - 1)
    assert 0.15 < np.median(within) < 0.6
    # One heavy class is no better known than the others, but nor does it make the ratio noisy.
    assert np.quantile(effects, 0.9) < 2.2 * np.quantile(effects, 0.1)


def test_the_trial_that_found_heavy_classes_unseen():
    weight = np.ones(50)
    weight[0] = 1000
    ranks = np.array([0, 0, 0, 3, 0, 7, 0, 0, 2, 0] * 5) + 1
    task = SourceTask.from_ranks(ranks, np.arange(50), n_classes=50, class_weight=weight)
    kish = 50 * (weight**2).sum() / weight.sum() ** 2
    # One instance a class: the answers are independent, so Kish's effect is all but c / (c - 1).
    assert task.design_effect() == pytest.approx((kish + 0.25) * 50 / 49, rel=0.01)
    # Two classes with errors and weight tell as little as two classes.
    weight[:] = 1e-9
    weight[[3, 5]] = 1
    heavy = SourceTask.from_ranks(ranks, np.arange(50), n_classes=50, class_weight=weight)
    k = np.array([10, 50])
    share = np.tile(weight[:, None] / weight.sum(), 2)
    expected = between_classes(class_accuracies(ranks - 1, np.arange(50), 50, k), share)
    np.testing.assert_allclose(heavy.accuracy_cov(k), (1 + 0.25 / 25) * expected)


def test_a_curve_knows_no_metric_but_the_accuracy():
    curve = SourceTask.from_accuracies([2, 5, 9], [0.9, 0.8, 0.7], n_test=90, n_classes=9)
    assert curve.metric("accuracy", [2, 9]).tolist() == [0.9, 0.7]
    for metric in ("mrr", "accuracy@2"):
        with pytest.raises(DataError):
            curve.metric(metric, 5)


@pytest.mark.parametrize("y", [[[0], [1], [2]], [[0, 1, 2]]])
def test_columns_and_rows_of_labels(y):
    assert SourceTask.from_scores(np.eye(3), y).ranks.tolist() == [1, 1, 1]


def test_scores_are_freed_with_the_task():
    """At once, so that a loop over large score matrices needs the memory of one."""
    scores = np.random.default_rng(0).normal(size=(60, 30))
    y = np.arange(60) % 30
    scores[np.arange(60), y] += 2
    gc.disable()  # which would free references in circles at some later time
    try:
        task = SourceTask.from_scores(scores, y)
        task.accuracy_cov([30])
        ClassExReg(n_resamples=2, random_seed=1).fit(task).predict([30, 100])
        source = weakref.ref(task.scores)
        del task
        assert source() is None
    finally:
        gc.enable()


@pytest.mark.parametrize(("reduce", "several"), [("max", True), ("mean", False)])
def test_the_mean_of_several_templates_is_one_entry(reduce, several):
    """Recall is the accuracy then, and not a share of the entries of a class."""
    gallery, label = np.random.default_rng(1).normal(size=(12, 3)), np.repeat(np.arange(6), 2)
    task = SourceTask.from_embeddings(
        gallery[::2], gallery, np.arange(6), gallery_y=label, reduce=reduce
    )
    for made in (task, task.without_scores(), task.select(range(4))):
        assert made.several_relevant == several
    if not several:
        assert task.metric("recall@2", 6) == task.metric("success@2", 6)
