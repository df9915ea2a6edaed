"""Two-stage retrieval against brute force on 20 times the corpus, and lists that look like it."""

import numpy as np
import pytest

import classex_bayes as cb

FEW = {"sampler": {"draws": 300, "tune": 400, "chains": 2}, "progressbar": False, "random_seed": 1}
K1, LARGER, LENGTH, QUERIES = 1000, 20_000, 16, 400


@pytest.fixture(scope="module")
def stages():
    """Minus distances of documents to queries, of a first stage and of a better second one."""
    rng = np.random.default_rng(21)
    documents = rng.normal(size=(LARGER, 12))
    difficulty = np.exp(0.4 * rng.normal(size=(QUERIES, 1)))
    queries = documents[:QUERIES] + 0.3 * difficulty * rng.normal(size=(QUERIES, 12))
    noisy = queries + 0.5 * difficulty * rng.normal(size=queries.shape)
    squares = (documents**2).sum(axis=1)
    return [2 * some @ documents.T - squares for some in (noisy, queries)]


def searches(stages, k):
    """Lists of both stages on the first k documents (ids, scores), best first."""
    first, second = (scores[:, :k] for scores in stages)
    ids = np.argsort(-first, axis=1)[:, :100]
    listed = ids[:, :LENGTH]
    order = np.argsort(-np.take_along_axis(second, listed, axis=1), axis=1)
    reordered = np.take_along_axis(listed, order, axis=1)
    return [(x, np.take_along_axis(s, x, 1)) for x, s in ((ids, first), (reordered, second))]


def task_of(ids, scores):
    return cb.SourceTask.from_search(
        ids,
        np.arange(QUERIES),
        n_classes=K1,
        distances=scores,
        higher_is_better=True,
        untested="competitors",
    )


@pytest.fixture(scope="module")
def models(stages):
    return [cb.BayesianExtrapolator().fit(task_of(*lists), **FEW) for lists in searches(stages, K1)]


@pytest.mark.filterwarnings("ignore::classex_bayes.exceptions.DataWarning")
@pytest.mark.parametrize("m", [1, 4, LENGTH])
def test_recall_of_reranked_lists_holds_where_that_of_one_system_does_not(stages, models, m):
    ids, _ = searches(stages, LARGER)[1]
    truth = (ids[:, :m] == np.arange(QUERIES)[:, None]).any(axis=1).mean()
    metric = f"recall@{m}"
    lower, upper = (
        cb.predict_reranked(*models, LARGER, n_reranked=LENGTH, metric=metric)
        .interval(0.99)
        .to_numpy()[0]
    )
    assert lower < truth < upper
    if m > 1:
        assert models[1].predict(LARGER, metric=metric).interval(0.99)["lower"].item() > truth


@pytest.mark.filterwarnings("ignore::classex_bayes.exceptions.DataWarning")
def test_recall_at_the_length_of_the_lists_is_that_of_the_first_stage(models):
    of_first = models[0].predict(LARGER, metric=f"recall@{LENGTH}")
    metric = f"recall@{LENGTH}"
    reranked = cb.predict_reranked(*models, LARGER, n_reranked=LENGTH, metric=metric)
    np.testing.assert_allclose(reranked.draws, of_first.draws)
    assert not any("predict_reranked" in note for note in reranked.notes)


@pytest.mark.filterwarnings("ignore::classex_bayes.exceptions.DataWarning")
def test_metrics_beyond_the_reranked_documents_are_refused(models):
    for metric in ("recall@17", "mrr@20", "mean_rank", "map@r", "r_precision"):
        with pytest.raises(cb.DataError):
            cb.predict_reranked(*models, LARGER, n_reranked=LENGTH, metric=metric)
    whole, first = (
        cb.predict_reranked(*models, LARGER, n_reranked=LENGTH, metric=metric).mean.item()
        for metric in ("mrr", f"mrr@{LENGTH}")
    )
    assert whole == first


@pytest.mark.filterwarnings("ignore::classex_bayes.exceptions.DataWarning")
def test_reranked_lists_have_a_note_and_those_of_one_system_have_none(stages):
    first, second = searches(stages, K1)
    short = [values[:, :LENGTH] for values in first]
    for lists in (first, short):
        assert not any("predict_reranked" in note for note in task_of(*lists).notes)
    task = task_of(*second)
    assert task.warnings == () and any("n_reranked=16" in note for note in task.notes)
    qrels = {f"q{i}": {f"d{i}": 1} for i in range(QUERIES)}
    run = {
        f"q{i}": {f"d{j}": score for j, score in zip(*lists, strict=True)}
        for i, lists in enumerate(zip(*second, strict=True))
    }
    of_run = cb.SourceTask.from_run(qrels, run, n_classes=K1).notes
    assert any("n_reranked=16" in note for note in of_run)


def test_ranks_alone_have_a_note_where_no_smooth_law_has_such_gaps():
    ranks = [1] * 300 + [2] * 20 + [3] * 5 + [17] * 120
    task = cb.SourceTask.from_ranks(
        ranks, range(445), n_classes=1000, truncated_at=16, untested="competitors"
    )
    assert task.warnings == ()
    assert any("predict_reranked" in note for note in task.notes)
    slow = [1] * 200 + [2] * 50 + [3] * 25 + [4, 5, 6, 7] * 6 + list(range(8, 17)) * 4 + [17] * 90
    task = cb.SourceTask.from_ranks(
        slow, range(len(slow)), n_classes=1000, truncated_at=16, untested="competitors"
    )
    assert not any("predict_reranked" in note for note in task.notes)


