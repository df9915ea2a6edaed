"""Numbers of pytrec_eval (Van Gysel and de Rijke 2018) for tests of `SourceTask.from_run`.

It has an environment of its own:

    python3.12 -m venv pytrec_eval
    pytrec_eval/bin/pip install pytrec-eval-terrier==0.5.11
    pytrec_eval/bin/python tests/reference/make_pytrec_eval.py > tests/reference/pytrec_eval.json
"""

import json
from importlib.metadata import version

import numpy as np

N_QUERIES, N_DOCUMENTS = 30, 60
DEPTHS = (1, 3, 10)
# Names of pytrec_eval by those of the package.
NAMES = {"success": "success", "recall": "recall", "ndcg": "ndcg_cut"}
NAMES |= {"precision": "P", "map": "map_cut"}
MEASURES = {"mrr": "recip_rank", "map": "map", "r_precision": "Rprec"}
MEASURES |= {f"{name}@{m}": f"{trec}_{m}" for name, trec in NAMES.items() for m in DEPTHS}
# Most relevant documents of a query, length of the lists, and the scores of a case.
CASES = {
    "one relevant document": (1, 25, lambda score, document: round(score, 3)),
    "ties": (1, 25, lambda score, document: float(round(score))),
    "several relevant documents": (4, 25, lambda score, document: round(score, 3)),
    "several, ties": (4, 25, lambda score, document: float(round(score))),
    "ties in single precision": (1, 25, lambda score, document: round(score) + 1e-9 * document),
    "lists of the corpus": (3, N_DOCUMENTS, lambda score, document: round(score, 1)),
}


def judgements(rng, most):
    """Relevance of documents to each query: 1 or 2 of 1 to `most`, 0 or less of a few others."""
    qrels = {}
    for query in range(N_QUERIES):
        documents, n_relevant = rng.permutation(N_DOCUMENTS)[:6], rng.integers(1, most + 1)
        levels = np.where(np.arange(6) < n_relevant, rng.integers(1, 3, 6), rng.integers(-1, 1, 6))
        order = rng.permutation(6)
        qrels[f"q{query}"] = {f"d{documents[j]}": int(levels[j]) for j in order}
    return qrels


def retrieved(rng, qrels, length, printed):
    """Lists of the best documents in disorder; if cut, a few are short, empty or missing."""
    run, is_cut = {}, length < N_DOCUMENTS
    for number, (query, relevance) in enumerate(qrels.items()):
        scores = rng.normal(size=N_DOCUMENTS)
        for document, level in relevance.items():
            scores[int(document[1:])] += 1.5 * (level > 0)
        if is_cut and number in (7, 8):
            continue
        size = {3: 0, 4: 2, 5: 7}.get(number, length) if is_cut else length
        best = rng.permutation(np.argsort(-scores)[:size]).tolist()
        run[query] = {f"d{d}": printed(float(scores[d]), d) for d in best}
    return run


def numbers() -> dict:
    """Runs and what pytrec_eval finds in them, as JSON takes it."""
    import pytrec_eval  # not here when tests look for examples

    made = {"pytrec-eval-terrier": version("pytrec-eval-terrier"), "n_documents": N_DOCUMENTS}
    made |= {"cases": {}}
    rng = np.random.default_rng(5)
    for name, (most, length, printed) in CASES.items():
        qrels = judgements(rng, most)
        run = retrieved(rng, qrels, length, printed)
        found = pytrec_eval.RelevanceEvaluator(qrels, set(MEASURES.values())).evaluate(run)
        expected = {
            metric: [found[query][measure] for query in qrels if query in run]
            for metric, measure in MEASURES.items()
        }
        made["cases"][name] = {"qrels": qrels, "run": run, "expected": expected}
    return made


if __name__ == "__main__":
    print(json.dumps(numbers()))
