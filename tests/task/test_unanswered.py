"""Instances without an answer are misses at every k, in every constructor."""

import re
import warnings

import numpy as np
import pytest
from helpers import short_fit, verdict

import classex_bayes as cb

N, K1 = 300, 60
FEW = short_fit(200)


def made(seed=1, failed=0.3):
    """Scores of a Gaussian classifier, labels, and which of the probes failed."""
    rng = np.random.default_rng(seed)
    y = np.arange(N) % K1
    scores = rng.normal(size=(N, K1))
    scores[np.arange(N), y] += 2.5
    return scores, y, rng.random(N) < failed


@pytest.mark.parametrize("weighted", [False, True])
def test_same_as_a_true_score_below_all_others(weighted):
    scores, y, failed = made()
    weight = np.random.default_rng(2).random(K1) if weighted else None
    task = cb.SourceTask.from_scores(
        scores[~failed], y[~failed], unanswered=y[failed], class_weight=weight
    )
    order = np.append(np.flatnonzero(~failed), np.flatnonzero(failed))
    last = scores.copy()
    last[failed, y[failed]] = -np.inf
    other = cb.SourceTask.from_scores(last[order], y[order], class_weight=weight)
    grid = task.grid()
    assert task.n_test == N
    assert np.array_equal(task.ranks, other.ranks)
    np.testing.assert_allclose(task.accuracy(grid), other.accuracy(grid), rtol=1e-12)
    np.testing.assert_allclose(task.accuracy_cov(grid), other.accuracy_cov(grid), rtol=1e-9)


@pytest.mark.parametrize("ties", ["random", "unknown"])
def test_the_design_effect_is_that_of_the_instances_with_an_answer(ties):
    """Some classes beat many instances, so that the variance depends on competitors, too."""
    scores, y, failed = made()
    rng = np.random.default_rng(2)
    weight, scores = rng.random(K1), np.rint(scores + 1.5 * rng.normal(size=K1))[~failed]
    task = cb.SourceTask.from_scores(
        scores, y[~failed], ties=ties, unanswered=y[failed], class_weight=weight
    )
    of_answered = weight * np.bincount(y[~failed]) / np.bincount(y)
    alone = cb.SourceTask.from_scores(scores, y[~failed], ties=ties, class_weight=of_answered)
    assert task.design_effect() == pytest.approx(alone.design_effect(), rel=1e-6)
    if ties == "random":
        grid = task.grid()
        np.testing.assert_allclose(task.answered.accuracy_cov(grid), alone.accuracy_cov(grid))
        assert alone.variance.competitor_effect > 1.2


def test_same_in_all_constructors():
    rng = np.random.default_rng(3)
    gallery = rng.normal(size=(20, 5))
    y = np.arange(100) % 20
    probes = gallery[y] + 0.7 * rng.normal(size=(100, 5))
    distances = ((probes[:, None] - gallery) ** 2).sum(axis=2)
    ids = np.argsort(distances, axis=1)
    ranks = 1 + (distances < distances[np.arange(100), y][:, None]).sum(axis=1)
    lost = [0, 0, 7]
    tasks = [
        cb.SourceTask.from_embeddings(probes, gallery, y, unanswered=lost),
        cb.SourceTask.from_scores(distances, y, higher_is_better=False, unanswered=lost),
        cb.SourceTask.from_batches(
            [(distances[:50], y[:50]), (distances[50:], y[50:])],
            higher_is_better=False,
            unanswered=lost,
        ),
        cb.SourceTask.from_search(ids, y, n_classes=20, unanswered=lost),
        cb.SourceTask.from_ranks(ranks, y, n_classes=20, unanswered=lost),
    ]
    # Class weights are equal, and classes 0 and 7 have 7 and 6 instances in place of 5.
    right = np.append(ranks == 1, [False] * 3)
    all_y = np.append(y, lost)
    expected = np.mean([right[all_y == c].mean() for c in range(20)])
    for task in tasks:
        assert task.accuracy(20) == pytest.approx(expected, rel=1e-12)


def test_own_negatives():
    task = cb.SourceTask.from_ranks([1, 1, 2], list("abc"), n_negatives=9, unanswered=["d"])
    assert task.accuracy(10) == pytest.approx(0.5)