@pytest.mark.filterwarnings("ignore::classex_bayes.exceptions.DataWarning")
def test_several_relevant_documents_count_in_both_stages():
    """The second stage puts them first, so that recall@16 of the first one decides."""
    rng, n, k1, size = np.random.default_rng(3), 200, 800, 8000
    scores = rng.normal(size=(n, size))
    own = 3 * np.arange(n)[:, None] + np.arange(3)
    scores[np.arange(n)[:, None], own] += 2.5
    order = np.argsort(-scores, axis=1)[:, :LENGTH]
    truth = (order[:, :, None] == own[:, None]).any(axis=2).sum(axis=1).mean() / 3
    qrels = {f"q{i}": {f"d{j}": 1 for j in own[i]} for i in range(n)}
    models = []
    for length, bonus in ((80, 0), (LENGTH, 20)):
        run = {}
        for i in range(n):
            listed = np.argsort(-scores[i, :k1])[:length]
            values = scores[i, listed] + bonus * np.isin(listed, own[i])
            run[f"q{i}"] = {f"d{j}": v for j, v in zip(listed, values.tolist(), strict=True)}
        task = cb.SourceTask.from_run(qrels, run, n_classes=k1)
        models.append(cb.BayesianExtrapolator().fit(task, **FEW))
    found = cb.predict_reranked(*models, size, n_reranked=LENGTH, metric="recall@3")
    lower, upper = np.asarray(found.interval(0.9))[0].astype(float)
    assert lower <= truth <= upper and upper - lower < 0.15
    alone = models[1].predict(size, metric="recall@3")
    assert np.asarray(alone.interval(0.9))[0].astype(float)[0] > truth


def test_the_first_stage_limits_every_metric_by_its_share(models):
    """By the formula, from predictions of each stage: recall@4 is a share of recall@16."""
    first, second = models

    def draws(model, k, m):
        return model.predict(k, metric=f"recall@{m}").draws.values

    share = draws(second, K1, 4) / draws(second, K1, LENGTH)
    limit, alone = share * draws(first, LARGER, LENGTH), draws(second, LARGER, 4)
    found = cb.predict_reranked(first, second, LARGER, n_reranked=LENGTH, metric="recall@4")
    np.testing.assert_allclose(found.draws.values, np.minimum(alone, limit))
    assert share.max() < 1 and (limit < alone).mean() > 0.5


@pytest.mark.filterwarnings("ignore::classex_bayes.exceptions.DataWarning")
def test_an_engine_is_compared_with_itself_reranked_by_draws_of_both_stages(stages, models):
    lists, larger = searches(stages, K1), searches(stages, LARGER)
    first, second = (task_of(*of_stage) for of_stage in lists)
    for pair in ({"a": first, "b": second}, {"b": second, "a": first}):
        with pytest.raises(cb.DataError):
            cb.compare_classifiers(pair, LARGER, metric="recall@4", **FEW)
    of_both = cb.predict_reranked(*models, LARGER, n_reranked=LENGTH, metric="recall@4").draws
    draws = of_both - models[0].predict(LARGER, metric="recall@4").draws
    lower, upper = (
        cb.evaluate.AccuracyDifference("reranked", "first", draws).interval(0.99).loc[LARGER]
    )
    in_first, in_second = (
        (ids[:, :4] == np.arange(QUERIES)[:, None]).any(axis=1).mean() for ids, _ in larger
    )
    assert lower < in_second - in_first < upper
    # Lists of two systems that search all documents, and the same list twice, are compared.
    ids, scores = searches(stages[::-1], K1)[0]
    own = task_of(ids[:, :LENGTH], scores[:, :LENGTH])
    for pair in ({"a": first, "own": own}, {"a": own, "b": own}):
        cb.compare_classifiers(pair, LARGER, metric="recall@4", **FEW)


@pytest.mark.filterwarnings("ignore::classex_bayes.exceptions.DataWarning")
def test_an_index_is_compared_with_its_compressed_copy(stages):
    """Few ranks differ, and no true class crosses the end of the lists."""
    scores = stages[0][:, :K1]
    steps = np.rint(scores / 0.2) * 0.2
    ids = [np.argsort(-values, axis=1, kind="stable")[:, :LENGTH] for values in (scores, steps)]
    found = [listed == np.arange(QUERIES)[:, None] for listed in ids]
    assert (found[0] != found[1]).any()
    missed = [~lists.any(axis=1) for lists in found]
    assert (missed[0] == missed[1]).all() and missed[0].sum() > 20
    pair = {
        name: cb.SourceTask.from_search(
            listed, np.arange(QUERIES), n_classes=K1, untested="competitors"
        )
        for name, listed in zip(("exact", "compressed"), ids, strict=True)
    }
    comparison = cb.compare_classifiers(pair, K1, metric="recall@4", **FEW)
    assert comparison.posterior.correlation.to_numpy()[0, 1] > 0.9
