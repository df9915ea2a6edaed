"""Studies: tables from trials whose errors are known, and what the papers print."""

import numpy as np
import pandas as pd
import pytest

from classex_bayes import KDE, ClassExReg
from classex_bayes.simulate import GaussianNearestNeighbor
from studies.papers import published as printed
from studies.papers.gaussian_simulation import (
    NearestNeighborTrials,
    gaussian_trials,
    rmse_by_cell,
    rmse_table,
)
from studies.papers.telugu import load_telugu, side_by_side, telugu_table


def made_up():
    """Trials of two cells: errors of .1 and -.3 in one, of .2 and .2 in the other."""
    rows = [
        ("a", 0, 0.6, 0.4, 0.7),
        ("a", 1, 0.2, 0.1, 0.3),
        ("b", 0, 0.7, 0.6, 0.8),
        ("b", 1, 0.7, 0.4, 0.9),
    ]
    table = pd.DataFrame(rows, columns=["cell", "simulation", "mean", "lower", "upper"])
    return table.assign(estimator="x", k=10, truth=0.5, seconds=[1.0, 2.0, 3.0, 4.0], note="")


def test_largest_rmse():
    row = rmse_table(made_up()).loc[("x", 10)]
    assert row["rmse"] == pytest.approx(np.sqrt((0.01 + 0.09) / 2))
    assert row["bias"] == pytest.approx(0.2)
    assert row["coverage"] == 0.5 and row["seconds"] == 2.5 and row["failed"] == 0
    # Resampling two trials: the RMSE of cell a is .1, .22 or .3, that of b always .2.
    sd = np.std(np.repeat([0.2, np.sqrt(0.05), 0.3], [1, 2, 1]))
    assert row["se"] == pytest.approx(sd, rel=0.1)


def test_by_cell():
    cells = rmse_by_cell(made_up())
    assert cells.loc[("x", 10, "a"), "bias"] == pytest.approx(-0.1)
    assert cells.loc[("x", 10, "b"), "rmse"] == pytest.approx(0.2)
    assert cells["n"].tolist() == [2, 2]


def test_what_failed_is_told():
    table = made_up()
    table.loc[1, ["mean", "lower", "upper"]] = np.nan
    assert rmse_table(table).loc[("x", 10), "failed"] == 0.25
    table[["mean", "lower", "upper"]] = np.nan
    assert rmse_table(table).empty


def test_gaussian_trials_draw_what_the_paper_describes():
    trials = NearestNeighborTrials(500, (1000,))
    tops, truths = [], []
    for seed in range(4):
        task, truth = trials(0.2, np.random.SeedSequence(seed))
        tops.append(task.accuracy(500)[0])
        truths.append(truth[0])
    law = GaussianNearestNeighbor(10, 0.2)
    assert set(truths) == {law.accuracy(1000)[0]}
    expected = law.accuracy(500)[0]
    assert np.mean(tops) == pytest.approx(expected, abs=4 * np.sqrt(expected / 4 / 2000) * 2)
    # Plain distances: the score of a class twice as far is twice as large.
    scores = -task.table.source.scores(np.arange(500))
    assert scores.min() > 0 and np.allclose(scores.mean(), np.sqrt(2 * 10 * 1.2), rtol=0.05)


def test_gaussian_trials():
    trials = gaussian_trials([ClassExReg(0.5), KDE("ucv")], 30, (0.1, 0.2), n_simulations=2)
    assert len(trials) == 32 and set(trials["k"]) == {60, 120, 300, 600}
    table = rmse_table(trials)
    assert (table["rmse"] < 0.4).all() and table["coverage"].isna().all()


def test_printed_tables():
    assert printed.table1().shape == (6, 4)
    assert printed.table2().shape == (9, 2)
    # A larger pilot errs less, and KDE-BCV least, as the paper says.
    table = printed.table2()["rmse"].unstack("estimator")
    assert (np.diff(table, axis=0) < 0).all() and set(table.idxmin(axis=1)) == {"KDE(bcv)"}
    table = printed.table3()
    assert len(table) == 27
    known = table.dropna()
    swapped = known.rename(index={"KDE(bcv)": "KDE(ucv)", "KDE(ucv)": "KDE(bcv)"})
    kde = known[known.index.get_level_values("estimator") != "ClassExReg"]
    exchanged = swapped["recomputed"].reindex(kde.index)
    assert np.abs(kde["printed"] - exchanged).max() < 2e-4
    assert (printed.telugu2016()["at 400"] < printed.telugu2016()["at 20"]).all()


# Telugu: a file of the same form


@pytest.fixture
def telugu(tmp_path):
    rng = np.random.default_rng(1)
    labels = np.repeat(np.arange(20), 5)
    scores = rng.normal(size=(100, 20)) + 3 * np.eye(20)[labels]
    path = tmp_path / "telugu_scores.npz"
    np.savez(path, svm_20_scores=scores.astype(np.float32), svm_20_labels=labels)
    return path, scores, labels


def test_telugu_files(telugu):
    path, scores, labels = telugu
    (place, task), *rest = load_telugu(path).items()
    assert place == ("svm", 20) and not rest
    assert task.accuracy(20)[0] == pytest.approx(np.mean(scores.argmax(1) == labels))


def test_telugu_table(telugu):
    path, *_ = telugu
    table = telugu_table(path, {"ClassExReg": ClassExReg(0.5), "KDE(ucv)": KDE("ucv")})
    assert table.index.to_list() == [
        ("svm", 20, k2, name) for k2 in (100, 400) for name in ("ClassExReg", "KDE(ucv)")
    ]
    task = load_telugu(path)["svm", 20]
    expected = ClassExReg(0.5).fit(task).predict(400).mean.item()
    assert table.loc[("svm", 20, 400, "ClassExReg"), "predicted"] == expected
    assert table.loc[("svm", 20, 400, "KDE(ucv)"), "printed"] == 0.4070
    wide = side_by_side(table)
    assert wide.loc["ClassExReg", "svm 20-400"] == expected
    assert wide.loc["KDE(ucv), recomputed", "svm 20-100"] == 0.6544
    assert wide.loc["truth"].tolist() == [0.7582, 0.5452]
