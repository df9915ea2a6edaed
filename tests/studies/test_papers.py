"""The command of the papers: tables and figures, from few trials of two estimators."""

import re

import numpy as np
import pytest
from PIL import Image

from classex_bayes import KDE, ClassExReg
from classex_bayes.simulate import VonMisesFisher
from studies import pages
from studies.papers import command, nips_table
from studies.papers.faces import face_task, read_faces


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
def test_every_table_and_figure(data, tmp_path, capsys, monkeypatch):
    seen, figure10 = [], command.figures.figure10
    monkeypatch.setattr(command.figures, "figure10", lambda t: seen.append(t) or figure10(t))
    command.main(["--small", *data, "--out", str(tmp_path / "papers")])
    out = capsys.readouterr().out
    titles = re.findall(r"^papers.md: (.+)$", out, re.MULTILINE)
    assert titles == ["table1-k50", "table2-people", "table3", "nips2016"]
    figures = {"figure10-people", *(f"figure{number}" for number in range(3, 9))}
    assert {path.stem for path in (tmp_path / "papers").glob("*.png")} == figures
    # Table 2: a sixteenth, an eighth and a quarter of 40, but no pilot below 3.
    (trials,) = seen
    assert trials["cell"].unique().tolist() == ["3", "5", "10"]
    k, place = np.unique(trials["k"], return_inverse=True)
    task = face_task(*read_faces(tmp_path / "people.npz"))
    np.testing.assert_allclose(trials["truth"], task.accuracy(k)[place])
    of_size = trials[(trials["cell"] == "10") & (trials["estimator"] == "ClassExReg(0.5)")]
    errors = (of_size["mean"] - of_size["truth"])[of_size["k"] == 40]
    row = next(
        line
        for line in out.splitlines()
        if line.startswith("| ClassExReg(0.5) | 0") and line.count("|") == 6
    )
    assert row.split(" | ")[3] == f"{np.sqrt(np.mean(errors**2)):.3f}"
    assert "svm 20-400" in out and "KDE(ucv), printed" in out and "| svm | EXP |" in out


@pytest.mark.nightly
def test_a_page_gets_its_table_and_a_figure_few_colours(data, tmp_path, monkeypatch):
    page = tmp_path / "papers.md"
    page.write_text("# Papers\n<!-- nips2016 -->\n<!-- end of nips2016 -->\n")
    for name in ("DOCS", "FIGURES"):
        monkeypatch.setattr(pages, name, tmp_path)
    monkeypatch.setattr(command, "FIGURES", tmp_path)
    monkeypatch.setattr(command, "nips_trials", lambda path, n: nips_table.nips_trials(path, 2))
    command.main(["nips", "toy", "--write", *data, "--out", str(tmp_path)])
    assert "| svm | HD | 0.860 | 0.545 | 0.546 |" in page.read_text()
    assert len(Image.open(tmp_path / "figure5.png").getcolors()) <= 64


def test_parts_without_data_are_left_out(capsys, tmp_path):
    command.main(["table3", "nips", "--out", str(tmp_path)])
    assert capsys.readouterr().out.count("is left out: it needs --telugu") == 2
    with pytest.raises(SystemExit):
        command.main(["table4"])
