"""Fits in a warm process."""

from functools import cache, partial
from time import perf_counter
from typing import Any

import arviz_stats
import numba
import numpy as np
import xarray as xr
from scipy.special import ndtr

from classex_bayes import BayesianExtrapolator, MixturePrior, SourceTask, load_glyphs
from classex_bayes.bayes.model.density import log_density
from classex_bayes.bayes.model.likelihoods import BernsteinData, build_model
from classex_bayes.bayes.model.nutpie_model import compiled_model, pack
from studies.benchmarks.measurement import (
    Measurement,
    Setup,
    seconds,
    time_ratios,
)

_SETTINGS: dict[str, Any] = {
    "sampler": {"draws": 500, "tune": 500, "chains": 2},
    "random_seed": 1,
    "progressbar": False,
}
_CONVERGED_AT = 1, 10, 100  # times k1


@cache
def _glyphs(n_classes: int) -> SourceTask:
    return load_glyphs().task().subsample(n_classes, random_seed=3)


def refit(setup: Setup) -> list[Measurement]:
    """Time of a fit in a process that has fitted before."""
    task = _glyphs(30 if setup.small else 100)

    def fit() -> object:
        return BayesianExtrapolator().fit(task, **_SETTINGS)

    fit()
    times = [seconds(fit) for _ in range(1 if setup.small else 15)]
    return [Measurement("fit again, 2 x 500 draws, 100 characters", times, 0.3, "seconds", True)]


def sampling(setup: Setup) -> list[Measurement]:
    """Effective sample size per second.

    The effective sample size is the smallest bulk one, without tuning, on 100 characters.
    """
    task = _glyphs(30 if setup.small else 100)
    rates: dict[str, list[float]] = {"parameters": [], "accuracies": []}
    for seed in range(1 if setup.small else 5):

        def fit(draws: int, seed: int = seed) -> BayesianExtrapolator:
            sampler = {"draws": draws, "tune": 1000, "chains": 4}
            return BayesianExtrapolator().fit(
                task, sampler=sampler, random_seed=seed, progressbar=False
            )

        start = perf_counter()
        fit(4)
        middle = perf_counter()
        model = fit(200 if setup.small else 4000)
        drawing = (perf_counter() - middle) - (middle - start)
        posterior = model.idata["posterior"].to_dataset()
        k = task.n_classes * np.array(_CONVERGED_AT)
        accuracies = xr.Dataset({"accuracy": model.predict(k).accuracy})
        for name, draws in (("parameters", posterior), ("accuracies", accuracies)):
            ess = arviz_stats.ess(draws, method="bulk")
            smallest = min(float(values.min()) for values in ess.data_vars.values())
            rates[name].append(smallest / drawing)
    return [
        Measurement(f"smallest effective sample size per second, {name}", rate, reach, "/ s")
        for (name, rate), reach in zip(rates.items(), (600, 2000), strict=True)
    ]


def size(setup: Setup) -> list[Measurement]:
    """Time of a fit to many ranks, relative to few.

    The ranks are of 1,000 classes.
    """
    few, many, n_classes = (200, 2_000, 100) if setup.small else (1_000, 10_000_000, 1_000)
    settings = (
        {**_SETTINGS, "sampler": {**_SETTINGS["sampler"], "draws": 20, "tune": 20}}
        if setup.small
        else _SETTINGS
    )
    measurements = []
    for name, share in (("classes differ", 0.5), ("instances independent", 0.0)):
        to_many, to_few = (
            partial(BayesianExtrapolator().fit, _ranks(n, n_classes, share), **settings)
            for n in (many, few)
        )
        ratios = time_ratios(to_many, to_few, repeats=1 if setup.small else 5)
        text = f"fit to {many:,} ranks, {name}"
        measurements.append(
            Measurement(text, ratios, 1.3, f"times the time for {few:,} ranks", True)
        )
    return measurements


def _ranks(n: int, n_classes: int, share: float) -> SourceTask:
    """Draw ranks: probits of U* are N(2, 1), and classes explain a share of the variance."""
    rng = np.random.default_rng(5)
    y = np.arange(n) % n_classes
    z = 2 + np.sqrt(share) * rng.standard_normal(n_classes)[y]
    z += np.sqrt(1 - share) * rng.standard_normal(n)
    return SourceTask.from_ranks(rng.binomial(n_classes - 1, ndtr(-z)) + 1, y, n_classes=n_classes)


def density(setup: Setup) -> list[Measurement]:
    """Speed of the log density with gradient, relative to PyMC."""
    prior = MixturePrior()
    data = BernsteinData.of(_glyphs(100), prior.basis)
    packed, point = pack(prior, data), compiled_model(prior, data).initial_point_func(1)
    gradient = np.empty(point.size)
    mode = "FAST_COMPILE" if setup.small else None
    pymc_function = build_model(prior, data).logp_dlogp_function(ravel_inputs=True, mode=mode)
    pymc_function.set_extra_values({})
    ours = numba.njit(lambda *arguments: log_density(*arguments))  # only compiled code calls it
    number = range(3 if setup.small else 20_000)
    ratios = time_ratios(
        lambda: [pymc_function(point) for _ in number],
        lambda: [ours(point, packed, gradient) for _ in number],
    )
    return [
        Measurement("log density with gradient, called from Python", ratios, 1, "times PyMC's rate")
    ]
