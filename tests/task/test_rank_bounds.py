"""Ties, decisions and cut lists: bounds of accuracies against brute force, and what they refuse."""

import pickle
from itertools import combinations, permutations

import dask.array as da
import numpy as np
import pytest
from helpers import better_classes
from hypothesis import given
from hypothesis import strategies as st

import classex_bayes as cb
from classex_bayes.bayes.model.likelihoods import BernsteinData
from classex_bayes.core import RadialBasis
from classex_bayes.core.basis import n_better_bins
from classex_bayes.core.subsets import accuracy_given_n_better
from classex_bayes.risk import average_test_risk
from classex_bayes.task.rank_bins import bin_counts, bin_ends
from classex_bayes.task.rank_table import RankTable

pytestmark = pytest.mark.filterwarnings("ignore::classex_bayes.exceptions.DataWarning")

RNG = np.random.default_rng(3)
FEW = {"sampler": {"draws": 100, "tune": 200, "chains": 2}, "random_seed": 1, "progressbar": False}


def scores_of(n_classes, repeats=2, seed=0, lead=2.0):
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(n_classes), repeats)
    return rng.normal(size=(y.size, n_classes)) + lead * np.eye(n_classes)[y], y


def decided(scores):
    return np.eye(scores.shape[1])[scores.argmax(axis=1)]


def decisions(n_classes=40, **options):
    scores, y = scores_of(n_classes)
    return cb.SourceTask.from_scores(decided(scores), y, **options)


def lists(n_classes=40, length=5):
    scores, y = scores_of(n_classes)
    ranks = cb.SourceTask.from_scores(scores, y).ranks
    return cb.SourceTask.from_ranks(
        np.minimum(ranks, length + 1), y, n_classes=n_classes, truncated_at=length
    )


def rounded(n_classes=40, **options):
    scores, y = scores_of(n_classes)
    return cb.SourceTask.from_scores(np.rint(scores), y, ties="unknown", **options)


OPEN = {"decisions": decisions, "cut ranks": lists, "tied scores": rounded}


def is_exact(task):
    return np.array_equal(*better_classes(task))


def accuracy_over_subsets(scores, y, k):
    """Share of right answers over all subsets of k classes and instances of theirs."""
    right = []
    for subset in combinations(range(scores.shape[1]), k):
        for row in np.flatnonzero(np.isin(y, subset)):
            others = [j for j in subset if j != y[row]]
            right.append((scores[row, others] < scores[row, y[row]]).all())
    return np.mean(right)


@pytest.mark.parametrize("seed", range(4))
def test_bounds_are_the_extremes_of_all_orders_of_the_ties(seed):
    rng = np.random.default_rng(seed)
    scores, y = rng.integers(0, 3, (5, 5)).astype(float), np.arange(5)
    scores[np.arange(5), y] += rng.integers(0, 2, 5)
    task = cb.SourceTask.from_scores(scores, y, ties="unknown")
    for k in (2, 3, 5):
        # Only the order of the true class among its ties matters: all of them lost, or none.
        tilted = [scores + sign * 0.5 * np.eye(5)[y] for sign in (-1, 1)]
        expected = [accuracy_over_subsets(part, y, k) for part in tilted]
        found = [float(bound) for bound in task.accuracy_bounds(k)]
        assert found == pytest.approx(expected)


def test_a_decision_says_right_or_wrong_among_all_classes():
    scores, y = scores_of(40)
    full, task = cb.SourceTask.from_scores(scores, y), decisions()
    assert task.accuracy(40) == pytest.approx(full.accuracy(40))
    lower, upper = task.accuracy_bounds(np.arange(2, 41))
    known = full.accuracy(np.arange(2, 41))
    assert (lower <= known + 1e-12).all() and (known <= upper + 1e-12).all()
    assert task.grid().tolist() == [40]
    with pytest.raises(cb.DataError):
        task.accuracy(39)


