"""Faces, the table of nips2016, and tables for readers: against formulas and brute force."""

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import norm

from classex_bayes import KDE, ClassExReg
from classex_bayes.simulate import GaussianNearestNeighbor
from studies.papers import nips_table as nips
from studies.papers import paper_tables as tables
from studies.papers.faces import face_table, face_task, face_trials, pilot_sizes, stand_in

# Faces


def pictures(n_classes, seed=1, noise_variance=0.2):
    """Two pictures of each class, shuffled: embeddings and labels."""
    law = GaussianNearestNeighbor(10, noise_variance)
    probes, gallery, y = law.sample(n_classes, random_seed=seed)
    order = np.random.default_rng(seed).permutation(2 * n_classes)
    points, labels = np.concatenate([gallery, probes]), np.concatenate([np.arange(n_classes), y])
    return points[order], labels[order]


def test_one_template_and_one_probe_of_every_class():
    points, labels = pictures(30)
    task = face_task(points, labels, 3)
    scores = task.table.source.scores(np.arange(30))
    pairs = np.array([points[labels == int(name)] for name in task.classes])
    # Whichever of the two is the template, the true class scores minus their squared distance.
    own = -np.sum((pairs[:, 0] - pairs[:, 1]) ** 2, axis=1)
    np.testing.assert_allclose(np.diag(scores), own, rtol=1e-6)
    probe = pairs[
        0, [np.isclose(scores[0, 1], -np.sum((pairs[1] - p) ** 2, 1)).any() for p in pairs[0]]
    ]
    assert len(probe) == 1
    to_all = -np.sum((pairs[1:] - probe) ** 2, axis=2)
    assert np.isclose(to_all, scores[0, 1:, None]).any(axis=1).all()


def test_every_pair_of_pictures_may_be_drawn():
    points, labels = np.random.default_rng(1).normal(size=(16, 3)), np.arange(16) % 4
    drawn = {
        round(face_task(points, labels, seed).table.source.scores(np.arange(4))[0, 0], 6)
        for seed in range(60)
    }
    some = points[labels == 0]
    distances = np.sum((some[:, None] - some) ** 2, axis=-1)[np.triu_indices(4, 1)]
    np.testing.assert_allclose(sorted(drawn), sorted(-distances), atol=1e-5)


def test_accuracy_of_faces_is_that_of_the_law():
    """1672 classes at the paper's noise 0.2: the test accuracy lies near AGA."""
    task = face_task(*pictures(1672))
    expected = GaussianNearestNeighbor(10, 0.2).accuracy(1672).item()
    # Twice the binomial error: templates are shared by all probes.
    reach = 4 * 2 * np.sqrt(expected * (1 - expected) / 1672)
    assert task.accuracy(1672).item() == pytest.approx(expected, abs=reach)


def test_classes_with_one_picture_are_left_out():
    points, labels = pictures(10)
    names = np.append(labels, [77, 78]).astype(str)
    task = face_task(np.concatenate([points, points[:2] + 9]), names)
    assert set(task.classes) == set(labels.astype(str))


def test_characters_stand_in_for_faces():
    pictures, names = stand_in()
    assert pictures.shape[0] == 4 * 1672 and np.all(np.unique(names, return_counts=True)[1] == 4)


def test_sizes_of_pilots():
    assert pilot_sizes(1672) == pilot_sizes(800) == [100, 200, 400]
    assert pilot_sizes(160) == [10, 20, 40] and pilot_sizes(40) == [3, 5, 10]
    assert pilot_sizes(4) == [3]


def test_pilots_of_the_paper():
    """All 1672 classes from 100, 200 and 400: errors fall with the size, by hand as well."""
    task = face_task(*pictures(1672))
    estimators = [ClassExReg(0.5), KDE("bcv")]
    trials = face_trials(estimators, task, pilot_sizes(1672), n_simulations=3)
    table = face_table(trials)
    assert table.index.tolist() == [
        (size, name) for size in (100, 200, 400) for name in ("ClassExReg(0.5)", "KDE(bcv)")
    ]
    truth = task.accuracy(1672).item()
    assert (table["truth"] - truth).abs().max() < 1e-12
    at_all = trials[(trials["k"] == 1672) & (trials["estimator"] == "KDE(bcv)")]
    errors = at_all.loc[at_all["cell"] == "400", "mean"] - truth
    assert table.loc[(400, "KDE(bcv)"), "rmse"] == pytest.approx(np.sqrt(np.mean(errors**2)))
    kde = table["rmse"].xs("KDE(bcv)", level="estimator")
    assert kde[400] < kde[200] < kde[100]
    cells = tables.table2_cells(trials)
    assert cells.loc["KDE(bcv), printed", "200"] == "0.037"
    assert cells.loc["KDE(bcv)", "400"] == f"{kde[400]:.3f}"
    assert cells.loc["ClassExReg(0.5)", "coverage"] == ""


