"""EncodingModel: near the true model with much data, honest about its errors with little."""

import sys

import numpy as np
import pytest
from sklearn.base import clone

from classex_bayes.estimators.classexreg.classexreg import ClassExReg
from classex_bayes.exceptions import DataError, DataWarning, NotFittedError
from classex_bayes.identification import EncodingModel, identification_task
from classex_bayes.simulate import GaussianKnownCentres
from classex_bayes.task.data_checks import notes_of


class Experiment:
    """Y = 4 + XB + E with correlated noise; whitened predictions are N(0, I / noise)."""

    def __init__(self, p=12, q=6, noise=0.3, seed=0):
        self.rng = np.random.default_rng(seed)
        root = np.tril(self.rng.normal(size=(q, q))) * 0.6
        np.fill_diagonal(root, self.rng.uniform(0.5, 1.5, q))
        self.root, self.p, self.q, self.noise = root, p, q, noise
        self.B = np.linalg.qr(self.rng.normal(size=(p, q)))[0] @ root.T
        self.covariance = noise * root @ root.T

    def draw(self, n, repeats=1):
        stimuli = self.rng.normal(size=(n, self.p))
        noise = np.sqrt(self.noise) * self.rng.normal(size=(n * repeats, self.q)) @ self.root.T
        return stimuli, 4 + np.repeat(stimuli @ self.B, repeats, axis=0) + noise

    def true_task(self, stimuli, responses):
        return identification_task(responses, 4 + stimuli @ self.B, self.covariance)


def test_too_few_stimuli_are_named():
    world = Experiment(noise=20.0)
    with pytest.warns(DataWarning, match=r"predicts [01] of 6 responses .* from 15 stimuli"):
        EncodingModel(random_seed=1).fit(*world.draw(15))
    EncodingModel(random_seed=1).fit(*world.draw(2000))


# Against the true model


def test_much_data_recovers_the_true_model():
    world = Experiment()
    encoding = EncodingModel(random_seed=1).fit(*world.draw(20_000))
    np.testing.assert_allclose(encoding.coef_, world.B, atol=0.03)
    np.testing.assert_allclose(encoding.intercept_, 4, atol=0.03)
    np.testing.assert_allclose(encoding.covariance_, world.covariance, atol=0.03)
    assert encoding.shrinkage_ < 0.01
    signal = (world.B**2).sum(axis=0)
    expected = signal / (signal + np.diag(world.covariance))
    np.testing.assert_allclose(encoding.r2_, expected, atol=0.02)
    test = world.draw(800)
    k = [2, 50, 800]
    task = encoding.task(*test)
    few = 8.5 / 800  # eight of the 800 answers may differ
    np.testing.assert_allclose(
        task.accuracy(k), world.true_task(*test).accuracy(k), rtol=0, atol=few
    )
    error = np.sqrt(np.diag(task.accuracy_cov(k)))
    exact = GaussianKnownCentres(world.q, world.noise).accuracy(k)
    assert np.all(np.abs(task.accuracy(k) - exact) < 4 * error + 0.002)


@pytest.mark.parametrize("method", ["ridge", "elastic_net"])
def test_accuracy_grows_towards_that_of_the_true_model(method):
    world = Experiment(seed=1)
    test = world.draw(600)
    best = world.true_task(*test).accuracy(600)[0]
    shortfall = [
        best - EncodingModel(method, random_seed=1).fit(*world.draw(n)).task(*test).accuracy(600)[0]
        for n in (30, 120, 2000)
    ]
    assert shortfall[0] > shortfall[1] > shortfall[2] and shortfall[2] < 0.03


def test_the_curve_extrapolates():
    world = Experiment(q=8, noise=0.4, seed=2)
    encoding = EncodingModel(random_seed=1).fit(*world.draw(400))
    truth = encoding.task(*world.draw(3000)).accuracy([200, 2000])
    task = encoding.task(*world.draw(400))
    predicted = ClassExReg(random_seed=1).fit(task).predict([200, 2000]).mean
    np.testing.assert_allclose(predicted, truth, rtol=0, atol=0.08)


# Residuals, shrinkage, repeats