@pytest.mark.parametrize("length", [1, 3, 10])
def test_lists_know_the_accuracy_near_all_classes(length):
    scores, y = scores_of(100)
    full = cb.SourceTask.from_scores(scores, y)
    ranks = np.where(full.ranks > length, length + 1, full.ranks)
    task = cb.SourceTask.from_ranks(ranks, y, n_classes=100, truncated_at=length)
    smallest = task.grid()[0]
    np.testing.assert_allclose(
        task.accuracy(np.arange(smallest, 101)),
        full.accuracy(np.arange(smallest, 101)),
        atol=1e-6,
    )
    lower, upper = task.accuracy_bounds(smallest - 1)
    assert upper - lower > 1e-6
    # Any rank beyond the list means the same.
    again = cb.SourceTask.from_ranks(
        np.where(full.ranks > length, 100, full.ranks), y, n_classes=100, truncated_at=length
    )
    np.testing.assert_array_equal(better_classes(again), better_classes(task))
    assert task.metric(f"accuracy@{length}", 100) == pytest.approx(
        full.metric(f"accuracy@{length}", 100)
    )


def test_lists_that_hold_every_true_class_are_ranks():
    task = cb.SourceTask.from_ranks([1, 2, 3, 1], range(4), n_classes=4, truncated_at=3)
    assert task.ranks.tolist() == [1, 2, 3, 1]


def test_rows_of_two_values_are_decisions_unless_told_otherwise():
    scores, y = scores_of(40)
    votes = decided(scores)
    assert not is_exact(cb.SourceTask.from_scores(votes, y))
    negated = cb.SourceTask.from_scores(1 - votes, y, higher_is_better=False)
    np.testing.assert_array_equal(better_classes(negated), better_classes(decisions()))
    for ties in ("random", "optimistic", "pessimistic"):
        assert is_exact(cb.SourceTask.from_scores(votes, y, ties=ties))
    mostly = np.where(np.arange(y.size)[:, None] % 5 < 3, votes, scores)
    assert not is_exact(cb.SourceTask.from_scores(mostly, y))
    few = np.where(np.arange(y.size)[:, None] % 5 < 2, votes, scores)
    assert is_exact(cb.SourceTask.from_scores(few, y))
    assert is_exact(cb.SourceTask.from_scores(np.ones((80, 40)), y))  # guessing


@pytest.mark.parametrize("ties", ["auto", "unknown"])
def test_scores_without_ties_are_as_they_were(ties):
    scores, y = scores_of(40)
    task = cb.SourceTask.from_scores(scores, y, ties=ties)
    assert (task.ranks == cb.SourceTask.from_scores(scores, y).ranks).all()


def test_embeddings_and_dask_agree_with_the_matrix():
    scores, y = scores_of(40)
    votes = np.rint(scores)
    expected = cb.SourceTask.from_scores(votes, y, ties="unknown")
    blocks = da.from_array(votes, chunks=(7, 40))
    for task in (
        cb.SourceTask.from_scores(blocks, y, ties="unknown"),
        cb.SourceTask.from_embeddings(votes, np.eye(40), y, distance="dot", ties="unknown"),
    ):
        np.testing.assert_array_equal(better_classes(task), better_classes(expected))
    lazy = cb.SourceTask.from_scores(da.from_array(decided(scores), chunks=(7, 40)), y)
    np.testing.assert_array_equal(better_classes(lazy), better_classes(decisions()))


@pytest.mark.filterwarnings("ignore::classex_bayes.exceptions.DataWarning")
@pytest.mark.parametrize("kind", OPEN)
def test_what_needs_ranks_says_why_there_are_none(kind):
    task = OPEN[kind]()
    for use in (
        lambda: task.ranks,
        lambda: cb.KDE().fit(task),
        lambda: cb.estimators.PseudoLikelihood().fit(task),
        lambda: cb.backtest([cb.KDE()], task, 20),
        lambda: average_test_risk(task, 1 - np.eye(40), 20),
        lambda: cb.extrapolate_groups(task, task.y % 2, 100, progressbar=False),
    ):
        with pytest.raises(cb.DataError):
            use()
    assert cb.diagnose(task)["number of errors"].passed


def test_decisions_and_lists_without_scores_have_no_part():
    for task in (lists(), decisions().without_scores()):
        with pytest.raises(cb.DataError):
            task.subsample(20, random_seed=1)


