"""Metrics of several relevant documents, against brute force and known corpora."""

import numpy as np
import pytest
from helpers import short_fit

import classex_bayes as cb
from classex_bayes.bayes import extrapolator
from classex_bayes.bayes.relevant_laws import RelevantLaw
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
    model = cb.BayesianExtrapolator(evidence="ranks").fit(documents, **FEW)
    return model.predict(k, metric=metric)


def brute_force(qrels, run, metric, m):
    """Mean over queries, list by list; m is None for the number of relevant documents."""
    values = []
    for query, relevant in qrels.items():
        listed = sorted(run[query], key=lambda name: -run[query][name])[: m or len(relevant)]
        is_found = np.array([name in relevant for name in listed])
        precision = is_found.cumsum() / np.arange(1, is_found.size + 1)
        if metric in ("recall", "r_precision"):
            values.append(is_found.sum() / len(relevant))
        elif metric == "precision":
            values.append(is_found.sum() / m)
        elif metric.startswith("map"):
            values.append((precision * is_found).sum() / len(relevant))
        else:
            found = [relevant.get(name, 0) for name in listed]
            ideal = sorted(relevant.values(), reverse=True)[:m]
            gain, best = (
                sum(grade / np.log2(place + 1) for place, grade in enumerate(grades, 1))
                for grades in (found, ideal)
            )
            values.append(gain / best)
    return np.mean(values)


@pytest.mark.parametrize(
    ("metric", "m"),
    [
        *[(name, m) for name in ("recall", "ndcg", "map", "precision") for m in (1, 3, 10)],
        *[("map@r", None), ("r_precision", None)],
    ],
)
def test_metrics_of_a_run_are_those_of_its_lists(metric, m):
    name = metric if m is None else f"{metric}@{m}"
    scores, owner = corpus(40, 300, 1)
    qrels, run = run_of(scores, owner, np.arange(300), 20)
    documents = cb.SourceTask.from_run(qrels, run, n_classes=300)
    expected = brute_force(qrels, run, metric, m)
    for k in (None, 300):
        assert documents.metric(name, k) == pytest.approx(expected, abs=1e-12)
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
    assert abs(whole.metric(name, 100) - np.mean(smaller)) < 4 * error + 0.002


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
    for metric in ("recall@5", "ndcg@5", "map@20", "precision@5", "r_precision"):
        assert documents.metric(metric) == pytest.approx(task.metric(metric, 300))
        assert documents.relevant_ranks(named_metric(metric)) is None


def pilot_documents(owner, seed):
    """All relevant documents and some of the others, 1,000 in all."""
    rng = np.random.default_rng(seed)
    others = owner.size + rng.choice(10_000 - owner.size, 1000 - owner.size, replace=False)
    return np.append(np.arange(owner.size), others)


def pilot_and_corpus(seed):
    """A pilot of 1,000 documents, a model that is fitted to it, and the whole corpus of 10,000."""
    scores, owner = corpus(150, 10_000, seed)
    kept = pilot_documents(owner, seed)
    pilot = cb.SourceTask.from_run(*run_of(scores, owner, kept, 100), n_classes=1000)
    whole = cb.SourceTask.from_run(*run_of(scores, owner, np.arange(10_000), 100), n_classes=10_000)
    model = cb.BayesianExtrapolator(evidence="ranks").fit(pilot, **{**FEW, "random_seed": seed})
    return pilot, model, whole