def test_empty_lists_of_a_run():
    rng = np.random.default_rng(5)
    ids = np.array([rng.permutation(50)[:10] for _ in range(200)])
    y = np.where(rng.random(200) < 0.7, ids[:, 0], ids[:, 9])
    found, values = rng.random(200) < 0.8, -np.sort(rng.random((200, 10)), axis=1)
    qrels = {f"q{i}": {f"d{y[i]:02}": 1} for i in range(200)}
    run = {
        f"q{i}": {f"d{j:02}": float(value) for j, value in zip(ids[i], values[i], strict=True)}
        for i in np.flatnonzero(found)
    }
    empty = {query: run.get(query, {}) for query in qrels}
    lists, labels = ids[found], y[found]
    others = {"distances": values[found], "higher_is_better": True, "n_classes": 50}
    others |= {"untested": "competitors"}
    n_queries = np.bincount(y, minlength=50)
    expected = cb.SourceTask.from_search(
        lists, labels, unanswered=y[~found], class_weight=n_queries, **others
    )
    for task in (
        cb.SourceTask.from_run(qrels, run, n_classes=50, missing="unanswered"),
        cb.SourceTask.from_run(qrels, empty, n_classes=50),
    ):
        for k in (2, 10, 50):
            np.testing.assert_allclose(task.accuracy_bounds(k), expected.accuracy_bounds(k))
        scores = task.answered.nearest_classes.scores
        np.testing.assert_array_equal(scores, expected.answered.nearest_classes.scores)
    documents = cb.SourceTask.from_run(qrels, empty, n_classes=50)
    law = cb.BayesianExtrapolator(evidence="ranks").fit(documents, **FEW)
    at_two = law.predict(2, metric="recall@1").mean[2]
    assert at_two < 1.05 * found.mean()  # an empty list misses even among two documents


def test_read_from_files(tmp_path):
    scores, y, failed = made()
    np.savez(tmp_path / "task.npz", scores=scores[~failed], y=y[~failed])
    np.savetxt(tmp_path / "lost.txt", y[failed], fmt="%d")
    task = cb.read_task(tmp_path / "task.npz", unanswered=tmp_path / "lost.txt")
    direct = cb.SourceTask.from_scores(scores[~failed], y[~failed], unanswered=y[failed])
    assert np.array_equal(task.ranks, direct.ranks)


def test_prediction_is_that_of_the_answered_times_their_share():
    """With 30% of the probes failed, sampling converges, and scores describe the others."""
    scores, y, failed = made()
    failed &= np.arange(N) >= K1  # every class has an answer
    task = cb.SourceTask.from_scores(scores[~failed], y[~failed], unanswered=y[failed])
    repeats = np.bincount(y[~failed], minlength=K1)
    answered = cb.SourceTask.from_scores(scores[~failed], y[~failed], class_weight=repeats)
    share, k = float(repeats.sum() / N), [60, 600, 6000]
    means = []
    for pilot in (task, answered):
        model = cb.BayesianExtrapolator().fit(pilot, **short_fit(500, 300, chains=4))
        assert not model.diagnosis_.problems
        means.append(model.predict(k).mean.to_numpy())
    np.testing.assert_allclose(means[0], share * means[1], atol=0.01)


def test_many_of_them_are_no_reversed_scores():
    scores, y, failed = made(failed=0.8)
    task = cb.SourceTask.from_scores(
        scores[~failed], y[~failed], unanswered=y[failed], untested="competitors"
    )
    assert verdict(task, "accuracy on few classes") is not False


