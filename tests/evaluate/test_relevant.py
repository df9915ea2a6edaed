"""Recall and nDCG with several relevant documents, against brute force and known corpora."""

import numpy as np
import pytest
from helpers import short_fit

import classex_bayes as cb

FEW = short_fit(300, 300)


def corpus(n_queries, n_documents, seed, dim=12):
    """Similarities of queries to documents; the query that each relevant document belongs to."""
    rng = np.random.default_rng(seed)
    topics = rng.normal(size=(n_queries, dim))
    owner = np.repeat(np.arange(n_queries), 1 + rng.poisson(1.5, n_queries))
    spread = rng.uniform(0.4, 1.3, n_queries)[owner, None]
    relevant = topics[owner] + spread * rng.normal(size=(owner.size, dim))
    others = 1.3 * rng.normal(size=(n_documents - owner.size, dim))
    queries = topics + 0.3 * rng.normal(size=topics.shape)
    documents = np.concatenate([relevant, others])
    return 2 * queries @ documents.T - (documents**2).sum(axis=1), owner


def run_of(scores, owner, kept, length):
    """Judgements and the lists of a run on some of the documents."""
    qrels = {f"q{i}": {f"d{j}": 1 for j in np.flatnonzero(owner == i)} for i in range(len(scores))}
    run = {}
    for i, row in enumerate(scores[:, kept]):
        best = np.argsort(-row)[:length]
        run[f"q{i}"] = {f"d{kept[j]}": float(row[j]) for j in best}
    return qrels, run


def brute_force(qrels, run, metric, m):
    """Mean over queries, list by list."""
    values = []
    for query, relevant in qrels.items():
        listed = sorted(run[query], key=lambda name: -run[query][name])[:m]
        places = [place for place, name in enumerate(listed, 1) if name in relevant]
        if metric == "recall":
            values.append(len(places) / len(relevant))
        else:
            ideal = range(1, min(len(relevant), m) + 1)
            gain, best = (sum(1 / np.log2(place + 1) for place in some) for some in (places, ideal))
            values.append(gain / best)
    return np.mean(values)


@pytest.mark.parametrize("m", [1, 3, 10])
@pytest.mark.parametrize("metric", ["recall", "ndcg"])
def test_metrics_of_a_run_are_those_of_its_lists(metric, m):
    scores, owner = corpus(40, 300, 1)
    qrels, run = run_of(scores, owner, np.arange(300), 20)
    documents = cb.RelevantDocuments.from_run(qrels, run, n_classes=300)
    expected = brute_force(qrels, run, metric, m)
    assert documents.metric(f"{metric}@{m}") == pytest.approx(expected, abs=1e-12)


def test_one_relevant_document_is_a_task():
    scores, owner = corpus(40, 300, 1)
    qrels, run = run_of(scores, owner, np.arange(300), 20)
    qrels = {query: dict([next(iter(listed.items()))]) for query, listed in qrels.items()}
    documents = cb.RelevantDocuments.from_run(qrels, run, n_classes=300)
    task = cb.SourceTask.from_run(qrels, run, n_classes=300)
    for metric in ("recall@5", "ndcg@5"):
        assert documents.metric(metric) == pytest.approx(task.metric(metric, 300)[0])


def predicted(seed, metric):
    """Interval on 10,000 documents from a pilot of 1,000, and the recall or nDCG there."""
    scores, owner = corpus(150, 10_000, seed)
    rng = np.random.default_rng(seed)
    others = owner.size + rng.choice(10_000 - owner.size, 1000 - owner.size, replace=False)
    kept = np.append(np.arange(owner.size), others)
    pilot = cb.RelevantDocuments.from_run(*run_of(scores, owner, kept, 100), n_classes=1000)
    whole = cb.RelevantDocuments.from_run(
        *run_of(scores, owner, np.arange(10_000), 100), n_classes=10_000
    )
    prediction = pilot.predict([1000, 10_000], metric=metric, **{**FEW, "random_seed": seed})
    return pilot, prediction, whole.metric(metric)


@pytest.mark.parametrize("metric", ["recall@10", "ndcg@10"])
def test_prediction_contains_the_metric_of_a_larger_corpus(metric):
    pilot, prediction, truth = predicted(1, metric)
    lower, upper = prediction.interval(0.999).loc[10_000]
    assert lower < truth < upper
    assert upper < pilot.metric(metric)
    # On the pilot's own corpus the posterior is near the metric of the pilot.
    sd = float(prediction.draws.sel(k=1000).std())
    assert abs(prediction.mean[1000] - pilot.metric(metric)) < 2 * sd


def test_recall_of_fewer_documents_than_are_relevant():
    """A query with more relevant documents than the list has places cannot have recall 1."""
    scores, owner = corpus(80, 500, 1)
    assert np.bincount(owner).max() > 2
    documents = cb.RelevantDocuments.from_run(
        *run_of(scores, owner, np.arange(500), 60), n_classes=500
    )
    prediction = documents.predict(500, metric="recall@2", **FEW)
    sd = float(prediction.draws.std())
    assert abs(prediction.mean[500] - documents.metric("recall@2")) < 2 * sd


@pytest.mark.slow
def test_intervals_contain_the_metric_of_a_larger_corpus():
    held = []
    for seed in range(12):
        _, prediction, truth = predicted(seed, "recall@10")
        lower, upper = prediction.interval(0.9).loc[10_000]
        held.append(lower <= truth <= upper)
    assert np.mean(held) >= 0.7


@pytest.mark.parametrize("metric", ["accuracy", "mrr", "success@10", "recall"])
def test_other_metrics_are_those_of_a_task(metric):
    scores, owner = corpus(40, 300, 1)
    documents = cb.RelevantDocuments.from_run(
        *run_of(scores, owner, np.arange(300), 20), n_classes=300
    )
    with pytest.raises(cb.DataError, match=r"^metric: found"):
        documents.metric(metric)


