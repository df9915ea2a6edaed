"""Bad calls of the Bayesian model, its checks and its files, and of results."""

from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np
import pymc as pm
import xarray as xr

import classex_bayes as cb
from bad_calls import Bad
from classex_bayes.io.whole_files import write_tree

NAN, INF = float("nan"), float("inf")
TASK = cb.SourceTask.from_ranks([1, 1, 2, 3], range(4), n_classes=4)
CURVE = cb.SourceTask.from_accuracies([2, 4], [0.9, 0.7], n_test=50, n_classes=4)
FEW = {"sampler": {"draws": 30, "tune": 20, "chains": 1}, "random_seed": 1, "progressbar": False}


def fit(task=TASK, **parameters):
    return cb.BayesianExtrapolator(**parameters).fit(task, **FEW)


def sampled(**settings):
    """A fit with settings of the sampler."""
    return cb.BayesianExtrapolator().fit(TASK, sampler=settings)


@cache
def fitted():
    return fit()


@cache
def of_curve():
    return fit(CURVE)


@cache
def of_pool():
    return fit([TASK, CURVE])


def loaded(model=None):
    return cb.BayesianExtrapolator.from_idata((model or fitted()).idata.copy())


@cache
def with_scores():
    """A task whose scores have tails."""
    gallery = np.random.default_rng(0).normal(size=(30, 5))
    return cb.SourceTask.from_embeddings(gallery + 0.1, gallery, range(30))


class Slope(cb.MixturePrior):
    """A prior with the name of a parameter of the tails."""

    def log_weights(self):
        return super().log_weights() + 0 * pm.Normal("slope")


class Unhashable(cb.MixturePrior):
    __hash__ = None


@dataclass(frozen=True)
class WithFunction(cb.MixturePrior):
    """A prior that files cannot describe."""

    transform: object = np.exp


def method(name, model=fitted):
    """A method of a model that is fitted when it is called."""
    return lambda **values: getattr(model(), name)(**values)


def save(name="model.nc", model=fitted):
    return cb.save(model(), name)


def load(content, name="model.nc"):
    """Load a file of these bytes."""
    Path(name).write_bytes(content)
    return cb.load(name)


def checked(**values):
    return cb.posterior_checks(fitted(), **values)


def truncated(share):
    save()
    whole = Path("model.nc").read_bytes()
    return load(whole[: int(share * len(whole))])


def changed(**attributes):
    """Load a file of a model with other attributes."""
    model = loaded()
    model.idata.attrs |= attributes
    return cb.load(write_tree(model.idata, Path("model.nc")))


def of_others(name):
    tree = xr.DataTree.from_dict({"posterior": xr.Dataset({"mu": ("draw", np.zeros(3))})})
    tree.to_netcdf(name)
    return cb.load(name)


DRAWN = cb.Extrapolation.from_draws([4], np.full((2, 9, 1), 0.5), "drawn", "credible", 4)
POINT = cb.Extrapolation.from_point([4], [0.5], "point", 4)
RISK = cb.Extrapolation.from_draws(
    [4], np.full((2, 9, 1), 0.5), "risk", "credible", 4, estimand=cb.results.Estimand(metric="risk")
)
UNTIL = cb.results.ClassesUntil(0.9, xr.DataArray([[1.0, 10.0]], dims=("chain", "draw")), 100, 100)
BAD_PRIORS = {
    "bandwidth": [0.0, "h"],
    "lower": [-INF],
    "upper": [INF],
    "n_functions": [0, 12.5],
    "location": [NAN, 1e6],
    "location_sd": [0.0],
    "scale": [-0.8, 1e-300],
    "scale_log_sd": [INF, 50.0],
    "scale_freedom": [1.0, INF],
    "deviation": [-1.0],
    "separation": [NAN, 1e300],
    "imbalance": [-0.1],
    "tail": [INF],
    "tail_sd": [-0.1],
    "length": [0.0],
}
BAD_TAILS = {
    "level": [NAN],
    "slope": ["steep"],
    "slope_error": [INF],
    "level_sd": [0],
    "slope_error_sd": [-0.1],
    "slope_spread": [0],
    "look_alikes": [0, 1],
}
BAD_SETTINGS = {
    "draws": [0, 10.5],
    "tune": [-1, "many"],
    "chains": [0, True],
    "cores": [0, 1.5],
    "target_accept": [0.0, 1.0, NAN, "high"],
}
BAD_K = [1, 0, -5, 2.5, 10**13, "many", [], [5, 5], NAN, [[2, 3]]]
BAD_TESTS = [
    ("repeats", {"repeats": 0}),
    ("repeats", {"repeats": 1.5}),
    ("random_seed", {"random_seed": -1}),
]
BAD_TRUTHS = [0.9, [0.9], {}, {20: 1.5}, {20: NAN}, {20: "high"}, {"a": 0.5}, {1: 0.5}, {2.5: 0.5}]


def of_each(call, bad):
    """A row for each bad value of each argument."""
    return [Bad(call, name, "", {name: value}) for name, values in bad.items() for value in values]


