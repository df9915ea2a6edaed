"""Ridge and elastic net against scikit-learn, and folds that keep presentations together."""

import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import ElasticNet, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from classex_bayes.exceptions import DataError
from classex_bayes.identification.regression import elastic_net, ridge, stimulus_folds


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(1)
    features = rng.normal(size=(60, 8)) * np.logspace(-1, 1, 8) + 3
    coef = rng.normal(size=(8, 4)) * [2.0, 0.5, 0.1, 0.0]
    responses = features @ coef + rng.normal(size=(60, 4)) * 2 + [0, 5, -5, 100]
    folds = stimulus_folds(features, np.arange(60), 5, np.random.default_rng(0))
    return features, responses, folds


def scikit_ridge(features, responses, alpha, new):
    scaler = StandardScaler().fit(features)
    model = Ridge(alpha=alpha).fit(scaler.transform(features), responses)
    return model.predict(scaler.transform(new))


@pytest.mark.parametrize("shape", ["tall", "wide"])
@pytest.mark.parametrize("alpha", [0.01, 3.0, 1e4])
def test_ridge_is_that_of_scikit_learn(data, shape, alpha):
    features, responses, _ = data
    if shape == "wide":
        features = np.hstack([features, np.random.default_rng(2).normal(size=(60, 90))])
    folds = stimulus_folds(features, np.arange(60), 5, np.random.default_rng(0))
    fit = ridge(features, responses, folds, np.array([alpha]))
    new = features[:10] * 1.3 - 1
    expected = scikit_ridge(features, responses, alpha, new)
    np.testing.assert_allclose(new @ fit.coef + fit.intercept, expected, atol=1e-8)
    for train, test in folds:
        expected = scikit_ridge(features[train], responses[train], alpha, features[test])
        np.testing.assert_allclose(fit.out_of_fold[test], expected, atol=1e-8)
    assert fit.alpha.tolist() == [alpha] * 4 and fit.l1_ratio.tolist() == [0] * 4


def test_ridge_chooses_for_each_response_what_predicts_best(data):
    features, responses, folds = data
    candidates = np.array([0.1, 1.0, 10.0, 100.0, 1e5])
    fit = ridge(features, responses, folds, candidates)
    for j in range(4):
        errors = [
            np.sum(
                (ridge(features, responses, folds, candidates[[i]]).out_of_fold - responses) ** 2, 0
            )
            for i in range(5)
        ]
        assert fit.alpha[j] == candidates[np.argmin([error[j] for error in errors])]
    assert fit.alpha[0] < fit.alpha[3]  # strong signal, no signal
    alone = ridge(features, responses[:, [1]], folds, candidates)
    np.testing.assert_allclose(alone.coef[:, 0], fit.coef[:, 1], atol=1e-10)


def test_units_of_the_features_do_not_matter(data):
    features, responses, folds = data
    units = np.logspace(-3, 3, 8)
    for method, more in ((ridge, ()), (elastic_net, ([0.5],))):
        fit = method(features, responses, folds, np.array([0.5]), *more)
        other = method(features * units, responses, folds, np.array([0.5]), *more)
        np.testing.assert_allclose(other.coef * units[:, None], fit.coef, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(other.out_of_fold, fit.out_of_fold, rtol=1e-4)


def test_a_constant_feature_has_no_coefficient(data):
    features, responses, folds = data
    features = np.hstack([features, np.full((60, 1), 7.0)])
    for fit in (
        ridge(features, responses, folds, None),
        elastic_net(features, responses, folds, None, [0.5]),
    ):
        assert fit.coef[-1] == pytest.approx(np.zeros(4), abs=1e-12)


def test_elastic_net_is_that_of_scikit_learn(data):
    features, responses, folds = data
    fit = elastic_net(features, responses, folds, np.array([0.3]), [0.7])
    scaler = StandardScaler().fit(features)
    model = ElasticNet(alpha=0.3, l1_ratio=0.7).fit(scaler.transform(features), responses[:, 0])
    expected = model.predict(scaler.transform(features[:5]))
    np.testing.assert_allclose((features[:5] @ fit.coef + fit.intercept)[:, 0], expected, atol=1e-8)
    train, test = folds[2]
    within = make_pipeline(StandardScaler(), ElasticNet(alpha=0.3, l1_ratio=0.7))
    expected = within.fit(features[train], responses[train, 1]).predict(features[test])
    np.testing.assert_allclose(fit.out_of_fold[test, 1], expected, atol=1e-8)


def test_elastic_net_chooses_as_a_grid_search(data):
    features, responses, folds = data
    grid = {"elasticnet__alpha": [0.03, 0.1, 0.3, 1.0], "elasticnet__l1_ratio": [0.2, 0.6, 1.0]}
    fit = elastic_net(features, responses, folds, *map(np.array, grid.values()))
    for j, response in enumerate(responses.T):
        search = GridSearchCV(
            make_pipeline(StandardScaler(), ElasticNet()),
            grid,
            cv=folds,
            scoring="neg_mean_squared_error",
        ).fit(features, response)
        assert [fit.alpha[j], fit.l1_ratio[j]] == list(search.best_params_.values())


def test_elastic_net_selects_features_and_penalties():
    rng = np.random.default_rng(3)
    features = rng.normal(size=(80, 30))
    responses = np.column_stack([features[:, 0] * 3, features[:, 1] * 0.2])
    responses += rng.normal(size=(80, 2))
    folds = stimulus_folds(features, np.arange(80), 4, rng)
    fit = elastic_net(features, responses, folds, None, [0.5, 1.0])
    assert fit.coef[0, 0] > 2 and np.mean(fit.coef[:, 0] == 0) > 0.3
    assert set(fit.l1_ratio) <= {0.5, 1.0} and np.all(fit.alpha > 0)


@given(st.integers(2, 6), st.lists(st.integers(0, 9), min_size=20, max_size=40), st.integers(0, 99))
def test_presentations_of_a_stimulus_share_a_fold(cv, y, seed):
    stimuli = np.arange(10.0)[:, None] % 8  # the last two repeat the first two
    y = np.array(y)
    identity = y % 8
    if np.unique(identity).size < cv:
        with pytest.raises(DataError, match=f"cv: found {cv} folds for"):
            stimulus_folds(stimuli, y, cv, np.random.default_rng(seed))
        return
    folds = stimulus_folds(stimuli, y, cv, np.random.default_rng(seed))
    assert sorted(np.concatenate([test for _, test in folds])) == list(range(y.size))
    for train, test in folds:
        assert test.size > 0 and not set(identity[train]) & set(identity[test])
        assert train.size + test.size == y.size
    sizes = [np.unique(identity[test]).size for _, test in folds]
    assert max(sizes) - min(sizes) <= 1


def test_elastic_net_without_scikit_learn(data, monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.linear_model", None)
    with pytest.raises(ImportError, match=r"pip install \"classex-bayes\[identification\]\""):
        elastic_net(*data, None, [0.5])
