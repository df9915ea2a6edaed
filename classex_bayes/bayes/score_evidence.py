"""Evidence of scores beside ranks: groups of a fit whose law follows both."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import xarray as xr

from classex_bayes.bayes.fit_record import FitRecord
from classex_bayes.bayes.idata import (
    MIXTURE,
    basis_of,
    described,
    mixture_group,
    weights_of,
)
from classex_bayes.bayes.tails.anchor import anchored
from classex_bayes.bayes.tails.distance_scale import DistanceScale
from classex_bayes.bayes.tails.local_tails import depths_of
from classex_bayes.bayes.tails.scale_choice import why_no_tails
from classex_bayes.bayes.tails.tail_calibration import DEPTHS, TAIL_PARAMETERS
from classex_bayes.bayes.tails.tail_draws import TailDraws
from classex_bayes.core.law import MixtureLaw
from classex_bayes.core.linear_split import on_grid
from classex_bayes.results import SAMPLE_DIMS
from classex_bayes.task.source_task import SourceTask

# Groups of `idata`: draws of the tails, the instances by depth and by numbers of better classes in
# held-out halves, and by depth among all classes.
TAILS, HELD_OUT, DEPTHS_OBSERVED = "tails", "held_out_ranks", "observed_depths"
_RANKS, _BOTH = "ranks", "ranks and scores"
_WIDEST_BANDWIDTH = 0.15  # of knots that can hold the law of one instance
_DESCRIPTIONS = {
    **TAIL_PARAMETERS,
    "shift": "shift of Z = Phi^-1(U*) near 1 - 1 / k1 by which the tails agree with the ranks",
    "prior_density": "joint log prior density of the parameters of the tails",
    "rank_density": "log-likelihood of the held-out ranks",
    "scale_place": "place of the scale of the scores among all scales",
}


def add_scores(
    tree: xr.DataTree,
    record: FitRecord,
    tasks: Sequence[SourceTask],
    evidence: str,
    seeds: np.random.SeedSequence,
) -> FitRecord:
    """Add the evidence of scores to the groups of a fit to ranks, if there are scores to use.

    The group "mixture" becomes the law given ranks and scores. The law given ranks alone becomes
    another group (`weights_of`). The record that is returned says what was used, or has a note why
    scores were not.
    """
    basis, by_ranks = basis_of(tree), weights_of(tree)
    if (unused := why_unused(tasks, evidence, basis.bandwidth)) is not None:
        return ranks_alone(record, unused)
    (task,) = tasks
    rank_law = MixtureLaw(basis, by_ranks.values.reshape(-1, basis.knots.size))
    tail_seeds, anchor_seeds = seeds.spawn(2)
    draws = TailDraws.of(task, basis, len(rank_law.weights), tail_seeds)
    k1 = np.array([task.n_classes])
    rank_accuracy = rank_law.expected(k1)[:, 0]
    law, shift, accuracy = anchored(
        MixtureLaw(basis, draws.weights),
        rank_accuracy,
        task.n_classes,
        np.random.default_rng(anchor_seeds),
    )
    # Draws are paired by the order of their accuracies on the source classes. So these accuracies
    # have the dependence of the Markov chains of the ranks, and can be diagnosed.
    order = np.empty(rank_accuracy.size, dtype=int)
    order[rank_accuracy.argsort()] = accuracy.argsort(kind="stable")
    values = {
        **draws.parameters,
        "shift": shift,
        "prior_density": draws.log_prior,
        "rank_density": draws.log_likelihood,
        "scale_place": draws.scale_place,
    }
    sample = [by_ranks.sizes[dim] for dim in SAMPLE_DIMS]
    tails = {name: (SAMPLE_DIMS, x[order].reshape(sample)) for name, x in values.items()}
    mixture = mixture_group(MixtureLaw(basis, law.weights[order].reshape(by_ranks.shape)))
    scales = {fit.scale: fit.prob for fit in draws.fits}
    of_tails = xr.Dataset(tails).assign_coords(mixture[SAMPLE_DIMS].coords)
    groups = {
        MIXTURE["ranks"]: tree[MIXTURE["posterior"]].to_dataset(),
        MIXTURE["posterior"]: mixture,
        TAILS: described(of_tails, _DESCRIPTIONS),
        HELD_OUT: draws.fits[0].table.group(),
        DEPTHS_OBSERVED: depth_group(task, scales),
    }
    # All at once at the end, so that an interruption leaves the fit to ranks.
    tree.update({name: xr.DataTree(group) for name, group in groups.items()})
    return replace(record, evidence=_BOTH, scales=scales, pareto_k=draws.pareto_k)


def why_unused(tasks: Sequence[SourceTask], evidence: str, bandwidth: float) -> str | None:
    """Reason why scores of tasks are not used on knots of this bandwidth; None if they are.

    It is empty if there are no scores, or if only ranks shall be used.
    """
    if evidence == "ranks" or not any(task.table.has_scores for task in tasks):
        return ""
    if bandwidth > _WIDEST_BANDWIDTH:
        return (
            f"knots of the bandwidth {bandwidth:g} are too coarse for tails of scores, which need "
            f"at most {_WIDEST_BANDWIDTH:g}"
        )
    return why_no_tails(tasks) or None


def ranks_alone(record: FitRecord, reason: str) -> FitRecord:
    """Record of a fit that uses only ranks, with a note for readers if there is a reason."""
    notes = (f"only ranks are used, because {reason}",) * bool(reason)
    return replace(record, evidence=_RANKS, notes=(*record.notes, *notes))


def evidence_text(record: FitRecord) -> str:
    """What a fit used, in words: "ranks", or "ranks and scores" with the scales of the scores."""
    return f"{_BOTH}, as distances {record.scales_text}" if record.scales else _RANKS


def depth_group(task: SourceTask, scales: Mapping[DistanceScale, float]) -> xr.Dataset:
    """Number of instances at each depth on the first scale, which tells scores of tasks apart."""
    weight = task.require("ranks").weight
    depth = depths_of(task.nearest_classes, next(iter(scales)), weight)
    counts = {"instances": ("depth", on_grid(depth[depth > 0], 1.0, DEPTHS))}
    text = {"instances": "number of instances at each depth in the local tails"}
    return described(xr.Dataset(counts, {"depth": DEPTHS}), text)