# NIPS 2016


def accuracy_of_signal(signal, power):
    return quad(lambda z: norm.pdf(z - signal) * norm.cdf(z) ** power, -12, 40, limit=200)[0]


def test_two_formulas_of_hd():
    """By quadrature: powers k - 1, and powers k as in the text."""
    found = nips.hd_from_accuracy(0.86)
    signal, shifted = (
        brentq(lambda c, power=power: accuracy_of_signal(c, power) - 0.86, 0, 20)
        for power in (19, 20)
    )
    assert found["from accuracy"] == pytest.approx(accuracy_of_signal(signal, 399), abs=1e-6)
    assert found["as in the text"] == pytest.approx(accuracy_of_signal(shifted, 400), abs=1e-6)
    # The misprint explains what is printed.
    assert found["as in the text"] == pytest.approx(0.546, abs=1.5e-3)


@pytest.fixture
def telugu(tmp_path):
    rng, labels = np.random.default_rng(1), np.repeat(np.arange(100), 4)
    scores = rng.normal(size=(400, 100)) + 2.8 * np.eye(100)[labels]
    np.savez(tmp_path / "telugu_scores.npz", svm_100_scores=scores, svm_100_labels=labels)
    return tmp_path / "telugu_scores.npz"


def test_subsets_have_the_accuracy_of_the_paper(telugu):
    trials = nips.nips_trials(telugu, 4)
    assert len(trials) == 12 and (trials["at 20"] - 0.860).abs().max() <= 0.01
    table = nips.nips_table(trials)
    of_it = trials[trials["estimator"] == "CON"]["predicted"]
    row = table.loc[("svm", "CON")]
    assert row["sd"] == pytest.approx(np.std(of_it, ddof=1)) and row["highest"] == of_it.max()
    assert np.isnan(table.loc[("logistic", "CON"), "mean"])
    cells = tables.nips_cells(trials)
    expected = f"{row['lowest']:.3f} to {row['highest']:.3f} (sd {row['sd']:.3f})"
    assert cells.loc[("svm", "CON"), "range"] == expected
    assert cells.loc[("epsilon-NN", "CON"), "range"] == ""


# Tables for readers


def gaussian_like():
    rows = [
        (cell, simulation, name, k, 0.5, 0.5 + error * k / 2000, lower, upper)
        for name, lower, upper in (("KDE(ucv)", np.nan, np.nan), ("b", 0.4, 0.6))
        for cell, error in (("0.1", 0.1), ("0.2", -0.2))
        for simulation in range(2)
        for k in (1000, 2000)
    ]
    columns = ["cell", "simulation", "estimator", "k", "truth", "mean", "lower", "upper"]
    return pd.DataFrame(rows, columns=columns).assign(seconds=1.5, note="")


def test_table1_has_printed_rows_below_ours():
    cells = tables.table1_cells(gaussian_like(), 500)
    assert cells.index.tolist() == ["KDE(ucv)", "KDE(ucv), printed", "b"]
    assert cells.loc["KDE(ucv)"].tolist() == [
        *["0.100", "0.200", "-0.200"],
        "",
    ]
    assert cells.loc["KDE(ucv), printed"].tolist() == ["0.067", "0.059", "", ""]
    assert cells.loc["b", "coverage"] == "1.00"
    missing = gaussian_like()
    missing.loc[0, ["mean"]] = np.nan
    assert tables.table1_cells(missing, 500).loc["KDE(ucv)", "failed"] == "0.25"
    assert tables.table1_cells(gaussian_like(), 100).index.tolist() == ["KDE(ucv)", "b"]
