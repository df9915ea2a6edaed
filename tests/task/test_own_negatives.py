"""Instances with negatives of their own, as recommenders are tested, through the public surface."""

import numpy as np
import pytest
from helpers import short_fit, unsound_data, verdict
from scipy.stats import hypergeom

import classex_bayes as cb

LAW = cb.simulate.VonMisesFisher(dim=16, concentration=30)
FEW = short_fit(300, 300)


def sampled_ranks(ranks, n_items, n_negatives, rng):
    """Ranks among negatives drawn without replacement, from the ranks among all items."""
    above = ranks - 1
    return 1 + rng.hypergeometric(above, n_items - 1 - above, n_negatives)


def full_ranks(n_items, seed):
    probes, gallery, y = LAW.sample(n_items, repeats=1, random_seed=seed)
    return cb.SourceTask.from_embeddings(probes, gallery, y, distance="cosine")


def test_metrics_are_those_of_subsets_of_the_negatives():
    rng = np.random.default_rng(3)
    scores = rng.normal(size=(7, 6))
    scores[:, 0] += 1
    task = cb.SourceTask.from_negatives(scores, list("abcdefg"))
    assert task.n_classes == 6
    for k in (2, 4, 6):
        better = (scores[:, 1:] > scores[:, :1]).sum(axis=1)
        chance = hypergeom.pmf(np.arange(k), 5, better[:, None], k - 1)
        reciprocal = (chance / (1 + np.arange(k))).sum(axis=1)
        assert task.accuracy(k) == pytest.approx(chance[:, 0].mean())
        assert task.metric("hit_rate@2", k) == pytest.approx(chance[:, :2].sum(axis=1).mean())
        assert task.metric("mrr", k) == pytest.approx(reciprocal.mean())


def test_rows_may_have_different_numbers_of_negatives():
    scores = np.array([[2.0, 1.0, 3.0, np.nan], [1.0, 0.0, 0.5, 0.7], [0.1, 0.2, 0.0, np.nan]])
    task = cb.SourceTask.from_negatives(scores, [10, 20, 30])
    assert task.ranks.tolist() == [2, 1, 2]
    assert task.n_classes == 3
    # On 2 classes each instance meets one of its 2, 3 and 2 negatives.
    assert task.accuracy(2) == pytest.approx((1 / 2 + 1 + 1 / 2) / 3)
    same = cb.SourceTask.from_ranks([2, 1, 2], [10, 20, 30], n_negatives=[2, 3, 2])
    assert same.accuracy([2, 3]).tolist() == task.accuracy([2, 3]).tolist()


@pytest.mark.parametrize("higher", [True, False])
def test_masked_items_are_no_negatives(higher):
    rng = np.random.default_rng(3)
    scores, hidden = rng.normal(size=(50, 12)), rng.random((50, 12)) < 0.4
    hidden[:, :3] = False
    given = [np.where(hidden, fill, scores) for fill in (np.nan, -np.inf if higher else np.inf)]
    made = [
        cb.SourceTask.from_negatives(values, np.arange(50), higher_is_better=higher)
        for values in given
    ]
    assert made[0].accuracy(3) == made[1].accuracy(3)
    assert made[0].ranks.tolist() == made[1].ranks.tolist()
    assert np.isinf(given[1]).any()  # the array of the caller


def test_rules_for_ties():
    scores, y = np.zeros((4000, 5)), np.arange(4000)
    by_rule = {
        ties: cb.SourceTask.from_negatives(scores, y, ties=ties).ranks
        for ties in ("auto", "random", "pessimistic", "optimistic")
    }
    assert set(by_rule["pessimistic"]) == {5} and set(by_rule["optimistic"]) == {1}
    counts = np.bincount(by_rule["random"], minlength=6)[1:]
    assert np.abs(counts - 800).max() < 4 * np.sqrt(4000 * 0.2 * 0.8)


def test_ties_that_decide_the_accuracy():
    """A sigmoid in half precision ties good items at 1; without it .186 of the users are right."""
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(500, 100))
    scores[:, 0] += 1.5
    rounded = (1 / (1 + np.exp(-8 * scores))).astype(np.float16)
    tied = (rounded[:, 1:] == rounded[:, :1]).any(axis=1).sum()
    lost = np.arange(500, 520)
    for values, n_tied in ((scores, 0), (rounded, tied)):
        for unanswered in (None, lost):
            task = cb.SourceTask.from_negatives(values, np.arange(500), unanswered=unanswered)
            assert verdict(task, "ties") == (n_tied == 0)
            assert not n_tied or f"{n_tied} of" in " ".join(task.warnings)
    same = cb.SourceTask.from_negatives(rounded, np.arange(500), ties="pessimistic")
    assert "pessimistic" in str(same.warnings)