def test_lists_must_be_long_enough():
    scores, owner = corpus(40, 300, 1)
    documents = cb.RelevantDocuments.from_run(
        *run_of(scores, owner, np.arange(300), 5), n_classes=300
    )
    with pytest.raises(cb.DataError, match="lists of 5 documents do not determine"):
        documents.metric("recall@10")
    with pytest.raises(cb.DataError, match="do not determine"):
        documents.predict(3000, metric="recall@10", **FEW)


def test_few_queries_are_refused():
    scores, owner = corpus(10, 300, 1)
    documents = cb.RelevantDocuments.from_run(
        *run_of(scores, owner, np.arange(300), 20), n_classes=300
    )
    with pytest.raises(cb.DataError, match="found 10 queries with relevant documents"):
        documents.predict(3000, metric="recall@10", **FEW)


def two_engines(kept, n_classes, seed):
    """Runs of two engines on some of the documents; the second has noisier similarities."""
    scores, owner = corpus(150, 10_000, seed)
    noisy = scores + 1.5 * np.random.default_rng(seed).normal(size=scores.shape)
    return {
        name: cb.RelevantDocuments.from_run(
            *run_of(similarities, owner, kept(owner), 100), n_classes=n_classes
        )
        for name, similarities in (("plain", scores), ("noisy", noisy))
    }


@pytest.mark.nightly
def test_two_engines_are_compared_on_the_same_queries():
    whole = two_engines(lambda owner: np.arange(10_000), 10_000, 2)
    pilots = two_engines(lambda owner: np.arange(1000), 1000, 2)
    settings = {"metric": "recall@10", **FEW}
    comparison = cb.compare_classifiers(pilots, [1000, 10_000], **settings)
    difference = comparison.difference("plain", "noisy")
    lower, upper = difference.interval(0.99).loc[10_000]
    truth = whole["plain"].metric("recall@10") - whole["noisy"].metric("recall@10")
    assert lower < truth < upper
    # The engines share queries, so their difference is more certain than independent tests say.
    alone = [docs.predict(1000, **settings).draws.var().item() for docs in pilots.values()]
    assert difference.draws.sel(k=1000).var().item() < 0.8 * sum(alone)
    for name, documents in pilots.items():
        of_engine = comparison.predictions[name].draws.sel(k=1000)
        assert abs(of_engine.mean() - documents.metric("recall@10")) < 2 * of_engine.std()


def test_engines_have_the_same_queries():
    pilots = two_engines(lambda owner: np.arange(1000), 1000, 2)
    scores, owner = corpus(150, 1000, 3)
    pilots["noisy"] = cb.RelevantDocuments.from_run(
        *run_of(scores, owner, np.arange(1000), 100), n_classes=1000
    )
    with pytest.raises(cb.DataError, match=r"^tasks: 'plain' .*'noisy' .*queries"):
        cb.compare_classifiers(pilots, 1000, metric="recall@10")
    # Three queries for each document. The runs lack different ones.
    qrels = {f"q{i}": {f"d{i // 3}": 1} for i in range(60)}
    lacking = [
        cb.RelevantDocuments.from_run(
            qrels,
            {query: {"d0": 1.0} for query in qrels if query != missing},
            n_classes=50,
            missing="unsearched",
        )
        for missing in ("q0", "q1")
    ]
    with pytest.raises(cb.DataError, match="have different queries"):
        cb.compare_classifiers(dict(zip("ab", lacking, strict=True)), 50, metric="recall@1")
    task = cb.SourceTask.from_ranks([1, 2, 1], [0, 1, 2], n_classes=3)
    with pytest.raises(cb.DataError, match="SourceTask, found RelevantDocuments"):
        cb.compare_classifiers({"a": pilots["plain"], "b": task}, 1000, metric="recall@10")
    with pytest.raises(cb.DataError, match=r"^paired: found False"):
        cb.compare_classifiers(pilots, 1000, metric="recall@10", paired=False)


def test_recall_of_a_task_is_refused(tmp_path):
    scores, owner = corpus(40, 300, 1)
    qrels, run = run_of(scores, owner, np.arange(300), 20)
    task = cb.SourceTask.from_run(qrels, run, n_classes=300)
    model = cb.BayesianExtrapolator(evidence="ranks").fit(task, **FEW)
    whole_lists = cb.SourceTask.from_run(*run_of(scores, owner, np.arange(300), 300), n_classes=300)
    sampled = cb.estimators.SampledMetrics().fit(whole_lists)
    for metric in ("recall@5", "recall@1", "nDCG@5"):
        for call in (
            lambda metric=metric: sampled.predict(900, metric=metric),
            lambda metric=metric: task.metric(metric, 300),
            lambda metric=metric: model.predict(300, metric=metric),
            lambda metric=metric: cb.compare_classifiers(
                {"a": task, "b": task}, 300, metric=metric
            ),
        ):
            with pytest.raises(cb.DataError, match=r"queries have several relevant documents"):
                call()
    assert model.predict(300, metric="success@5").mean[300] > 0
    (tmp_path / "qrels").write_text(
        "".join(f"{q} 0 {d} {level}\n" for q, found in qrels.items() for d, level in found.items())
    )
    (tmp_path / "run").write_text(
        "".join(f"{q} Q0 {d} 0 {s!r} a\n" for q, found in run.items() for d, s in found.items())
    )
    read, made = (
        cb.RelevantDocuments.from_run(*entries, n_classes=300).metric("ndcg@5")
        for entries in ((tmp_path / "qrels", str(tmp_path / "run")), (qrels, run))
    )
    assert read == pytest.approx(made, rel=1e-12)
