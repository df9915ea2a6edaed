"""Arguments beyond tasks that are of another kind: one DataError that names them."""

from types import SimpleNamespace

import numpy as np
import pytest

import classex_bayes as cb

TASK = cb.SourceTask.from_ranks([1, 1, 2, 3], range(4), n_classes=4)
FEW = [cb.ClassExReg(0.5)]
FAR = 10**13
CASES = {
    "load path": (lambda: cb.load({1: [2]}), "path: expected a path"),
    "report path": (lambda: cb.write_report(None, 3.5, 9), "(path|model): "),
    "store": (lambda: cb.backtest(FEW, TASK, 3, store=2), "store: expected a path, found 2"),
    "jobs": (lambda: cb.backtest(FEW, TASK, 3, n_jobs="two"), "n_jobs: .*'two'"),
    "a model for a prediction": (
        lambda: cb.measure_drift(TASK).apply(cb.BayesianExtrapolator()),
        "prediction: expected what predict returns",
    ),
    "accuracies by names": (lambda: cb.measure_drift(TASK, {"a": 0.3}), "smaller_tasks: "),
    "accuracies as tasks": (lambda: cb.check_marginality(TASK, [1]), "smaller_tasks: task 0: "),
    "scores of a classifier": (
        lambda: cb.compare_classifiers({"a": TASK, "b": np.eye(3)}, 9),
        r"tasks\['b'\]: ",
    ),
    "a metric that nobody predicts": (
        lambda: cb.backtest([cb.ClassExReg(0.5)], TASK, 3, metric="mrr", n_pilots=2, n_jobs=1),
        "estimators: .*predicts accuracy alone",
    ),
    "sampler": (lambda: cb.backtest(FEW, TASK, 3, sampler=[1]), r"sampler: .*\[1\]"),
    "sampler of two": (
        lambda: cb.compare_classifiers({"a": TASK, "b": TASK}, 9, sampler=5),
        "sampler: .*5",
    ),
    "sampler of a plan": (lambda: cb.plan(TASK, 9, width=0.1, sampler=5), "sampler: .*5"),
    "sampler's word": (
        lambda: cb.backtest(FEW, TASK, 3, sampler={"drawings": 5}),
        "sampler: found 'drawings', expected one of 'draws'",
    ),
    "smaller tasks": (
        lambda: cb.check_marginality(TASK, smaller_tasks=2.5),
        "smaller_tasks: .*2.5",
    ),
    "no path": (lambda: cb.backtest(FEW, TASK, 3, store="a\0"), "store: expected a path"),
    "no files": (lambda: cb.read_task(np.array(3.0)), "paths: "),
    "no tasks": (lambda: cb.check_marginality(TASK, np.array(3.0)), "smaller_tasks: expected"),
    "progress": (
        lambda: cb.BayesianExtrapolator().fit(TASK, progressbar="no"),
        "progressbar: expected True or False",
    ),
    "progress of a back-test": (
        lambda: cb.backtest(FEW, TASK, 3, progressbar=np.zeros(2)),
        "progressbar: expected True or False",
    ),
    "slow": (lambda: cb.literature(slow=np.zeros(2)), "slow: expected True or False"),
    "likelihood": (
        lambda: cb.BayesianExtrapolator(likelihood=np.zeros(0)).fit(TASK),
        "likelihood: .*expected one of 'auto'",
    ),
    "metric beyond numbers": (lambda: TASK.metric(f"accuracy@{10**400}", 3), "metric: "),
}
for what in ("two", None, [3], True, 0, -1, 2.5, np.nan, FAR):
    CASES[f"grid of {what}"] = lambda what=what: TASK.grid(what), "number: expected"
for name in ("draws", "tune", "chains"):
    CASES[f"too many {name}"] = lambda name=name: fit(**{name: FAR}), f"{name}: expected at most"
CASES |= {
    "too many resamples": (
        lambda: cb.estimators.bootstrap(FEW[0], TASK, 9, n_resamples=FAR),
        "n_resamples: expected at most",
    ),
    "too many pilots": (
        lambda: cb.backtest(FEW, TASK, 3, n_pilots=FAR),
        "n_pilots: expected at most",
    ),
    "far knots": (lambda: cb.MixturePrior(lower=-(10**30)), "lower: expected"),
    "fine knots": (lambda: cb.MixturePrior(bandwidth=1e-30), "bandwidth: expected"),
}


def fit(prior=None, task=TASK, **sampler):
    sampler = {"draws": 5, "tune": 20, "chains": 1, **sampler}
    model = cb.BayesianExtrapolator(prior or cb.MixturePrior())
    return model.fit(task, sampler=sampler, random_seed=1, progressbar=False)


@pytest.mark.parametrize(("use", "message"), CASES.values(), ids=CASES)
def test_each_is_named(use, message):
    with pytest.raises(cb.DataError, match=f"^{message}"):
        use()


def test_references_of_a_report(fitted, tmp_path):
    with pytest.raises(cb.DataError, match=r"^estimators: expected an estimator"):
        cb.write_report(fitted, 300, tmp_path / "a.html", references=[5])
    assert not list(tmp_path.iterdir())


@pytest.fixture(scope="module")
def short():
    """Models with draws of several lengths."""
    return SimpleNamespace(
        six=fit(chains=2, draws=3),
        twenty=fit(chains=2, draws=12),
        enough=fit(draws=25),
    )


@pytest.mark.parametrize("name", ["six", "twenty"])
def test_too_few_draws_to_weigh(short, name):
    model = getattr(short, name)
    with pytest.raises(cb.DataError, match=r"^draws: found \d+ x \d+, too few for importance"):
        cb.sensitivity(model, 9)


def test_the_fewest_draws_that_are_weighed(short):
    assert np.isfinite(cb.sensitivity(short.enough, 9).table["prior"]).all()