@pytest.mark.parametrize("dtype", [float, np.uint8])
def test_lower_may_be_better(dtype):
    scores = np.array([[1, 5, 3], [9, 2, 4], [0, 5, 9]], dtype=dtype)
    task = cb.SourceTask.from_negatives(scores, ["a", "b", "c"], higher_is_better=False)
    assert task.ranks.tolist() == [1, 3, 1]


def test_variance_is_that_of_independent_users():
    """Users with several instances are clusters, and no negatives are shared."""
    rng = np.random.default_rng(4)
    p, accuracies, variances = rng.beta(1, 3, size=4000), [], []
    for _ in range(200):
        users = rng.choice(p.size, 60, replace=False)
        y = np.repeat(users, 5)
        ranks = 1 + rng.binomial(99, p[y] ** 3)
        task = cb.SourceTask.from_ranks(ranks, y, n_negatives=99)
        accuracies.append(task.accuracy(100))
        variances.append(task.accuracy_cov(100))
    ratio = np.mean(variances) / np.var(accuracies, ddof=1)
    assert 1 - 4 * np.sqrt(2 / 199) < ratio < 1 + 4 * np.sqrt(2 / 199)


@pytest.mark.slow
@pytest.mark.parametrize("n_negatives", [50, 99, 500])
def test_intervals_contain_the_metrics_of_the_whole_catalogue(n_negatives):
    n_items, names = 4000, ("accuracy", "hit_rate@10", "ndcg@10", "mrr")
    contained = []
    for seed in range(10):
        full, rng = full_ranks(n_items, seed), np.random.default_rng(seed)
        users = rng.choice(n_items, 300, replace=False)
        ranks = sampled_ranks(full.ranks[users], n_items, n_negatives, rng)
        task = cb.SourceTask.from_ranks(ranks, users, n_negatives=n_negatives)
        model = cb.BayesianExtrapolator().fit(task, random_seed=seed, progressbar=False)
        for name in names:
            lower, upper = model.predict(n_items, metric=name).interval(0.9).to_numpy()[0]
            contained.append(lower <= full.metric(name, n_items) <= upper)
    # Of 40 intervals, which depend on 10 data sets, 36 on average.
    assert np.mean(contained) >= 0.75


def test_fit_finds_the_metric_of_the_whole_catalogue():
    n_items, rng = 2000, np.random.default_rng(5)
    full = full_ranks(n_items, 5)
    ranks = sampled_ranks(full.ranks, n_items, 99, rng)
    task = cb.SourceTask.from_ranks(ranks, np.arange(n_items), n_negatives=99)
    model = cb.BayesianExtrapolator().fit(task, **FEW)
    lower, upper = model.predict(n_items, metric="hit_rate@10").interval(0.999).to_numpy()[0]
    assert lower <= full.metric("hit_rate@10", n_items) <= upper
    assert upper < task.metric("hit_rate@10", 100)
    assert upper - lower < 0.1


def test_two_systems_are_compared_on_the_same_users():
    """The sampled metric is paired by user: its errors are those of the difference."""
    rng = np.random.default_rng(6)
    hard = rng.beta(0.3, 2, size=500)
    tasks = {
        name: cb.SourceTask.from_ranks(
            1 + rng.binomial(99, hard**power), np.arange(500), n_negatives=99
        )
        for name, power in {"A": 1.0, "B": 1.1}.items()
    }
    both = cb.compare_classifiers(tasks, [100, 10_000], metric="hit_rate@10", **FEW)
    right = [np.asarray(task.ranks <= 10, dtype=float) for task in tasks.values()]
    expected = np.corrcoef(right)[0, 1]
    assert both.posterior.correlation.to_numpy()[0, 1] == pytest.approx(expected, abs=1e-6)


def test_a_prediction_says_what_the_sample_leaves_open():
    """The limits without a prior are those of `MomentBounds`."""
    rng = np.random.default_rng(7)
    ranks = 1 + rng.binomial(99, rng.beta(0.2, 8, size=300))
    task = cb.SourceTask.from_ranks(ranks, np.arange(300), n_negatives=99)
    model = cb.BayesianExtrapolator().fit(task, **FEW)
    prediction = model.predict([5000], metric="hit_rate@10")
    bounds = cb.MomentBounds().fit(task).predict([5000], metric="hit_rate@10")
    np.testing.assert_allclose(prediction.rank_bounds.interval(0.9), bounds.interval(0.9))


