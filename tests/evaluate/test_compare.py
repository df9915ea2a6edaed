"""Comparison: one table of what each estimator says by itself, beside the truth."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from classex_bayes import (
    KDE,
    BayesianExtrapolator,
    ClassExReg,
    Extrapolation,
    MixturePrior,
    MomentBounds,
    SourceTask,
    compare,
)
from classex_bayes.estimators import PointEstimator, bootstrap
from classex_bayes.exceptions import DataError, NotFittedError
from classex_bayes.results import Estimand

K = [50, 200, 1000]


@pytest.fixture(scope="module")
def estimators(fitted):
    return [fitted, ClassExReg(random_seed=1), KDE("ucv")]


@pytest.fixture(scope="module")
def alone(estimators, pilot):
    """What each estimator predicts by itself."""
    fresh = [ClassExReg(random_seed=1), KDE("ucv")]
    return [estimators[0].predict(K), *(other.fit(pilot.task).predict(K) for other in fresh)]


@pytest.fixture(scope="module")
def truth(pilot):
    return dict(zip(K, pilot.law.accuracy(K), strict=True))


def test_table_holds_the_predictions(estimators, alone, pilot):
    result = compare(estimators, pilot.task, K, ci_prob=0.8, ci_kind="hdi")
    names = ["BayesianExtrapolator", "ClassExReg", "KDE(ucv)"]
    table = result.table
    assert table.columns.tolist() == ["mean", "hdi80_lb", "hdi80_ub", "interval_type"]
    assert table.index.names == ["estimator", "k"]
    assert table.index.tolist() == [(name, k) for name in names for k in K]
    assert result.skipped == {}
    for name, prediction, expected in zip(names, result.predictions, alone, strict=True):
        assert_array_equal(prediction.accuracy, expected.accuracy)
        rows = table.loc[name]
        assert_array_equal(rows["mean"], expected.mean)
        assert set(rows["interval_type"]) == {expected.interval_type}
    # Copies are fitted, the originals left as they are.
    for estimator in estimators[1:]:
        with pytest.raises(NotFittedError):
            estimator.predict(K)
    limits = table.loc["BayesianExtrapolator", ["hdi80_lb", "hdi80_ub"]]
    assert_array_equal(limits, estimators[0].predict(K).interval(0.8, "hdi"))
    assert table.loc[names[1:], ["hdi80_lb", "hdi80_ub"]].isna().all(axis=None)


def test_the_data_contradict_estimates_outside_the_bounds(pilot):
    k1, bounds = pilot.task.n_classes, MomentBounds().fit(pilot.task)
    far = 50 * k1

    class Line(PointEstimator):
        """Share of the way from the lower limit to the upper limit at k1 and far beyond."""

        def __init__(self, at_k1, beyond):
            self.at_k1 = at_k1
            self.beyond = beyond

        def _fit(self, task):
            pass

        def _curve(self, k):
            lower, upper = bounds.predict(k).interval(0.99).to_numpy().T
            return lower + (upper - lower) * np.where(k <= k1, self.at_k1, self.beyond)

    estimators = {
        "inside": Line(0.05, 0.95), "below": Line(-0.1, 0.5), "above": Line(0.5, 1.1),
    }  # fmt: skip
    inside, below, above = compare(estimators, pilot.task, [far], ci_prob=0.9).predictions
    assert inside.notes == ()
    assert f"on {k1} classes" in below.notes[0] and len(below.notes) == 1
    assert f"on {far:,} classes" in above.notes[0] and len(above.notes) == 1


def test_bounds_in_the_table_have_limits_and_no_mean(pilot, truth):
    result = compare(
        [ClassExReg(0.5), MomentBounds()], pilot.task, K, truth=truth, ci_prob=0.8, n_resamples=5
    )
    rows = result.table.loc["MomentBounds"]
    assert set(rows["interval_type"]) == {"confidence"}
    assert rows[["mean", "error"]].isna().all(axis=None) and rows["covered"].notna().all()
    expected = MomentBounds().fit(pilot.task).predict(K).interval(0.8)
    assert_array_equal(rows.filter(regex="_[lu]b$"), expected)
    assert result.plot().get_ylabel() == "accuracy"
    alone = compare([MomentBounds()], pilot.task, K, truth=truth, ci_prob=0.8).table
    assert alone["covered"].tolist() == rows["covered"].tolist() and "mean" not in alone


def test_point_estimates_with_bootstrap_intervals(estimators, alone, pilot, truth):
    result = compare(
        estimators, pilot.task, K, truth=truth, ci_prob=0.8, n_resamples=8, random_seed=4
    )
    kinds = ["credible", "bootstrap", "bootstrap"]
    for prediction, expected, kind in zip(result.predictions, alone, kinds, strict=True):
        rows = result.table.loc[expected.estimator]
        assert set(rows["interval_type"]) == {kind} and rows["covered"].notna().all()
        assert_array_equal(rows["mean"], expected.mean)  # intervals do not move the estimate
        assert_array_equal(rows.iloc[:, 1:3], prediction.interval(0.8))
    drawn = bootstrap(KDE("ucv"), pilot.task, K, n_resamples=8, random_seed=4, progressbar=False)
    assert_array_equal(result.predictions[2].accuracy, drawn.accuracy)


def test_an_estimator_without_a_bootstrap_interval_stays(pilot):
    class Once(ClassExReg):
        def _fit(self, task):
            if task is not pilot.task:
                raise DataError("task: not this one")
            super()._fit(task)

    result = compare([Once(0.5)], pilot.task, K, n_resamples=3)
    assert set(result.table["interval_type"]) == {"none"}
    assert "Once" in result.notes[-1]


def test_intervals_need_no_second_fit_to_the_task(pilot):
    fits = []

    class Counted(ClassExReg):
        def _fit(self, task):
            fits.append(task)
            super()._fit(task)

    compare([Counted(0.5)], pilot.task, K, n_resamples=3)
    assert len(fits) == 4 and sum(task is pilot.task for task in fits) == 1


def test_truth(estimators, pilot, truth):
    table = compare(estimators, pilot.task, K, truth=truth, ci_prob=0.99, ci_kind="eti").table
    for name in ("BayesianExtrapolator", "ClassExReg", "KDE(ucv)"):
        assert table.loc[name, "truth"].to_dict() == truth
    assert_array_equal(table["error"], table["mean"] - table["truth"])
    inside = (table["eti99_lb"] <= table["truth"]) & (table["truth"] <= table["eti99_ub"])
    covered = table.loc["BayesianExtrapolator", "covered"]
    assert covered.tolist() == inside["BayesianExtrapolator"].tolist()
    assert table.loc[["ClassExReg", "KDE(ucv)"], "covered"].isna().all()
    off = compare(estimators[:1], pilot.task, K, truth={50: 0.01, 200: 0.99}).table
    assert off["covered"].tolist()[:2] == [False, False] and np.isnan(off["covered"].tolist()[2])
    assert np.isnan(off["truth"].tolist()[2]) and np.isnan(off["error"].tolist()[2])


def test_truth_from_a_task(pilot):
    few = pilot.task.subsample(60, random_seed=2)
    table = compare([ClassExReg(random_seed=1)], few, K, truth=pilot.task).table
    assert table["truth"].tolist()[:2] == pilot.task.accuracy(K[:2]).tolist()
    assert table["truth"].isna().tolist() == [False, False, True]
    assert "covered" not in table


@pytest.fixture(scope="module")
def saved(fit, pilot):
    """A model, and the same model without its task, as `load` returns it."""
    model = fit(pilot.task, draws=20, tune=50, evidence="ranks")
    return model, BayesianExtrapolator.from_idata(model.idata.copy())


def test_fitted_models_are_not_fitted_again(saved, pilot, monkeypatch):
    model = saved[0]
    monkeypatch.setattr(BayesianExtrapolator, "fit", lambda *task: pytest.fail("fitted again"))
    for ready in saved:
        assert_array_equal(compare([ready], pilot.task, K).table["mean"], model.predict(K).mean)


def test_models_of_another_task_are_fitted_anew(fit, fitted, pilot, small_task, monkeypatch):
    ready, seen = fit(small_task(200, 400), draws=20, tune=50), []

    def stand_in(model, task, random_seed=None):
        seen.append((task, random_seed))
        model.__dict__.update(ready.__dict__)
        return model

    monkeypatch.setattr(BayesianExtrapolator, "fit", stand_in)
    task, fresh, before = small_task(), BayesianExtrapolator(), fitted.predict(K).mean
    # Neither a model without draws nor one of another task of the same size may be used as it is.
    for model in (fresh, fitted):
        table = compare([model], task, K, random_seed=5).table
        assert_array_equal(table["mean"], ready.predict(K).mean)
    assert seen == [(task, 5), (task, 5)]
    assert not fresh.is_fitted and fitted.task is pilot.task
    assert_array_equal(fitted.predict(K).mean, before)


def test_changed_parameters_are_fitted_anew(fit, pilot, monkeypatch):
    model, seen = fit(pilot.task, draws=20, tune=50), []
    monkeypatch.setattr(
        BayesianExtrapolator, "fit", lambda model, task, random_seed=None: seen.append(1) or model
    )
    compare([model], pilot.task, K)
    assert model.is_fitted_to(pilot.task) and not seen
    model.set_params(prior=MixturePrior(deviation=2.0))
    assert not model.is_fitted_to(pilot.task)
    compare([model], pilot.task, K)
    assert seen == [1]
    model.set_params(prior=MixturePrior())
    assert model.is_fitted_to(pilot.task)


def test_loaded_models_of_another_size_are_refused(saved, small_task):
    result = compare([saved[1], ClassExReg(random_seed=1)], small_task(), [50])
    (reason,) = result.skipped.values()
    assert "200" in reason
    assert result.table.index.unique("estimator").tolist() == ["ClassExReg"]


def test_seed(pilot):
    def means(seed, own=None):
        return compare([ClassExReg(random_seed=own)], pilot.task, K, random_seed=seed).table["mean"]

    assert_array_equal(means(1), means(1))
    assert_array_equal(means(2, own=1), means(1))


def test_estimators_that_cannot_be_fitted_are_left_out(pilot):
    y = np.sort(pilot.task.y)
    task = SourceTask.from_ranks(pilot.task.ranks, y, n_classes=200)
    result = compare([KDE("ucv"), ClassExReg(random_seed=1)], task, K)
    assert result.table.index.unique("estimator").tolist() == ["ClassExReg"]
    assert len(result.predictions) == 1 and list(result.skipped) == ["KDE(ucv)"]
    assert "KDE(ucv)" in repr(result)


# Risks


class Given:
    """Predicts what it was made with."""

    def __init__(self, name, quantity="risk"):
        self.name, self.quantity = name, quantity

    def fit(self, task):
        return self

    def predict(self, k):
        values = np.full(len(k), 0.25)
        return Extrapolation.from_point(
            k, values, self.name, 50, estimand=Estimand(metric=self.quantity)
        )


def test_risks_have_a_table_of_their_own(pilot):
    task = pilot.task
    table = compare([Given("a"), Given("b")], task, [60, 100], truth={60: 0.2}).table
    assert table["error"].dropna().round(9).tolist() == [0.05, 0.05]


def test_an_estimator_that_lacks_a_package_is_left_out(pilot):
    class Lacking(Given):
        def fit(self, task):
            raise ImportError("install something")

    comparison = compare([Given("a"), Lacking("b")], pilot.task, [60])
    assert comparison.skipped == {"b": "install something"}