def test_rows_tied_with_some_classes_do_not_recommend_it():
    """In groups of three an instance meets 57 of 59 classes; those ties are not all of them."""
    rng, y = np.random.default_rng(0), np.repeat(np.arange(60), 2)
    scores = rng.normal(size=(120, 60))
    scores[np.arange(120), y] += 3
    for row in range(20):
        others = np.delete(np.arange(60), y[row])[:57]
        scores[row, others] = scores[row, y[row]] = 9.0
    design = cb.Sampling(groups=np.arange(60) // 3)
    for sampling in (None, design):
        task = cb.SourceTask.from_scores(scores, y, sampling=sampling)
        assert verdict(task, "ties") is False and verdict(task, "last ranks") is not False


def test_open_set_misses_them_at_every_threshold():
    people = cb.simulate.VonMisesFisher(dim=8, concentration=30)
    probes, gallery, y = people.sample(200, repeats=2, random_seed=3)
    failed = y < 50  # all probes of a person, so that the others keep their weights
    of_answered, of_all = (
        cb.OpenSetExtrapolator()
        .fit(
            cb.SourceTask.from_embeddings(
                probes[~failed], gallery, y[~failed], unanswered=lost, untested="competitors"
            ),
            random_seed=1,
        )
        .predict(1000, threshold=[0.2, 0.4])
        for lost in (None, y[failed])
    )
    dims, share = ["chain", "draw"], failed.mean()
    fnir = share + (1 - share) * of_answered.fnir.mean(dims)
    np.testing.assert_allclose(of_all.fnir.mean(dims), fnir, atol=0.01)
    np.testing.assert_allclose(of_all.fpir, of_answered.fpir, rtol=1e-6)
    # The share of the unanswered is uncertain, too: a binomial count in the simplest case.
    assert (of_all.fnir.std(dims) > 0.75 * np.sqrt(share * (1 - share) / 200)).all()


@pytest.mark.parametrize(
    "estimator",
    [
        cb.estimators.TwoParameter(),
        cb.estimators.PitmanYor(),
        cb.estimators.HighDimensional(),
        cb.estimators.SampledMetrics("maximum_entropy"),
    ],
    ids=lambda estimator: estimator.name,
)
def test_point_estimates_are_those_of_the_answered_times_their_share(estimator):
    rng, y = np.random.default_rng(3), np.arange(600) % 100
    ranks = np.minimum(rng.geometric(0.3, size=600), 100)
    task = cb.SourceTask.from_ranks(ranks, y, n_classes=100, unanswered=range(100))
    answered = cb.SourceTask.from_ranks(ranks, y, n_classes=100)
    found, alone = (estimator.fit(t).predict([100, 1000]).mean for t in (task, answered))
    np.testing.assert_allclose(found, 6 / 7 * alone, rtol=1e-9)


def test_a_file_of_labels_has_the_names_of_the_scores(tmp_path):
    scores, y, _ = made()
    path = tmp_path / "lost.txt"
    path.write_text("107\n107\n")
    np.savez(tmp_path / "b.npz", scores=scores, y=100 + y, classes=np.arange(60) + 100)
    task = cb.read_task(tmp_path / "b.npz", unanswered=path)
    assert np.count_nonzero(task.y == 7) == N // K1 + 2


def test_parts_of_a_test_have_their_own(tmp_path):
    scores, y, failed = made()
    for number, rows in enumerate((slice(0, 120), slice(120, N))):
        given = {"scores": scores[rows][~failed[rows]], "y": y[rows][~failed[rows]]}
        np.savez(tmp_path / f"{number}.npz", **given, unanswered=y[rows][failed[rows]])
    task = cb.read_task(sorted(tmp_path.glob("*.npz")))
    direct = cb.SourceTask.from_scores(scores[~failed], y[~failed], unanswered=y[failed])
    assert np.array_equal(task.y, direct.y) and np.array_equal(task.ranks, direct.ranks)


def test_notes_and_errors_of_an_estimate_are_those_of_all_instances():
    rng = np.random.default_rng(1)
    y = np.repeat(np.arange(40), 3)
    ranks = np.exp(4 * rng.random(120) ** 6).astype(int).clip(max=40)
    failed = y < 10
    of_answered, of_all = (
        cb.ClassExReg(random_seed=1).fit(
            cb.SourceTask.from_ranks(
                ranks[~failed], y[~failed], n_classes=40, unanswered=lost, untested="competitors"
            )
        )
        for lost in (None, y[failed])
    )
    ends = [
        [float(end) for end in re.search(r"between (0\.\d+) and (0\.\d+)$", note).groups()]
        for model in (of_answered, of_all)
        for note in model.predict(1000).notes
        if "other halves" in note
    ]
    np.testing.assert_allclose(ends[1], 0.75 * np.array(ends[0]), atol=0.01)
    error = of_all.standard_error([40, 1000])
    np.testing.assert_allclose(error, 0.75 * of_answered.standard_error([40, 1000]))


@pytest.mark.parametrize(
    "estimator",
    [cb.KDE("ucv"), cb.estimators.BinomialModel(), cb.ClassExReg(random_seed=1)],
    ids=lambda estimator: estimator.name,
)
def test_estimators_and_checks_of_scores_have_those_of_the_answered(estimator):
    scores, y, failed = made()
    answered, whole = (
        cb.SourceTask.from_scores(
            scores[~failed], y[~failed], unanswered=lost, untested="competitors"
        )
        for lost in (None, y[failed])
    )
    share = np.bincount(y[~failed], minlength=K1) / np.bincount(y, minlength=K1)
    weighted = cb.SourceTask.from_scores(
        scores[~failed], y[~failed], class_weight=share / share.sum(), untested="competitors"
    )
    found, alone = (estimator.fit(task).predict([60, 600]).mean for task in (whole, weighted))
    np.testing.assert_allclose(found, share.mean() * alone, rtol=1e-9)
    made_checks = [
        {check.name for check in cb.diagnose(task, random_seed=1) if check.passed is not None}
        for task in (answered, whole)
    ]
    assert made_checks[0] == made_checks[1] >= {"copies of instances", "copies of classes"}


def test_checks_of_a_fit_to_scores_take_them():
    scores, y, failed = made()
    task = cb.SourceTask.from_scores(scores[~failed], y[~failed], unanswered=y[failed])
    model = cb.BayesianExtrapolator().fit(task, **FEW)
    assert "ranks and scores" in str(model.predict(1000))
    share = cb.sensitivity(model, 1000).table["prior_share"]
    alone = cb.BayesianExtrapolator(evidence="ranks").fit(task, **FEW)
    expected = cb.sensitivity(alone, 1000).table["prior_share"]
    np.testing.assert_allclose(share, expected, atol=0.05)
    # The law given the ranks alone has the same share of instances that lose at every k.
    given_ranks, law = model.law_given_ranks_, model.law_
    assert given_ranks.expected([2]).mean() == pytest.approx(law.expected([2]).mean(), abs=0.03)
    assert law.expected([2]).mean() < 1 - failed.mean()


def test_scores_of_the_answered_are_those_of_no_other_instances():
    scores, y, failed = made()
    task = cb.SourceTask.from_scores(scores[~failed], y[~failed], unanswered=y[failed])
    with pytest.raises(cb.exceptions.DataError):
        _ = task.scores
    assert np.isfinite(task.accuracy_cov([7, 31])).all()
    half = task.subsample(30, random_seed=1)
    same = cb.SourceTask.from_scores(scores, y).subsample(30, random_seed=1)
    answered = half.answered
    assert half.n_test == same.n_test and answered.scores.shape == (answered.n_test, 30)
    # A group in which all have an answer, and one in which some have none.
    group = np.where(np.arange(task.n_test) < 100, "first", "others")
    predictions = cb.extrapolate_groups(task, group, 60, **FEW)
    first = cb.SourceTask.from_scores(
        scores[~failed][:100], y[~failed][:100], untested="competitors"
    )
    alone = cb.BayesianExtrapolator().fit(first, **FEW).predict(60)
    found = predictions.by_group["first"]
    assert found.mean.item() == pytest.approx(alone.mean.item(), abs=0.01)
    by_ranks = cb.extrapolate_groups(task.without_scores(), group, 60, **FEW)
    assert by_ranks.by_group["first"].mean.item() == pytest.approx(found.mean.item(), abs=0.05)


@pytest.mark.parametrize("cut", ["between classes", "within classes"])
def test_parts_of_which_some_instances_have_no_answer(cut):
    """Their classes may have instances with an answer in any part."""
    rng = np.random.default_rng(5)
    y = np.repeat(np.arange(20), 4)
    scores = rng.normal(size=(80, 20)) + 2 * np.eye(20)[y]
    first = np.arange(80) < 40 if cut == "between classes" else np.arange(80) % 2 == 0
    lost = [3, 15]
    parts = [
        cb.SourceTask.from_scores(
            scores[rows], y[rows], unanswered=unanswered, untested="competitors"
        )
        for rows, unanswered in ((first, lost), (~first, lost[:1]))
    ]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "each of 2 parts tests all")
        merged = cb.SourceTask.merge(parts)
    whole = cb.SourceTask.from_scores(scores, y, unanswered=[*lost, 3])
    k = [2, 7, 20]
    np.testing.assert_allclose(merged.accuracy(k), whole.accuracy(k))
    np.testing.assert_allclose(merged.accuracy_cov(k), whole.accuracy_cov(k))
    some, of_whole = (task.select(np.arange(12)) for task in (merged, whole))
    np.testing.assert_allclose(some.accuracy(5), of_whole.accuracy(5))
