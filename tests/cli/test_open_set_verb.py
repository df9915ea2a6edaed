"""`open-set`: the numbers of the Python interface, and what it refuses."""

import re

import numpy as np
import pytest
from helpers import ANSWERED, arrays_of, paths

import classex_bayes as cb
from classex_bayes.bayes.storage import load
from classex_bayes.open_set.open_set import OpenSetExtrapolator


def test_it_says_what_python_says(run, scores, few, strict, tmp_path):
    options = "--k", "59,3000", "--fpir", "5%", "--rank", "2", "--ci-prob", "0.8"
    code, out, _ = run("open-set", scores, *options, "--json", "--out", "results", *few)
    assert code == 0
    found = strict(out)
    assert isinstance(load(tmp_path / paths(found)["posterior"]), OpenSetExtrapolator)
    # The fit is that of Python with the same seed.
    arrays = arrays_of(tmp_path / scores)
    task = cb.SourceTask.from_scores(arrays["scores"], arrays["y"])
    model = cb.OpenSetExtrapolator().fit(task, sampler={"draws": 150, "chains": 2}, random_seed=3)
    rates = model.predict([59, 3000], fpir=0.05, rank=2)
    rows = {(row["rate"], row["k"]): row for row in found["predictions"]}
    assert (
        len(rows) == 4
        and found["rank"] == 2
        and [row["note"] for row in found["notes"]] == list(rates.notes)
    )
    for (name, k), row in rows.items():
        draws = rates.rates[name].sel(k=k)
        assert row["mean"] == pytest.approx(draws.mean().item(), rel=1e-12)
        assert row["lower"] == pytest.approx(np.quantile(draws, 0.1), rel=1e-9)
        assert row["threshold"] == pytest.approx(rates.threshold.sel(k=k).item(), rel=1e-12)
    assert found["task"]["n_classes"] == 60 and found["seed"] == 3 and found["warnings"] == []
    assert (tmp_path / paths(found)["figure"]).read_bytes().startswith(b"\x89PNG")


def test_a_limit_of_fnir_finds_the_threshold(run, scores, few, strict, tmp_path):
    code, out, _ = run("open-set", scores, "--k", "500", "--fnir", "80%", *few, "--json")
    arrays = arrays_of(tmp_path / scores)
    task = cb.SourceTask.from_scores(arrays["scores"], arrays["y"])
    model = cb.OpenSetExtrapolator().fit(task, sampler={"draws": 150, "chains": 2}, random_seed=3)
    expected = model.predict(500, fnir=0.8)
    assert code == 0
    for row in strict(out)["predictions"]:
        assert row["threshold"] == pytest.approx(expected.threshold.item(), rel=1e-12)


def test_nonmated_probes_of_the_file_are_used(run, pilot, few, strict, tmp_path):
    probes, gallery, y = pilot.sample
    others = np.random.default_rng(4).normal(size=(60, probes.shape[1]))
    cosines = others @ gallery.T / np.outer(*(np.linalg.norm(x, axis=1) for x in (others, gallery)))
    arrays = {"probes": probes, "gallery": gallery, "y": y, "nonmated": cosines}
    np.savez(tmp_path / "pilot.npz", **arrays, distance="cosine", group=y)
    options = "--k", "500", "--fpir", "0.05"
    code, out, err = run("open-set", "pilot.npz", *options, *few, "--json")
    assert code == 0 and "note: pilot.npz: ignored arrays of other names: group" in err
    assert "note: FPIR is that of the 60 probes in the array nonmated" in err
    found = strict(out)
    assert found["n_nonmated"] == 60 and found["task"]["distance"] == "cosine"
    task = cb.SourceTask.from_embeddings(probes, gallery, y, distance="cosine")
    model = cb.OpenSetExtrapolator().fit(
        task, nonmated=cosines, sampler={"draws": 150, "chains": 2}, random_seed=3
    )
    rates = model.predict(500, fpir=0.05)
    means = {row["rate"]: row["mean"] for row in found["predictions"]}
    assert means == pytest.approx(
        {name: draws.mean().item() for name, draws in rates.rates.items()}
    )


def test_the_title_says_how_embeddings_are_compared(run, embeddings, few):
    options = "--k", "500", "--fpir", "0.05"
    _, out, _ = run("open-set", embeddings, *options, *few)
    assert "from embeddings of 60 enrolled classes (squared distances: smaller is strict" in out


def test_table(run, scores, few, tmp_path):
    options = "--k", "3000", "--threshold", "-4.5", "--out", "results"
    code, out, err = run("open-set", scores, *options, *few)
    rates = load(tmp_path / "results" / "scores-det.nc").predict(3000, threshold=-4.5)
    mean = rates.fpir.mean().item()
    shown = float(re.search(r"FPIR\W+3,000\W+-4.5\W+([\d.]+)\W", out)[1])
    assert code == 0 and shown == pytest.approx(mean, abs=0.005)
    assert "Open-set identification, from scores of 60 enrolled classes" in out
    assert "89% interval" in out and "SourceTask: 60 classes" in err and "nonmated" not in err


BAD = {
    "no threshold": ([], "error: --fpir, --fnir, --threshold"),
    "both": (["--fpir", "0.1", "--threshold", "1"], "error: --fpir, --fnir, --threshold"),
    "share": (["--fpir", "3"], "Usage"),
    "text": (["--fpir", "low"], "Usage"),
    "outside": (["--threshold", "99"], "error: threshold"),
    "unreachable": (["--fpir", "1e-300"], "error: fpir"),
}


@pytest.mark.parametrize(("options", "start"), BAD.values(), ids=BAD)
def test_bad_settings(run, scores, few, options, start):
    code, out, err = run("open-set", scores, "--k", "500", *options, *few, "--quiet")
    assert code == 2 and out == "" and err.startswith(start)
    assert len(err.splitlines()) == 1 or start == "Usage"


def test_files_without_scores_are_one_line(run, few, tmp_path):
    ranks = np.arange(40) % 7 + 1
    np.savez(tmp_path / "ranks.npz", ranks=ranks, y=np.arange(40), n_classes=40)
    for verb in (["open-set"], ["report", "--out", "a.html"]):
        options = "--k", "500", "--fpir", "0.01", "--quiet"
        code, out, err = run(*verb, "ranks.npz", *options, *few)
        assert code == 4 and out == "" and "task: it was made from ranks" in err
        assert len(err.splitlines()) == 1


@pytest.mark.nightly
def test_answers_outlive_their_files(run, scores, few, tmp_path, monkeypatch):
    def fail(*arguments, **options):
        raise RuntimeError("no fonts")

    monkeypatch.setattr("classex_bayes.plots.open_set_plot.plot_det", fail)
    options = "--k", "500", "--fpir", "0.1", "--out", "results"
    code, out, err = run("open-set", scores, *options, *few)
    assert code == 1 and "FNIR" in out and "the figure could not be written (no fonts)" in err
    assert (tmp_path / "results" / "scores-det.nc").exists()


def test_the_report_has_its_section(run, scores, few, tmp_path):
    options = "--k", "500", "--fpir", "0.05", "--no-references", "--no-posterior", "-o", "a.html"
    code, out, _ = run("report", scores, *options, *few)
    assert code in ANSWERED
    assert re.search(r"BayesianExtrapolator +500 ", out) and re.search(
        r"FNIR +500 .*\n FPIR +500 ", out
    )
    assert "Identification at a threshold" in (tmp_path / "a.html").read_text("utf-8")
