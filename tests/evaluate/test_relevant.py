"""Recall and nDCG with several relevant documents, against brute force and known corpora."""

from copy import copy

import numpy as np
import pytest
from helpers import short_fit

import classex_bayes as cb
from classex_bayes.bayes import extrapolator
from classex_bayes.core import named_metric
from classex_bayes.exceptions import Interrupted

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
    """Judgements, with grades of 1 to 3, and the lists of a run on some of the documents."""
    qrels = {
        f"q{i}": {f"d{j}": 1 + int(j) % 3 for j in np.flatnonzero(owner == i)}
        for i in range(len(scores))
    }
    run = {}
    for i, row in enumerate(scores[:, kept]):
        best = np.argsort(-row)[:length]
        run[f"q{i}"] = {f"d{kept[j]}": float(row[j]) for j in best}
    return qrels, run


def predict(documents, k, metric):
    """Prediction from ranks, by a model that is fitted as to any task."""
    model = cb.BayesianExtrapolator(evidence="ranks").fit(documents, metrics=metric, **FEW)
    return model.predict(k, metric=metric)


def brute_force(qrels, run, metric, m):
    """Mean over queries, list by list."""
    values = []
    for query, relevant in qrels.items():
        listed = sorted(run[query], key=lambda name: -run[query][name])[:m]
        if metric == "recall":
            values.append(len(set(listed) & relevant.keys()) / len(relevant))
        else:
            found = [relevant.get(name, 0) for name in listed]
            ideal = sorted(relevant.values(), reverse=True)[:m]
            gain, best = (
                sum(grade / np.log2(place + 1) for place, grade in enumerate(grades, 1))
                for grades in (found, ideal)
            )
            values.append(gain / best)
    return np.mean(values)


@pytest.mark.parametrize("m", [1, 3, 10])
@pytest.mark.parametrize("metric", ["recall", "ndcg"])
def test_metrics_of_a_run_are_those_of_its_lists(metric, m):
    scores, owner = corpus(40, 300, 1)
    qrels, run = run_of(scores, owner, np.arange(300), 20)
    documents = cb.SourceTask.from_run(qrels, run, n_classes=300)
    expected = brute_force(qrels, run, metric, m)
    for k in (None, 300):
        assert documents.metric(f"{metric}@{m}", k) == pytest.approx(expected, abs=1e-12)
    # Of 100 documents the relevant ones are left, and a third of the others.
    rng = np.random.default_rng(1)
    qrels, lists = run_of(scores, owner, np.arange(300), 300)
    smaller = []
    for _ in range(40):
        some = rng.random(300) < 1 / 3
        drawn = {
            query: {d: s for d, s in listed.items() if d in qrels[query] or some[int(d[1:])]}
            for query, listed in lists.items()
        }
        smaller.append(brute_force(qrels, drawn, metric, m))
    whole = cb.SourceTask.from_run(qrels, lists, n_classes=300)
    error = np.std(smaller) / 40**0.5
    assert abs(whole.metric(f"{metric}@{m}", 100) - np.mean(smaller)) < 4 * error + 0.002


def test_grades_below_the_level_have_gains():
    """As in trec_eval, where the level is that of binary relevance."""
    scores, owner = corpus(40, 300, 1)
    qrels, run = run_of(scores, owner, np.arange(300), 20)
    qrels = {query: {**found, f"d{290 + int(query[1:]) % 10}": 3} for query, found in qrels.items()}
    documents = cb.SourceTask.from_run(qrels, run, n_classes=300, relevance_level=3)
    assert documents.metric("ndcg@10") == pytest.approx(brute_force(qrels, run, "ndcg", 10))
    best = {q: {d: g for d, g in found.items() if g == 3} for q, found in qrels.items()}
    assert documents.metric("recall@10") == pytest.approx(brute_force(best, run, "recall", 10))


