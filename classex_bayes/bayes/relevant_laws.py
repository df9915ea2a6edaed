"""Laws of all relevant documents of a query, which most metrics of several of them count.

The best documents of all queries have a law of U*, which is that of the model, given ranks. All
later ones have another, to which a copy of the model is fitted. All metrics follow from these two
laws, because the share of the second, third and further documents, and of those of queries with
many, is a function of U* (`Shares`). More laws, up to eight, gave no better predictions.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
import xarray as xr

from classex_bayes.bayes.idata import law_of_group, mixture_group
from classex_bayes.core.influence import clustered_covariance
from classex_bayes.core.law import Law, MixtureLaw
from classex_bayes.core.metrics import Accuracy, GainMetric, Metric
from classex_bayes.estimators.base import fitted_copy
from classex_bayes.formatting import by_fields
from classex_bayes.results.draws import SAMPLE_DIMS
from classex_bayes.results.sentences import joint_notes
from classex_bayes.task.rank_bins import bin_counts, bin_ends, bin_probabilities
from classex_bayes.task.rank_table import RankTable
from classex_bayes.task.relevant_ranks import Group, RelevantRanks
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import FloatArray, IntArray

RELEVANT, GRADED = "relevant_documents", "graded_documents"  # groups of `idata`
# Draws of the laws are put in one order, by this metric on so many times k1 documents. Relevant
# documents share their queries and their population, so errors of a prediction have one direction.
_COUPLED, _FAR = GainMetric(None, "mrr"), 10
_ACCURACY = Accuracy()
_DOCUMENTS = "documents"
# Few steps of EM: many would adapt the shares to the noise of single documents.
_STEPS, _TINY, _SINGLE = 5, 1e-300, 8
_SMALLEST_MEAN = 1e-3  # of a metric to which an error is relative


class Shares(NamedTuple):
    r"""Responsibilities of the elements of a law for its documents.

    Queries differ in their numbers of relevant documents, on which U* depends. Documents of type t
    have one number of better and of relevant documents. A share :math:`\pi_{te}` of those of
    element e is of type t. A document of type t in bin b of ranks is of element e with the
    responsibility :math:`p_{tbe} \propto w_e \pi_{te} B_{be}`, and these determine
    :math:`\pi_{te} \propto \sum_b n_{tb} p_{tbe}`. A few steps of this EM algorithm begin at the
    same shares for all elements.
    """

    table: RankTable  # of the n documents
    rows: IntArray  # (n,): their places among all documents
    of_row: IntArray  # (n,): type of each
    ends: IntArray  # (n_bins,): of the bins of ranks
    share: FloatArray  # (n_types, n_bins, m)
    total: FloatArray  # (m,): number of documents of each element

    @classmethod
    def of(cls, ranks: RelevantRanks, number: int, law: MixtureLaw) -> Self:
        """Responsibilities under the posterior mean of the law with a number."""
        table, rows = ranks.tables[number], np.flatnonzero(ranks.law == number)
        kinds = np.stack([_bucket(ranks.n_ahead[rows]), _bucket(ranks.n_relevant[rows])])
        types, of_row = np.unique(kinds, axis=1, return_inverse=True)
        of_row, ends = of_row.ravel(), bin_ends(table)
        counts = bin_counts(table, of_row, ends)  # (n_types, n_bins)
        weights = law.weights.mean(axis=tuple(range(law.weights.ndim - 1)))
        joint = weights * bin_probabilities(table, law.basis, thinned=False)
        among = np.full((types.shape[1], weights.size), 1 / types.shape[1])
        for _ in range(_STEPS):
            share = among[:, None] * joint
            share /= np.maximum(share.sum(axis=2, keepdims=True), _TINY)
            of_types = np.einsum("tb,tbe->te", counts, share) + _TINY
            among = of_types / of_types.sum(axis=0)
        return cls(table, rows, of_row, ends, share, of_types.sum(axis=0))

    def coefficients(
        self, ranks: RelevantRanks, metric: GainMetric
    ) -> tuple[list[Group], FloatArray]:
        r"""Groups of the documents, and their coefficients (n_groups, m) for the elements.

        They are the means :math:`C_{ge} = \sum_{tb} c_{gtb} p_{tbe} / \sum_{tb} n_{tb} p_{tbe}`
        with the number :math:`n_{tb}` of the documents of type t in bin b, and the sum
        :math:`c_{gtb}` of the coefficients of those of group g. They are multiplied by the number
        of documents for each query.
        """
        groups, n_types = [*ranks.groups(metric, self.rows)], len(self.share)
        group = np.empty(ranks.query.size, dtype=np.int64)
        for place, each in enumerate(groups):
            group[each.rows] = place
        coefficient = ranks.coefficient(metric)[self.rows]
        total = coefficient.sum()
        if not total:  # no document with this law is ever found
            return groups, np.zeros((len(groups), self.total.size))
        pairs, place = np.unique(group[self.rows] * n_types + self.of_row, return_inverse=True)
        of_group, of_type = np.divmod(pairs, n_types)
        sums = total * bin_counts(replace(self.table, weight=coefficient / total), place, self.ends)
        found = np.zeros((len(groups), self.total.size))
        np.add.at(found, of_group, np.einsum("pb,pbe->pe", sums, self.share[of_type]))
        return groups, found / self.total / ranks.queries.size


def _bucket(number: IntArray) -> IntArray:
    """Numbers up to 8, and about four buckets for each further factor of 2."""
    large = np.maximum(number, _SINGLE) / _SINGLE
    return np.minimum(number, _SINGLE) + np.floor(4 * np.log2(large)).astype(np.int64)


@dataclass(frozen=True)
class RelevantLaw(Law):
    r"""Draws of the laws of several relevant documents, in the order of their ranks.

    With the weights w of law l on its elements e, and the coefficients C of
    `Shares.coefficients`, a metric is
    :math:`\sum_l \sum_e w_{le} \sum_g C_{lge} E[d(j_g + N) | e]`. These draws lack the sampling
    error of the coefficients. An error of each draw adds it, so that the variance on k1 documents
    is at least that of a mean over queries. On other numbers of documents it is proportional to the
    value, or to its distance from 1 if the value is larger than on k1.
    """

    laws: Sequence[MixtureLaw]  # of U* among irrelevant documents, with equally many draws
    ranks: RelevantRanks
    noise: FloatArray  # (...): of each draw, standard normal
    __repr__ = by_fields

    def expected(self, k: FloatArray | IntArray, metric: Metric = _ACCURACY) -> FloatArray:
        """Value (..., n_k) of a metric that counts all relevant documents."""
        assert isinstance(metric, GainMetric)
        value = np.clip(self._given_queries(k, metric), 0.0, 1.0)
        k1, weight = np.array([self.ranks.n_classes]), self.ranks.class_weight
        drawn = self._given_queries(k1, metric)
        at_k1 = float(np.clip(drawn.mean(), _SMALLEST_MEAN, 1 - _SMALLEST_MEAN))
        missing = clustered_covariance(self.ranks.class_means(metric), weight).item() - drawn.var()
        error = np.sqrt(max(float(missing), 0.0)) * self.noise[..., None]
        share = np.minimum(value / at_k1, (1 - value) / (1 - at_k1))
        return np.clip(value + error * share, 0.0, 1.0)

    def _given_queries(self, k: FloatArray | IntArray, metric: GainMetric) -> FloatArray:
        """Value (..., n_k) without the sampling error of the coefficients."""
        sizes, total = np.atleast_1d(np.asarray(k, dtype=float)), np.zeros(1)
        for law, shares in zip(self.laws, self._shares, strict=True):
            groups, coefficient = shares.coefficients(self.ranks, metric)
            value = np.zeros((sizes.size, law.basis.knots.size))
            n_always = np.array([group.n_always for group in groups])
            for number_always in np.unique(n_always):
                of_these = np.flatnonzero(n_always == number_always)
                metrics = [groups[place].metric for place in of_these]
                among = groups[of_these[0]].sizes(sizes)
                found = metric.expected_of(metrics, law.basis, among)
                value += np.einsum("ge,gke->ke", coefficient[of_these], found)
            total = total + law.weights @ value.T
        return total

    @cached_property
    def _shares(self) -> list[Shares]:
        """Responsibilities of the elements of each law for its documents."""
        return [Shares.of(self.ranks, number, law) for number, law in enumerate(self.laws)]

    def reordered(self, places: IntArray) -> Self:
        """Laws with draws in another order, the same for all."""
        noise = self.noise.ravel()[places].reshape(self.noise.shape)
        return replace(self, laws=[law.reordered(places) for law in self.laws], noise=noise)


def fitted_laws(
    model: Any,
    ranks: RelevantRanks,
    best: MixtureLaw | None,
    seeds: np.random.SeedSequence,
    **fitting: Any,
) -> xr.DataTree:
    """Fit copies of a model to the documents of each law: a mixture each, and notes.

    `best` is the law of the best documents, if the model has it. `fitting` are settings of the
    fits, as of `BayesianExtrapolator.fit`.
    """
    *fit_seeds, of_noise = seeds.spawn(len(ranks.tables) + 1)
    laws, notes = [], {}
    for number, (table, seed) in enumerate(zip(ranks.tables, fit_seeds, strict=True), 1):
        if number == 1 and best is not None:
            laws.append(best)
            continue
        fitted: Any = fitted_copy(model, SourceTask(table), seed, **fitting)
        laws.append(fitted.law_)
        notes["relevant documents after the best one" if number > 1 else "all grades"] = (
            fitted.notes_
        )
    far = np.array([_FAR * ranks.n_classes])
    order = [law.expected(far, _COUPLED).ravel().argsort() for law in laws]
    coupled = [laws[0]]
    for law, of_law in zip(laws[1:], order[1:], strict=True):
        places = np.empty_like(of_law)
        places[order[0]] = of_law
        coupled.append(law.reordered(places))
    groups = {str(number): mixture_group(law) for number, law in enumerate(coupled, 1)}
    columns = {name: ("document", getattr(ranks, name)) for name in ranks.columns()}
    documents = xr.Dataset(columns | {"y": ("query_number", ranks.y)})
    noise = np.random.default_rng(of_noise).standard_normal(laws[0].weights.shape[:-1])
    documents["noise"] = SAMPLE_DIMS, noise
    documents.attrs = {"n_classes": ranks.n_classes, "own_candidates": int(ranks.own_candidates)}
    tree = xr.DataTree.from_dict(groups | {_DOCUMENTS: documents})
    tree.attrs["notes"] = json.dumps([*joint_notes(notes), *ranks.few_errors()])
    return tree


def laws_of_group(group: xr.DataTree) -> tuple[RelevantLaw, tuple[str, ...]]:
    """Laws of all relevant documents, and notes on them, from the groups of `fitted_laws`."""
    documents = group[_DOCUMENTS].to_dataset()
    n_classes, y = int(documents.attrs["n_classes"]), documents["y"].values
    columns = {name: documents[name].values for name in RelevantRanks.columns()}
    columns["unanswered"] = columns["unanswered"].astype(bool)
    own = bool(documents.attrs["own_candidates"])
    ranks = RelevantRanks(n_classes, pd.RangeIndex(y.size), y, **columns, own_candidates=own)
    names = [str(number) for number in range(1, len(group.children))]
    laws = [law_of_group(group[name].to_dataset()) for name in names]
    law = RelevantLaw(laws, ranks, documents["noise"].values)
    return law, tuple(json.loads(group.attrs["notes"]))
