"""The command of the papers, from few trials of two estimators, and formulas of its tables."""

import re

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import norm

from classex_bayes import KDE, ClassExReg
from classex_bayes.simulate import VonMisesFisher
from studies.papers import command, nips_table
from studies.papers.gaussian_simulation import rmse_table


@pytest.fixture(autouse=True)
def few_estimators(monkeypatch):
    monkeypatch.setattr(command, "study_estimators", lambda: [ClassExReg(0.5), KDE("ucv")])
    monkeypatch.setattr(nips_table, "NEAR", 0.2)


@pytest.fixture
def data(tmp_path):
    """Options with scores of a classifier of characters, and with two or three pictures of 40."""
    rng, arrays = np.random.default_rng(1), {}
    for k1 in (20, 100):
        labels = np.repeat(np.arange(k1), 4)
        arrays[f"svm_{k1}_scores"] = rng.normal(size=(4 * k1, k1)) + 3 * np.eye(k1)[labels]
        arrays[f"svm_{k1}_labels"] = labels
    np.savez(tmp_path / "telugu_scores.npz", **arrays)
    probes, gallery, y = VonMisesFisher(10, 30.0).sample(40, repeats=2, random_seed=1)
    labels = np.concatenate([np.arange(40), y, [99]])
    kept = np.arange(labels.size) != 41
    points = np.concatenate([gallery, probes, probes[:1]])
    np.savez(tmp_path / "people.npz", embeddings=points[kept], labels=labels[kept])
    files = "--telugu", tmp_path / "telugu_scores.npz", "--embeddings", tmp_path / "people.npz"
    return [*map(str, files)]


@pytest.mark.nightly
def test_every_table_and_figure(data, tmp_path, capsys):
    command.main(["--small", *data, "--out", str(tmp_path / "papers")])
    out = capsys.readouterr().out
    titles = re.findall(r"^papers.md: (.+)$", out, re.MULTILINE)
    assert titles == ["table1-k50", "table2-people", "table3", "nips2016"]
    figures = {"figure10-people", *(f"figure{number}" for number in range(3, 9))}
    assert {path.stem for path in (tmp_path / "papers").glob("*.png")} == figures
    assert "| svm | 20 | 400 | 0.545 |" in out and "| svm | 0.860 | 0.545 | 0.737 (" in out


def accuracy_of_signal(signal, power):
    return quad(lambda z: norm.pdf(z - signal) * norm.cdf(z) ** power, -12, 40, limit=200)[0]


def test_two_formulas_of_hd():
    """By quadrature: powers k - 1, and powers k as in the text of nips2016."""
    found = nips_table.hd_from_accuracy(0.86)
    signal, shifted = (
        brentq(lambda c, power=power: accuracy_of_signal(c, power) - 0.86, 0, 20)
        for power in (19, 20)
    )
    assert found["corrected"] == pytest.approx(accuracy_of_signal(signal, 399), abs=1e-6)
    assert found["as in the text"] == pytest.approx(accuracy_of_signal(shifted, 400), abs=1e-6)


def test_largest_rmse():
    """Errors of .1 and -.3 in one cell, of .2 and .2 in the other."""
    rows = [("a", 0.6, 0.4, 0.7), ("a", 0.2, 0.1, 0.3), ("b", 0.7, 0.6, 0.8), ("b", 0.7, 0.4, 0.9)]
    table = pd.DataFrame(rows, columns=["cell", "mean", "lower", "upper"])
    table = table.assign(
        estimator="x", simulation=[0, 1, 0, 1], k=10, truth=0.5, seconds=1.0, note=""
    )
    row = rmse_table(table).loc[("x", 10)]
    assert row["rmse"] == pytest.approx(np.sqrt((0.01 + 0.09) / 2))
    assert row["bias"] == pytest.approx(0.2) and row["coverage"] == 0.5 and row["failed"] == 0
    # Resampling two trials: the RMSE of cell a is .1, .22 or .3, that of b always .2.
    sd = np.std(np.repeat([0.2, np.sqrt(0.05), 0.3], [1, 2, 1]))
    assert row["se"] == pytest.approx(sd, rel=0.1)