def test_training_residuals_are_too_small():
    world = Experiment(p=60, q=10, noise=0.5, seed=3)
    train, test = world.draw(80), world.draw(300)
    fits = {
        name: EncodingModel(residuals=name, alphas=[1e-3, 1.0, 30.0], random_seed=1).fit(*train)
        for name in ("out_of_fold", "training")
    }
    new = test[1] - fits["training"].predict(test[0])
    variance = np.mean(new**2, axis=0)
    assert np.all(np.diag(fits["training"].covariance_) < 0.6 * variance)
    ratio = np.diag(fits["out_of_fold"].covariance_) / variance
    assert 0.75 < ratio.mean() < 1.5
    assert np.array_equal(fits["training"].coef_, fits["out_of_fold"].coef_)
    assert np.array_equal(fits["training"].r2_, fits["out_of_fold"].r2_)


@pytest.mark.parametrize("residuals", ["out_of_fold", "training"])
def test_shrinkage_is_the_formula(residuals):
    data = Experiment(seed=4).draw(50)
    raw = EncodingModel(shrinkage=0.0, residuals=residuals, random_seed=1).fit(*data)
    shrunk = EncodingModel(shrinkage=0.25, residuals=residuals, random_seed=1).fit(*data)
    expected = 0.75 * raw.covariance_ + 0.25 * np.diag(np.diag(raw.covariance_))
    np.testing.assert_allclose(shrunk.covariance_, expected, atol=1e-12)
    assert shrunk.shrinkage_ == 0.25
    assert 0 < EncodingModel(residuals=residuals, random_seed=1).fit(*data).shrinkage_ < 1


def test_repeated_presentations():
    world = Experiment(seed=5)
    stimuli, responses = world.draw(40, repeats=3)
    y = np.repeat(np.arange(40), 3)
    encoding = EncodingModel(random_seed=1).fit(stimuli, responses, y)
    # Rows written out are recognised as presentations of the same stimuli.
    written_out = EncodingModel(random_seed=1).fit(stimuli[y], responses)
    np.testing.assert_allclose(written_out.coef_, encoding.coef_, atol=1e-10)
    order = np.random.default_rng(1).permutation(120)
    shuffled = EncodingModel(random_seed=1).fit(stimuli, responses[order], y[order])
    np.testing.assert_allclose(shuffled.coef_, encoding.coef_, atol=1e-10)
    np.testing.assert_allclose(shuffled.covariance_, encoding.covariance_, atol=1e-10)
    test = world.draw(10, repeats=2)
    task = encoding.task(*test, np.repeat(np.arange(10), 2))
    assert task.n_classes == 10 and task.n_test == 20
    names = [f"s{i}" for i in range(10)]
    named = encoding.task(*test, np.repeat(names, 2), classes=names)
    assert named.classes == names and named.ranks.tolist() == task.ranks.tolist()


def test_a_stimulus_is_given_once():
    # Written out, each presentation would be a class that ties with its copies.
    world = Experiment(seed=8)
    encoding = EncodingModel(random_seed=1).fit(*world.draw(60))
    stimuli, responses = world.draw(20, repeats=2)
    y = np.repeat(np.arange(20), 2)
    assert encoding.task(stimuli, responses, y).n_classes == 20
    with pytest.raises(DataError, match=r"^stimuli: "):
        encoding.task(stimuli[y], responses)
    zeros = np.zeros((2, world.p))
    zeros[1] = -0.0
    with pytest.raises(DataError, match=r"^stimuli: "):
        encoding.task(np.vstack([stimuli, zeros]), responses[:22])


def test_stimuli_of_the_training_set_are_doubted():
    world = Experiment(seed=9)
    stimuli, responses = world.draw(60)
    y = np.arange(40)  # the last 20 stimuli were never shown
    encoding = EncodingModel(random_seed=1).fit(stimuli, responses[:40], y)
    assert encoding.task(stimuli[40:], responses[40:]).warnings == ()
    with pytest.warns(DataWarning, match="3 of 23 stimuli were in the training set") as caught:
        task = encoding.task(stimuli[37:], responses[37:])
    assert [str(one.message) for one in caught] == list(task.warnings)
    assert set(task.warnings) <= set(notes_of([task]))


def test_no_response_left_out_of_its_own_prediction():
    # Pure noise is not predicted for left-out stimuli, whatever the flexibility.
    rng = np.random.default_rng(6)
    stimuli, responses = rng.normal(size=(50, 200)), rng.normal(size=(50, 5))
    with pytest.warns(DataWarning, match="predicts . of 5 responses better than their means"):
        encoding = EncodingModel(random_seed=1).fit(stimuli, responses)
    assert encoding.r2_.max() < 0.2
    with pytest.warns(DataWarning, match="predicts . of 5 responses better than their means"):
        repeated = EncodingModel(alphas=1e-3, random_seed=1).fit(
            stimuli, np.tile(responses, (2, 1)), np.tile(np.arange(50), 2)
        )
    assert repeated.r2_.max() < 0.2


