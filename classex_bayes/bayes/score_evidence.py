"""Evidence of scores in addition to ranks: groups of a fit whose law follows both.

Laws from tails of scores are moved to an accuracy on the source classes that follows ranks and
tails. docs/background.md has the formulas ("The law given ranks and scores"). The draws given ranks
have the accuracies that a pilot without errors allows, so the accuracy never leaves them. The shift
of a law fades for instances with many better classes, whose p the ranks give, and far out.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from scipy.special import expit, log_ndtr, logit

from classex_bayes.arguments import one_of
from classex_bayes.bayes.fit_attributes import FitAttributes
from classex_bayes.bayes.idata import (
    MIXTURE,
    basis_of,
    described,
    mixture_group,
    weights_of,
)
from classex_bayes.bayes.tails.calibration import HeldOutTable, held_out_tables
from classex_bayes.bayes.tails.depths import ScoreForm, why_no_tails
from classex_bayes.bayes.tails.tail_laws import TailDraws, tail_laws
from classex_bayes.bayes.tails.tail_model import TAIL_PARAMETERS, TailPrior, drawn_parameters
from classex_bayes.core.basis import RadialBasis
from classex_bayes.core.law import MixtureLaw
from classex_bayes.core.linear_split import on_grid_by_row
from classex_bayes.exceptions import DataError
from classex_bayes.results.draws import SAMPLE_DIMS
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import FloatArray

if TYPE_CHECKING:
    import pymc as pm

# Groups of `idata`: draws of the tails, and the instances by depth and by numbers of better classes
# in held-out halves, with every form of the scores.
TAILS, HELD_OUT = "tails", "held_out_ranks"
_RANKS, _BOTH = "ranks", "ranks and scores"
_WIDEST_BANDWIDTH = 0.15  # of knots that can hold the law of one instance
_SCALE = 0.1  # of the discrepancy
_LARGEST_CORRELATION = 0.9  # of the sampling errors
_N_DISCREPANCIES = 801  # around 0, and around the observed difference
_LARGEST_SHIFT, _BISECTIONS = 8.0, 32
_SMALLEST_ACCURACY, _SMALLEST_VARIANCE = 1e-9, 1e-12
TAIL_DESCRIPTIONS = {
    **TAIL_PARAMETERS,
    "slope_error": "change of the slope from a half of the classes to all of them and more",
    "shift": "shift of Z = Phi^-1(U*) near 1 - 1 / k1 by which the tails agree with the ranks",
    "prior_density": "joint log prior density of the parameters of the tails",
    "rank_density": "log-likelihood of the held-out ranks",
    "form_place": "place of the form of the scores among all forms",
}


def add_scores(
    tree: xr.DataTree,
    attributes: FitAttributes,
    tasks: Sequence[SourceTask],
    evidence: str,
    tail_prior: TailPrior,
    seeds: np.random.SeedSequence,
) -> FitAttributes:
    """Add the evidence of scores to the groups of a fit to ranks, if there are scores to use.

    The group "mixture" becomes the law given ranks and scores. The law given ranks alone becomes
    another group (`weights_of`). The returned attributes state the evidence, or have a note why
    scores were not used.
    """
    basis, by_ranks = basis_of(tree), weights_of(tree)
    if (unused := why_unused(tasks, evidence, basis.bandwidth)) is not None:
        notes = (f"only ranks are used, because {unused}",) * bool(unused)
        is_printed = not any(task.table.is_labelled for task in tasks)
        used = attributes.made_from if is_printed else _RANKS
        return replace(attributes, evidence=used, notes=(*attributes.notes, *notes))
    # The law of the ranks is that of instances that have an answer.
    task = tasks[0].answered
    rank_law = MixtureLaw(basis, by_ranks.values.reshape(-1, basis.knots.size))
    tail_seeds, anchor_seeds = seeds.spawn(2)
    draws = TailDraws.of(task, basis, tail_prior, len(rank_law.weights), tail_seeds)
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
        "form_place": draws.form_place,
    }
    sample = [by_ranks.sizes[dim] for dim in SAMPLE_DIMS]
    tails = {name: (SAMPLE_DIMS, x[order].reshape(sample)) for name, x in values.items()}
    mixture = mixture_group(MixtureLaw(basis, law.weights[order].reshape(by_ranks.shape)))
    forms = {fit.form.name: fit.prob for fit in draws.fits}
    of_tails = xr.Dataset(tails).assign_coords(mixture[SAMPLE_DIMS].coords)
    groups = {
        MIXTURE["ranks"]: tree[MIXTURE["posterior"]].to_dataset(),
        MIXTURE["posterior"]: mixture,
        TAILS: described(of_tails, TAIL_DESCRIPTIONS),
        HELD_OUT: held_out_group([(fit.form, fit.table) for fit in draws.fits]),
    }
    tree.update({name: xr.DataTree(group) for name, group in groups.items()})
    return replace(attributes, evidence=_BOTH, forms=forms, pareto_k=draws.pareto_k)


def with_prior_tails(
    drawn: xr.Dataset,
    task: SourceTask,
    basis: RadialBasis,
    prior: TailPrior,
    rng: np.random.Generator,
) -> xr.Dataset:
    """Replace the weights of prior draws by laws of tails with parameters from their prior.

    The depths of the instances are data. Each form of the scores that a fit would use has equally
    many draws.
    """
    answered, size = task.answered, drawn.sizes["draw"]
    forms = [form for form, _ in held_out_tables(answered, rng)]
    parameters, errors = drawn_parameters(prior, size, rng), prior.draw_errors(size, rng)
    place = np.arange(size) % len(forms)
    weights = np.empty((size, basis.knots.size))
    for at, form in enumerate(forms):
        of_form = parameters.at(place == at).beyond(errors[place == at])
        weights[place == at] = tail_laws(answered, form, basis, of_form, rng)
    values = {**parameters._asdict(), "slope_error": errors}
    refuse_names_of_tails(drawn.data_vars)
    columns = {name: (SAMPLE_DIMS, x[None]) for name, x in values.items()}
    return drawn.assign(columns).assign(weights=drawn["weights"].copy(data=weights[None]))


def held_out_group(tables: Sequence[tuple[ScoreForm, HeldOutTable]]) -> xr.Dataset:
    """The tables of all forms as a group of `idata`."""
    groups = [table.group().assign_coords(form=form.name) for form, table in tables]
    return xr.concat(groups, "form", join="outer", fill_value=0)


def held_out_ranks(
    task: SourceTask, forms: Sequence[str], seeds: np.random.SeedSequence
) -> xr.Dataset:
    """The group that `add_scores` adds for a task with these seeds, if it has these forms.

    The forms are in the order of `forms`, or in their own if these are others.
    """
    of_tails, _ = seeds.spawn(2)
    of_halves, _ = of_tails.spawn(2)
    group = held_out_group(held_out_tables(task.answered, np.random.default_rng(of_halves)))
    return group.sel(form=forms) if {*forms} <= {*group["form"].values} else group


def register_tails(model: "pm.Model", prior: TailPrior, held_out: xr.Dataset) -> None:
    """Add the parameters of the tails to a PyMC model, and the likelihood of held-out ranks.

    The forms of the scores, which have the same prior probability, are summed over.
    """
    import pymc as pm
    import pytensor.tensor as pt

    refuse_names_of_tails(model.named_vars)
    tables = [HeldOutTable.of_group(held_out.isel(form=i)) for i in range(held_out.sizes["form"])]
    with model:
        parameters = prior.register()
        logs = [table.symbolic_log_likelihood(parameters) for table in tables]
        pm.Potential("held_out_ranks", pt.logsumexp(pt.stack(logs)) - np.log(len(logs)))


def refuse_names_of_tails(names: Iterable[Any]) -> None:
    """Raise DataError if parameters of an own prior have names of parameters of the tails."""
    if taken := sorted({*names} & {*TAIL_PARAMETERS, "slope_error"}):
        raise DataError(
            f"prior: its parameter {taken[0]!r} has the name of a parameter of TailPrior; give it "
            "another name, or use evidence='ranks'"
        )


def why_unused(tasks: Sequence[SourceTask], evidence: str, bandwidth: float) -> str | None:
    """Reason why scores of tasks are not used on knots of this bandwidth; None if they are.

    It is empty if there are no scores, or if only ranks shall be used. Instances without an answer
    have no scores.
    """
    one_of(evidence, ("all", "ranks"), "evidence")
    tasks = [task.answered for task in tasks]
    if evidence == "ranks" or not any(task.table.has_scores for task in tasks):
        return ""
    if bandwidth > _WIDEST_BANDWIDTH:
        return (
            f"knots of the bandwidth {bandwidth:g} are too coarse for tails of scores, which need "
            f"at most {_WIDEST_BANDWIDTH:g}"
        )
    return why_no_tails(tasks) or None


def anchored(
    tails: MixtureLaw, rank_accuracy: FloatArray, n_classes: int, rng: np.random.Generator
) -> tuple[MixtureLaw, FloatArray, FloatArray]:
    """Laws that follow ranks on k1 classes and tails beyond, their shifts and accuracies on k1.

    `tails` are independent draws (n, m) from tails, whose order the result has. `rank_accuracy`
    (n,) are draws of the expected accuracy on the k1 source classes, given ranks.
    """
    tail_accuracy = tails.expected(np.array([n_classes]))[:, 0]
    accuracy = expit(_combined(_logit(rank_accuracy), _logit(tail_accuracy), rng))
    within = np.clip(accuracy, rank_accuracy.min(), rank_accuracy.max())
    law, shift = _moved(tails, within, n_classes)
    return law, shift, within


def _logit(accuracy: FloatArray) -> FloatArray:
    return logit(np.clip(accuracy, _SMALLEST_ACCURACY, 1 - _SMALLEST_ACCURACY))


def _combined(
    rank_logit: FloatArray, tail_logit: FloatArray, rng: np.random.Generator
) -> FloatArray:
    r"""Draws (n,) of :math:`\alpha`, from draws (n,) of r and t, in the order of the latter."""
    mean_r, mean_t = rank_logit.mean(), tail_logit.mean()
    var_r, var_t = (max(float(x.var()), _SMALLEST_VARIANCE) for x in (rank_logit, tail_logit))
    correlation = min(np.sqrt(min(var_r, var_t) / max(var_r, var_t)), _LARGEST_CORRELATION)
    covariance = correlation * np.sqrt(var_r * var_t)
    var_difference = var_r + var_t - 2 * covariance
    sd = float(np.sqrt(var_difference))
    discrepancy = _discrepancies(float(mean_t - mean_r), sd, rng, tail_logit.size)
    share = (var_r - covariance) / var_difference  # of the tails in the combination
    variance = (var_r * var_t - covariance**2) / var_difference
    standard = (tail_logit - mean_t) / np.sqrt(var_t)
    return mean_r + share * (mean_t - discrepancy - mean_r) + np.sqrt(variance) * standard


def _discrepancies(difference: float, sd: float, rng: np.random.Generator, size: int) -> FloatArray:
    r"""Draws (size,) of :math:`\Delta` given a difference t - r with the standard deviation sd."""
    # Dense where the prior or the likelihood has its mass.
    widest = np.arcsinh(max(2 * abs(difference), 10.0) / _SCALE)
    of_prior = _SCALE * np.sinh(np.linspace(-widest, widest, _N_DISCREPANCIES))
    of_likelihood = difference + sd * np.linspace(-8, 8, _N_DISCREPANCIES)
    grid = np.unique(np.concatenate([of_prior, of_likelihood]))
    log_density = -np.log1p((grid / _SCALE) ** 2)
    log_density -= 0.5 * ((difference - grid) / sd) ** 2
    mass = np.exp(log_density - log_density.max()) * np.gradient(grid)
    cumulative = mass.cumsum()
    return grid[cumulative.searchsorted(rng.random(size) * cumulative[-1])]


def _moved(law: MixtureLaw, accuracy: FloatArray, n_classes: int) -> tuple[MixtureLaw, FloatArray]:
    """Laws with the given accuracies (n,) on k1 classes, and their shifts (n,)."""
    knots = law.basis.knots
    decades = (-log_ndtr(-knots) - np.log(n_classes)) / np.log(10)
    fading = 1 / (1 + np.abs(decades))
    right = MixtureLaw(law.basis, np.eye(knots.size)).expected(np.array([n_classes]))[:, 0]
    low = np.full(accuracy.size, -_LARGEST_SHIFT)
    high = -low
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        shifted = np.interp(knots + middle[:, None] * fading, knots, right)
        below = (law.weights * shifted).sum(axis=1) < accuracy
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    shift = (low + high) / 2
    moved = knots + shift[:, None] * fading
    row = np.repeat(np.arange(accuracy.size), knots.size)
    weights = on_grid_by_row(row, accuracy.size, moved.ravel(), law.weights.ravel(), knots)
    return MixtureLaw(law.basis, weights), shift