def test_one_relevant_document_is_a_task():
    scores, owner = corpus(40, 300, 1)
    qrels, run = run_of(scores, owner, np.arange(300), 20)
    qrels = {query: dict([next(iter(listed.items()))]) for query, listed in qrels.items()}
    documents = cb.SourceTask.from_run(qrels, run, n_classes=300)
    task = cb.SourceTask.from_run(qrels, run, n_classes=300)
    for metric in ("recall@5", "ndcg@5"):
        assert documents.metric(metric) == pytest.approx(task.metric(metric, 300))
        assert documents.relevant_ranks(named_metric(metric)) is None


def pilot_and_corpus(seed):
    """A pilot of 1,000 documents, a model that is fitted to it, and the whole corpus of 10,000."""
    scores, owner = corpus(150, 10_000, seed)
    rng = np.random.default_rng(seed)
    others = owner.size + rng.choice(10_000 - owner.size, 1000 - owner.size, replace=False)
    kept = np.append(np.arange(owner.size), others)
    pilot = cb.SourceTask.from_run(*run_of(scores, owner, kept, 100), n_classes=1000)
    whole = cb.SourceTask.from_run(*run_of(scores, owner, np.arange(10_000), 100), n_classes=10_000)
    model = cb.BayesianExtrapolator(evidence="ranks").fit(
        pilot, metrics=["recall@10", "ndcg@10"], **{**FEW, "random_seed": seed}
    )
    return pilot, model, whole


def test_prediction_contains_the_metric_of_a_larger_corpus():
    pilot, model, whole = pilot_and_corpus(1)
    for metric in ("recall@10", "ndcg@10"):
        prediction = model.predict([1000, 10_000], metric=metric)
        lower, upper = prediction.interval(0.999).loc[10_000]
        assert lower < whole.metric(metric) < upper
        assert upper < pilot.metric(metric)
        # On the pilot's own corpus the posterior is near the metric of the pilot.
        sd = float(prediction.draws.sel(k=1000).std())
        assert abs(prediction.mean[1000] - pilot.metric(metric)) < 2 * sd


def test_recall_of_fewer_documents_than_are_relevant():
    """A query with more relevant documents than the list has places cannot have recall 1."""
    scores, owner = corpus(80, 500, 1)
    assert np.bincount(owner).max() > 2
    documents = cb.SourceTask.from_run(*run_of(scores, owner, np.arange(500), 60), n_classes=500)
    prediction = predict(documents, 500, "recall@2")
    sd = float(prediction.draws.std())
    assert abs(prediction.mean[500] - documents.metric("recall@2")) < 2 * sd


@pytest.mark.slow
def test_intervals_contain_the_metric_of_a_larger_corpus():
    held = []
    for seed in range(12):
        _, model, whole = pilot_and_corpus(seed)
        lower, upper = model.predict(10_000, metric="recall@10").interval(0.9).loc[10_000]
        held.append(lower <= whole.metric("recall@10") <= upper)
    assert np.mean(held) >= 0.7


@pytest.mark.usefixtures("short_pages")
def test_documents_are_used_like_a_task(tmp_path):
    scores, owner = corpus(60, 400, 4)
    documents = cb.SourceTask.from_run(*run_of(scores, owner, np.arange(400), 60), n_classes=400)
    model = cb.BayesianExtrapolator().fit(documents, metrics="recall@1", **FEW)
    k = [400, 4000]
    recall, success = (model.predict(k, metric=name) for name in ("recall@5", "success@5"))
    assert (recall.mean < success.mean).all()
    assert recall.draws.shape == success.draws.shape == (2, 300, 2)  # by the same sampler
    assert recall.evidence == "ranks" and success.evidence == "ranks and scores"
    axes = cb.plot_accuracy(model, documents, metric="recall@5")
    assert axes.get_ylabel() == "recall@5"
    until = model.classes_until(0.4, metric="recall@5")
    at_least = recall.prob_reached(0.4)
    assert until.prob_at_least(4000) == pytest.approx(at_least[4000], abs=0.01)
    path = cb.write_report(model, k, tmp_path / "page.html", metric="recall@5", target=0.4)
    assert "recall@5" in path.read_text("utf-8")
    again = cb.load(cb.save(model, tmp_path / "fit.nc"))
    np.testing.assert_array_equal(again.predict(k, metric="recall@5").draws, recall.draws)
    for fitted in (model, again):
        with pytest.raises(cb.DataError):  # of a metric that the model was not fitted to
            fitted.predict(k, metric="ndcg@3")
    table = cb.compare([model, cb.MomentBounds()], documents, k, metric="recall@5")
    assert list(table.skipped) == ["MomentBounds"]


