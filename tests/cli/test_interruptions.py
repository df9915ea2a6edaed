"""Interrupted work: what was finished is saved and shown, and continues from there."""

import numpy as np
import pytest
from helpers import paths

from classex_bayes import BayesianExtrapolator, ClassExReg, backtest, compare, load
from classex_bayes.bayes.idata import weights_of
from classex_bayes.cli.options import ReferenceVerb
from classex_bayes.evaluate import trials
from classex_bayes.exceptions import Interrupted

SHORT = {
    "sampler": {"draws": 200, "tune": 200, "chains": 3},
    "random_seed": 3,
    "progressbar": False,
}
LENGTHS = {
    "all but one chain": ((150, 0, 140), [0, 2], 140),
    "one far ahead": ((150, 10, 0), [0], 150),
    "all": ((150, 140, 130), [0, 1, 2], 130),
    "two of one length": ((200, 200, 0), [0, 1], 200),
}


@pytest.fixture(scope="module")
def whole(pilot):
    return BayesianExtrapolator().fit(pilot.task, **SHORT)


@pytest.mark.parametrize(("lengths", "chains", "draws"), LENGTHS.values(), ids=LENGTHS)
def test_a_model_keeps_the_draws_so_far(stopped, pilot, whole, lengths, chains, draws):
    stopped(*lengths)
    model = BayesianExtrapolator()
    with pytest.raises(KeyboardInterrupt) as interruption:
        model.fit(pilot.task, **SHORT)
    size = f"{len(chains)} x {draws} of 3 x 200 draws"
    assert interruption.value.partial is model and size in str(interruption.value)
    kept, expected = (weights_of(one.idata, "ranks") for one in (model, whole))
    np.testing.assert_array_equal(kept, expected.isel(chain=chains, draw=slice(draws)))
    prediction = model.predict(1000)
    assert f"sampling was interrupted: {size}" in prediction.notes
    assert f"\n{size} (interrupted): " in repr(model)


def test_a_model_without_draws_stays_unfitted(stopped, pilot):
    stopped(0, 0, 0)
    model = BayesianExtrapolator()
    with pytest.raises(Interrupted, match="before its first draws"):
        model.fit(pilot.task, **SHORT)
    assert not model.is_fitted


def test_a_command_shows_and_saves_the_draws_so_far(run, strict, stopped, embeddings, tmp_path):
    stopped(150, 140)
    options = ["--k", "500", "--draws", "200", "--chains", "2", "--json", "--out", "results"]
    code, out, err = run("compare", embeddings, *options)
    found = strict(out)
    assert code == 130 and "Traceback" not in err
    assert (
        "the sampler was interrupted after 2 x 140 of 2 x 200 draws, which the model keeps" in err
    )
    # The references are left out, so that the answer comes now.
    (row,) = found["predictions"]
    kept = load(tmp_path / paths(found)["posterior"]).predict(500)
    assert kept.mean[500] == pytest.approx(row["mean"], rel=1e-12)
    assert [*kept.notes] == [note["note"] for note in found["notes"]]
    assert "sampling was interrupted: 2 x 140 of 2 x 200 draws" in kept.notes
    assert (tmp_path / paths(found)["figure"]).exists()


@pytest.mark.nightly
def test_a_command_interrupted_while_it_draws_the_figure(run, strict, embeddings, few, monkeypatch):
    def stop(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("classex_bayes.plot_accuracy", stop)
    code, out, err = run(
        "extrapolate", embeddings, "--k", "500", "--json", "--out", "results", *few
    )
    assert code == 130 and list(paths(strict(out))) == ["posterior"]
    assert "interrupted while the figure was written; the finished part is above" in err


def test_a_command_without_draws_says_so(run, stopped, embeddings, tmp_path):
    stopped(0, 0)
    code, out, err = run(
        "extrapolate", embeddings, "--k", "500", "--chains", "2", "--out", "results"
    )
    assert code == 130 and out == "" and "the sampler was interrupted before" in err
    assert not list((tmp_path / "results").iterdir())


class Stops(ClassExReg):
    """Is interrupted while it is fitted."""

    def fit(self, task):
        raise KeyboardInterrupt


def test_a_comparison_keeps_what_was_fitted(pilot):
    estimators = [ClassExReg(0.5), Stops(0.6), ClassExReg(0.7)]
    with pytest.raises(Interrupted, match="after 1 of 3 estimators") as interruption:
        compare(estimators, pilot.task, 500)
    alone = compare(estimators[:1], pilot.task, 500)
    assert interruption.value.partial.table.equals(alone.table)
    with pytest.raises(Interrupted) as interruption:
        compare(estimators[1:], pilot.task, 500)
    assert interruption.value.partial is None


def test_a_command_shows_the_posterior_without_the_references(
    run, strict, embeddings, few, monkeypatch
):
    monkeypatch.setattr(ReferenceVerb, "references", lambda *_: [ClassExReg(0.5), Stops(0.6)])
    code, out, err = run("compare", embeddings, "--k", "500", "--json", "--out", "results", *few)
    found = strict(out)
    names = [row["estimator"] for row in found["predictions"]]
    assert code == 130 and names == ["BayesianExtrapolator", "ClassExReg(0.5)"]
    assert set(paths(found)) == {"posterior", "figure"}
    assert "interrupted after 2 of 3 estimators" in err


@pytest.fixture
def stop_after(monkeypatch):
    """Interrupt the work after so many fits."""

    def stop(number):
        scores, begun = trials.fitted_copy, []

        def counted(*arguments, **settings):
            begun.append(arguments)
            if len(begun) > number:
                raise KeyboardInterrupt
            return scores(*arguments, **settings)

        monkeypatch.setattr(trials, "fitted_copy", counted)
        return lambda: monkeypatch.setattr(trials, "fitted_copy", scores)

    return stop


def test_a_backtest_keeps_the_pilots_so_far_and_goes_on(pilot, tmp_path, stop_after):
    rest = {"n_pilots": 4, "store": tmp_path / "trials.jsonl", "random_seed": 2}
    go_on = stop_after(5)
    with pytest.raises(Interrupted, match=r"5 of 8 fits; .*trials.jsonl keeps") as stop:
        backtest([ClassExReg(0.5)], pilot.task, [20, 50], **rest)
    partial = stop.value.partial
    assert sorted(partial.scores["n"].unique()) == [2, 3]
    go_on()
    whole = backtest([ClassExReg(0.5)], pilot.task, [20, 50], **rest)
    fresh = backtest([ClassExReg(0.5)], pilot.task, [20, 50], n_pilots=4, random_seed=2)
    kept = partial.trials.drop(columns="seconds").merge(fresh.trials.drop(columns="seconds"))
    assert len(kept) == len(partial.trials)
    np.testing.assert_allclose(whole.scores["rmse"], fresh.scores["rmse"])


def test_a_backtest_without_pilots(pilot, stop_after):
    stop_after(0)
    with pytest.raises(Interrupted, match="after 0 of 4 fits") as stop:
        backtest([ClassExReg(0.5)], pilot.task, 20, n_pilots=4)
    assert stop.value.partial is None