def test_prediction_contains_the_metric_of_a_larger_corpus():
    pilot, model, whole = pilot_and_corpus(1)
    for metric in ("recall@10", "ndcg@10", "map@50", "precision@5", "r_precision", "map@r"):
        prediction = model.predict([1000, 10_000], metric=metric)
        lower, upper = prediction.interval(0.999).loc[10_000]
        assert lower < whole.metric(metric) < upper
        assert prediction.mean[10_000] < pilot.metric(metric)
        # On the pilot's own corpus the posterior is near the metric of the pilot.
        sd = float(prediction.draws.sel(k=1000).std())
        assert abs(prediction.mean[1000] - pilot.metric(metric)) < 2 * sd
    # Other queries vary as those of the pilot do.
    scores, owner = corpus(150, 10_000, 1)
    places = (-scores[:, pilot_documents(owner, 1)]).argsort(axis=1).argsort(axis=1)
    recall = [(places[i, np.flatnonzero(owner == i)] < 10).mean() for i in range(150)]
    sd = float(model.predict(1000, metric="recall@10").draws.std())
    assert sd > 0.94 * np.std(recall) / 150**0.5
    # Two documents have ten places, so the recall of other queries is hardly below 1.
    assert model.predict(2, metric="recall@10").interval(0.9)["lower"][2] > 0.99


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
    model = cb.BayesianExtrapolator().fit(documents, **FEW)
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
    for metric in ("recall@5", "ndcg@3", "map"):
        expected = model.predict(k, metric=metric).draws
        np.testing.assert_array_equal(again.predict(k, metric=metric).draws, expected)
    table = cb.compare([model, cb.MomentBounds()], documents, k, metric="recall@5")
    assert list(table.skipped) == ["MomentBounds"]


def test_an_interrupted_fit_to_later_documents_leaves_the_best_ones(monkeypatch):
    def stop(*arguments, **settings):
        raise KeyboardInterrupt

    scores, owner = corpus(40, 300, 1)
    documents = cb.SourceTask.from_run(*run_of(scores, owner, np.arange(300), 20), n_classes=300)
    monkeypatch.setattr(extrapolator, "fitted_laws", stop)
    model = cb.BayesianExtrapolator(evidence="ranks")
    with pytest.raises(Interrupted) as caught:
        model.fit(documents, **FEW)
    assert caught.value.partial is model
    assert 0 < model.predict(300, metric="mrr").mean.item() < 1


def test_a_law_of_one_document_is_that_of_a_task():
    """With one relevant document and no later ones, all metrics are those of the best one."""
    scores, owner = corpus(60, 300, 1)
    qrels, run = run_of(scores, owner, np.arange(300), 300)
    qrels = {query: dict([next(iter(found.items()))]) for query, found in qrels.items()}
    model = cb.BayesianExtrapolator(evidence="ranks")
    model.fit(cb.SourceTask.from_run(qrels, run, n_classes=300), **FEW)
    best = RelevantLaw([model.law_], model.task.judged.relevant, np.zeros((2, 300)))
    for name in ("recall@3", "precision@3", "map", "map@r", "r_precision", "ndcg@10"):
        metric, k = named_metric(name), np.array([50, 300, 5000])
        np.testing.assert_allclose(
            best.expected(k, metric), model.law_.expected(k, metric), rtol=0, atol=1e-10
        )


@pytest.mark.parametrize("metric", ["map", "precision@5", "recall@5", "ndcg@10", "r_precision"])
def test_predictions_at_the_pilot_are_near_its_metrics(model_of_few, metric):
    """The number of relevant documents depends on how near they are, and so do coefficients."""
    prediction = model_of_few.predict(750, metric=metric).mean.item()
    assert prediction == pytest.approx(model_of_few.task.metric(metric, 750).item(), abs=0.012)


@pytest.fixture(scope="module")
def model_of_few():
    """Queries with many relevant documents have near ones."""
    rng = np.random.default_rng(5)
    n = rng.integers(1, 7, 150)
    owner, queries = np.repeat(np.arange(150), n), rng.normal(size=(150, 12))
    documents = 1.25 * rng.normal(size=(750, 12))
    spread = 1.1 - 0.08 * n[owner, None]
    documents[: owner.size] = queries[owner] + spread * rng.normal(size=(owner.size, 12))
    scores = 2 * queries @ documents.T - (documents**2).sum(axis=1)
    task = cb.SourceTask.from_run(*run_of(scores, owner, np.arange(750), 750), n_classes=750)
    return cb.BayesianExtrapolator(evidence="ranks").fit(task, **FEW)


