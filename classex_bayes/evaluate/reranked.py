"""Two-stage retrieval: a second model reorders the best documents of a first one."""

from dataclasses import replace

import numpy as np

from classex_bayes.arguments import class_count, class_counts
from classex_bayes.bayes.extrapolator import BayesianExtrapolator, checked_model
from classex_bayes.core.metrics import GainMetric, named_metric
from classex_bayes.exceptions import DataError
from classex_bayes.results.extrapolation import Extrapolation
from classex_bayes.typing import ClassCounts

_ADVICE = "reranked lists"  # the rule that recommends this function


def predict_reranked(
    first_stage: BayesianExtrapolator,
    model: BayesianExtrapolator,
    k: ClassCounts,
    *,
    n_reranked: int,
    metric: str = "accuracy",
) -> Extrapolation:
    r"""Posterior of a metric of lists in which a second model reordered the best of a first one.

    The second model cannot find a document that is not among the L best of the first stage. So
    recall@L is that of the first stage, :math:`F_L(k)`. Let :math:`M(k)` be a metric of the
    reordered lists, predicted as if they were of one system. Among the queries whose document is
    among the L, the metric is at most that of the pilot, because the L documents of a larger corpus
    are harder to tell apart. The prediction is

    .. math:: \min\Bigl(M(k),\; F_L(k) \frac{M(k_1)}{R_L(k_1)}\Bigr),

    where :math:`R_L` is recall@L of the reordered lists. If queries have several relevant
    documents, accuracy, success@m and MRR count the best one alone, and other metrics all of them.
    So do F and R.

    Parameters
    ----------
    first_stage : BayesianExtrapolator
        Model that was fitted to the lists of the first stage, of L or more documents.
    model : BayesianExtrapolator
        Model that was fitted to the reordered lists.
    k : int or array-like of int
        Numbers of documents.
    n_reranked : int
        L, the number of documents of each list that are reordered.
    metric : str
        A mean of gains (`named_metric`), such as recall@m, MRR, MAP or nDCG with m up to L. Without
        m, MRR, MAP and nDCG are those of the L documents. MAP@R and R-precision have no m.

    Notes
    -----
    Draws of both models are independent. The formula is exact at m = L. For smaller m it is an
    approximation, which is good if one of the stages decides. F and R have no grades, so that the
    nDCG of graded documents comes out low if the first stage finds better ones more often: 0.56 for
    0.62 in a simulation, whose recall@10 was right.

    Examples
    --------
    >>> import classex_bayes as cb
    >>> first = [1] * 40 + [2, 3, 3, 5, 8, 9] + [11] * 4
    >>> second = [1] * 44 + [2, 2] + [11] * 4
    >>> models = [
    ...     cb.BayesianExtrapolator().fit(
    ...         cb.SourceTask.from_ranks(ranks, range(50), n_classes=50, truncated_at=10),
    ...         sampler={"draws": 200, "tune": 300},
    ...         random_seed=1,
    ...         progressbar=False,
    ...     )
    ...     for ranks in (first, second)
    ... ]
    >>> predicted = predict_reranked(*models, [50, 1000], n_reranked=10, metric="recall@5")
    >>> bool((predicted.mean < models[1].predict([50, 1000], metric="recall@5").mean).all())
    True
    """
    counts, length = class_counts(k), class_count(n_reranked, "n_reranked", smallest=1)
    models = {"first_stage": checked_model(first_stage), "model": checked_model(model)}
    sizes = {
        name: (fitted.attributes_.n_classes, *fitted.law_.weights.shape[:-1])
        for name, fitted in models.items()
    }
    if len(set(sizes.values())) > 1:
        raise DataError(
            f"model: found (n_classes, chains, draws) {sizes['model']}, but {sizes['first_stage']} "
            "of first_stage; expected two fits to lists of the same corpus with the same sampler="
        )
    chosen = named_metric(metric)
    if (
        not isinstance(chosen, GainMetric)
        or chosen.row.last == "R"
        or (chosen.m or length) > length
    ):
        raise DataError(
            f"metric: found {metric!r}, expected recall@m, mrr@m or ndcg@m with m of at most "
            f"n_reranked, {length}; no other document is in the reranked lists"
        )
    chosen = replace(chosen, m=chosen.m or length)
    listed = f"{'recall' if chosen.counts_all else 'success'}@{length}"
    source = sizes["model"][0]
    at_source, listed_at_source = (
        model.predict(source, metric=name).draws.values for name in (chosen.name, listed)
    )
    found = first_stage.predict(counts, metric=listed).draws.values
    limit = found * at_source / listed_at_source
    predicted = model.predict(counts, metric=chosen.name)
    checks = [check for task in model.tasks for check in task.checks]
    advice = [check.sentence for check in checks if check.name == _ADVICE]
    of_lists = [note for note in predicted.base_notes if note not in advice]
    of_first = [f"first stage: {note}" for note in first_stage.notes_ if note not in of_lists]
    return replace(
        predicted,
        draws=predicted.draws.copy(data=np.minimum(predicted.draws.values, limit)),
        base_notes=(*of_lists, *of_first),
        rank_limits=None,
    )
