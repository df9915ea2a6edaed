"""Power scaling against conjugate truth, and its diagnoses on pilots small, large and odd."""

import arviz_stats
import numpy as np
import pytest
import xarray as xr
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import softmax
from scipy.stats import norm

from classex_bayes import (
    BayesianExtrapolator,
    Extrapolation,
    MixturePrior,
    MomentBounds,
    load_glyphs,
    sensitivity,
)
from classex_bayes.bayes import Sensitivity
from classex_bayes.bayes.checks.sensitivity import _diagnosis, _monte_carlo_error
from classex_bayes.exceptions import ExtrapolationWarning, NotFittedError

PRIOR, DATA = 0.04, 0.02  # standard deviations about 0.5 and 0.6


@pytest.fixture(scope="module")
def conjugate():
    """A normal posterior of which any power of prior and likelihood is known."""
    precision = np.array([PRIOR, DATA]) ** -2.0
    mean = precision @ [0.5, 0.6] / precision.sum()
    draws = np.random.default_rng(0).normal(mean, precision.sum() ** -0.5, (4, 2000))
    logs = {"prior": norm.logpdf(draws, 0.5, PRIOR), "likelihood": norm.logpdf(draws, 0.6, DATA)}
    prediction = Extrapolation.from_draws([100], draws[..., None], "known", "credible", 10)
    density = xr.Dataset({name: (("chain", "draw"), values) for name, values in logs.items()})
    return Sensitivity(prediction, None, density)


@pytest.mark.parametrize("alpha", [0.5, 0.8, 1.0, 1.25, 2.0])
@pytest.mark.parametrize("component", ["prior", "likelihood"])
def test_scaled_posteriors_are_those_of_scaled_densities(conjugate, alpha, component):
    powers = np.array([alpha, 1.0] if component == "prior" else [1.0, alpha])
    precision = powers * np.array([PRIOR, DATA]) ** -2.0
    mean, sd = precision @ [0.5, 0.6] / precision.sum(), precision.sum() ** -0.5
    scaled = conjugate.scaled(alpha, component)
    assert scaled.estimator == f"{component}^{alpha:g}"
    assert scaled.accuracy.shape == (4, 2000, 1)
    assert abs(scaled.mean[100] - mean) < 5 * sd / np.sqrt(3000)
    assert scaled.accuracy.values.std() == pytest.approx(sd, rel=0.06)
    if alpha == 1:
        assert_array_equal(scaled.accuracy, conjugate.prediction.accuracy)


def test_scaled_says_when_few_draws_remain(conjugate):
    assert any("effective draws" in note for note in conjugate.scaled(40.0).notes)


def test_unfitted_models_have_none():
    with pytest.raises(NotFittedError):
        sensitivity(BayesianExtrapolator(), 10)


def test_a_pilot_of_200_classes(fitted_to_ranks):
    with pytest.warns(ExtrapolationWarning):
        # Monte Carlo errors are .01, sensitivities .03, .03 and .14.
        found = sensitivity(fitted_to_ranks, [200, 400, 10**6], threshold=0.08)
    table = found.table
    assert table.index.tolist() == [200, 400, 10**6]
    assert table.loc[200, "diagnosis"] == "data decide"
    assert table.loc[400, "prior"] < table.loc[400, "likelihood"]
    assert table.loc[10**6, "prior"] > 2 * table.loc[400, "prior"]
    # The pull is the derivative of the mean as the power changes.
    draws = found.prediction.draws.values.reshape(-1, 3)
    log_prior = fitted_to_ranks.log_prior_
    logs = joint_density(log_prior).values.ravel()
    up, down = (np.average(draws, axis=0, weights=softmax(d * logs)) for d in (1e-4, -1e-4))
    slope = (up - down) / table["sd"] * np.log(2) / 2e-4
    assert_allclose(table["prior_pull"], slope, rtol=1e-5)


def joint_density(group):
    """Sum of the log densities of all variables."""
    return sum(values.sum([*{*values.dims} - {"chain", "draw"}]) for values in group.values())


