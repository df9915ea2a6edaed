"""The corpus: populations that are kept, packages as archives, and the ranking of estimators."""

import json
from functools import partial

import numpy as np
import pandas as pd
import pytest

from classex_bayes import MixturePrior
from classex_bayes.core import MixtureLaw
from classex_bayes.estimators import ClassExReg, TwoParameter
from classex_bayes.simulate import GaussianNearestNeighbor
from studies.corpus import command
from studies.corpus.corpus_ranking import cell_scores, ranking
from studies.corpus.population import Population, Recipe
from studies.corpus.population_laws import population_laws, write_laws
from studies.pages import DOCS
from studies.shared import Options

SIZE = 400
FEW = {"draws": 50, "tune": 100, "chains": 1}


def gaussian(packages):
    probes, gallery, y = GaussianNearestNeighbor(5, 0.2).sample(SIZE, random_seed=1)
    return Population(gallery, probes, y)


@pytest.fixture
def made(monkeypatch):
    """Names of the populations made so far; there is one recipe, a simulation."""
    calls = []

    def make(packages):
        calls.append("gaussian")
        return gaussian(packages)

    recipe = Recipe("gaussian", "simulated", "vectors", "Vectors.", "Nearest.", ("none",), make)
    for module in ("catalogue", "population_laws", "command", "corpus_page", "corpus_ranking"):
        monkeypatch.setattr(f"studies.corpus.{module}.recipes", lambda: {"gaussian": recipe})
    return calls


def test_the_command_writes_trials_tables_laws_and_pages(made, tmp_path, monkeypatch, capsys):
    """From one population, and fast estimators under the names that the pages have."""
    names = "BayesianExtrapolator", "BayesianExtrapolator(ranks)", "ClassExReg"
    named = dict(zip(names, [TwoParameter(), TwoParameter(), ClassExReg(0.5)], strict=True))
    monkeypatch.setattr(command, "study_estimators", lambda: named)
    monkeypatch.setattr(command, "population_laws", partial(population_laws, sampler=FEW))
    published = {}
    monkeypatch.setattr(command, "publish", lambda pages, write: published.update(pages))
    monkeypatch.setattr("studies.corpus.corpus_page.FIGURES", tmp_path)
    monkeypatch.setattr(Options, "repeats", lambda options, number: 2)
    command.main(["--write", "--out", str(tmp_path)])
    assert "| ClassExReg |" in capsys.readouterr().out
    facts = pd.read_csv(tmp_path / "corpus-populations.csv", index_col="population")
    (law,) = json.loads((tmp_path / "corpus-laws.json").read_text())
    assert law["n_classes"] == facts.loc["gaussian", "classes"] == SIZE
    assert (tmp_path / "corpus.png").exists() and (tmp_path / "gaussian-pilots").exists()
    assert set(published) == {"corpus.md", "scores.md", "../README.md"}
    for page, parts in published.items():
        marks = {f"<!-- {part} -->" for part in parts}
        assert {mark for mark in marks if mark not in (DOCS / page).read_text()} == set()
    sentences = published["../README.md"]["corpus"]
    assert "1 simulated [populations](docs/corpus.md) of up to 400 classes" in sentences
    assert "the worst population (vectors)" in " ".join(sentences.split())
    assert "docs/corpus.md" not in published["corpus.md"]["by kind of score"]
    cells = pd.read_csv(tmp_path / "corpus-cells.csv")
    ours = cells[(cells["estimator"] == "BayesianExtrapolator") & (cells["n_source"] == 50)]
    at_k1, beyond = ours.sort_values("factor")["rmse"]
    row = f"| 50 | nan {at_k1:.3f} nan | nan {beyond:.3f} nan |"
    assert row in published["corpus.md"]["cells"]


def test_laws_of_populations(made, tmp_path):
    laws = population_laws(["gaussian"], tmp_path, FEW)
    (law,) = laws.itertuples()
    assert (law.name, law.kind, law.n_classes) == ("gaussian", "simulated", SIZE)
    assert law.k == [2, 3, 10, 30, 100, 300, SIZE]
    drawn = gaussian(None)
    distance = ((drawn.probes[:, None] - drawn.gallery) ** 2).sum(2)
    nearer = (distance < distance[np.arange(SIZE), drawn.y][:, None]).sum(1)
    ends = [1 - nearer.mean() / (SIZE - 1), (nearer == 0).mean()]
    assert [law.accuracy[0], law.accuracy[-1]] == pytest.approx(ends, abs=1e-5)
    fitted = MixtureLaw(MixturePrior().basis, np.array(law.weights))
    assert fitted.expected(np.array(law.k)) == pytest.approx(law.accuracy, abs=0.01)
    write_laws(laws, tmp_path / "laws.json")
    assert json.loads((tmp_path / "laws.json").read_text()) == laws.to_dict("records")


def made_up():
    """Two populations; one estimator errs by .1 and .2, the other by .2 and .8, always low."""
    rows = [
        (estimator, population, size, truth - error, truth - error - width, truth - error + width)
        for estimator, errors, width in (("a", (0.1, 0.2), 0.15), ("b", (0.2, 0.8), np.nan))
        for population, error in zip(("p", "q"), errors, strict=True)
        for size, truth in ((50, 0.9), (100, 0.8))
    ]
    columns = ["estimator", "population", "n_source", "mean", "lower", "upper"]
    table = pd.DataFrame(rows, columns=columns)
    truth = table["n_source"].map({50: 0.9, 100: 0.8})
    return table.assign(factor=3, truth=truth, crps=(table["mean"] - truth).abs())


def test_cells_and_ranking():
    trials = made_up()
    cells = cell_scores(trials)
    assert cells.loc[("b", "q", 50, 3), "rmse"] == pytest.approx(0.8)
    assert cells.loc[("a", "p", 50, 3), "coverage"] == 1
    # Width .3, and 20 times the .05 by which the truth lies above.
    assert cells.loc[("a", "q", 50, 3), "interval_score"] == pytest.approx(0.3 + 20 * 0.05)
    table = ranking(trials)
    assert table.index.tolist() == ["a", "b"]
    assert table.loc["a", "rmse"] == pytest.approx(np.sqrt(0.1 * 0.2))
    # Every cell has one target.
    np.testing.assert_allclose(table["rmse_farthest"], table["rmse"])
    assert table.loc["a", "coverage"] == 0.5 and np.isnan(table.loc["b", "coverage"])
    assert table.loc["b", "bias"] == pytest.approx(-0.5)
    # Means of two draws of log .1 and log .2: a standard deviation of log 2 / sqrt 8.
    assert table.loc["a", "rmse_se"] == pytest.approx(
        table["rmse"]["a"] * np.log(2) / 8**0.5, rel=0.1
    )