ROWS = [
    # Priors and settings
    *of_each(cb.MixturePrior, BAD_PRIORS),
    Bad(cb.MixturePrior, "lower, upper, bandwidth", "8.0", {"lower": 8.0}),
    Bad(cb.MixturePrior, "lower, upper, bandwidth", "-5.0", {"upper": -5.0}),
    *of_each(cb.TailPrior, BAD_TAILS),
    *of_each(sampled, BAD_SETTINGS),
    *of_each(fit, {"evidence": ["scores", None], "tail_prior": ["steep", cb.MixturePrior()]}),
    *of_each(fit, {"prior": [None, "flat", cb.MixturePrior, 3, Unhashable()]}),
    Bad(cb.BayesianExtrapolator("flat").sample_prior_predictive, "prior", "", {"task": TASK}),
    Bad(sampled, "sampler", "'nuts_sampler' 'draws'", {"nuts_sampler": "pymc"}),
    Bad(sampled, "sampler", "'progressbar'", {"progressbar": False}),
    Bad(partial(cb.BayesianExtrapolator().fit, TASK), "sampler", "", {"sampler": 500}),
    Bad(
        partial(cb.BayesianExtrapolator().fit, TASK),
        "random_seed",
        "SeedSequence",
        {"random_seed": 1.5},
    ),
    *of_each(fit, {"task": [[], [TASK, 3], [TASK, TASK], np.eye(60), None]}),
    Bad(lambda: cb.BayesianExtrapolator(Slope()).build(with_scores()), "prior", "'slope'"),
    Bad(
        lambda: cb.BayesianExtrapolator(Slope()).predict_prior([120], with_scores()),
        "prior",
        "'slope'",
    ),
    # Questions to a model
    *of_each(method("predict"), {"k": BAD_K}),
    Bad(method("predict"), "metric", "", {"k": 9, "metric": "accuracy@0"}),
    *of_each(method("discriminability"), {"u": [-0.1, 1.1, NAN, [0.5, 2], [[0.5]], "half"]}),
    *[Bad(method("predict_test"), name, "", {"k": 9} | values) for name, values in BAD_TESTS],
    Bad(method("predict_population"), "population", "", {"k": 4, "population": 3}),
    Bad(method("predict_population"), "population", "", {"k": 4, "population": 30.5}),
    Bad(method("predict_population"), "k", "", {"k": [4, 31], "population": 30}),
    Bad(method("predict_population", of_pool), "population", "", {"k": 4, "population": 30}),
    *of_each(method("sample_prior_predictive"), {"draws": [0, -1, 2.5]}),
    Bad(method("compute_log_likelihood", of_curve), "task", ""),
    Bad(method("compute_log_likelihood", loaded), "task", ""),
    Bad(method("compute_log_likelihood", loaded), "task", "", {"task": CURVE}),
    Bad(method("is_fitted_to"), "task", "", {"task": "task"}),
    # Checks
    *of_each(partial(cb.sensitivity, k=9), {"model": [3, xr.DataTree()]}),
    Bad(lambda: cb.sensitivity(fitted(), 9, threshold=-1), "threshold", ""),
    Bad(lambda: cb.sensitivity(fitted(), 1), "k", ""),
    *of_each(
        lambda **values: cb.sensitivity(fitted(), 9).scaled(**values), {"alpha": [0, INF, "2"]}
    ),
    Bad(lambda: cb.sensitivity(fitted(), 9).scaled(1.0, "both"), "component", "'both'"),
    *of_each(partial(cb.posterior_checks), {"model": [3]}),
    *of_each(checked, {"task": ["pilot", with_scores()]}),
    Bad(lambda: cb.posterior_checks(of_pool()), "task", "2 tasks"),
    # Models in files
    Bad(cb.save, "model", "", {"model": xr.Dataset(), "path": "model.nc"}),
    *of_each(lambda path: save(path), {"path": ["model", "model.txt", "model.npz"]}),
    Bad(lambda: save(model=lambda: fit(prior=WithFunction())), "prior", ""),
    *[
        Bad(load, "path", "", {"content": content, "name": f"model{ending}"})
        for content in (b"", b"not a model", b"\x89HDF\r\n\x1a\n" + b"\0" * 100)
        for ending in (".nc", ".txt")
    ],
    Bad(truncated, "path", "copy fit again", {"share": 0.3}),
    Bad(truncated, "path", "copy fit again", {"share": 0.9}),
    Bad(of_others, "path", "", {"name": "model.nc"}),
    Bad(changed, "path", "NewExtrapolator package that", {"estimator": "NewExtrapolator"}),
    Bad(changed, "path", "layout=3 1 fit again", {"layout": 1}),
    Bad(cb.BayesianExtrapolator.from_idata, "idata", "DataTree int", {"idata": 3}),
    # Results
    *of_each(DRAWN.summary, {"ci_prob": [0, 1, -0.1, 90, NAN, "90%", True], "round_to": ["all"]}),
    *of_each(DRAWN.prob_at_least, {"level": [-0.1, 90, NAN, "90%", True]}),
    Bad(DRAWN.interval, "ci_kind", "", {"ci_kind": "central"}),
    Bad(POINT.interval, "", "point estimate"),
    Bad(POINT.prob_at_least, "", "point estimate", {"level": 0.9}),
    Bad(RISK.prob_at_least, "", ".prob_at_most", {"level": 0.5}, lambda: RISK.prob_at_most(0.5)),
    Bad(RISK.prob_at_most, "level", "", {"level": 1.5}),
    Bad(lambda: RISK.accuracy, "", ".risk", {}, lambda: RISK.risk),
    Bad(lambda: DRAWN.risk, "", ".accuracy", {}, lambda: DRAWN.accuracy),
    *of_each(UNTIL.prob_at_least, {"k": [None, "100", NAN, [100], -1, True]}),
    Bad(UNTIL.interval, "ci_prob", "", {"ci_prob": 1.5}),
    *of_each(partial(cb.compare, [cb.estimators.LogLinear()], TASK, 9), {"truth": BAD_TRUTHS}),
]
