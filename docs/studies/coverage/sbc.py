"""Simulation-based calibration: are posteriors computed correctly? docs/calibration.md."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from arviz_stats.ecdf_utils import ecdf_pit
from joblib import Parallel, delayed

import classex_bayes as cb
from classex_bayes.bayes.model.likelihoods import BernsteinData, prior_draws
from classex_bayes.bayes.sampling import SamplerSettings, sample_posterior
from classex_bayes.core.basis import n_better_bins
from classex_bayes.evaluate.trials import SAMPLER
from classex_bayes.typing import FloatArray, IntArray
from studies.pages import paragraph, version
from studies.shared import Options, quiet

_RANKED_DRAWS = 100  # ranks among dependent draws are not uniform
_BAND_SIMULATIONS = 2000
_BAND = 0.99


def sbc(
    prior: Any = None,
    *,
    n_classes: int = 100,
    n_test: int = 200,
    n_simulations: int = 200,
    sampler: Mapping[str, Any] = SAMPLER,
    random_seed: int | None = None,
    n_jobs: int | None = None,
) -> xr.DataTree:
    """Simulation-based calibration of the model under a prior.

    Parameters are drawn from the prior, independent instances from the model (deff = 1), and the
    posterior is fitted to them. If the posterior is computed correctly, the rank of each drawn
    quantity among its posterior draws is uniform over simulations, for every prior.

    Parameters
    ----------
    prior : prior, optional
        `classex_bayes.MixturePrior()` by default.
    n_classes, n_test : int
        Number of classes k1 and of test instances of the simulated tasks.
    n_simulations : int
        Number of simulated tasks.
    sampler : mapping
        Arguments "draws", "tune", "chains", "target_accept" of `BayesianExtrapolator.fit`.
    random_seed : int, optional
        Seed of the simulations and fits.
    n_jobs : int, optional
        Number of processes.

    Returns
    -------
    DataTree
        Tree with the group prior_sbc. It contains for each scalar parameter and for the accuracy on
        k1, 10 k1 and 100 k1 classes the ranks as shares in (0, 1), with dimensions chain (one) and
        draw (the simulations). It is the input of `uniformity` and `arviz_plots.plot_ecdf_pit`.

    References
    ----------
    Talts et al., arXiv:1804.06788 (2018); Modrak et al., Bayesian Analysis (2023).
    """
    prior = prior or cb.MixturePrior()
    k = n_classes * np.array([1, 10, 100])
    settings = SamplerSettings.of({**sampler, "cores": 1}, progressbar=False)
    of_parameters, of_data, of_fits, of_ranks = np.random.SeedSequence(random_seed).spawn(4)
    bin_ends = n_better_bins(n_classes)
    matrix = prior.basis.bin_probabilities(bin_ends, n_classes)
    # The simulation uses only the total of this histogram.
    blank = BernsteinData(matrix, np.full(bin_ends.size, n_test / bin_ends.size), 1.0)
    drawn = prior_draws(prior, blank, n_simulations, np.random.default_rng(of_parameters))
    histograms = blank.replicates(drawn["weights"].values, np.random.default_rng(of_data))[0]
    truth = _quantities(drawn, prior, k)
    fit_seeds = [int(seed.generate_state(1)[0]) for seed in of_fits.spawn(n_simulations)]
    counts = Parallel(n_jobs=n_jobs)(
        delayed(_counts)(values, BernsteinData(matrix, histogram, 1.0), prior, k, settings, seed)
        for (_, values), histogram, seed in zip(
            truth.iterrows(), histograms, fit_seeds, strict=True
        )
    )
    rng = np.random.default_rng(of_ranks)
    shares = {
        name: (("chain", "draw"), rank_shares([count[name] for count in counts], rng)[None])
        for name in truth
    }
    data = xr.Dataset(shares, coords={"chain": [0], "draw": np.arange(n_simulations)})
    return xr.DataTree.from_dict({"prior_sbc": data})


def uniformity(ranks: xr.DataTree) -> pd.DataFrame:
    """Test of uniform ranks: their ECDF compared with a simultaneous 99% band.

    The table is indexed by quantity. Its columns are "inside", "outside" (share of points outside
    the band), "mean" (expected: 1/2) and "coverage90" (share of central 90% intervals that contain
    the true value).

    References
    ----------
    Saeilynoja, Buerkner and Vehtari, Statistics and Computing 32 (2022).
    """
    rows = {}
    for name, values in ranks["prior_sbc"].to_dataset().data_vars.items():
        flat = values.values.ravel()
        _, ecdf, lower, upper = ecdf_pit(flat, _BAND, _BAND_SIMULATIONS)
        outside = float(np.mean((ecdf < lower) | (ecdf > upper)))
        held = float(np.mean(np.abs(flat - 0.5) <= 0.45))
        rows[name] = (outside == 0, outside, float(flat.mean()), held)
    columns = ["inside", "outside", "mean", "coverage90"]
    return pd.DataFrame.from_dict(rows, "index", columns=columns).rename_axis("quantity")


def rank_shares(counts: Any, rng: np.random.Generator) -> FloatArray:
    """Ranks as shares, spread evenly over the step of each, so that they are uniform on (0, 1).

    `counts` (n, 3) has the numbers of draws below the simulated value, equal to it, and in total.
    """
    below, equal, size = np.array(counts, dtype=float).T
    return (below + (equal + 1) * rng.random(below.size)) / (size + 1)


def _quantities(draws: xr.Dataset, prior: Any, k: IntArray) -> pd.DataFrame:
    """Scalar parameters and accuracies of every draw of the first chain."""
    weights = draws["weights"].transpose("chain", "draw", "knot").values[0]
    accuracy = weights @ prior.basis.accuracy(k).T
    scalars = {
        str(name): values.values[0]
        for name, values in draws.data_vars.items()
        if values.dims == ("chain", "draw")
    }
    return pd.DataFrame(
        scalars | {f"accuracy[{size}]": accuracy[:, place] for place, size in enumerate(k)}
    )


def _counts(
    truth: "pd.Series[float]",
    data: BernsteinData,
    prior: Any,
    k: IntArray,
    settings: SamplerSettings,
    seed: int,
) -> dict[str, tuple[int, int, int]]:
    """Fit a simulated data set, and count thinned draws below and at the true quantities."""
    with quiet():
        tree = sample_posterior(prior, data, settings, seed)
    if settings.shortfall(tree):
        raise KeyboardInterrupt
    posterior = tree["posterior"].to_dataset().assign(weights=tree["mixture"]["weights"])
    step = max(settings.draws * settings.chains // _RANKED_DRAWS, 1)
    flat = posterior.isel(draw=slice(None, None, step)).stack(sample=("chain", "draw"))
    thinned = flat.reset_index("sample", drop=True).rename(sample="draw").expand_dims("chain")
    draws = _quantities(thinned.transpose("chain", "draw", ...), prior, k)
    return {
        name: ((draws[name] < value).sum(), (draws[name] == value).sum(), len(draws))
        for name, value in truth.items()
    }


def tables(options: Options) -> dict[str, dict[str, str]]:
    """Uniformity of the ranks of 500 laws of the default prior."""
    ranks = sbc(n_simulations=options.repeats(500), random_seed=11, n_jobs=options.jobs)
    found = uniformity(ranks)
    is_accuracy = found.index.str.startswith("accuracy")
    parameters, accuracies = found[~is_accuracy], found[is_accuracy]
    text = (
        f"The ranks of {parameters['inside'].sum()} of {len(parameters)} [parameters of the "
        f"prior](background.md#the-model) and of {accuracies['inside'].sum()} of "
        f"{len(accuracies)} accuracies (on 100, 1,000 and 10,000 classes) are inside the band. "
        f"The coverage is {_span(parameters['coverage90'])} and {_span(accuracies['coverage90'])}. "
        f"{version()}"
    )
    return {"calibration.md": {"ranks of the truth": paragraph(text)}}


def _span(values: "pd.Series[float]") -> str:
    """Smallest and largest value."""
    return f"{values.min():.3f} to {values.max():.3f}"
