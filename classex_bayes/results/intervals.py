"""Level and kind of intervals, and intervals of draws."""

import xarray as xr
from arviz_base import rcParams
from arviz_stats import eti, hdi

from classex_bayes.task.validation import one_of, probability

SAMPLE_DIMS = ["chain", "draw"]


def interval_settings(ci_prob: float | None, ci_kind: str | None) -> tuple[float, str]:
    """Level and kind of intervals, from ArviZ's rcParams where they are not given."""
    prob = rcParams["stats.ci_prob"] if ci_prob is None else probability(ci_prob, "ci_prob")
    kind = rcParams["stats.ci_kind"] if ci_kind is None else ci_kind
    one_of(kind, ("eti", "hdi"), "ci_kind")
    return float(prob), kind


def interval_words(prob: float, kind: str, of: str = "credible") -> str:
    """An interval in words, such as "90% credible interval"; highest density is told."""
    return f"{100 * prob:g}% {of} interval" + (" (highest density)" if kind == "hdi" else "")


def interval_of(draws: xr.DataArray, ci_prob: float | None, ci_kind: str | None) -> xr.DataArray:
    """Credible interval over chains and draws, with dimension `ci_bound` (lower, upper)."""
    prob, kind = interval_settings(ci_prob, ci_kind)
    return (eti if kind == "eti" else hdi)(draws, prob=prob, dim=SAMPLE_DIMS)