@pytest.mark.parametrize("evidence", ["ranks", "all"])
def test_sensitivities_are_those_of_arviz(request, evidence):
    model = request.getfixturevalue("fitted_to_ranks" if evidence == "ranks" else "fitted")
    found = sensitivity(model, [200, 1000])
    prior = model.log_prior_
    likelihood = joint_density(model.compute_log_likelihood()["log_likelihood"].to_dataset())
    groups = {"prior": joint_density(prior.drop_vars("tail_prior", errors="ignore"))}
    if evidence == "all":
        groups["tail_prior"] = prior["tail_prior"]
        likelihood = likelihood + model.idata["tails"]["rank_density"]
        assert_array_equal(prior["tail_prior"], model.idata["tails"]["prior_density"])
    groups["likelihood"] = likelihood
    accuracy = model.predict([200, 1000]).accuracy.to_dataset()
    for name, density in groups.items():
        parts = {"posterior": accuracy, "log_prior": density.to_dataset(name="density")}
        expected = arviz_stats.psense(xr.DataTree.from_dict(parts), group="prior")["accuracy"]
        assert_allclose(found.table[name], expected, rtol=1e-6)
    assert ("tail_prior" in found.table) == (evidence == "all")


def test_the_model_stays_as_it_is(fitted):
    groups = fitted.idata.drop_nodes("log_prior", errors="ignore").copy(deep=True)
    model = BayesianExtrapolator.from_idata(groups)
    model.predict(1000)
    before = groups.copy(deep=True)
    sensitivity(model, 1000)
    assert model.idata.identical(before)


@pytest.mark.nightly
@pytest.mark.parametrize("n_repeats", [10, pytest.param(100, marks=pytest.mark.slow)])
def test_the_error_of_a_sensitivity_is_its_scatter_over_draws(n_repeats):
    found, errors = [], []
    for seed in range(n_repeats):
        draws = np.random.default_rng(seed).normal(0.55, 0.03, (2, 500))
        dims = ("chain", "draw")
        accuracy = xr.DataArray(draws[..., None], dims=(*dims, "k"), name="accuracy")
        accuracy = accuracy.assign_coords(chain=range(2), draw=range(500), k=[10])
        prior = xr.DataArray(norm.logpdf(draws, 0.5, PRIOR), dims=dims, name="prior")
        prior = prior.assign_coords(chain=range(2), draw=range(500))
        tree = {"posterior": accuracy.to_dataset(), "log_prior": prior.to_dataset()}
        value = arviz_stats.psense(xr.DataTree.from_dict(tree), group="prior")["accuracy"]
        found.append(float(value[0]))
        errors.append(float(_monte_carlo_error(draws[None], prior.values)[0]))
    # The standard deviation of n values is known to 1 / sqrt(2 n) of itself.
    tolerance = 0.1 + 2 / np.sqrt(2 * n_repeats)
    assert np.mean(errors) == pytest.approx(np.std(found, ddof=1), rel=tolerance)


def test_prior_dominates_far_beyond_a_tiny_pilot(fit, pilot):
    tiny = pilot.task.subsample(20, random_seed=1)
    with pytest.warns(ExtrapolationWarning):
        result = sensitivity(fit(tiny, evidence="ranks"), [20, 40, 10**6])
    table = result.table
    assert table.loc[10**6, "diagnosis"] == "prior dominates"
    assert table.loc[20, "likelihood"] > table.loc[20, "prior"]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the model contradicts")
def test_a_law_that_the_prior_does_not_expect(fit, pilot):
    # The pilot says 3.4 or so, about as surely as the prior says something else.
    prior = MixturePrior(location=4.5, location_sd=0.1, deviation=0)
    model = fit(pilot.task, prior, evidence="ranks")
    table = sensitivity(model, [200, 2000]).table
    assert table.loc[2000, "diagnosis"] == "prior and data disagree"
    assert (table["prior_pull"] > 0).all() and (table["likelihood_pull"] < 0).all()


def test_a_model_of_accuracies_can_be_asked(fitted_curve):
    table = sensitivity(fitted_curve, 400).table
    assert np.isfinite(table[["prior", "likelihood", "prior_pull"]].to_numpy()).all()


