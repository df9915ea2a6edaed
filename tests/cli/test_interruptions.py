"""Interrupted work: what was finished is saved and shown, and continues from there."""

import numpy as np
import pytest
from helpers import paths

import classex_bayes as cb
from classex_bayes import BayesianExtrapolator, ClassExReg, backtest, compare, load
from classex_bayes.exceptions import Interrupted

SHORT = {
    "sampler": {"draws": 200, "tune": 200, "chains": 3},
    "random_seed": 3,
    "progressbar": False,
}


def test_a_model_keeps_the_draws_so_far(stopped, pilot):
    stopped(150, 140, 130)
    model = BayesianExtrapolator()
    with pytest.raises(KeyboardInterrupt) as interruption:
        model.fit(pilot.task, **SHORT)
    assert isinstance(interruption.value, Interrupted) and interruption.value.partial is model
    prediction = model.predict(1000)
    assert 0 < prediction.draws.sizes["draw"] <= 150 and np.isfinite(prediction.draws).all()
    assert any("interrupted" in note for note in prediction.notes)


def test_a_model_interrupted_while_scores_are_added_keeps_the_ranks(pilot, monkeypatch):
    by_ranks = BayesianExtrapolator(evidence="ranks").fit(pilot.task, **SHORT).predict(1000)
    monkeypatch.setattr("classex_bayes.bayes.score_evidence.anchored", interrupted)
    model = BayesianExtrapolator()
    with pytest.raises(Interrupted) as interruption:
        model.fit(pilot.task, **SHORT)
    kept = interruption.value.partial.predict(1000)
    np.testing.assert_array_equal(kept.accuracy, by_ranks.accuracy)
    assert kept.evidence == "ranks" and any("interrupted" in note for note in kept.notes)


def test_a_model_without_draws_stays_unfitted(stopped, pilot):
    stopped(0, 0, 0)
    model = BayesianExtrapolator()
    with pytest.raises(Interrupted):
        model.fit(pilot.task, **SHORT)
    assert not model.is_fitted


def interrupted(*arguments, **options):
    raise KeyboardInterrupt


def ended(code, err):
    """Whether a command ended with a sentence."""
    return code == 130 and "interrupted" in err and "Traceback" not in err


def test_a_command_shows_and_saves_the_draws_so_far(run, strict, stopped, embeddings, tmp_path):
    stopped(150, 140)
    options = ["--k", "500", "--draws", "200", "--chains", "2", "--json", "--out", "results"]
    code, out, err = run("compare", embeddings, *options)
    found = strict(out)
    assert ended(code, err)
    # The references are left out, so that the answer comes now.
    (row,) = found["predictions"]
    kept = load(tmp_path / paths(found)["posterior"]).predict(500)
    assert kept.mean[500] == pytest.approx(row["mean"], rel=1e-12)
    assert [*kept.notes] == [note["note"] for note in found["notes"]]
    assert any("interrupted" in note for note in kept.notes)
    assert (tmp_path / paths(found)["figure"]).exists()


@pytest.mark.nightly
def test_a_command_interrupted_while_it_draws_the_figure(run, strict, embeddings, few, monkeypatch):
    monkeypatch.setattr("classex_bayes.plot_accuracy", interrupted)
    options = ["--k", "500", "--json", "--out", "results", *few]
    code, out, err = run("extrapolate", embeddings, *options)
    assert ended(code, err) and list(paths(strict(out))) == ["posterior"]


def test_a_command_without_draws_says_so(run, stopped, embeddings, tmp_path):
    stopped(0, 0)
    options = ["--k", "500", "--chains", "2", "--out", "results"]
    code, out, err = run("extrapolate", embeddings, *options)
    assert ended(code, err) and out == "" and not list((tmp_path / "results").iterdir())


def test_a_command_shows_the_posterior_without_the_references(
    run, strict, embeddings, few, monkeypatch
):
    monkeypatch.setattr(cb.KDE, "fit", interrupted)
    code, out, err = run("compare", embeddings, "--k", "500", "--json", "--out", "results", *few)
    found = strict(out)
    names = [row["estimator"] for row in found["predictions"]]
    assert ended(code, err) and names == ["BayesianExtrapolator", "ClassExReg"]
    assert set(paths(found)) == {"posterior", "figure"}


class Stops(ClassExReg):
    """Is interrupted after so many fits of all its copies."""

    left = 0

    def fit(self, task):
        if Stops.left == 0:
            raise KeyboardInterrupt
        Stops.left -= 1
        return super().fit(task)


def test_a_comparison_keeps_what_was_fitted(pilot, monkeypatch):
    monkeypatch.setattr(Stops, "left", 0)
    estimators = [ClassExReg(0.5), Stops(0.6), ClassExReg(0.7)]
    with pytest.raises(Interrupted) as interruption:
        compare(estimators, pilot.task, 500)
    alone = compare(estimators[:1], pilot.task, 500)
    assert interruption.value.partial.table.equals(alone.table)
    with pytest.raises(Interrupted) as interruption:
        compare(estimators[1:], pilot.task, 500)
    assert interruption.value.partial is None


def test_a_backtest_keeps_the_pilots_so_far_and_goes_on(pilot, tmp_path, monkeypatch):
    rest = {"n_pilots": 4, "n_jobs": 1, "random_seed": 2, "progressbar": False}
    store = {"store": tmp_path / "trials"}
    monkeypatch.setattr(Stops, "left", 5)
    with pytest.raises(Interrupted) as stop:
        backtest([Stops(0.5)], pilot.task, [20, 50], **rest, **store)
    partial = stop.value.partial
    assert sorted(partial.scores["n"].unique()) == [2, 3]
    Stops.left = 3  # enough for those that are left
    whole = backtest([Stops(0.5)], pilot.task, [20, 50], **rest, **store)
    Stops.left = 8
    fresh = backtest([Stops(0.5)], pilot.task, [20, 50], **rest)
    kept = partial.trials.drop(columns="seconds").merge(fresh.trials.drop(columns="seconds"))
    assert len(kept) == len(partial.trials)
    np.testing.assert_allclose(whole.scores["rmse"], fresh.scores["rmse"])


def test_a_backtest_without_pilots(pilot, monkeypatch):
    monkeypatch.setattr(Stops, "left", 0)
    with pytest.raises(Interrupted) as stop:
        backtest([Stops(0.5)], pilot.task, 20, n_pilots=4, n_jobs=1)
    assert stop.value.partial is None
