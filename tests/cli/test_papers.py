"""`classex-bayes study`: the papers' tables and figures, alone and all on one page."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from helpers import paths

from classex_bayes.cli import papers_verb
from classex_bayes.estimators.classexreg.classexreg import ClassExReg
from classex_bayes.estimators.kde.kde import KDE
from classex_bayes.evaluate.trial_store import read_trials
from classex_bayes.simulate import VonMisesFisher
from studies.papers.faces import face_task, read_faces


@pytest.fixture(autouse=True)
def few_estimators(monkeypatch):
    few = [ClassExReg(0.5), KDE("ucv")]
    monkeypatch.setattr(papers_verb, "study_estimators", lambda slow: few)


@pytest.fixture
def telugu(tmp_path):
    rng, arrays = np.random.default_rng(1), {}
    for k1 in (20, 100):
        labels = np.repeat(np.arange(k1), 4)
        arrays[f"svm_{k1}_scores"] = rng.normal(size=(4 * k1, k1)) + 3 * np.eye(k1)[labels]
        arrays[f"svm_{k1}_labels"] = labels
    np.savez(tmp_path / "telugu_scores.npz", **arrays)
    return tmp_path / "telugu_scores.npz"


@pytest.fixture
def people(tmp_path):
    """Two or three pictures of 40 persons, and one of somebody."""
    probes, gallery, y = VonMisesFisher(10, 30.0).sample(40, repeats=2, random_seed=1)
    labels = np.concatenate([np.arange(40), y, [99]])
    kept = np.arange(labels.size) != 41
    points = np.concatenate([gallery, probes, probes[:1]])
    np.savez(tmp_path / "people.npz", embeddings=points[kept], labels=labels[kept])
    return tmp_path / "people.npz"


def test_table1_goes_on_where_it_stopped(run, tmp_path, strict):
    options = ["--k1", "20", "--levels", "2", "--quiet", "--out", tmp_path / "s"]
    code, out, _ = run("study", "table1", *options, "--n-simulations", "2", "--json")
    rows = strict(out)["rows"]
    assert code == 0 and len(rows) == 8 and rows[0]["k"] == 40 and rows[0]["coverage"] is None
    stored = (tmp_path / "s" / "table1-k20-seed0.csv").read_text()
    code, out, _ = run("study", "table1", *options, "--n-simulations", "3")
    assert code == 0 and "KDE(ucv)" in out and "Largest RMSE (se) over 2 noise levels" in out
    assert (tmp_path / "s" / "table1-k20-seed0.csv").read_text().startswith(stored)
    code, out, _ = run("study", "figures", "--out", tmp_path / "s", "--quiet", "--json")
    files = paths(strict(out))
    toy = {f"figure{number}" for number in (3, 4, 5, 6)}
    assert set(files) == {*toy, "figure7-k20-seed0", "figure8-k20-seed0"}


def test_faces(run, people, tmp_path, strict):
    options = ["--embeddings", people, "--n-pilots", "2", "--out", tmp_path / "f", "--quiet"]
    code, out, _ = run("study", "faces", *options, "--json")
    found = strict(out)
    # A sixteenth, an eighth and a quarter of 40, but no pilot below 3.
    assert code == 0 and [row["k1"] for row in found["rows"]] == [3, 3, 5, 5, 10, 10]
    trials = read_trials(paths(found)["trials"])
    task = face_task(*read_faces(people))
    k, place = np.unique(trials["k"], return_inverse=True)
    np.testing.assert_allclose(trials["truth"], task.accuracy(k)[place])
    of_size = trials[(trials["cell"] == "10") & (trials["estimator"] == "ClassExReg(0.5)")]
    errors = (of_size["mean"] - of_size["truth"])[of_size["k"] == 40]
    row = next(r for r in found["rows"] if (r["k1"], r["estimator"]) == (10, "ClassExReg(0.5)"))
    assert row["rmse"] == pytest.approx(np.sqrt(np.mean(errors**2)))
    text = (tmp_path / "f" / "table2-people.md").read_text()
    assert "all 40 classes of people.npz" in text and f"{row['rmse']:.3f} (" in text
    assert "| KDE(ucv) |" in text and "0.082 (0.001)" in text
    assert (tmp_path / "f" / "figure10-people-seed0.png").exists()
    code, out, _ = run("study", "faces", *options, "--k1", "20")
    assert code == 0 and "RMSE, 20" in out and "…" not in out


def test_faces_in_two_files(run, people, tmp_path):
    with np.load(people) as arrays:
        np.save(tmp_path / "x.npy", arrays["embeddings"])
        np.save(tmp_path / "y.npy", arrays["labels"])
    data = ["--embeddings", "x.npy", "--labels", "y.npy"]
    code, _, _ = run("study", "faces", *data, "--k1", "5", "--n-pilots", "2", "--quiet")
    assert code == 0


def test_table3(run, telugu, tmp_path):
    code, out, _ = run("study", "table3", telugu, "--out", tmp_path)
    assert code == 0 and "svm 20-400" in out and "ClassExReg(0.5)" in out
    assert "KDE(ucv), recomputed" in (tmp_path / "table3.md").read_text()
    code, out, err = run("study", "table3", tmp_path / "none.npz", "--out", tmp_path)
    assert code == 2 and "none.npz: there is no such file" in err
    np.save(tmp_path / "s.npy", np.eye(3))
    code, _, err = run("study", "table3", tmp_path / "s.npy", "--out", tmp_path)
    assert code == 4 and err.startswith("error: path: ")


def test_nips(run, monkeypatch, telugu, tmp_path, strict):
    from studies.papers import nips_table

    monkeypatch.setattr(nips_table, "NEAR", 0.2)
    options = ["--n-subsets", "2", "--out", tmp_path, "--json"]
    code, out, _ = run("study", "nips", telugu, *options)
    rows = {(row["classifier"], row["estimator"]): row for row in strict(out)["rows"]}
    assert code == 0 and len(rows) == 9
    trials = pd.read_csv(tmp_path / "nips2016.csv")
    of_it = trials[trials["estimator"] == "EXP"]["predicted"]
    assert rows["svm", "EXP"]["mean"] == pytest.approx(of_it.mean())
    assert rows["logistic", "EXP"]["mean"] is None
    assert rows["svm", "HD"]["from_accuracy"] == pytest.approx(0.539, abs=5e-4)


def test_figures_refuse_other_tables(run, tmp_path):
    for text in ("", "a,b\n1,2\n"):
        (tmp_path / "table1-k20-seed0.csv").write_text(text)
        code, _, err = run("study", "figures", "--out", tmp_path, "--quiet")
        assert code == 2 and err.startswith("error: ") and err.count("\n") == 1


# All on one page


@pytest.fixture
def small(monkeypatch):
    """Table 1 with 20 and 40 classes in place of 500 and 5000."""
    from studies.papers import gaussian_simulation

    trials = gaussian_simulation.gaussian_trials

    def fewer(estimators, n_classes, **options):
        return trials(estimators, n_classes={500: 20, 5000: 40}[n_classes], **options)

    monkeypatch.setattr(gaussian_simulation, "gaussian_trials", fewer)
    return ["--n-simulations", "1", "--levels", "2", "--out", "papers", "--quiet"]


def test_without_data_the_page_tells_what_is_needed(run, small, tmp_path, strict):
    code, out, _ = run("study", "all", *small, "--json")
    found = strict(out)
    page = (tmp_path / "papers" / "papers.md").read_text()
    assert code == 0 and "## JMLR 2018, Table 1: simulated recognition, 5,000 source" in page
    assert {row["result"] for row in found["missing"]} == {
        "JMLR 2018, Table 2 and Figure 10",
        "JMLR 2018, Table 3",
        "NIPS 2016, table",
    }
    assert "--telugu telugu_scores.npz" in page and "--embeddings faces.npz" in page
    assert "`classex-bayes study all --n-simulations 1 --levels 2" in page


def test_every_table_and_figure_is_on_the_page(
    run, monkeypatch, small, telugu, people, tmp_path, strict
):
    from studies.papers import nips_table

    monkeypatch.setattr(nips_table, "NEAR", 0.2)
    data = ["--telugu", telugu, "--embeddings", people, "--n-pilots", "2", "--n-subsets", "2"]
    code, out, _ = run("study", *data, "--all", *small, "--json")
    found = strict(out)
    folder = tmp_path / "papers"
    page = (folder / "papers.md").read_text()
    assert code == 0 and found["missing"] == []
    titles = re.findall(r"^## (.+)$", page, flags=re.MULTILINE)
    assert [title.partition(":")[0] for title in titles] == [
        *["JMLR 2018, Table 1"] * 2,
        "JMLR 2018, Table 2",
        "JMLR 2018, Table 3",
        "NIPS 2016 submission",
        "Figures",
        "Left out",
    ]
    assert set(map(Path, paths(found).values())) == {
        path.relative_to(tmp_path) for path in folder.iterdir()
    }
    drawn = re.findall(r"!\[.+?\]\((.+?)\)", page)
    assert len(drawn) == 9 and all((folder / name).exists() for name in drawn)
    for name in ("table1-k500", "table1-k5000", "table2-people", "table3", "nips2016"):
        assert (folder / f"{name}.md").read_text().strip() in page
    code, out, _ = run("study", "--all", *data, *small)
    assert code == 0 and "papers.md" in out


def test_bad_data_are_told_before_simulations(run, small, people, tmp_path):
    code, _, err = run("study", "--all", "--telugu", "none.npz", *small)
    assert code == 2 and err.startswith("error: none.npz: ")
    np.savez(tmp_path / "empty.npz", other=np.eye(3))
    for data in ("--telugu", "--embeddings"):
        code, _, err = run("study", "--all", data, "empty.npz", *small)
        assert code == 4 and err.startswith("error: ") and "empty.npz" in err
    assert not list((tmp_path / "papers").glob("table1*"))


def test_all_belongs_to_no_study(run, tmp_path):
    code, _, err = run("study", "zoo", "--all")
    assert code == 2 and "zoo" in err