def among_negatives(n_better, n_negatives, unanswered=None):
    """Task of items with `n_better` (n,) better negatives of their own."""
    items = np.arange(n_better.size)
    return cb.SourceTask.from_ranks(
        1 + n_better, items, n_negatives=n_negatives, unanswered=unanswered
    )


@pytest.fixture(scope="module")
def characters():
    """Ranks among all characters, and numbers of better ones among 99 random others."""
    ranks = cb.load_glyphs().task("brush").ranks
    n_better = np.random.default_rng(1).hypergeometric(ranks - 1, ranks.size - ranks, 99)
    return ranks, n_better


def test_items_among_negatives_have_the_accuracy_of_tests_of_that_size(characters):
    ranks, n_better = characters
    task = among_negatives(n_better, 99)
    model = cb.BayesianExtrapolator().fit(task, **FEW)
    whole = cb.SourceTask.from_ranks(ranks, range(ranks.size), n_classes=ranks.size)
    prediction = model.predict([2, 100, 2965])
    truth, sd = whole.accuracy([2, 100, 2965]), prediction.summary()["sd"].to_numpy()
    assert np.all(np.abs(prediction.mean - truth) < 3 * sd) and sd[-1] < 0.05
    # Independent instances: shares of n answers, without the factor of shared competitors.
    right = task.accuracy(100).item()
    variance = right * (1 - right) / (task.n_test - 1)
    assert task.accuracy_cov(100).item() == pytest.approx(variance)
    with pytest.raises(cb.DataError):
        task.accuracy(101)
    with pytest.raises(cb.DataError):
        cb.KDE().fit(task)


def test_items_without_an_answer_lose_at_every_k(characters):
    """Of a test with 30% lost rows, 70% have the accuracy that they have without these."""
    _, n_better = characters
    task = among_negatives(n_better[:280], 99, np.arange(280, 400))
    k = np.array([2, 10, 100])
    others = among_negatives(n_better[:280], 99).accuracy(k)
    np.testing.assert_allclose(task.accuracy(k), 0.7 * others)
    model = cb.BayesianExtrapolator().fit(task, **FEW)
    prediction = model.predict([2, 100, 1000])
    sd = prediction.summary()["sd"].to_numpy()
    assert np.all(prediction.mean <= 0.7) and np.all(np.diff(prediction.mean) < 0)
    assert np.all(np.abs(prediction.mean[:2] - task.accuracy([2, 100])) < 2 * sd[:2])
    assert model.law_.cdf(np.array([1e-9])).mean() == pytest.approx(0.3, abs=0.02)


def test_negatives_of_their_own_are_no_classes():
    """As many items as each has competitors: these are not the other items."""
    with pytest.raises(cb.DataError):
        among_negatives(np.arange(100) % 9, 99).subsample(50, random_seed=1)
    # Better than chance among those that each item met.
    assert not among_negatives(np.full(20, 60) + np.arange(20), 999).warnings


@unsound_data
@pytest.mark.parametrize("n_negatives", [19, 99])
def test_lists_of_own_candidates_are_ranks_among_negatives(n_negatives, tmp_path):
    rng = np.random.default_rng(0)
    values = rng.normal(size=(150, 1 + n_negatives))
    values[:, 0] = 2.9 + 0.8 * values[:, 0]
    items = [[f"r{i}", *(f"n{i}_{j}" for j in range(n_negatives))] for i in range(150)]
    run = {f"q{i}": dict(zip(items[i], values[i], strict=True)) for i in range(150)}
    qrels = {f"q{i}": {f"r{i}": 1} for i in range(150)}
    ranks = 1 + (values[:, 1:] > values[:, :1]).sum(axis=1)
    expected = cb.SourceTask.from_ranks(ranks, [*run], n_negatives=n_negatives)
    task = cb.SourceTask.from_run(qrels, run, own_candidates=True)
    for metric in ("hit_rate@1", "hit_rate@5", "mrr"):
        sizes = [2, 10, n_negatives + 1]
        np.testing.assert_allclose(task.metric(metric, sizes), expected.metric(metric, sizes))
    names = np.array([sorted(listed, key=listed.get, reverse=True) for listed in run.values()])
    searched = cb.SourceTask.from_search(
        names,
        [f"r{i}" for i in range(150)],
        classes=sorted({*names.ravel()}),
        own_candidates=True,
    )
    assert np.array_equal(np.sort(searched.ranks), np.sort(ranks))
    lines = [
        f"{query} Q0 {item} {place} {run[query][item]:.17g} x"
        for query, listed in zip(run, names, strict=True)
        for place, item in enumerate(listed, 1)
    ]
    (tmp_path / "a.run").write_text("\n".join(lines))
    (tmp_path / "a.qrels").write_text("\n".join(f"q{i} 0 r{i} 1" for i in range(150)))
    read = cb.read_task(tmp_path / "a.run", qrels=tmp_path / "a.qrels", own_candidates=True)
    assert read.metric("mrr", 20) == pytest.approx(expected.metric("mrr", 20), abs=1e-6)