def test_a_subsample_of_scores_is_the_task_of_the_submatrix():
    scores, y = scores_of(30)
    task = cb.SourceTask.from_scores(np.rint(scores), y, ties="unknown")
    kept = np.arange(0, 30, 3)
    rows = np.isin(y, kept)
    direct = cb.SourceTask.from_scores(np.rint(scores)[rows][:, kept], y[rows] // 3, ties="unknown")
    part = task.select(kept)
    np.testing.assert_array_equal(better_classes(part), better_classes(direct))


@pytest.mark.parametrize("kind", OPEN)
def test_parts_are_put_together(kind):
    scores, y = scores_of(40)
    halves = slice(0, 40), slice(40, 80)
    if kind == "cut ranks":
        ranks = np.minimum(cb.SourceTask.from_scores(scores, y).ranks, 6)
        options = {"n_classes": 40, "truncated_at": 5, "untested": "competitors"}
        parts = [cb.SourceTask.from_ranks(ranks[i], y[i], **options) for i in halves]
    else:
        values = decided(scores) if kind == "decisions" else np.rint(scores)
        options = {"ties": "unknown", "untested": "competitors"}
        parts = [cb.SourceTask.from_scores(values[i], y[i], **options) for i in halves]
        parts = [pickle.loads(pickle.dumps(part.without_scores())) for part in parts]
    whole, merged = OPEN[kind](), cb.SourceTask.merge(parts)
    np.testing.assert_array_equal(better_classes(merged), better_classes(whole))
    # Ties of a part are broken by their places in it.
    tolerance = 0.1 if kind == "tied scores" else 1e-6
    assert merged.design_effect() == pytest.approx(whole.design_effect(), rel=tolerance)


def test_parts_that_disagree_are_refused():
    scores, y = scores_of(40)
    options = {"untested": "competitors"}
    first = cb.SourceTask.from_scores(decided(scores)[:40], y[:40], **options)
    with pytest.raises(cb.DataError):
        cb.SourceTask.merge(
            [first, cb.SourceTask.from_scores(np.rint(scores[40:]), y[40:], **options)]
        )
    # A part without any tie fits to any rule.
    whole = cb.SourceTask.merge([first, cb.SourceTask.from_scores(scores[40:], y[40:], **options)])
    assert not is_exact(whole)


@pytest.mark.parametrize("kind", ["decisions", "cut ranks"])
def test_the_likelihood_is_that_of_the_intervals(kind):
    task, basis = OPEN[kind](), RadialBasis.regular(-2, 5, 0.5)
    single = basis.bin_probabilities(np.arange(40), 40)  # of every number of losses
    weights = np.random.default_rng(1).dirichlet(np.ones(basis.knots.size), 5)
    expected = np.zeros(5)
    for min_better, max_better in zip(*better_classes(task), strict=True):
        expected += np.log(weights @ single[min_better : max_better + 1].sum(axis=0))
    found = BernsteinData.of(task, basis).log_likelihood(weights) * task.design_effect()
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def grouped(ranks, ends, n_classes, **columns):
    """Table of ranks of which only the groups up to `ends`, the largest ranks, are known."""
    group, ends = np.searchsorted(ends, ranks), np.array([0, *ends])
    n, min_better, max_better = ranks.size, ends[group], ends[group + 1] - 1
    return RankTable(np.arange(n), n_classes, np.full(n, 1 / n), min_better, max_better, **columns)


def test_the_likelihood_of_ranks_in_groups_is_that_of_the_groups():
    """Such as of reports on the 10, 50 and 100 best: the bins are the groups."""
    ends, ranks = [10, 50, 100, 500], np.random.default_rng(1).geometric(0.02, 300)
    task = cb.SourceTask(grouped(ranks, ends, 500))
    assert (bin_ends(task.table) + 1).tolist() == ends
    assert bin_counts(task.table).tolist() == pytest.approx(
        np.histogram(ranks, [1, 11, 51, 101, 501])[0].tolist()
    )
    assert task.design_effect() == pytest.approx(1.25, abs=0.01)  # no order is assumed
    # As if all were equally likely, the ranks are those between the ends.
    spread = grouped(ranks, ends, 500, equally_likely=np.ones(300, dtype=bool))
    assert bin_ends(spread).size == 48 and cb.SourceTask(spread).design_effect() > 2


def test_partly_tied_rows_among_decisions_have_any_order_of_their_ties():
    """A decision says nothing of the classes that it leaves out; other ties break at random."""
    rng, y, n_classes = np.random.default_rng(3), np.arange(50) % 5, 5
    scores = np.eye(n_classes)[np.where(rng.random(50) < 0.5, y, rng.integers(n_classes, size=50))]
    scores[::4] = rng.integers(0, 3, (13, n_classes))
    scores[1], scores[2] = [2, 1, 1, 0, 0], 1  # tied in the middle, and with all
    table = cb.SourceTask.from_scores(scores, y).table
    assert table.are_decisions
    orders = np.array([*permutations(range(n_classes))])
    first = 0.0
    for i, (row, true) in enumerate(zip(scores, y, strict=True)):
        # Numbers of better classes in all orders of the ties.
        better, tied = row > row[true], row == row[true]
        n_better = (better | (tied & (orders > orders[:, [true]]))).sum(axis=1)
        assert (table.min_better[i], table.max_better[i]) == (n_better.min(), n_better.max())
        if n_better.min() < n_better.max():
            left_out = row[true] == row.min() < row.max()
            assert table.equally_likely[i] != left_out
        first += np.mean(n_better == 0)
    assert bin_ends(table).tolist() == [0, n_classes - 1]
    assert bin_counts(table).tolist() == pytest.approx([first, 50 - first])


def test_every_instance_counts_in_a_bin():
    """Also one with bounds beyond the last bin, which is for the mean number of competitors."""
    n_competitors = np.random.default_rng(1).integers(90, 111, 200)
    table = RankTable(
        np.arange(200), 91, np.full(200, 1 / 200), np.tile([0, 60], 100), n_competitors,
        n_competitors=n_competitors, competitors_shared=False,
    )  # fmt: skip
    assert bin_counts(table, ends=np.array([0, 50, 100])).sum() == pytest.approx(200)


def test_bounds_that_overlap_at_all_numbers_of_better_classes_are_refused():
    weight = np.full(40, 1 / 40)
    min_better, max_better = np.tile([0, 3], 20), np.tile([5, 39], 20)
    task = cb.SourceTask(RankTable(np.arange(40), 40, weight, min_better, max_better))
    with pytest.raises(cb.DataError):
        cb.BayesianExtrapolator().fit(task, **FEW)


def test_ties_and_cut_lists_are_put_together():
    """Ties are spread over their bounds, and ranks beyond the lists are in the last bin."""
    scores, y = scores_of(40)
    ranks = np.minimum(cb.SourceTask.from_scores(scores, y).ranks, 6)
    options = {"untested": "competitors"}
    lists_part = cb.SourceTask.from_ranks(
        ranks[:40], y[:40], n_classes=40, truncated_at=5, **options
    )
    tied_part = cb.SourceTask.from_scores(np.rint(scores[40:]), y[40:], ties="unknown", **options)
    merged = cb.SourceTask.merge([lists_part, tied_part])
    bins = bin_ends(merged.table)
    assert bins.tolist() == [0, 1, 2, 3, 4, 39]
    expected = [bin_counts(part.table, ends=bins) for part in (lists_part, tied_part)]
    np.testing.assert_allclose(bin_counts(merged.table), np.sum(expected, axis=0), atol=1e-9)


@pytest.mark.parametrize("kind", OPEN)
def test_histograms_spread_instances_over_their_intervals(kind):
    task = OPEN[kind](class_weight=np.arange(1, 41)) if kind != "cut ranks" else lists()
    bins = bin_ends(task.table)
    expected = np.zeros((40, bins.size))
    weight = np.full(80, 1 / 80) if kind == "cut ranks" else np.arange(1, 41)[task.y] / 1640
    ends = better_classes(task)
    for i, (min_better, max_better) in enumerate(zip(*ends, strict=True)):
        places = np.searchsorted(bins, np.arange(min_better, max_better + 1))
        np.add.at(expected[task.y[i]], places, 80 * weight[i] / places.size)
    np.testing.assert_allclose(bin_counts(task.table, task.y), expected, atol=1e-9)
    np.testing.assert_allclose(bin_counts(task.table), expected.sum(axis=0), atol=1e-9)
    assert bin_counts(task.table).sum() == pytest.approx(task.n_test)


def test_unknown_orders_widen_the_variance_by_that_between_the_bounds():
    task = rounded()
    scores, y = scores_of(40)
    random = cb.SourceTask.from_scores(np.rint(scores), y, ties="random")
    lower, upper = task.accuracy_bounds(random.grid())
    of_orders = (upper - lower) ** 2 / 12  # of a uniform law
    chance = accuracy_given_n_better(random.ranks - 1, 40, random.grid())
    added = (of_orders / (chance.var(axis=0) / task.n_test)).max()
    assert task.design_effect() == pytest.approx(random.design_effect() + added, abs=1e-5)


@pytest.mark.parametrize("kind", OPEN)
def test_a_fit_is_saved_and_says_what_it_assumed(kind, tmp_path):
    task = OPEN[kind]()
    model = cb.BayesianExtrapolator().fit(task, **FEW)
    assert set(task.notes) <= {*model.predict(40).notes}
    again = cb.load(cb.save(model, tmp_path / "fit.nc"))
    assert (again.predict(400).accuracy == model.predict(400).accuracy).all()
    model.compute_log_likelihood()
    by_class = model.idata["log_likelihood"]["rank_histogram"].sum("class")
    assert np.isfinite(by_class).all()


def test_pilots_whose_accuracy_is_known_at_no_k_are_drawn_and_reported(tmp_path):
    scores, y = scores_of(20)
    task = cb.SourceTask.from_scores(scores.round(), y, ties="unknown")
    assert task.grid().size == 0
    model = cb.BayesianExtrapolator().fit(task, **FEW)
    assert cb.plot_accuracy(model, task).get_ylabel() == "accuracy"
    lower, upper = task.accuracy_bounds(20)
    page = cb.write_report(model, [40], tmp_path / "page.html").read_text()
    assert f"{100 * lower:.0f}" in page and f"{100 * upper:.0f}" in page
    for refused in (
        lambda: cb.plots.plot_ppc(model, kind="accuracy"),
        lambda: model.predict_population(20, 40),
        lambda: cb.plot_accuracy(model.predict(9), truth=task),
        lambda: cb.estimators.TwoParameter().fit(task),
        lambda: cb.estimators.HighDimensional().fit(task),
    ):
        with pytest.raises(cb.DataError):
            refused()


def test_point_estimates_stay_between_the_bounds_of_the_pilot():
    scores, y = scores_of(60, repeats=4, lead=2.5)
    ranks = (scores > scores[np.arange(y.size), y][:, None]).sum(axis=1) + 1
    task = cb.SourceTask.from_ranks(ranks, y, n_classes=60, truncated_at=5)
    k = np.arange(2, 61)
    lower, upper = task.accuracy_bounds(k)
    assert task.grid()[0] > 30  # far above the smallest numbers of classes
    mean = cb.estimators.MixedExponential().fit(task).predict(k).mean.values
    assert np.all((lower <= mean) & (mean <= upper))


@pytest.mark.parametrize("own", [False, True])
def test_half_ranks_are_ties_within_bounds(own):
    """Realistic ranks are means of the best and the worst rank that ties allow."""
    ranks, sizes = np.array([1, 1.5, 2, 3.5, 1, 2.5]), {"n_classes": 6}
    if own:
        sizes = {"n_negatives": 5}
    task = cb.SourceTask.from_ranks(ranks, np.arange(6), **sizes)
    lower, upper = task.accuracy_bounds([6])
    assert (lower.item(), upper.item()) == pytest.approx((2 / 6, 3 / 6))
    for rounded, bound in ((np.ceil, 0), (np.floor, 1)):
        whole = cb.SourceTask.from_ranks(rounded(ranks), np.arange(6), **sizes)
        for k in (2, 4):
            assert task.accuracy_bounds([k])[bound] == pytest.approx(whole.accuracy(k))
    with pytest.raises(cb.DataError):
        cb.SourceTask.from_ranks(np.full(6, 1.25), np.arange(6), **sizes)


@given(
    st.integers(2, 500).flatmap(
        lambda n: st.tuples(st.just(n), st.lists(st.integers(0, n - 1), min_size=1))
    ),
    st.integers(10, 60),
)
def test_bins_count_every_rank_once(arguments, n_bins):
    n_classes, n_better = arguments
    last = n_better_bins(n_classes, n_bins)
    weights = np.linspace(0.5, 2, len(n_better))
    y, share = np.zeros(weights.size, dtype=int), weights / weights.sum()
    counts = bin_counts(RankTable(y, n_classes, share, np.array(n_better)), ends=last)
    expected = np.zeros(last.size)
    for loss, weight in zip(n_better, weights, strict=True):
        expected[next(j for j, end in enumerate(last) if loss <= end)] += weight
    np.testing.assert_allclose(counts, weights.size * expected / weights.sum(), rtol=1e-12)