def test_an_interrupted_fit_to_a_metric_leaves_the_others(monkeypatch):
    def stop(*arguments, **settings):
        raise KeyboardInterrupt

    scores, owner = corpus(40, 300, 1)
    documents = cb.SourceTask.from_run(*run_of(scores, owner, np.arange(300), 20), n_classes=300)
    monkeypatch.setattr(extrapolator, "fitted_laws", stop)
    model = cb.BayesianExtrapolator(evidence="ranks")
    with pytest.raises(Interrupted) as caught:
        model.fit(documents, metrics=["mrr", "ndcg@10"], **FEW)
    assert caught.value.partial is model
    assert 0 < model.predict(300, metric="mrr").mean.item() < 1


def test_metrics_are_refused_before_the_fit():
    scores, owner = corpus(40, 300, 1)
    documents = cb.SourceTask.from_run(*run_of(scores, owner, np.arange(300), 20), n_classes=300)
    model = cb.BayesianExtrapolator(evidence="ranks")
    for tasks, metric in ((documents, "map"), ([documents, copy(documents)], "recall@5")):
        with pytest.raises(cb.DataError, match=metric):
            model.fit(tasks, metrics=metric, **FEW)
    assert not model.is_fitted


def test_few_late_documents_are_no_fault():
    """Of a weak engine hardly any of the later documents is in a list; warnings are errors."""
    scores, owner = corpus(100, 2_000, seed=3)
    weak = scores + 40 * np.random.default_rng(1).standard_normal(scores.shape)
    qrels, run = run_of(weak, owner, np.arange(2_000), 50)
    task = cb.SourceTask.from_run(qrels, run, n_classes=2_000)
    notes = predict(task, 4_000, "recall@10").notes
    assert not any("guessing" in note for note in notes)


def test_a_prediction_says_once_how_many_relevant_documents_are_not_listed():
    scores, owner = corpus(100, 1_000, seed=3)
    qrels, run = run_of(scores, owner, np.arange(1_000), 15)
    run["q0"] = {}  # a failed query, which is also described once
    task = cb.SourceTask.from_run(qrels, run, n_classes=1_000)
    found = [len(relevant.keys() & run[query].keys()) for query, relevant in qrels.items()]
    notes = predict(task, 2_000, "recall@5").notes
    assert sum("not in the lists" in note for note in notes) == 2  # best ones, and all
    (every, best) = (note for note in notes if "not in the lists" in note)
    assert f"of {np.count_nonzero(np.array(found[1:]) == 0)} of 100 queries" in best
    assert f"{owner.size - sum(found)} of all {owner.size} relevant documents" in every
    assert sum("unanswered" in note for note in notes) == 1


