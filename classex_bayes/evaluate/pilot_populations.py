"""Populations that pilots are simulated from: of small pilots, a guess, or the corpus."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np

from classex_bayes.arguments import class_counts
from classex_bayes.bayes.coupling import couple, sampling_correlation
from classex_bayes.bayes.extrapolator import BayesianExtrapolator
from classex_bayes.bayes.model.priors import Prior
from classex_bayes.bayes.sampling import SamplerSettings
from classex_bayes.core.dependence import AnswerDependence, typical_dependence
from classex_bayes.core.law import MixtureLaw
from classex_bayes.core.metrics import Accuracy, MeanMetric
from classex_bayes.evaluate.corpus_laws import CorpusLaw, corpus_laws, kinds_in_turn
from classex_bayes.exceptions import ConvergenceWarning
from classex_bayes.task.source_task import SourceTask
from classex_bayes.task.validation import FEWEST_CLASSES
from classex_bayes.typing import FloatArray

# A guessed accuracy has the weight of one measured on this number of independent instances.
_GUESS_INSTANCES = 200
_ACCURACY = Accuracy()


@dataclass(frozen=True, eq=False)
class Populations:
    """Laws that pilots are simulated from, and how the answers of a pilot depend on each other.

    Attributes
    ----------
    laws : tuple of MixtureLaw
        For each classifier the laws of the simulated pilots, weights (n_pilots, m).
    dependence : tuple of AnswerDependence
        Dependence of the answers, for each classifier.
    correlation : float
        Correlation of the answers of two classifiers to the same instance.
    notes : tuple of str
        Notes for readers of the plan.
    metric : MeanMetric
        What the pilots measure.
    """

    laws: tuple[MixtureLaw, ...]
    dependence: tuple[AnswerDependence, ...]
    correlation: float = 0.0
    notes: tuple[str, ...] = ()
    metric: MeanMetric = _ACCURACY

    def expected(self, k: int) -> FloatArray:
        """Metric at k, or difference of two classifiers, for each simulated pilot."""
        first, *second = (law.expected(np.array([k]), self.metric)[:, 0] for law in self.laws)
        return first - second[0] if second else first


def child_seed(seeds: np.random.SeedSequence, *place: int) -> np.random.SeedSequence:
    """Seed of one part of a plan, which does not depend on the other parts."""
    return np.random.SeedSequence(seeds.entropy, spawn_key=(*seeds.spawn_key, *place))


def populations_of_corpus(
    k: int, n_pilots: int, seeds: np.random.SeedSequence, metric: MeanMetric
) -> Populations:
    """Real populations, whose kinds alternate, with the typical dependence between answers."""
    drawn = kinds_in_turn(corpus_laws(), n_pilots, np.random.default_rng(child_seed(seeds, 1)))
    # All have the basis of the default prior.
    law = MixtureLaw(drawn[0].law.basis, np.array([part.law.weights for part in drawn]))
    typical = typical_dependence(FEWEST_CLASSES, FEWEST_CLASSES)
    return Populations((law,), (typical,), notes=_notes_on_corpus(drawn, k), metric=metric)


def _notes_on_corpus(drawn: Sequence[CorpusLaw], k: int) -> tuple[str, ...]:
    """A sentence on the source of the pilots, and on populations whose accuracy at k is unknown."""
    different = {population.name: population for population in drawn}.values()
    kinds = {population.kind for population in different}
    smaller = sum(population.n_classes < k for population in different)
    notes = [
        f"the pilots were simulated from {len(different)} real populations of {len(kinds)} kinds; "
        "with a small pilot of your own the plan is more precise"
    ]
    if smaller:
        notes.append(
            f"the accuracy at {k:,} is an extrapolation in populations with fewer classes: "
            f"{smaller} of {len(different)}"
        )
    return tuple(notes)


def populations_of_tasks(
    tasks: Sequence[SourceTask],
    prior: Prior,
    n_pilots: int,
    settings: SamplerSettings,
    seeds: np.random.SeedSequence,
    metric: MeanMetric,
    progressbar: bool,
) -> Populations:
    """Posterior draws of one pilot, or joint draws of two pilots on the same instances."""
    rng = np.random.default_rng(child_seed(seeds, 1))
    sampler = asdict(settings)
    del sampler["progressbar"]
    with warnings.catch_warnings():
        # A guess needs fewer draws than a result.
        warnings.simplefilter("ignore", ConvergenceWarning)
        models = {
            place: BayesianExtrapolator(prior).fit(
                task,
                sampler=sampler,
                random_seed=child_seed(seeds, 0, *[place] * (place > 0)),
                progressbar=progressbar,
            )
            for place, task in enumerate(tasks)
        }
    dependence = tuple(model.fit_.record.dependence for model in models.values())
    notes = dict.fromkeys(note for part in dependence for note in part.notes)
    laws, correlation = [model.law_ for model in models.values()], 0.0
    if len(tasks) > 1:
        matrix = sampling_correlation(tasks, metric)
        correlation = float(matrix[0, 1])
        laws = list(couple(models, matrix, rng, metric).laws.values())
        notes[
            "the errors of the two classifiers are assumed to have the correlation "
            f"{correlation:.2f}, estimated from the given pilots"
        ] = None
    # Fits to ranks without scores are wider by the competitors that they do not see.
    in_fits = tuple(
        part if task.table.variance.has_influence else part.without_influence()
        for part, task in zip(dependence, tasks, strict=True)
    )
    weights = [law.weights.reshape(-1, law.weights.shape[-1]) for law in laws]
    order = rng.permutation(len(weights[0]))
    chosen = order[np.arange(n_pilots) % order.size]
    of_pilots = tuple(
        replace(law, weights=draws[chosen]) for law, draws in zip(laws, weights, strict=True)
    )
    return Populations(of_pilots, in_fits, correlation, tuple(notes), metric)


def task_of_guess(accuracies: Mapping[int, float]) -> SourceTask:
    """Task of guessed accuracies, each as if measured on 200 independent instances."""
    largest = int(class_counts(list(accuracies), "task").max())
    return SourceTask.from_accuracies(
        list(accuracies),
        list(accuracies.values()),
        n_test=_GUESS_INSTANCES,
        n_classes=max(largest, FEWEST_CLASSES),
        design_effect=1,
    )