@pytest.mark.parametrize(
    ("prior", "likelihood", "pulls", "diagnosis"),
    [
        (0.045, 0.3, (1.0, -1.0), "at the threshold"),
        (0.055, 0.3, (1.0, -1.0), "at the threshold"),
        (0.04, 0.3, (1.0, -1.0), "data decide"),
        (0.1, 0.2, (0.3, -0.3), "prior matters"),
        (0.1, 0.2, (0.8, 0.8), "prior matters"),
        (0.1, 0.2, (0.8, -0.8), "prior and data disagree"),
        (0.3, 0.2, (-0.4, 0.8), "prior dominates"),
        (0.3, 0.01, (-0.8, 0.8), "prior dominates"),
        (0.3, 0.3, (0.0, 0.0), "prior dominates"),
        (np.nan, 0.3, (0.0, 0.0), "data decide"),
    ],
)
def test_diagnoses(prior, likelihood, pulls, diagnosis):
    row = {"prior": prior, "likelihood": likelihood, "prior_mcse": 0.004}
    row |= {"prior_pull": pulls[0], "likelihood_pull": pulls[1]}
    assert _diagnosis(row, ["prior"], 0.05) == diagnosis
    # Of two priors it is that of the one to which the prediction is more sensitive.
    other = {name.replace("prior", "tail_prior"): value for name, value in row.items()}
    row |= other | {"prior": prior / 2, "likelihood": likelihood, "likelihood_pull": pulls[1]}
    expected = diagnosis.replace("prior", "tail prior")
    if not np.isnan(prior):
        assert _diagnosis(row, ["prior", "tail_prior"], 0.05) == expected


def test_what_no_prior_moves_may_be_an_assumption(fitted, fitted_to_ranks, pilot):
    """The limits without a prior tell it, if they are far apart and the interval is not."""
    k = pilot.task.n_classes * np.array([1, 3, 30])
    limits = MomentBounds().fit(pilot.task).predict(k).interval().diff(axis=1)["upper"]
    words = {fitted: "assumed tails decide", fitted_to_ranks: "assumed smooth law decides"}
    for model, assumed in words.items():
        result = sensitivity(model, k, threshold=100)
        width = result.prediction.interval().diff(axis=1)["upper"]
        narrowed = (limits > 0.2) & (width < limits / 2)
        expected = np.where(narrowed, assumed, "data decide").tolist()
        assert result.table["diagnosis"].tolist() == expected
        assert expected[0] == "data decide" and expected[-1] == assumed
        assert any(assumed in note and "without a prior" in note for note in result.notes)


@pytest.mark.filterwarnings("ignore::classex_bayes.exceptions.ConvergenceWarning")
def test_data_decide_where_limits_without_a_prior_are_close():
    """An interval that is less than half as wide is no news of the model then."""
    task = load_glyphs().task().subsample(200, random_seed=2)
    few = {"draws": 250, "tune": 300, "chains": 2}
    model = BayesianExtrapolator().fit(task, sampler=few, random_seed=1)
    (limits,) = MomentBounds().fit(task).predict([800]).interval().diff(axis=1)["upper"]
    result = sensitivity(model, [800], threshold=100)
    (width,) = result.prediction.interval().diff(axis=1)["upper"]
    assert width < limits / 2 and limits < 0.2
    assert result.table["diagnosis"].tolist() == ["data decide"]


def test_the_share_of_the_prior_grows_from_the_pilot_on(fitted_to_ranks, pilot):
    model = fitted_to_ranks
    k = pilot.task.n_classes * np.array([1, 5, 50])
    result = sensitivity(model, k)
    both = model.predict(k), MomentBounds().fit(pilot.task).predict(k)
    widths = [prediction.interval().diff(axis=1)["upper"] for prediction in both]
    assert_allclose(result.table["prior_share"], np.clip(1 - widths[0] / widths[1], 0, 1))
    share = result.table["prior_share"].to_numpy()
    assert share[0] < 0.3 < share[1] < share[2] < 1