# The estimator's contract


def test_parameters_are_stored_and_cloned():
    encoding = EncodingModel("elastic_net", l1_ratio=[0.2, 0.8], shrinkage=0.1, cv=3, random_seed=4)
    assert encoding.get_params()["l1_ratio"] == [0.2, 0.8]
    assert clone(encoding).get_params() == encoding.get_params()
    assert "method='elastic_net'" in repr(encoding)


def test_seed_fixes_the_fit():
    data = Experiment(seed=7).draw(60)
    one, again, other = (EncodingModel(random_seed=seed).fit(*data) for seed in (1, 1, 2))
    assert np.array_equal(one.covariance_, again.covariance_)
    assert not np.array_equal(one.covariance_, other.covariance_)


def test_ridge_needs_no_scikit_learn(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.linear_model", None)
    data = Experiment().draw(20)
    assert EncodingModel(random_seed=1).fit(*data).coef_.shape == (12, 6)
    with pytest.raises(ImportError, match="elastic_net"):
        EncodingModel("elastic_net").fit(*data)


def test_not_fitted():
    for call in (lambda model: model.predict([[1.0]]), lambda model: model.task([[1.0]], [[1.0]])):
        with pytest.raises(NotFittedError, match=r"call fit\(stimuli, responses\) first"):
            call(EncodingModel())


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"method": "lasso"}, "method"),
        ({"residuals": "none"}, "residuals"),
        ({"shrinkage": "best"}, "shrinkage"),
        ({"shrinkage": 1.5}, "shrinkage"),
        ({"shrinkage": np.nan}, "shrinkage"),
        ({"alphas": []}, "alphas"),
        ({"alphas": [1.0, 0.0]}, "alphas"),
        ({"alphas": [[1.0]]}, "alphas"),
        ({"l1_ratio": 0.0}, "l1_ratio"),
        ({"l1_ratio": 1.2}, "l1_ratio"),
        ({"cv": 1}, "cv"),
        ({"cv": 2.5}, "cv"),
        ({"cv": 11}, "cv"),
        ({"random_seed": -1}, "random_seed"),
    ],
)
def test_bad_parameters(arguments, name):
    with pytest.raises(DataError, match=rf"^{name}"):
        EncodingModel(**arguments).fit(*Experiment().draw(10))


def test_bad_training_data():
    stimuli, responses = Experiment().draw(20)
    for bad, name in [
        ((stimuli[:19], responses), "stimuli, responses"),
        ((stimuli, responses, range(19)), "y"),
        ((stimuli[:10], responses, range(20)), "y"),
        ((stimuli[:, 0], responses), "stimuli"),
        ((stimuli, [["a"] * 6] * 20), "responses"),
        ((stimuli, np.where(np.arange(6) == 2, 1.0, responses)), "responses"),
    ]:
        with pytest.raises(DataError, match=rf"^{name}"):
            EncodingModel().fit(*bad)
    responses[3, 4] = np.inf
    with pytest.raises(DataError, match=r"^responses: "):
        EncodingModel().fit(stimuli, responses)
    stimuli[0, 1] = np.nan
    with pytest.raises(DataError, match=r"^stimuli: "):
        EncodingModel().fit(stimuli, responses)


def test_bad_test_data():
    world = Experiment()
    encoding = EncodingModel(random_seed=1).fit(*world.draw(40))
    stimuli, responses = world.draw(10)
    with pytest.raises(DataError, match=r"^stimuli: "):
        encoding.task(stimuli[:, 1:], responses)
    with pytest.raises(DataError, match=r"^responses: "):
        encoding.task(stimuli, responses[:, 1:])
    with pytest.raises(DataError, match=r"^responses: "):
        encoding.task(stimuli, responses[1:])
    with pytest.raises(DataError, match="at least 3"):
        encoding.task(stimuli[:2], responses[:2])


def test_a_failed_fit_changes_nothing():
    world = Experiment()
    encoding = EncodingModel(random_seed=1).fit(*world.draw(40))
    before = encoding.coef_.copy()
    encoding.set_params(shrinkage=2.0)
    with pytest.raises(DataError, match="shrinkage"):
        encoding.fit(*world.draw(40))
    assert np.array_equal(encoding.coef_, before)
