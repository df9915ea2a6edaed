"""Simulation-based calibration: tests that posteriors are correct if the model is."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from arviz_stats.ecdf_utils import ecdf_pit

from classex_bayes.arguments import (
    class_count,
    class_counts,
    how_many,
    number,
    probability,
    seed_sequence,
    truth_value,
)
from classex_bayes.bayes.extrapolator import BayesianExtrapolator, checked_model_with_prior
from classex_bayes.bayes.idata import parameters_and_weights
from classex_bayes.bayes.model.graph import prior_draws
from classex_bayes.bayes.model.likelihoods import BernsteinData
from classex_bayes.bayes.model.priors import MixturePrior, Prior, checked_prior
from classex_bayes.bayes.sampling import SamplerSettings, sample_posterior, sampler_settings
from classex_bayes.core.basis import loss_bins
from classex_bayes.evaluate.trials import SAMPLER
from classex_bayes.exceptions import DataError, Interrupted
from classex_bayes.parallel import checked_jobs, in_parallel
from classex_bayes.typing import ClassCounts, FloatArray, IntArray, RandomSeed

# Ranks among dependent draws are not uniform.
_RANKED_DRAWS = 100
_BAND_SIMULATIONS = 2000


class _Rank(NamedTuple):
    """Numbers of draws: below the simulated value, equal to it, and in total."""

    below: int
    equal: int
    size: int


class _SimulatedData(NamedTuple):
    """A data set with its true quantities and the seed of its fit."""

    quantities: dict[str, float]
    data: BernsteinData
    seed: int


@dataclass(frozen=True)
class _Study:
    """Data sets that are simulated and refitted.

    Each has the information of `template`, and is fitted together with the counts `observed`.
    Seeds are those of draws, data, fits and ranks.
    """

    group: str
    prior: Prior
    k: IntArray
    template: BernsteinData
    observed: FloatArray
    seeds: list[np.random.SeedSequence]

    def ranks(
        self, drawn: xr.Dataset, sampler: Mapping[str, Any], n_jobs: int | None, progressbar: bool
    ) -> xr.DataTree:
        """Rank every draw among the draws of a posterior fitted to its data."""
        settings = SamplerSettings(
            **{**sampler_settings(sampler), "cores": 1, "progressbar": False}
        )
        show, jobs = truth_value(progressbar, "progressbar"), checked_jobs(n_jobs)
        cases = [(case, self.prior, self.k, settings) for case in self._simulated(drawn)]
        ranks: list[dict[str, _Rank]] = []
        try:
            for rank in in_parallel(_rank, cases, len(cases), jobs, "simulations", show):
                ranks.append(rank)
        except KeyboardInterrupt:
            message = f"interrupted after {len(ranks)} of {len(cases)} simulations"
            partial = _rank_tree(ranks, self.group, self.seeds[3]) if ranks else None
            raise Interrupted(message, partial) from None
        return _rank_tree(ranks, self.group, self.seeds[3])

    def _simulated(self, drawn: xr.Dataset) -> list[_SimulatedData]:
        rng = np.random.default_rng(self.seeds[1])
        histograms = self.template.replicates(drawn["weights"].values, rng)[0]
        quantities = _quantities(drawn, self.prior, self.k)
        fit_seeds = self.seeds[2].spawn(len(quantities))
        return [
            _SimulatedData(
                values,
                BernsteinData(self.template.matrix, self.observed + histogram, 1.0),
                int(seed.generate_state(1)[0]),
            )
            for values, histogram, seed in zip(quantities, histograms, fit_seeds, strict=True)
        ]


def sbc(
    prior: Prior | None = None,
    *,
    n_classes: int = 100,
    n_test: int = 200,
    k: ClassCounts | None = None,
    n_simulations: int = 200,
    sampler: Mapping[str, Any] = SAMPLER,
    random_seed: RandomSeed = None,
    n_jobs: int | None = None,
    progressbar: bool = True,
) -> xr.DataTree:
    r"""Simulation-based calibration of the model under its own prior.

    Parameters are drawn from the prior, independent instances from the model (deff = 1), and the
    posterior is fitted to them. If the posterior is computed correctly, the rank of each drawn
    quantity among its posterior draws is uniform over simulations, for every prior.

    Parameters
    ----------
    prior : MixturePrior or DirichletPrior, optional
        Prior; `MixturePrior()` by default.
    n_classes, n_test : int
        Number of classes k1 and of test instances of the simulated tasks.
    k : int or array-like of int, optional
        Numbers of classes whose expected accuracy is ranked; k1, 10 k1 and 100 k1 by default.
    n_simulations : int
        Number of simulated tasks.
    sampler : mapping
        Arguments "draws", "tune", "chains", "target_accept" of `BayesianExtrapolator.fit`.
    random_seed : int, SeedSequence or None
        Seed of the simulations and fits.
    n_jobs : int, optional
        Number of joblib processes; one by default, or as set by `joblib.parallel_config`. The
        posterior is compiled once in each.
    progressbar : bool
        Show progress on a terminal.

    Returns
    -------
    DataTree
        Tree with the group prior_sbc. It contains for each scalar parameter and "accuracy[k]" the
        ranks as shares in (0, 1), with dimensions chain (one) and draw (the simulations). It is the
        input of `classex_bayes.plots.sbc_plot.plot_sbc` and `arviz_plots.plot_ecdf_pit`.

    References
    ----------
    Talts et al., arXiv:1804.06788 (2018); Modrak et al., Bayesian Analysis (2023).
    """
    prior = checked_prior(MixturePrior() if prior is None else prior)
    size = class_count(n_classes, "n_classes", smallest=3)
    instances = int(number(n_test, "n_test", 1, whole=True))
    simulations = how_many(n_simulations, "n_simulations", 2)
    counts = class_counts([size, 10 * size, 100 * size] if k is None else k)
    seeds = seed_sequence(random_seed).spawn(4)
    last_loss = loss_bins(size)
    matrix = prior.basis.bin_probabilities(last_loss, size)
    # The simulation uses only the total of this histogram.
    blank = BernsteinData(matrix, np.full(last_loss.size, instances / last_loss.size), 1.0)
    drawn = prior_draws(prior, blank, simulations, np.random.default_rng(seeds[0]))
    study = _Study("prior_sbc", prior, counts, blank, np.zeros(last_loss.size), seeds)
    return study.ranks(drawn, sampler, n_jobs, progressbar)


def posterior_sbc(
    model: BayesianExtrapolator,
    *,
    k: ClassCounts | None = None,
    n_simulations: int = 200,
    sampler: Mapping[str, Any] = SAMPLER,
    random_seed: RandomSeed = None,
    n_jobs: int | None = None,
    progressbar: bool = True,
) -> xr.DataTree:
    """Simulation-based calibration around the posterior of one data set.

    Parameters are drawn from the posterior, and a second data set with the same information from
    the model. The posterior given both is fitted. If it is computed correctly, the ranks of the
    drawn quantities in it are uniform.

    Parameters
    ----------
    model : BayesianExtrapolator
        Fitted, in the Bernstein form.
    k : int or array-like of int, optional
        Numbers of classes whose expected accuracy is ranked; k1, 10 k1 and 100 k1 by default.
    n_simulations : int
        Number of simulated data sets, at most the number of draws.
    sampler, random_seed, n_jobs, progressbar
        As in `sbc`.

    Returns
    -------
    DataTree
        Tree with the group posterior_sbc, otherwise as for `sbc`.

    Raises
    ------
    DataError
        If the model was fitted in the power form, or has fewer draws than `n_simulations`.
    NotFittedError
        If the model was not fitted.

    References
    ----------
    Saeilynoja, Schmitt, Buerkner and Vehtari, arXiv:2502.03279 (2025).
    """
    checked_model_with_prior(model, "calibration")
    posterior = parameters_and_weights(model.idata)
    data, prior = model.data_, model.prior_
    if not isinstance(data, BernsteinData):
        raise DataError(
            "model: found a fit in the power form, expected the Bernstein form, which has a "
            "histogram"
        )
    simulations = how_many(n_simulations, "n_simulations", 2)
    flat = posterior.stack(sample=("chain", "draw")).transpose("sample", ...)
    if simulations > flat.sizes["sample"]:
        raise DataError(
            f"n_simulations: found {simulations}, expected at most the "
            f"{flat.sizes['sample']} draws of the model"
        )
    size = int(model.idata.attrs["n_classes"])
    counts = class_counts([size, 10 * size, 100 * size] if k is None else k)
    seeds = seed_sequence(random_seed).spawn(4)
    chosen = np.random.default_rng(seeds[0]).choice(
        flat.sizes["sample"], simulations, replace=False
    )
    drawn = flat.isel(sample=chosen).reset_index("sample", drop=True)
    drawn = drawn.rename(sample="draw").expand_dims("chain")
    drawn["weights"] = drawn["weights"].transpose("chain", "draw", "knot")
    once = BernsteinData(data.matrix, data.counts / data.design_effect, 1.0)
    study = _Study("posterior_sbc", prior, counts, once, once.counts, seeds)
    return study.ranks(drawn, sampler, n_jobs, progressbar)


def uniformity(ranks: xr.DataTree, ci_prob: float = 0.99) -> pd.DataFrame:
    """Test of uniform ranks: their ECDF compared with a simultaneous band.

    Parameters
    ----------
    ranks : DataTree
        Result of `sbc` or `posterior_sbc`.
    ci_prob : float
        Probability that the whole ECDF of uniform ranks lies inside the band.

    Returns
    -------
    DataFrame
        Indexed by quantity: "inside", "outside" (share of points outside the band), "mean"
        (expected: 1/2) and "coverage90" (share of central 90% intervals that contain the true
        value).

    References
    ----------
    Saeilynoja, Buerkner and Vehtari, Statistics and Computing 32 (2022).
    """
    probability(ci_prob, "ci_prob")
    rows = {}
    for name, values in ranks[group_of_ranks(ranks)].to_dataset().data_vars.items():
        flat = values.values.ravel()
        _, ecdf, lower, upper = ecdf_pit(flat, ci_prob, _BAND_SIMULATIONS)
        outside = float(np.mean((ecdf < lower) | (ecdf > upper)))
        held = float(np.mean(np.abs(flat - 0.5) <= 0.45))
        rows[name] = (outside == 0, outside, float(flat.mean()), held)
    columns = ["inside", "outside", "mean", "coverage90"]
    return pd.DataFrame.from_dict(rows, "index", columns=columns).rename_axis("quantity")


def group_of_ranks(ranks: Any) -> str:
    """Name of the group of ranks in a result of `sbc` or `posterior_sbc`."""
    for name in getattr(ranks, "children", ()):
        if name.endswith("_sbc"):
            return name
    raise DataError("ranks: found no group of ranks, expected a result of sbc or posterior_sbc")


def _quantities(draws: xr.Dataset, prior: Prior, k: IntArray) -> list[dict[str, float]]:
    """Scalar parameters and accuracies of every draw of the first chain."""
    accuracy = draws["weights"].transpose("chain", "draw", "knot").values[0] @ (
        prior.basis.accuracy(k).T
    )
    scalars = {
        str(name): values.values[0]
        for name, values in draws.data_vars.items()
        if values.dims == ("chain", "draw")
    }
    scalars |= {f"accuracy[{size}]": accuracy[:, place] for place, size in enumerate(k)}
    return [
        {name: float(values[draw]) for name, values in scalars.items()}
        for draw in range(draws.sizes["draw"])
    ]


def _rank(
    case: _SimulatedData, prior: Prior, k: IntArray, settings: SamplerSettings
) -> dict[str, _Rank]:
    """Fit a simulated data set, and rank its parameters among thinned draws."""
    posterior = parameters_and_weights(sample_posterior(prior, case.data, settings, case.seed))
    step = max(settings.draws * settings.chains // _RANKED_DRAWS, 1)
    flat = posterior.isel(draw=slice(None, None, step)).stack(sample=("chain", "draw"))
    thinned = flat.reset_index("sample", drop=True).rename(sample="draw").expand_dims("chain")
    thinned = thinned.transpose("chain", "draw", ...)
    draws = pd.DataFrame(_quantities(thinned, prior, k))
    return {
        name: _Rank((draws[name] < value).sum(), (draws[name] == value).sum(), len(draws))
        for name, value in case.quantities.items()
    }


def _rank_tree(
    ranks: list[dict[str, _Rank]], group: str, seed: np.random.SeedSequence
) -> xr.DataTree:
    """Ranks as shares in the form that plots of ranks accept."""
    rng = np.random.default_rng(seed)
    shares = {
        name: (("chain", "draw"), _shares([rank[name] for rank in ranks], rng)[None])
        for name in ranks[0]
    }
    data = xr.Dataset(shares, coords={"chain": [0], "draw": np.arange(len(ranks))})
    return xr.DataTree.from_dict({group: data})


def _shares(ranks: list[_Rank], rng: np.random.Generator) -> FloatArray:
    """Ranks as shares, spread evenly over the step of each, so that they are uniform on (0, 1)."""
    below, equal, size = np.array(ranks, dtype=float).T
    return (below + (equal + 1) * rng.random(below.size)) / (size + 1)
