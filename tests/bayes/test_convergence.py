"""Convergence: what is judged, and what a model says of it."""

import arviz_stats
import numpy as np
import pytest
import xarray as xr

from classex_bayes import BayesianExtrapolator, SourceTask
from classex_bayes.bayes.convergence import diagnosis_of
from classex_bayes.exceptions import ConvergenceWarning
from studies.laws import FavorabilityLaw


def tree_of(parameter, diverging=0):
    chains, draws = parameter.shape
    divergent = np.arange(chains * draws).reshape(chains, draws) < diverging
    dims = ("chain", "draw")
    posterior = {"mu": (dims, parameter)}
    stats = {"diverging": (dims, divergent)}
    return xr.DataTree.from_dict(
        {"posterior": xr.Dataset(posterior), "sample_stats": xr.Dataset(stats)}
    )


def noise(chains=4, draws=1000):
    return np.random.default_rng(0).normal(size=(chains, draws))


ELSEWHERE = noise() + np.array([[0], [0], [0], [1]])


def test_independent_draws_are_good():
    diagnosis = diagnosis_of(tree_of(noise()))
    assert diagnosis.problems == () and diagnosis.r_hat == pytest.approx(1, abs=0.005)
    assert min(diagnosis.ess_bulk, diagnosis.ess_tail) > 3000 and diagnosis.divergences == 0


@pytest.mark.parametrize(
    ("draws", "problem"),
    [
        (ELSEWHERE, "r_hat"),
        (np.zeros((4, 100)), "same"),
        (np.repeat(np.arange(4.0)[:, None], 100, axis=1), "r_hat"),
        (noise(chains=1), "single chain"),
        (noise(draws=1), "1 draws"),
        (noise(draws=3), "3 draws"),
    ],
)
def test_problems(draws, problem):
    diagnosis = diagnosis_of(tree_of(draws))
    assert problem in diagnosis.problems[0]
    assert np.isnan(diagnosis.r_hat) or diagnosis.r_hat > 1.05


def test_slow_mixing():
    steps = noise()
    for draw in range(1, 1000):
        steps[:, draw] += 0.98 * steps[:, draw - 1]
    diagnosis = diagnosis_of(tree_of(steps))
    # An autoregression with coefficient a has an effective share (1 - a) / (1 + a).
    assert diagnosis.ess_bulk == pytest.approx(4000 * 0.02 / 1.98, rel=0.7)
    assert any("effective sample size" in problem for problem in diagnosis.problems)


@pytest.mark.parametrize(("chains", "draws", "few"), [(4, 60, 1), (4, 250, 0), (2, 150, 0)])
def test_every_chain_must_bring_a_hundred_effective_draws(chains, draws, few):
    # Independent draws: as many effective ones as there are.
    problems = diagnosis_of(tree_of(noise(chains, draws))).problems
    assert sum("effective sample size" in problem for problem in problems) == few


def test_divergences():
    assert diagnosis_of(tree_of(noise(), diverging=20)).problems == ()
    diagnosis = diagnosis_of(tree_of(noise(), diverging=21))
    assert diagnosis.divergences == 21 and len(diagnosis.problems) == 1


def test_a_quantity_that_never_moves_hides_nothing_of_the_rest():
    tree = tree_of(ELSEWHERE)
    expected, quantities = diagnosis_of(tree), tree["posterior"].to_dataset()
    tree["posterior"] = xr.DataTree(quantities.assign(still=0 * quantities["mu"]))
    assert diagnosis_of(tree) == expected


def assert_converged(model, smallest_ess):
    """Over seeds the share of divergent draws varies from 0 to 0.2%, so 1% is many."""
    diagnosis, sizes = model.diagnosis_, model.idata["posterior"].sizes
    assert diagnosis.r_hat < 1.01 and min(diagnosis.ess_bulk, diagnosis.ess_tail) > smallest_ess
    assert diagnosis.divergences < 0.01 * sizes["chain"] * sizes["draw"]


@pytest.mark.parametrize("n_errors", [0, 1])
def test_pilots_that_hardly_err_converge(n_errors):
    ranks = [2] * n_errors + [1] * (1000 - n_errors)
    task = SourceTask.from_ranks(ranks, range(1000), n_classes=1000)
    assert_converged(BayesianExtrapolator().fit(task, random_seed=1, progressbar=False), 400)


@pytest.mark.parametrize(("n_classes", "seed"), [(50, 10), (200, 5)])
def test_confusion_matrices_converge(n_classes, seed):
    # Decisions know one accuracy, so the scale of the groups keeps the heavy tails of its prior.
    rng = np.random.default_rng(seed)
    n_right = rng.binomial(4, rng.beta(4, 2, n_classes))
    counts = np.diag(n_right) + np.roll(np.diag(4 - n_right), 1, axis=1)
    task = SourceTask.from_confusion(counts)
    # Over 12 fits to other matrices and with other seeds it was 1,800 to 2,900.
    model = BayesianExtrapolator().fit(task, random_seed=seed, progressbar=False)
    assert_converged(model, 1400)


@pytest.mark.filterwarnings("ignore::classex_bayes.exceptions.DataWarning")  # far from the data
def test_a_sampler_that_diverges(small_task):
    model = BayesianExtrapolator()
    diverging = {"draws": 100, "tune": 50, "chains": 2, "target_accept": 1e-9}
    with pytest.warns(ConvergenceWarning, match="target_accept"):
        model.fit(small_task(), sampler=diverging, progressbar=False)
    assert model.diagnosis_.divergences > 100
    prediction = model.predict([100, 1000])
    assert np.all((prediction.accuracy >= 0) & (prediction.accuracy <= 1))
    assert np.isfinite(prediction.summary().select_dtypes(float)).all(axis=None)
    assert any("not converged" in note for note in prediction.notes)


def test_convergence_is_that_of_predicted_accuracies(fitted):
    k = fitted.task.n_classes * np.array([1, 10, 100])
    accuracy = fitted.predict(k).accuracy.to_dataset(name="accuracy")
    diagnosis = fitted.diagnosis_
    assert diagnosis.r_hat == pytest.approx(float(arviz_stats.rhat(accuracy)["accuracy"].max()))
    for kind, smallest in (("bulk", diagnosis.ess_bulk), ("tail", diagnosis.ess_tail)):
        ess = arviz_stats.ess(accuracy, method=kind)["accuracy"]
        assert smallest == pytest.approx(float(ess.min()))


@pytest.mark.nightly
def test_narrow_groups_beside_a_broad_one_converge():
    # Chains that start anywhere are caught by different laws here: r_hat is 1.7.
    law = FavorabilityLaw((0.5, 2.5, 3.5), (0.1, 0.15, 1.0), (0.3, 0.3, 0.4))
    ranks, y, n_classes = law.sample(1000, n_test=1000, random_seed=5)
    task = SourceTask.from_ranks(ranks, y, n_classes=n_classes)
    settings = {"sampler": {"draws": 500, "tune": 500}, "random_seed": 1, "progressbar": False}
    model = BayesianExtrapolator().fit(task, **settings)
    assert_converged(model, 400)
