"""The page on ArviZ and PyMC: its examples run one after the other, and its statements hold."""

import re
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import arviz as az
import numpy as np
import pymc as pm
import pytest
from numpy.testing import assert_allclose

import classex_bayes as cb
from classex_bayes.core import RadialBasis

pytestmark = pytest.mark.nightly
PAGE = (Path(__file__).parents[1] / "docs" / "arviz.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```python\n(.*?)^```", PAGE, flags=re.M | re.S)


@pytest.fixture(scope="module")
def names():
    """Names of the page after its last example, and all groups; plots are left out."""
    namespace = {"__name__": "page"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of NumPy functions that numba calls
        for number, code in enumerate(EXAMPLES):
            exec(compile(code, f"example {number}", "exec"), namespace)
    namespace["model"].sample_prior_predictive(draws=50)
    namespace["model"].sample_posterior_predictive()
    return namespace


def test_groups_are_those_of_the_table(names):
    model = names["model"]
    rows = re.findall(r"^\| (`.+?) \|", PAGE[PAGE.index("| group") :], flags=re.M)
    groups = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert set(model.idata.children) <= groups
    for group in ("posterior", "prior", "mixture", "observed_data", "constant_data"):
        for name, values in model.idata[group].data_vars.items():
            assert values.attrs["description"], name


def test_pymc_replicates_the_histogram(names):
    model = names["model"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        drawn = pm.sample_posterior_predictive(
            model.idata, model=model.model, progressbar=False, random_seed=1
        )
    assert drawn["posterior_predictive"]["rank_histogram"].sizes["draw"] == 500


def test_summary_shows_accuracies_and_parameters(names):
    model = names["model"]
    rows = az.summary(model.idata).index
    assert {"accuracy[1000]", "mu", "tau", "sigma", "z[0]"} <= set(rows)
    r_hat = az.rhat(model.idata)["accuracy"].values
    assert model.diagnosis_.r_hat == pytest.approx(r_hat.max())


def test_sensitivities_of_accuracies_are_those_of_the_package(names):
    idata = names["model"].idata
    of_ranks = [name for name in idata["log_prior"].data_vars if name != "tail_prior"]
    found, of_tails = (
        az.psense_summary(idata, prior_var_names=priors, round_to=12)
        for priors in (of_ranks, ["tail_prior"])
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cb.exceptions.ExtrapolationWarning)
        table = cb.sensitivity(names["model"], [100, 1000, 10_000]).table
    accuracies = [f"accuracy[{k}]" for k in table.index]
    rows = found.loc[accuracies, ["prior", "likelihood"]].astype(float)
    assert_allclose(rows["prior"], table["prior"], rtol=1e-6)
    by_tails = of_tails.loc[accuracies, "prior"].astype(float)
    assert_allclose(by_tails, table["tail_prior"], rtol=1e-6)
    # ArviZ lacks the likelihood of the tails.
    assert (rows["likelihood"] != table["likelihood"].to_numpy()).all()


@pytest.mark.filterwarnings("ignore:Estimated shape parameter")  # of few draws
def test_weights_are_those_of_the_best_mixture(names):
    density = np.exp(
        [az.loo(names[name].idata, pointwise=True).elpd_i for name in ("model", "two_parameters")]
    )
    weight = names["comparison"]["weight"].loc[["mixture", "two parameters"]].to_numpy(float)
    score = np.log(weight @ density).sum()
    assert weight.sum() == pytest.approx(1, abs=0.01)
    for share in np.linspace(0, 1, 101):
        assert np.log([share, 1 - share] @ density).sum() <= score + 0.05  # weights are rounded


@pytest.mark.parametrize("plot", ["plot_forest", "plot_prior_posterior", "plot_ppc_dist"])
def test_plots_of_arviz_take_the_model_as_it_is(names, plot):
    figure = getattr(az, plot)(names["model"].idata, backend="none")
    assert "figure" in figure.viz.children or figure.viz


def test_what_pymc_builds_is_what_is_fitted(names):
    drawn, fitted = names["drawn"], names["model"].idata
    assert set(fitted["posterior"].data_vars) - {"accuracy"} <= set(drawn["prior"].data_vars)
    means = drawn["prior"]["weights"].values[0] @ cb.MixturePrior().basis.accuracy([100]).T
    by_ranks = cb.BayesianExtrapolator(evidence="ranks")
    expected = by_ranks.predict_prior(100, names["task"], random_seed=2).accuracy
    spread = np.hypot(means.std() / 10, float(expected.std()) / np.sqrt(1000))
    assert abs(means.mean() - float(expected.mean())) < 4 * spread


@dataclass(frozen=True)
class SkewedPrior:
    """Z has a skew-normal law."""

    descriptions: ClassVar = {"centre": "location of Z", "skew": "skewness of Z"}

    @property
    def basis(self):
        return RadialBasis.regular(-4, 8, 0.5)

    def log_weights(self):
        centre, scale = pm.Normal("centre", 2.5, 2), pm.HalfNormal("scale", 1.5)
        skew = pm.Normal("skew", 0, 2)
        z = (self.basis.knots - centre) / scale
        return -(z**2) / 2 + pm.math.log(pm.math.invprobit(skew * z) + 1e-12)


def test_a_prior_of_ones_own_says_what_its_parameters_are(names):
    own = cb.BayesianExtrapolator(SkewedPrior())
    tree = own.sample_prior_predictive(names["task"], draws=5, random_seed=1)
    assert tree["prior"]["centre"].attrs["description"] == "location of Z"
    accuracy = own.predict_prior([100, 1000], names["task"], random_seed=1).mean
    assert 0 < accuracy[1000] < accuracy[100] < 1