def own_candidates(rng, n_candidates, sizes, n_queries=200):
    """Judgements and lists of candidates of each query's own, and all scores."""
    qrels, run = {}, {}
    for query in range(n_queries):
        n = rng.integers(1, 5)
        scores = np.append(1.9 + 0.9 * rng.normal(size=n), rng.normal(size=n_candidates - n))
        qrels[f"q{query}"] = {f"q{query}d{j}": 1 for j in range(n)}
        run[f"q{query}"] = {f"q{query}d{j}": s for j, s in enumerate(scores[: n + sizes])}
    return qrels, run


def test_several_relevant_candidates_of_each_query():
    """Of K candidates R are relevant, so that K - R others compete with each of these."""
    rng = np.random.default_rng(2)
    qrels, run = own_candidates(rng, 70, 66)
    task = cb.SourceTask.from_run(qrels, run, own_candidates=True)
    names = "recall@5", "ndcg@10", "map", "precision@3", "r_precision", "map@r"
    found = dict.fromkeys(names, 0.0)
    for _ in range(40):  # 30 candidates of each query, with its relevant ones
        part = {}
        for query, listed in run.items():
            others = rng.permutation([d for d in listed if d not in qrels[query]])
            kept = [*qrels[query], *others[: 30 - len(qrels[query])]]
            part[query] = {d: listed[d] for d in kept}
        for name in names:
            metric, _, m = name.partition("@")
            m = int(m) if m.isdigit() else 30 if name == "map" else None
            found[name] += brute_force(qrels, part, name if m is None else metric, m) / 40
    for name in names:
        assert task.metric(name, 30).item() == pytest.approx(found[name], abs=0.01)


def test_documents_that_are_no_candidates_are_never_found():
    """The second relevant document of each query is not listed, so half of the gains are lost."""
    scores = np.random.default_rng(4).normal(size=(40, 10)) + np.eye(10)[0]
    run = {f"q{q}": {f"q{q}d{j}": s for j, s in enumerate(row)} for q, row in enumerate(scores)}
    found = cb.SourceTask.from_run({q: {f"{q}d0": 1} for q in run}, run, own_candidates=True)
    qrels = {q: {f"{q}d0": 1, f"{q}x": 1} for q in run}
    task = cb.SourceTask.from_run(qrels, run, own_candidates=True)
    for metric in ("map", "recall@3", "recall@10"):
        assert task.metric(metric, 10) == pytest.approx(found.metric(metric, 10) / 2)
    model = cb.BayesianExtrapolator(evidence="ranks").fit(task, **FEW)
    assert model.predict(10, metric="recall@10").mean.item() == pytest.approx(0.5, abs=0.02)


@pytest.mark.parametrize("metric", ["recall@5", "ndcg@10", "map"])
def test_candidates_of_each_query_predict_a_larger_number(own_model, metric):
    model, truth = own_model
    lower, upper = model.predict(1500, metric=metric).interval(0.99).to_numpy()[0]
    name, _, m = metric.partition("@")
    assert lower < brute_force(*truth, name, int(m or 1500)) < upper


@pytest.fixture(scope="module")
def own_model():
    qrels, run = own_candidates(np.random.default_rng(3), 1500, 1500)
    part = {query: dict([*found.items()][: len(qrels[query]) + 60]) for query, found in run.items()}
    task = cb.SourceTask.from_run(qrels, part, own_candidates=True)
    return cb.BayesianExtrapolator(evidence="ranks").fit(task, **FEW), (qrels, run)


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
    assert f"{owner.size - sum(found)} of the {owner.size} relevant documents" in every
    assert "documents added later count as irrelevant" in every
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
        model = cb.BayesianExtrapolator(evidence="ranks").fit(task, **FEW)
        for metric in ("success@1", "recall@5", "recall@2", "ndcg@5"):
            notes = model.predict(800, metric=metric).notes
            said[name, metric] = [note for note in notes if "So few errors" in note]
    assert len(said["late", "success@1"]) == 1 and "of 60 queries" in said["late", "success@1"][0]
    assert said["late", "recall@5"] == said["late", "ndcg@5"] == []
    (of_recall,) = said["easy", "recall@5"]
    assert "of 120 relevant documents" in of_recall
    assert said["easy", "recall@2"] == said["easy", "ndcg@5"] == [of_recall]


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
