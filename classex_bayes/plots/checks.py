"""Posterior predictive checks of what the model was fitted to."""

from typing import Literal

import numpy as np
import xarray as xr
from arviz_plots import PlotCollection

from classex_bayes.bayes.extrapolator import BayesianExtrapolator
from classex_bayes.bayes.likelihoods import likelihood_data
from classex_bayes.bayes.tree import data_groups
from classex_bayes.data.task import SourceTask
from classex_bayes.data.validation import one_of
from classex_bayes.exceptions import DataError
from classex_bayes.plots._common import Panel
from classex_bayes.results import interval_of, interval_settings
from classex_bayes.typing import RandomSeed

_OBSERVED = "observed"


def plot_ppc(
    model: BayesianExtrapolator,
    task: SourceTask | None = None,
    *,
    kind: Literal["losses", "accuracy"] = "losses",
    ci_prob: float | None = None,
    ci_kind: str | None = None,
    random_seed: RandomSeed = None,
    backend: str | None = None,
) -> PlotCollection:
    """Draw replicated data of the posterior beside the observed.

    Parameters
    ----------
    model : BayesianExtrapolator
        A fitted model; replicates are drawn where `idata` has none yet or a seed is given.
    task : SourceTask, optional
        Task whose data are drawn as observed, of the size of the fitted one (the default).
    kind : {"losses", "accuracy"}
        Share of instances with at most so many losses, or average test accuracy against k.
    ci_prob, ci_kind : optional
        Level and kind of the ribbon; ArviZ's rcParams by default.
    random_seed : int, SeedSequence or None
        Seed of the replicates.
    backend : {"matplotlib", "plotly", "bokeh", "none"}, optional
        Plotting library; ArviZ's rcParams by default.

    Returns
    -------
    PlotCollection

    Raises
    ------
    DataError
        kind="losses" for a model fitted in the power form; a task of another size.
    """
    one_of(kind, ("losses", "accuracy"), "kind")
    prob, interval = interval_settings(ci_prob, ci_kind)
    if not isinstance(model, BayesianExtrapolator):
        raise DataError(f"model: expected a BayesianExtrapolator, found {type(model).__name__}")
    if "posterior_predictive" not in model.idata or random_seed is not None:
        model.sample_posterior_predictive(random_seed=random_seed)
    replicated = model.idata["posterior_predictive"].to_dataset()
    observed = model.idata["observed_data"].to_dataset()
    if task is not None:
        if task.n_classes != model.idata.attrs["n_classes"]:
            raise DataError(f"task: it has {task.n_classes} classes, unlike the fitted one")
        data = likelihood_data(task, model.prior.basis, model.idata.attrs["likelihood"])
        observed = data_groups(task, data, model.prior.basis)["observed_data"].to_dataset()
    if kind == "losses":
        if "loss_histogram" not in observed:
            raise DataError("kind: the power form was fitted to accuracies; use kind='accuracy'")
        draws, seen = _share_up_to(replicated), _share_up_to(observed)
        # One more than the losses, so that none has a place on the logarithmic axis.
        x = observed["bin"].values + 1
        title, x_label, y_label = "Losses", "1 + losses", "share of instances with at most so many"
    else:
        draws, seen = replicated["accuracy"], observed["accuracy"]
        x = observed["k"].values
        title, x_label, y_label = "Average test accuracy", "number of classes", "accuracy"
    bounds = interval_of(draws, prob, interval)
    label = f"replicated ({interval}{100 * prob:g})"
    panel = Panel({label: None, _OBSERVED: "black"}, backend)
    lower, upper = (bounds.sel(ci_bound=side).values for side in ("lower", "upper"))
    panel.band(label, x, lower, upper, alpha=0.3)
    panel.line(label, x, draws.mean(["chain", "draw"]).values)
    panel.points(_OBSERVED, x, np.asarray(seen.values))
    return panel.finish(f"Posterior predictive check: {title}", x_label, y_label, log_x=True)


def _share_up_to(data: xr.Dataset) -> xr.DataArray:
    counts = data["loss_histogram"].cumsum("bin")
    return counts / counts.isel(bin=-1)
