"""Draws from the posterior: settings, sampler, and what it returns if it is interrupted."""

import logging
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
import nutpie
import xarray as xr

from classex_bayes.arguments import how_many, one_of, probability, truth_value
from classex_bayes.bayes.convergence import FEWEST_DRAWS
from classex_bayes.bayes.idata import split_weights
from classex_bayes.bayes.model.likelihoods import Likelihood, LikelihoodData, build_model
from classex_bayes.bayes.model.priors import MixturePrior, Prior, descriptions_of
from classex_bayes.exceptions import DataError, Interrupted
from classex_bayes.typing import IntArray

# Of decisions, by which laws of two narrow groups have steep edges, where longer steps diverge.
ACCEPT_OF_FEW_ROWS = 0.995
# Compiled PyMC models of this process, by prior, likelihood and shape of the data.
_COMPILED: dict[Any, Any] = {}


@dataclass(frozen=True)
class SamplerSettings:
    """Settings of the sampler, with the defaults of every fit."""

    draws: int = 1000
    tune: int = 600
    chains: int = 4
    cores: int | None = None
    target_accept: float = 0.98
    progressbar: bool = True

    @classmethod
    def of(cls, sampler: Mapping[str, Any] | None, progressbar: bool) -> Self:
        """Settings from the argument `sampler`."""
        if not isinstance(sampler, Mapping | None):
            raise DataError(
                f"sampler: expected a mapping such as {{'draws': 500}}, found {sampler!r}"
            )
        names = [field.name for field in fields(cls) if field.name != "progressbar"]
        for name in sampler or ():
            one_of(name, names, "sampler")
        return cls(**(sampler or {}), progressbar=progressbar)

    def __post_init__(self) -> None:
        """Validate."""
        checked: dict[str, Any] = {
            name: how_many(getattr(self, name), name) for name in ("draws", "tune", "chains")
        }
        if self.cores is not None:  # nutpie starts a thread for each core, used or not
            checked["cores"] = min(how_many(self.cores, "cores"), checked["chains"])
        checked["target_accept"] = probability(self.target_accept, "target_accept")
        checked["progressbar"] = truth_value(self.progressbar, "progressbar")
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    def shortfall(self, drawn: xr.DataTree) -> str:
        """Size of draws and the requested size if the sampler was interrupted; else empty."""
        sizes = drawn["posterior"].sizes
        if (sizes["chain"], sizes["draw"]) == (self.chains, self.draws):
            return ""
        return f"{sizes['chain']} x {sizes['draw']} of {self.chains} x {self.draws} draws"


def sample_posterior(
    prior: Prior, data: Likelihood, settings: SamplerSettings, seed: int
) -> xr.DataTree:
    """Posterior draws: a tree with the groups posterior, mixture (the weights) and sample_stats.

    nutpie compiles the model once per machine for priors of this package, and once per process and
    shape of the data for other priors. It returns the draws so far if the keyboard interrupts it.
    Then the tree has the chains of one length that keep most of these
    (`SamplerSettings.shortfall`). Too few draws raise `Interrupted`.
    """
    tree = sample_by_nutpie(prior, data, settings, seed)
    posterior = tree["posterior"].to_dataset()
    descriptions = {**descriptions_of(prior), **data.descriptions}
    groups = split_weights(posterior, prior.basis, descriptions)
    groups["sample_stats"] = tree["sample_stats"].to_dataset()
    # If interrupted, it returns fewer chains, or pads the shorter ones with NaN.
    lengths = posterior["weights"].notnull().all("knot").sum("draw").values
    if lengths.size < settings.chains or np.any(lengths < settings.draws):
        chains, n_draws = _longest(lengths)
        if n_draws < FEWEST_DRAWS:
            raise Interrupted("the sampler was interrupted before its first draws")
        groups = {
            name: group.isel(chain=chains, draw=slice(n_draws)) for name, group in groups.items()
        }
    return xr.DataTree.from_dict(groups)


def _longest(lengths: IntArray) -> tuple[IntArray, int]:
    """Chains of these lengths, and a common length, that keep most draws."""
    longest_first = np.argsort(-lengths, kind="stable")
    n_kept = lengths[longest_first] * np.arange(1.0, lengths.size + 1)
    n_kept[0] /= 2  # a single chain cannot show whether it converged
    n_chains = int(np.argmax(n_kept)) + 1
    return np.sort(longest_first[:n_chains]), int(lengths[longest_first[n_chains - 1]])


def sample_by_nutpie(
    prior: Prior, data: Likelihood, settings: SamplerSettings, seed: int
) -> xr.DataTree:
    """Draws from the posterior; if the keyboard interrupts the sampler, the draws so far."""
    with _bar(settings) as progress:
        return nutpie.sample(
            _nutpie_model(prior, data),
            draws=settings.draws,
            tune=settings.tune,
            chains=settings.chains,
            cores=settings.cores,
            seed=seed,
            target_accept=settings.target_accept,
            save_warmup=False,
            **progress,
        )


def _nutpie_model(prior: Any, data: Any) -> Any:
    """Posterior for nutpie: the compiled density if there is one, else a compiled PyMC model."""
    # A subclass of a prior may have changed it.
    if type(prior) is MixturePrior and isinstance(data, LikelihoodData):
        try:  # numba, nutpie's private class and the disk fail in many ways
            from classex_bayes.bayes.model.nutpie_model import compiled_model

            return compiled_model(prior, data)
        except Exception as error:
            logging.getLogger("classex_bayes").warning(
                "the compiled density cannot be used; the fit compiles its PyMC model: %r", error
            )
    padded = data.padded()
    key = (prior, type(data), padded.matrix.shape)
    if key not in _COMPILED:
        _COMPILED[key] = nutpie.compile_pymc_model(build_model(prior, padded))
    return _COMPILED[key].with_data(**padded.arrays())


@contextmanager
def _bar(settings: SamplerSettings) -> Iterator[dict[str, Any]]:
    """Arguments of nutpie that show progress: one line on a terminal, else nutpie's display."""
    if not (settings.progressbar and sys.stderr.isatty()):
        yield {"progress_bar": settings.progressbar}
        return
    from rich.console import Console
    from rich.progress import Progress

    total = settings.chains * (settings.tune + settings.draws)
    with Progress(console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task("sampling", total=total)

        def show(chains: list[Any]) -> None:
            progress.update(bar, completed=sum(chain.finished_draws for chain in chains))

        yield {"progress_bar": False, "progress_callback": show}
