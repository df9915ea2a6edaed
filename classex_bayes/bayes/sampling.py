"""Drawing from the posterior and judging the draws."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import arviz_stats
import numpy as np
import xarray as xr

from classex_bayes.bayes.model.likelihoods import LikelihoodData
from classex_bayes.bayes.model.priors import Prior
from classex_bayes.bayes.nutpie_sampler import draw_by_nutpie
from classex_bayes.exceptions import ConvergenceWarning, DataError, Interrupted, warn
from classex_bayes.task.validation import LARGEST_K, how_many, one_of, probability, truth_value
from classex_bayes.typing import IntArray

SAMPLERS = ("nutpie", "pymc", "numpyro", "blackjax")
_FEWEST_DRAWS = 4
_FEWEST_WEIGHED = 25  # a fifth of them make the tail of the weights, 5 at least
_LARGEST_R_HAT = 1.01
_SMALLEST_ESS_PER_CHAIN = 100
_LARGEST_SHARE_DIVERGENT = 0.001
_DIAGNOSED = 1, 10, 100  # multiples of k1 at which predictions must have converged


@dataclass(frozen=True)
class SamplerSettings:
    """How to draw; every argument is passed to the sampler explicitly."""

    draws: int = 1000
    tune: int = 1000
    chains: int = 4
    cores: int | None = None
    target_accept: float = 0.98
    nuts_sampler: str = "nutpie"
    progressbar: bool = True

    def __post_init__(self) -> None:
        """Validate."""
        for name in ("draws", "tune", "chains", "cores"):
            value = getattr(self, name)
            if name == "cores" and value is None:
                continue
            object.__setattr__(self, name, how_many(value, name))
        if self.cores is not None:  # nutpie starts as many threads as it is told
            object.__setattr__(self, "cores", min(self.cores, self.chains))
        accept = probability(self.target_accept, "target_accept")
        object.__setattr__(self, "target_accept", accept)
        object.__setattr__(self, "progressbar", truth_value(self.progressbar, "progressbar"))
        one_of(self.nuts_sampler, SAMPLERS, "nuts_sampler")


def sampler_settings(value: Any) -> dict[str, Any]:
    """Arguments of the sampler by name."""
    if not isinstance(value, Mapping):
        raise DataError(f"sampler: expected a mapping such as {{'draws': 500}}, found {value!r}")
    known = [field.name for field in fields(SamplerSettings)]
    for name in value:
        one_of(name, known, "sampler")
    return dict(value)


def enough_draws(model: Any) -> None:
    """Raise where there are too few draws for importance weights."""
    sizes = model.idata["posterior"].sizes
    chains, draws = sizes["chain"], sizes["draw"]
    if draws < _FEWEST_DRAWS or chains * draws < _FEWEST_WEIGHED:
        raise DataError(
            f"draws: found {chains} x {draws}, too few to weigh; expected at least "
            f"{_FEWEST_WEIGHED} in all and {_FEWEST_DRAWS} in each chain"
        )


def sample_posterior(
    prior: Prior, data: LikelihoodData, settings: SamplerSettings, seed: int
) -> xr.DataTree:
    """Posterior draws of the parameters and weights.

    Parameters
    ----------
    prior : Prior
        Prior on the mixture weights.
    data : BernsteinData or PowerData
        What the task says.
    settings : SamplerSettings
        How to draw. With nutpie the priors of this package need no compilation but the first on a
        machine, other priors one in a process for each shape; other samplers compile at every fit.
    seed : int
        Seed; the same seed gives the same draws.

    Returns
    -------
    DataTree
        Groups posterior and sample_stats.

    Raises
    ------
    Interrupted
        By the keyboard; its `partial` has the draws so far and an attribute "interrupted" that
        tells their number, or is None before the first.
    """
    if settings.nuts_sampler == "nutpie":
        tree, interrupted = draw_by_nutpie(prior, data, settings, seed)
    else:
        import pymc as pm

        from classex_bayes.bayes.model.graph import build_model

        interrupted = False  # pm.sample does not tell
        with build_model(prior, data):
            tree = pm.sample(
                draws=settings.draws,
                tune=settings.tune,
                chains=settings.chains,
                cores=settings.cores,
                random_seed=seed,
                nuts={"target_accept": settings.target_accept},
                nuts_sampler=settings.nuts_sampler,
                progressbar=settings.progressbar,
                quiet=not settings.progressbar,
                compute_convergence_checks=False,
            )
    drawn = xr.DataTree.from_dict(
        {group: tree[group].to_dataset() for group in ("posterior", "sample_stats")}
    )
    weights = drawn["posterior"]["weights"]
    lengths = weights.notnull().all("knot").sum("draw").values
    if lengths.size < settings.chains or np.any(lengths < settings.draws):
        raise _stopped_short(drawn, lengths, settings)
    if interrupted:
        raise Interrupted("the sampler was interrupted after its last draw", drawn)
    return drawn


def _stopped_short(tree: xr.DataTree, drawn: IntArray, settings: SamplerSettings) -> Interrupted:
    """The interruption, with as many of the draws as make whole chains of one length.

    Samplers answer an interruption with what they have, chains that have not come so far being
    padded by NaN.
    """
    longest_first = np.argsort(-drawn, kind="stable")
    lengths = drawn[longest_first]
    worth = lengths * np.arange(1.0, lengths.size + 1)
    worth[0] /= 2  # a single chain cannot show whether it converged
    best = int(np.argmax(worth))
    n_chains, n_draws = best + 1, int(lengths[best])
    told = f"{n_chains} x {n_draws} of {settings.chains} x {settings.draws} draws"
    if n_draws < _FEWEST_DRAWS:
        return Interrupted("the sampler was interrupted before its first draws")
    chains = np.sort(longest_first[:n_chains])
    kept = {
        name: group.to_dataset().isel(chain=chains, draw=slice(n_draws))
        for name, group in tree.children.items()
    }
    partial = xr.DataTree.from_dict(kept)
    partial.attrs["interrupted"] = told
    return Interrupted(f"the sampler was interrupted after {told}", partial)


def sample_or_keep(
    prior: Prior, data: LikelihoodData, settings: SamplerSettings, seed: int
) -> tuple[xr.DataTree, Interrupted | None]:
    """Draws as of `sample_posterior`; interrupted, those so far if there are any, and by what."""
    try:
        return sample_posterior(prior, data, settings, seed), None
    except Interrupted as stop:
        if stop.partial is None:
            raise
        return stop.partial, stop


@dataclass(frozen=True)
class Diagnosis:
    """Whether the draws can be trusted.

    Attributes
    ----------
    r_hat : float
        Largest over what is looked at; nan with a single chain.
    ess_bulk, ess_tail : float
        Smallest over what is looked at.
    divergences : int
        Number of divergent draws.
    problems : tuple of str
        What is wrong, in words; empty when nothing is.
    """

    r_hat: float
    ess_bulk: float
    ess_tail: float
    divergences: int
    problems: tuple[str, ...]

    def __repr__(self) -> str:
        """Verdict, then the numbers; those that are not known are left out."""
        verdict = f"not converged: {'; '.join(self.problems)}" if self.problems else "converged"
        numbers = {
            "r_hat": f"{self.r_hat:.3f}",
            "bulk ess": f"{self.ess_bulk:.0f}",
            "tail ess": f"{self.ess_tail:.0f}",
            "divergent": str(self.divergences),
        }
        known = [f"{name} {number}" for name, number in numbers.items() if number != "nan"]
        return f"{verdict} ({', '.join(known)})"


def diagnosed_classes(n_classes: int) -> IntArray:
    """Numbers of classes whose predictions are looked at: 1, 10 and 100 times k1."""
    return np.minimum(n_classes * np.array(_DIAGNOSED), LARGEST_K)


def diagnose(tree: xr.DataTree, quantities: xr.Dataset | None = None) -> Diagnosis:
    """Convergence diagnostics.

    Parameters
    ----------
    tree : DataTree
        Groups posterior and sample_stats.
    quantities : Dataset with dimensions chain, draw, ..., optional
        What the draws are used for. By default all parameters but the weights, which follow from
        them. Parameters need not settle where several of their values describe one law.

    Returns
    -------
    Diagnosis
    """
    if quantities is None:
        quantities = tree["posterior"].to_dataset().drop_vars("weights")
    chains, draws = quantities.sizes["chain"], quantities.sizes["draw"]

    def extreme(statistic: xr.Dataset, of: Callable[..., Any]) -> float:
        return float(of(np.concatenate([values.values.ravel() for values in statistic.values()])))

    r_hat = bulk = tail = np.nan
    if draws >= _FEWEST_DRAWS:
        with np.errstate(divide="ignore", invalid="ignore"):  # chains that never moved
            bulk = extreme(arviz_stats.ess(quantities, method="bulk"), np.min)
            tail = extreme(arviz_stats.ess(quantities, method="tail"), np.min)
            if chains > 1:
                r_hat = extreme(arviz_stats.rhat(quantities), np.fmax.reduce)
    divergent = int(tree["sample_stats"]["diverging"].sum())
    problems = []
    if draws < _FEWEST_DRAWS:
        problems.append(f"{draws} draws in each chain are too few to diagnose")
    elif chains == 1:
        problems.append("a single chain cannot show whether it converged")
    elif np.isnan(r_hat):
        problems.append("all draws are the same")
    if r_hat > _LARGEST_R_HAT:
        problems.append(f"r_hat is {r_hat:.4f}, above {_LARGEST_R_HAT}")
    if min(bulk, tail) < _SMALLEST_ESS_PER_CHAIN * chains:
        problems.append(
            f"the effective sample size is {min(bulk, tail):.0f}, below "
            f"{_SMALLEST_ESS_PER_CHAIN * chains}"
        )
    if divergent > _LARGEST_SHARE_DIVERGENT * chains * draws:
        problems.append(f"{divergent} of {chains * draws} draws diverged")
    return Diagnosis(r_hat, bulk, tail, divergent, tuple(problems))


def sampling_notes(tree: xr.DataTree, diagnosis: Diagnosis) -> list[str]:
    """What the reader of numbers made from the draws must know of the sampler."""
    told = tree.attrs.get("interrupted")
    notes = [] if told is None else [f"sampling was interrupted: {told}"]
    return notes + [f"not converged: {problem}" for problem in diagnosis.problems]


def conclude(model: Any, stop: Interrupted | None) -> None:
    """End a fit: pass an interruption on, now that the model has its draws, or warn of problems."""
    try:
        diagnosis = model.diagnosis_
    except KeyboardInterrupt as late:
        stop = stop or Interrupted("interrupted after the last draw", late)
    if stop is not None:
        raise Interrupted(f"{stop}, which the model keeps", model) from None
    if diagnosis.problems:
        warn(
            f"{'; '.join(diagnosis.problems)}. Draw more (draws=, tune=) or raise target_accept",
            ConvergenceWarning,
        )