def test_own_candidates_that_are_tied():
    """The lists are whole, so ties at their ends hide no further candidates."""
    ids, y = np.arange(400).reshape(40, 10), np.arange(0, 400, 10)
    distances = np.tile([1.0, 2, 3, 4, 5, 6, 7, 9, 9, 9], (40, 1))
    options = {"own_candidates": True, "distances": distances}
    first = cb.SourceTask.from_search(ids, y, **options)
    last = cb.SourceTask.from_search(ids[:, ::-1], y, **options)
    assert (first.ranks == 1).all() and set(last.ranks) == {8, 9, 10}
    with pytest.raises(cb.DataError):
        cb.SourceTask.from_search(ids, y, **options, class_weight=np.ones(400))


# Episodes from a pool of few classes


def episodes(rng, ways=5, n_classes=20, n=600, columns=False, of=None):
    """Distances of an instance of each of the ways, drawn from few classes again and again."""
    centres = rng.normal(size=(n_classes, 10)) if of is None else of
    picks = np.stack([rng.choice(len(centres), ways, replace=False) for _ in range(n)])
    probes = centres[picks] + 1.25 * rng.normal(size=(n, ways, 10))
    distances = ((probes[:, :, None] - centres[picks][:, None]) ** 2).sum(axis=-1)
    distances, way = distances.reshape(-1, ways), np.tile(np.arange(ways), n)
    if columns:
        return cb.SourceTask.from_scores(distances, way, higher_is_better=False)
    others = np.arange(ways) != way[:, None]
    true = distances[~others]
    return np.column_stack([true, distances[others].reshape(len(true), -1)]), picks.ravel()


def of_episodes(distances, y, **more):
    return cb.SourceTask.from_negatives(distances, y, higher_is_better=False, **more)


def test_variance_of_a_pool_is_that_of_its_classes():
    """The ratio to the variance between pools is 1, whose Monte Carlo error is a sixth."""
    rng, accuracies, variances, others = np.random.default_rng(5), [], [], []
    for _ in range(80):
        rows = episodes(rng)
        task = of_episodes(*rows, pool=20)
        accuracies.append(task.accuracy(5).item())
        variances.append(task.accuracy_cov(5).item())
        others.append(of_episodes(*rows).accuracy_cov(5).item())
    assert 0.75 < np.mean(variances) / np.var(accuracies, ddof=1) < 2
    assert np.mean(others) / np.var(accuracies, ddof=1) < 0.6


def test_pool_is_named_in_notes_and_asked_for():
    rng = np.random.default_rng(6)
    rows = episodes(rng)
    asked = "pool="
    task = of_episodes(*rows, pool=20)
    assert any("the same 20 classes" in note for note in task.notes)
    assert task.design_effect() > 2 * of_episodes(*rows).design_effect()
    for doubtful in (of_episodes(*rows), episodes(rng, columns=True)):
        assert any(asked in note for note in doubtful.notes)
    users = cb.SourceTask.from_ranks(1 + np.arange(300) % 9, np.arange(300) // 10, n_negatives=99)
    for sound in (task, users):
        assert not any(asked in note for note in sound.notes)


def test_pool_that_is_tested_in_part_has_a_smaller_part_of_competitors():
    distances, y = episodes(np.random.default_rng(7))
    variances = [
        of_episodes(distances, y, pool=pool).accuracy_cov(3).item() for pool in (20, 40, 10**6)
    ]
    alone = of_episodes(distances, y).accuracy_cov(3).item()
    assert variances[0] > variances[1] > variances[2] == pytest.approx(alone, rel=1e-4)
