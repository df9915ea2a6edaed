"""The map: its places exist, and its recipes run and compute what they promise."""

import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scipy.special import ndtr

import classex_bayes
from classex_bayes import SourceTask
from classex_bayes.bayes.model import priors
from classex_bayes.bayes.model.likelihoods import BernsteinData
from classex_bayes.core import RadialBasis, metrics, named_metric

PAGE = (Path(__file__).parents[1] / "docs" / "map.md").read_text(encoding="utf-8")
RECIPES = dict(re.findall(r"^### (.+?)\n.*?^```python\n(.*?)^```", PAGE, flags=re.M | re.S))


@pytest.fixture(scope="module")
def run():
    """Names of a recipe, which is executed once; what it enters goes with the module."""
    entered = [(table, dict(table)) for table in (metrics.GAINS, priors.PRIORS)]

    @cache
    def run(title):
        namespace = {"__name__": "recipe"}
        exec(compile(RECIPES[title], title, "exec"), namespace)
        return namespace

    yield run
    for table, known in entered:
        table.clear()
        table.update(known)


def test_places_exist():
    table = PAGE[PAGE.index("| Question") : PAGE.index("## Recipes")]
    places = re.findall(r"`([\w./]+\.pyi?)`", table)
    package = Path(classex_bayes.__file__).parent
    assert places and [place for place in places if not (package / place).exists()] == []


@pytest.mark.nightly  # PyTensor compiles the prior
def test_prior(run, tmp_path):
    names = run("A prior")
    assert {"mean", "scale"} <= set(names["model"].idata["posterior"].data_vars)
    falls = names["model"].predict([50, 500]).mean
    assert 0 < falls[500] < falls[50] < 1
    again = classex_bayes.load(classex_bayes.save(names["model"], tmp_path / "model.nc"))
    assert again.prior == names["LogisticPrior"]()
    np.testing.assert_array_equal(again.predict([50, 500]).mean, falls)


def test_point_estimator(run):
    names = run("A point estimator")
    task, k = names["task"], np.array([10, 30, 100, 1000])
    curve = names["PowerLaw"]().fit(task).predict(k).mean.to_numpy()
    slopes = np.diff(np.log(curve)) / np.diff(np.log(k))
    np.testing.assert_allclose(slopes, names["PowerLaw"]().fit(task).coef_[0], rtol=1e-9)
    assert curve[2] == pytest.approx(task.accuracy(100).item(), abs=0.05)
    never_right = SourceTask.from_ranks(np.full(60, 5), range(60), n_classes=60)
    found = names["PowerLaw"]().fit(never_right).predict([60, 600]).mean
    assert 0 < found[600] < found[60] < 0.2


def test_metric(run):
    """At k1 it is the mean over the ranks; a law gives what its binomial ranks have on average."""
    names = run("A metric")
    task, model = names["task"], names["model"]

    def gain(ranks):
        return 0.2 * 0.8 ** (ranks - 1)

    weighted = task.table.weight @ gain(task.ranks)
    assert task.metric("rbp", 50).item() == pytest.approx(weighted, rel=1e-12)
    rng, n_better, k = np.random.default_rng(1), 7, 12
    values = gain(1 + rng.hypergeometric(n_better, 49 - n_better, k - 1, 200_000))
    metric = named_metric("rbp")
    exact = metric.given_n_better(np.array([n_better]), 50, np.array([k])).item()
    assert exact == pytest.approx(values.mean(), abs=4 * values.std() / 447)
    basis = RadialBasis.regular(-4, 8, 0.5)
    place = int(np.argmin(np.abs(basis.knots - 1.5)))
    found = metric.expected(basis, np.array([k]))[0, place]
    u = ndtr(basis.knots[place] + basis.bandwidth * rng.standard_normal(200_000))
    values = gain(1 + rng.binomial(k - 1, 1 - u))
    assert found == pytest.approx(values.mean(), abs=4 * values.std() / 447)
    cut = task.table.weight @ np.where(task.ranks <= 5, gain(task.ranks), 0)
    assert task.metric("rbp@5", 50).item() == pytest.approx(cut, rel=1e-12)
    assert model.predict([50, 500], metric="rbp").interval().shape == (2, 2)


def test_rule(run):
    names = run("A rule on the data")
    task = names["task"]
    finding = names["_REPEATS"].finding(names["Tested"](task.table, task.variance, None))
    assert finding.is_note and finding.value == 20 and "60 instances" in finding.sentence


def test_new_kind_of_data(run):
    """Choices among 4, 16 and 64 give the accuracy on 100 and on all 2,965 characters."""
    names = run("A new kind of data")
    tasks, model, ranks = (names[name] for name in ("tasks", "model", "ranks"))
    whole = SourceTask.from_ranks(ranks, range(ranks.size), n_classes=ranks.size)
    prediction = model.predict([4, 100, 2965])
    truth, sd = whole.accuracy([4, 100, 2965]), prediction.summary()["sd"].to_numpy()
    assert np.all(np.abs(prediction.mean - truth) < 3 * sd) and sd[-1] < 0.12
    assert "forced choices" in repr(tasks[0])
    # Independent instances: shares of n answers, without the factor of shared competitors.
    right = tasks[0].accuracy(4).item()
    variance = right * (1 - right) / (tasks[0].n_test - 1)
    assert tasks[0].accuracy_cov(4).item() == pytest.approx(variance)
    with pytest.raises(classex_bayes.DataError):
        tasks[0].accuracy(3)


@pytest.mark.parametrize("m", [2, 10])
def test_choices_are_right_as_often_as_the_accuracy_on_their_classes(run, m):
    """The likelihood is that of right and wrong answers, for any word of the data."""
    right, basis = np.arange(100) % 4 > 0, RadialBasis.regular(-2, 5, 0.5)
    task = run("A new kind of data")["forced_choices"](np.arange(100), right, m)
    weights = np.random.default_rng(1).dirichlet(np.ones(basis.knots.size), 5)
    chance = weights @ basis.accuracy(np.array([m]))[0]
    found = BernsteinData.of(task, basis).log_likelihood(weights) * task.design_effect()
    np.testing.assert_allclose(found, 75 * np.log(chance) + 25 * np.log1p(-chance), rtol=1e-6)
    assert task.design_effect() == pytest.approx(100 / 99)
    assert task.accuracy(m) == pytest.approx(0.75)
    assert not task.warnings


def test_plot(run):
    run("A plot")
