"""Draws by nutpie: a bar on the terminal, and interruptions that lose no draw."""

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event
from typing import TYPE_CHECKING, Any

import nutpie
import xarray as xr
from rich.console import Console
from rich.progress import Progress

from classex_bayes.bayes.model.accelerated.nutpie_model import compiled_model, is_written_out
from classex_bayes.bayes.model.likelihoods import LikelihoodData, arrays
from classex_bayes.bayes.model.priors import Prior

if TYPE_CHECKING:
    from classex_bayes.bayes.sampling import SamplerSettings

# Compiled PyMC models of this process, for any data of one prior, likelihood and shape.
_COMPILED: dict[Any, Any] = {}
_PATIENCE = 0.1  # seconds until the sampler hears of an interruption


def draw_by_nutpie(
    prior: Prior, data: LikelihoodData, settings: "SamplerSettings", seed: int
) -> tuple[xr.DataTree, bool]:
    """Draws from the posterior, and whether the keyboard interrupted them.

    An interruption reaches the main thread alone, wherever that is; the draws are collected in
    another one, so that it never comes between.
    """
    with _bar(settings) as told:
        sampler = nutpie.sample(
            _compiled(prior, data),
            draws=settings.draws,
            tune=settings.tune,
            chains=settings.chains,
            cores=settings.cores,
            seed=seed,
            target_accept=settings.target_accept,
            save_warmup=False,
            blocking=False,
            **told,
        )
        stopped = Event()
        with ThreadPoolExecutor(1) as thread:
            draws = thread.submit(_collect, sampler, stopped)
            try:
                return draws.result(), False
            except KeyboardInterrupt:
                stopped.set()
                return draws.result(), True


def _compiled(prior: Prior, data: LikelihoodData) -> Any:
    """Posterior for nutpie, from PyMC where it is not written out."""
    if is_written_out(prior, data):
        return compiled_model(prior, data)
    from classex_bayes.bayes.model.graph import build_model

    padded = data.padded()
    key = (prior, data.kind, padded.matrix.shape)
    if key not in _COMPILED:
        _COMPILED[key] = nutpie.compile_pymc_model(build_model(prior, padded))
    return _COMPILED[key].with_data(**arrays(padded))


def _collect(sampler: Any, stopped: Event) -> xr.DataTree:
    while not stopped.is_set():
        try:
            return sampler.wait(timeout=_PATIENCE)
        except TimeoutError:
            continue
    return sampler.abort()


@contextmanager
def _bar(settings: "SamplerSettings") -> Iterator[dict[str, Any]]:
    """Arguments of nutpie that show progress: on a terminal in one line, else as it likes."""
    if not (settings.progressbar and sys.stderr.isatty()):
        yield {"progress_bar": settings.progressbar}
        return
    total = settings.chains * (settings.tune + settings.draws)
    with Progress(console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task("sampling", total=total)

        def show(chains: list[Any]) -> None:
            progress.update(bar, completed=sum(chain.finished_draws for chain in chains))

        yield {"progress_bar": False, "progress_callback": show}
