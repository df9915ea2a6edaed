"""Convergence of the sampler: diagnostics, notes and warnings."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import arviz_stats
import numpy as np
import xarray as xr

from classex_bayes.arguments import LARGEST_K
from classex_bayes.bayes.tails.importance_sample import LARGEST_PARETO_K
from classex_bayes.exceptions import DataError
from classex_bayes.typing import IntArray

FEWEST_DRAWS = 4  # in each chain; with fewer there are no diagnostics
_FEWEST_WEIGHTED = 25  # the tail of the weights is a fifth of the draws and needs 5 of them
_LARGEST_R_HAT = 1.01
_SMALLEST_ESS_PER_CHAIN = 100
# Fits with fewer that meet the other criteria predict as well as those without divergent draws.
_LARGEST_SHARE_DIVERGENT = 0.005
_DIAGNOSED = 1, 10, 100  # multiples of k1 at which predictions must have converged


@dataclass(frozen=True)
class Diagnosis:
    """Convergence diagnostics of the draws and the criteria that they fail.

    Attributes
    ----------
    r_hat : float
        Largest R-hat of the quantities; nan with a single chain.
    ess_bulk, ess_tail : float
        Smallest effective sample sizes of the quantities.
    divergences : int
        Number of divergent draws.
    problems : tuple of str
        One phrase for each failed criterion.
    remedy : str
        Advice on the problems.
    independent : bool
        Whether the draws were made independently. Such draws need not converge.
    pareto_k : float or None
        Tail index of the importance weights of the tails of scores, if there are any. Above 0.7 the
        draws are unreliable.
    """

    r_hat: float
    ess_bulk: float
    ess_tail: float
    divergences: int
    problems: tuple[str, ...]
    remedy: str
    independent: bool = False
    pareto_k: float | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        """The problems, as notes for readers of predictions."""
        verdict = "" if self.independent else "not converged: "
        return tuple(f"{verdict}{problem}" for problem in self.problems)

    def __repr__(self) -> str:
        """Verdict, then the diagnostics that are defined.

        The diagnostics are those of predictions, which are the first rows of
        `arviz_stats.summary`. The other rows are parameters, which may differ between chains that
        agree on the law.
        """
        if self.independent:
            text = "independent of each other"
            if self.pareto_k is not None:
                text = f"independent draws, Pareto k {self.pareto_k:.2f}"
            return "; ".join(self.problems) or text
        verdict = f"not converged: {'; '.join(self.problems)}" if self.problems else "converged"
        numbers = {
            "r_hat": f"{self.r_hat:.3f}",
            "bulk ess": f"{self.ess_bulk:.0f}",
            "tail ess": f"{self.ess_tail:.0f}",
            "divergent": str(self.divergences),
        }
        defined = [f"{name} {number}" for name, number in numbers.items() if number != "nan"]
        return f"{verdict} (of predictions: {', '.join(defined)})"


def diagnosed_classes(n_classes: int) -> IntArray:
    """Numbers of classes whose predictions must have converged: 1, 10 and 100 times k1."""
    return np.unique(np.minimum(n_classes * np.array(_DIAGNOSED), LARGEST_K))


def diagnosis_of(
    tree: xr.DataTree, pareto_k: float | None = None, without_weights: str = ""
) -> Diagnosis:
    """Diagnose the draws of a fit: its predictions, or all parameters if there are none.

    `pareto_k` is that of the importance weights of the tails, if there are any, and
    `without_weights` the advice if it is too large. Predictions are the
    variables over k. Parameters need not converge if several of their values give the same law. The
    draws are independent if no sampler made them. Then only their number matters.
    """
    posterior = tree["posterior"].to_dataset()
    predictions = [name for name, values in posterior.data_vars.items() if "k" in values.dims]
    quantities = posterior[predictions] if predictions else posterior
    chains, draws = quantities.sizes["chain"], quantities.sizes["draw"]
    independent, divergent = "sample_stats" not in tree.children, 0
    r_hat, bulk, tail = np.nan, float(chains * draws), float(chains * draws)
    problems, remedies = [], []
    if independent:
        if bulk < _SMALLEST_ESS_PER_CHAIN:
            problems.append(f"{bulk:g} draws are fewer than {_SMALLEST_ESS_PER_CHAIN}")
            remedies.append("increase draws")
    else:
        r_hat, bulk, tail = _of_chains(quantities)
        divergent = int(tree["sample_stats"]["diverging"].sum())
        problems += _problems_of_chains(chains, draws, r_hat, min(bulk, tail), divergent)
        remedies += ["increase draws and tune, or raise target_accept"] * bool(problems)
    if pareto_k is not None and pareto_k > LARGEST_PARETO_K:
        problems.append(
            f"the importance weights of the calibration have a Pareto k of {pareto_k:.2f}, above "
            f"{LARGEST_PARETO_K}"
        )
        remedies.append(without_weights)
    remedy = " and ".join(remedies)
    return Diagnosis(r_hat, bulk, tail, divergent, tuple(problems), remedy, independent, pareto_k)


def _of_chains(quantities: xr.Dataset) -> tuple[float, float, float]:
    """Largest R-hat, and smallest bulk and tail effective sample size, of (chain, draw, ...)."""
    if quantities.sizes["draw"] < FEWEST_DRAWS:
        return np.nan, np.nan, np.nan

    def extreme(statistic: xr.Dataset, of: Callable[..., Any]) -> float:
        return float(of(np.concatenate([values.values.ravel() for values in statistic.values()])))

    with np.errstate(divide="ignore", invalid="ignore"):  # chains that never moved
        bulk = extreme(arviz_stats.ess(quantities, method="bulk"), np.min)
        tail = extreme(arviz_stats.ess(quantities, method="tail"), np.min)
        if quantities.sizes["chain"] == 1:
            return np.nan, bulk, tail
        return extreme(arviz_stats.rhat(quantities), np.fmax.reduce), bulk, tail


def _problems_of_chains(
    chains: int, draws: int, r_hat: float, ess: float, divergent: int
) -> Iterator[str]:
    """One phrase for each criterion that chains fail."""
    if draws < FEWEST_DRAWS:
        yield f"{draws} draws in each chain are too few to diagnose convergence"
    elif chains == 1:
        yield "a single chain cannot show whether it converged"
    elif np.isnan(r_hat):
        yield "all draws are the same"
    if r_hat > _LARGEST_R_HAT:
        yield f"r_hat of predictions is {r_hat:.4f}, above {_LARGEST_R_HAT}"
    if ess < _SMALLEST_ESS_PER_CHAIN * chains:
        yield (
            f"the effective sample size of predictions is {ess:.0f}, below "
            f"{_SMALLEST_ESS_PER_CHAIN * chains}"
        )
    if divergent > _LARGEST_SHARE_DIVERGENT * chains * draws:
        yield f"{divergent} of {chains * draws} draws diverged"


def enough_draws(model: Any) -> None:
    """Raise DataError if there are too few draws for importance weights."""
    sizes = model.idata["posterior"].sizes
    chains, draws = sizes["chain"], sizes["draw"]
    if draws < FEWEST_DRAWS or chains * draws < _FEWEST_WEIGHTED:
        raise DataError(
            f"draws: found {chains} x {draws}, too few for importance weights; expected at least "
            f"{_FEWEST_WEIGHTED} in total and {FEWEST_DRAWS} in each chain; fit with more draws"
        )
