"""The map: its places exist, and its recipes run and say what they promise."""

import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scipy.special import ndtr

import classex_bayes
from classex_bayes import SourceTask
from classex_bayes.bayes.model import priors
from classex_bayes.core import RadialBasis, metrics
from classex_bayes.task.rank_table import RankTable

PAGE = (Path(__file__).parents[1] / "docs" / "map.md").read_text(encoding="utf-8")
RECIPES = dict(re.findall(r"^### (.+?)\n.*?^```python\n(.*?)^```", PAGE, flags=re.M | re.S))
LONGEST = 30  # lines, blank ones aside


@pytest.fixture(scope="module")
def run():
    """Names of a recipe, which is executed once; what it enters goes with the module."""
    entered = [(table, dict(table)) for table in (metrics.METRICS, priors.PRIORS)]

    @cache
    def run(title):
        namespace = {"__name__": "recipe"}
        exec(compile(RECIPES[title], title, "exec"), namespace)
        return namespace

    yield run
    for table, known in entered:
        table.clear()
        table.update(known)


def test_there_are_six_short_recipes():
    titles = "A prior, A point estimator, A metric, A new kind of data, A plot, A wing"
    assert list(RECIPES) == titles.split(", ")
    lengths = {title: len(re.findall(r"^.*\S", code, re.M)) for title, code in RECIPES.items()}
    assert {title: n for title, n in lengths.items() if n > LONGEST} == {}


def test_places_exist():
    table = PAGE[PAGE.index("| Question") : PAGE.index("## Recipes")]
    places = re.findall(r"`([\w./]+\.pyi?)`", table)
    package = Path(classex_bayes.__file__).parent
    assert len(places) >= 15 and [place for place in places if not (package / place).exists()] == []


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
    assert never_right.accuracy(60) == 0
    found = names["PowerLaw"]().fit(never_right).predict([60, 600]).mean
    assert 0 < found[600] < found[60] < 0.2
    wrong = names["cb"].SourceTask.from_ranks([9] * 9, range(9), n_classes=9)
    with pytest.warns(names["cb"].exceptions.DataWarning):
        assert 0 < names["PowerLaw"]().fit(wrong).predict(9).mean.item() < 0.1


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
    metric = names["RankBiasedPrecision"]()
    exact = metric.given_n_better(np.array([n_better]), 50, np.array([k])).item()
    assert exact == pytest.approx(values.mean(), abs=4 * values.std() / 447)
    basis = RadialBasis.regular(-4, 8, 0.5)
    place = int(np.argmin(np.abs(basis.knots - 1.5)))
    found = metric.expected(basis, np.array([k]))[0, place]
    u = ndtr(basis.knots[place] + basis.bandwidth * rng.standard_normal(200_000))
    values = gain(1 + rng.binomial(k - 1, 1 - u))
    assert found == pytest.approx(values.mean(), abs=4 * values.std() / 447)
    far = RadialBasis(np.array([-30.0, 30.0, 45.0]), 0.5)
    ends = metric.expected(far, np.array([2, 10**12]))
    np.testing.assert_allclose(ends, [[0.16, 0.2, 0.2], [0, 0.2, 0.2]], rtol=1e-9)
    cut = task.table.weight @ np.where(task.ranks <= 5, gain(task.ranks), 0)
    assert task.metric("rbp@5", 50).item() == pytest.approx(cut, rel=1e-12)
    prediction = model.predict([50, 500], metric="rbp")
    assert prediction.quantity == "rbp" and prediction.interval().shape == (2, 2)
    with pytest.raises(
        classex_bayes.DataError, match=r"predicts rbp and not accuracy; read \.draws"
    ):
        prediction.accuracy  # noqa: B018, since reading it raises


def test_new_kind_of_data(run):
    """Among negatives of their own, instances have the accuracy of plain tests of that size."""
    names = run("A new kind of data")
    task, model, ranks = (names[name] for name in ("task", "model", "ranks"))
    whole = SourceTask.from_ranks(ranks, range(ranks.size), n_classes=ranks.size)
    prediction = model.predict([2, 100, 2965])
    truth, sd = whole.accuracy([2, 100, 2965]), prediction.summary()["sd"].to_numpy()
    assert np.all(np.abs(prediction.mean - truth) < 3 * sd) and sd[-1] < 0.05
    assert not any("same wrong classes" in note for note in prediction.notes)
    # Independent instances: shares of n answers, without the factor of shared competitors.
    right = task.accuracy(100).item()
    variance = right * (1 - right) / (task.n_test - 1)
    assert task.accuracy_cov(100).item() == pytest.approx(variance)
    with pytest.raises(classex_bayes.DataError, match=r"k: expected numbers in 2\.\.100"):
        task.accuracy(101)
    with pytest.raises(classex_bayes.DataError, match="negatives of their own"):
        classex_bayes.KDE().fit(task)


def test_lost_instances_lose_at_every_k(run):
    """Of a test with 30% lost rows, 70% have the accuracy that they have without these."""
    names = run("A new kind of data")
    n_better, lost = names["n_better"][:400], np.arange(400) % 10 < 3
    task = names["among_negatives"](n_better, 99, lost)
    k = np.array([2, 10, 100])
    others = names["among_negatives"](n_better[~lost], 99).accuracy(k)
    np.testing.assert_allclose(task.accuracy(k), 0.7 * others)
    model = classex_bayes.BayesianExtrapolator()
    model.fit(task, sampler={"chains": 2}, random_seed=1, progressbar=False)
    prediction = model.predict([2, 100, 1000])
    sd = prediction.summary()["sd"].to_numpy()
    assert np.all(prediction.mean <= 0.7) and np.all(np.diff(prediction.mean) < 0)
    assert np.all(np.abs(prediction.mean[:2] - task.accuracy([2, 100])) < 2 * sd[:2])
    assert model.law_.cdf(np.array([1e-9])).mean() == pytest.approx(0.3, abs=0.02)


def test_negatives_of_their_own_are_no_classes(run):
    """As many items as each has competitors: these are not the other items."""
    among_negatives = run("A new kind of data")["among_negatives"]
    task = among_negatives(np.arange(100) % 9, 99)
    with pytest.raises(classex_bayes.DataError, match="negatives of their own"):
        task.subsample(50, random_seed=1)
    # Better than chance, or worse, among those that each item met.
    assert not among_negatives(np.full(20, 60) + np.arange(20), 999).warnings
    assert any(
        "reversed" in text for text in among_negatives(80 + np.arange(1000) % 9, 99).warnings
    )


def test_lost_instances_stay_lost_in_a_part_of_the_task():
    y = np.repeat(np.arange(40), 5)
    lost = y < 8
    table = RankTable(y, 40, np.full(200, 1 / 200), np.where(lost, 39, y % 5), unanswered=lost)
    part = SourceTask(table).select(np.arange(4, 24))
    assert part.table.weight @ part.table.unanswered == pytest.approx(4 / 20)


def test_plot(run):
    assert run("A plot")["plot_ranks"].__doc__


def test_wing(run):
    names = run("A wing")
    prediction = names["ResampledAccuracy"]().fit(names["task"], random_seed=2).predict([10, 100])
    mean = prediction.mean.to_numpy()
    np.testing.assert_allclose(mean, names["task"].accuracy([10, 100]), atol=0.01)
    with pytest.raises(classex_bayes.DataError, match=r"k: expected numbers in 2\.\.100"):
        names["ResampledAccuracy"]().fit(names["task"]).predict(1000)