def test_few_errors_are_those_of_the_metric():
    """The best document of each query is nearly always first, and the later ones are not."""
    owner, late = np.repeat(np.arange(60), 2), np.tile([False, True], 60)
    is_own = np.arange(60)[:, None] == np.append(owner, np.full(280, -1))
    noise = np.random.default_rng(4).normal(size=is_own.shape)
    said = {}
    for name, height in (("late", 1.5), ("easy", 9.0)):
        similarities = noise + is_own * np.append(np.where(late, height, 9.0), np.zeros(280))
        qrels, run = run_of(similarities, owner, np.arange(400), 50)
        task = cb.SourceTask.from_run(qrels, run, n_classes=400)
        model = cb.BayesianExtrapolator(evidence="ranks")
        model.fit(task, metrics=["recall@5", "ndcg@5"], **FEW)
        for metric in ("success@1", "recall@5", "recall@2", "ndcg@5"):
            notes = model.predict(800, metric=metric).notes
            said[name, metric] = [note for note in notes if "So few errors" in note]
    assert len(said["late", "success@1"]) == 1 and "of 60 queries" in said["late", "success@1"][0]
    assert said["late", "recall@5"] == said["late", "ndcg@5"] == []
    (of_recall,), (of_ndcg,) = said["easy", "recall@5"], said["easy", "ndcg@5"]
    assert of_recall.startswith("recall: ") and "of 120 relevant documents" in of_recall
    assert of_ndcg.startswith("ndcg@5: ") and said["easy", "recall@2"] == [of_recall]


def two_engines(kept, n_classes, seed):
    """Runs of two engines on some of the documents; the second has noisier similarities."""
    scores, owner = corpus(150, 10_000, seed)
    noisy = scores + 1.5 * np.random.default_rng(seed).normal(size=scores.shape)
    return {
        name: cb.SourceTask.from_run(
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
    truth = (whole["plain"].metric("recall@10") - whole["noisy"].metric("recall@10")).item()
    assert lower < truth < upper
    # The engines share queries, so their difference is more certain than independent tests say.
    alone = [predict(docs, 1000, "recall@10").draws.var().item() for docs in pilots.values()]
    assert difference.draws.sel(k=1000).var().item() < 0.8 * sum(alone)
    for name, documents in pilots.items():
        of_engine = comparison.predictions[name].draws.sel(k=1000)
        assert abs(of_engine.mean() - documents.metric("recall@10").item()) < 2 * of_engine.std()


def test_parts_have_the_documents_of_their_queries():
    scores, owner = corpus(60, 300, 1)
    task = cb.SourceTask.from_run(*run_of(scores, owner, np.arange(300), 300), n_classes=300)
    for metric in ("recall@5", "ndcg@5"):
        parts = [task.subsample(150, random_seed=seed).metric(metric) for seed in range(200)]
        error = np.std(parts) / 200**0.5
        assert abs(np.mean(parts) - task.metric(metric, 150)) < 4 * error


def test_files_hold_the_same_documents(tmp_path):
    scores, owner = corpus(40, 300, 1)
    qrels, run = run_of(scores, owner, np.arange(300), 20)
    (tmp_path / "qrels").write_text(
        "".join(f"{q} 0 {d} {level}\n" for q, found in qrels.items() for d, level in found.items())
    )
    (tmp_path / "run").write_text(
        "".join(f"{q} Q0 {d} 0 {s!r} a\n" for q, found in run.items() for d, s in found.items())
    )
    files = tmp_path / "qrels", str(tmp_path / "run")
    expected = cb.SourceTask.from_run(qrels, run, n_classes=300).metric("ndcg@5")
    task = cb.read_task(files[1], qrels=files[0], n_classes=300)
    assert task.metric("ndcg@5") == pytest.approx(expected, rel=1e-12)


def test_all_documents_are_among_the_first_of_a_corpus():
    """Relevant documents that no list has rank behind the irrelevant ones at most."""
    qrels = {"a": {"d0": 1, "d1": 1}, "b": {"d2": 1}}
    run = {"a": {"d4": 2.0, "d5": 1.0}, "b": {"d2": 2.0, "d3": 1.0}}
    task = cb.SourceTask.from_run(qrels, run, n_classes=6)
    assert task.metric("recall@6", 6).item() == 1
    with pytest.raises(cb.DataError):
        task.metric("recall@5", 6)
