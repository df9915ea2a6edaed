"""Accuracy under the prior, before any ranks are seen."""

from classex_bayes.arguments import class_counts
from classex_bayes.bayes.extrapolator import BayesianExtrapolator, checked_model_with_prior
from classex_bayes.core.law import MixtureLaw
from classex_bayes.results import SAMPLE_DIMS, Extrapolation
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import ClassCounts, RandomSeed


def prior_accuracy(
    model: BayesianExtrapolator,
    k: ClassCounts,
    task: SourceTask | None = None,
    *,
    draws: int = 1000,
    random_seed: RandomSeed = None,
) -> Extrapolation:
    r"""Prior of the expected accuracy :math:`AGA_k = \sum_l w_l A_l(k)`, as `predict` gives it.

    The model need not be fitted. `task` (the fitted one by default) decides which k are far beyond
    its classes. Without `random_seed` the seed is that of the fit, if there is one.
    """
    checked_model_with_prior(model, "the prior predictive")
    counts = class_counts(k)
    tree = model.sample_prior_predictive(task, draws=draws, random_seed=random_seed)
    weights = tree["prior_mixture"].to_dataset()["weights"].transpose(*SAMPLE_DIMS, "knot").values
    law = MixtureLaw((model.prior_ if task is None else model.prior).basis, weights)
    n_classes = model.idata.attrs["n_classes"] if task is None else task.n_classes
    return Extrapolation.from_draws(
        counts,
        law.expected(counts),
        f"prior of {model.name}",
        "credible",
        int(n_classes),
    )
