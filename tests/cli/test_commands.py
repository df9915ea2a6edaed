"""Command line: the numbers of the Python interface, and one clear line where it is refused."""

import io
import os
import re
import shlex
import subprocess
import sys
from dataclasses import fields
from inspect import signature

import numpy as np
import pytest
from helpers import ANSWERED, arrays_of, paths

import classex_bayes as cb
from classex_bayes import cli
from classex_bayes.bayes.checks.posterior_checks import posterior_checks
from classex_bayes.bayes.storage import load
from classex_bayes.cli import analysis
from classex_bayes.cli.console import parse_counts
from classex_bayes.cli.options import TaskOptions
from classex_bayes.estimators.classexreg.classexreg import ClassExReg
from classex_bayes.estimators.kde.kde import KDE
from classex_bayes.estimators.moment_bounds import MomentBounds
from classex_bayes.estimators.published import literature
from classex_bayes.exceptions import DataError
from classex_bayes.task.source_task import SourceTask

FEW = ["--draws", "150", "--chains", "2", "--seed", "3"]
KEPT = ["--out", "results", *FEW]  # of an answer whose files are read


# Numbers


def test_a_run_of_trec(run, tmp_path, strict):
    """Ten queries, of which the run lacks one; the file says nothing of the corpus."""
    listed = [f"q{i} Q0 d{j} 1 {5 - abs(i % 4 - j)} tag\n" for i in range(9) for j in range(3)]
    (tmp_path / "my.run").write_text("".join(listed))
    (tmp_path / "qrels").write_text("".join(f"q{i} 0 d{i % 4} 1\n" for i in range(10)))
    data = ["my.run", "--qrels", "qrels", "--n-classes", "30"]
    code, _, err = run("extrapolate", *data, "--k", "100", *FEW)
    assert code == 4 and "such as 'q9'; pass missing=" in err
    code, out, _ = run(
        "extrapolate", *data, "--missing", "unanswered", "--k", "100", "--json", *FEW
    )
    found = strict(out)["task"]
    assert code in ANSWERED and (found["n_classes"], found["n_test"]) == (30, 10)


def test_json_is_the_python_interface(run, embeddings, fit, pilot, tmp_path, strict):
    code, out, _ = run(
        "extrapolate", embeddings, "--k", "60,5000", "--target", "0.6", "--ci-prob", "0.8",
        "--json", *KEPT,
    )  # fmt: skip
    assert code in ANSWERED
    found = strict(out)
    task = SourceTask.from_embeddings(*pilot.sample, random_seed=3)
    model = fit(task, draws=150, tune=200, random_seed=3)
    predicted, table = model.predict([60, 5000]), found["predictions"]
    assert [row["k"] for row in table] == [60, 5000]
    np.testing.assert_allclose([row["mean"] for row in table], predicted.mean)
    interval = predicted.interval(0.8)
    for side in ("lower", "upper"):
        np.testing.assert_allclose([row[side] for row in table], interval[side])
    assert found["ci_prob"] == 0.8 and found["warnings"] == []
    until = model.classes_until(0.6)
    lower, upper = until.interval(0.8)
    stated = found["classes_until"]
    assert (stated["accuracy"], stated["median"]) == (0.6, until.median)
    assert (stated["lower"], stated["upper"]) == (lower, upper)
    assert found["task"]["n_classes"] == 60 and found["task"]["n_test"] == 120
    assert found["diagnostics"]["divergences"] == model.diagnosis_.divergences
    assert found["diagnostics"]["r_hat"] == pytest.approx(model.diagnosis_.r_hat)
    assert [row["note"] for row in found["notes"]] == list(predicted.notes) and found["seed"] == 3
    assert found["classes_at_random"] is None
    # The files are those of this fit.
    kept = load(tmp_path / paths(found)["posterior"])
    np.testing.assert_allclose(kept.predict([60, 5000]).mean, predicted.mean)
    assert (tmp_path / paths(found)["figure"]).read_bytes().startswith(b"\x89PNG")


def test_json_of_a_single_chain(run, embeddings, strict):
    # One chain has no r_hat, and JSON has no NaN.
    code, out, _ = run("extrapolate", embeddings, "--k", "500", "--json", "--draws", 100,
                       "--chains", 1)  # fmt: skip
    assert code == 3 and strict(out)["diagnostics"]["r_hat"] is None


def test_infinite_answers_are_null(run, tmp_path, strict):
    np.savez(tmp_path / "easy.npz", ranks=np.ones(300, int), y=np.arange(300), n_classes=300)
    code, out, _ = run("extrapolate", "easy.npz", "--k", "300", "--target", "0.01", "--json", *FEW)
    until = strict(out)["classes_until"]
    assert code in ANSWERED and until["median"] is None and until["largest"] == 10**12


def test_table(run, scores, tmp_path):
    code, out, err = run(
        "extrapolate", scores, "--k", "60,2000", "--target", "0.5", "--ci-prob", "0.7", *KEPT
    )
    assert code in ANSWERED and "Traceback" not in err
    assert "Expected accuracy, from 60 source classes" in out and "70% interval" in out
    posterior = load(tmp_path / "results" / "scores.nc")
    predicted = posterior.predict([60, 2000])
    for k, name in ((60, "60"), (2000, "2,000")):
        lower, upper = predicted.interval(0.7, "eti").loc[k]
        row = rf"{name}\b.*{predicted.mean[k]:.4f}.*{lower:.4f} to {upper:.4f}"
        assert re.search(row, out)
    assert "SourceTask: 60 classes, 120 test instances" in err
    # The level asked for, everywhere.
    limits = (float(f"{limit:.3g}") for limit in posterior.classes_until(0.5).interval(0.7))
    lower, upper = (f"{limit:,.0f}" for limit in limits)
    assert f"70% credible interval: {lower} to {upper}" in out


def test_compare(run, embeddings, pilot, tmp_path, strict):
    resampled = "--n-resamples", "3"
    code, out, _ = run("compare", embeddings, "--k", "500", "--json", *resampled, *KEPT)
    assert code in ANSWERED
    found = strict(out)
    by_name = {row["estimator"]: row for row in found["predictions"]}
    for estimator in (ClassExReg(random_seed=3), KDE("ucv"), KDE("bcv")):
        expected = estimator.fit(pilot.task).predict(500).mean[500]
        row = by_name.pop(estimator.name)
        assert row["mean"] == pytest.approx(expected)
        assert row["interval_type"] == "bootstrap" and row["lower"] < row["upper"]
    assert list(by_name) == ["BayesianExtrapolator"] and found["left_out"] == []
    assert (tmp_path / paths(found)["figure"]).exists()


def test_estimators_left_out_are_named(run, tmp_path):
    (tmp_path / "curve.csv").write_text("k,accuracy\n2,0.95\n5,0.9\n20,0.8\n60,0.7\n200,0.6\n")
    options = ["--k", "1000", "--n-test", "400", "--n-classes", "200"]
    code, _, err = run("compare", "curve.csv", *options, *FEW)
    assert code in ANSWERED and "left out: KDE(ucv): task: " in err
    assert "ranks unknown: fitted to accuracies" in err


def test_demo(run, tmp_path, strict):
    code, out, _ = run("demo", "--json", "--n-classes", "150", *KEPT)
    found = strict(out)
    rows = [row for row in found["predictions"] if row["estimator"] == "BayesianExtrapolator"]
    assert code in ANSWERED and [row["k"] for row in rows] == [150, 300, 1000, 2965]
    truths = [row["truth"] for row in rows]
    assert np.all(np.diff(truths) < 0) and truths[-1] == pytest.approx(0.688, abs=0.001)
    assert all(abs(row["error"]) < 0.25 for row in rows)
    assert (tmp_path / "results" / "demo-150-seed3.png").exists()
    # On squared distances KDE errs by 0.3 and more far out.
    kde = [row["error"] for row in found["predictions"] if row["estimator"].startswith("KDE")]
    assert len(kde) == 8 and np.abs(kde).max() < 0.15


# Streams and formats


def test_quiet_is_silent(run, embeddings):
    loud = run("extrapolate", embeddings, "--k", "15000", *FEW)
    quiet = run("extrapolate", embeddings, "--k", "15000", "--quiet", *FEW)
    assert quiet[0] in ANSWERED and quiet[2] == "" and "0." in quiet[1]
    assert "Sampling ..." in loud[2]
    assert loud[2].count("15,000 is 250 times the 60 source classes") == 1
    assert loud[1] == quiet[1]


def test_formats_agree(run, scores, tmp_path, monkeypatch):
    matrix, y = arrays_of(tmp_path / scores).values()
    np.save(tmp_path / "distances.npy", -matrix)
    np.save(tmp_path / "y.npy", y)
    header = ",".join(["y", *(f"c{j}" for j in range(60))])
    rows = (
        ",".join([f"c{label}", *map(repr, row.tolist())])
        for label, row in zip(y, matrix, strict=True)
    )
    (tmp_path / "scores.csv").write_text("\n".join([header, *rows]))
    ways = [
        [scores],
        ["distances.npy", "--labels", "y.npy", "--lower-is-better"],
        ["scores.csv"],
    ]
    tasks = []

    def stop(task, *anything):
        tasks.append(task)
        raise KeyboardInterrupt

    monkeypatch.setattr(analysis, "fitted", stop)
    for way in ways:
        assert run("extrapolate", *way, "--k", "999")[0] == 130
    for task in tasks:
        np.testing.assert_array_equal(task.ranks, tasks[0].ranks)
        np.testing.assert_array_equal(task.y, y)
        found = task.table.source.scores(np.arange(y.size))
        np.testing.assert_array_equal(found, tasks[0].table.source.scores(np.arange(y.size)))
    assert len(tasks) == 3 and tasks[2].classes[7] == "c7"


def test_classes_that_look_broken_are_named(run, tmp_path, strict):
    rng, y = np.random.default_rng(1), np.repeat(np.arange(80), 4)
    matrix = rng.standard_normal((y.size, 80))
    broken = np.isin(y, [3, 17, 40, 58, 71])
    matrix[np.arange(y.size), y] += np.where(broken, 0, 2.9 + 0.7 * rng.standard_normal(80)[y])
    np.savez(tmp_path / "broken.npz", scores=matrix, y=y)
    code, out, err = run("extrapolate", "broken.npz", "--k", "500", "--json", *KEPT)
    note = strict(out)["classes_at_random"]
    assert code in ANSWERED and f"note: {note}" in err
    assert "of 80 classes stand out as if answered at random" in note and " 40, " in note
    model = load(tmp_path / "results" / "broken.nc")
    assert posterior_checks(model, SourceTask.from_scores(matrix, y)).notes[0] == note


def test_distance(run, embeddings, pilot, strict):
    code, out, _ = run(
        *("extrapolate", embeddings, "--k", "60", "--distance", "cosine", "--json", *FEW)
    )
    cosine = SourceTask.from_embeddings(*pilot.sample, distance="cosine")
    row = strict(out)["predictions"][0]
    assert code in ANSWERED and row["mean"] == pytest.approx(cosine.accuracy(60)[0], abs=0.1)


@pytest.mark.parametrize("verb", ["extrapolate", "compare"])
def test_metric(run, embeddings, fit, pilot, strict, verb):
    code, out, err = run(verb, embeddings, "--k", "60,900", "--metric", "mrr@10", "--json", *FEW)
    answer = strict(out)
    assert code in ANSWERED and answer["metric"] == "mrr@10"
    rows = answer["predictions"]
    assert {row["estimator"] for row in rows} == {"BayesianExtrapolator"}
    assert rows[0]["mean"] == pytest.approx(pilot.task.metric("mrr@10", 60)[0], abs=0.04)
    if verb == "compare":
        assert "ClassExReg predicts accuracy alone" in err
        return
    code, out, _ = run(verb, embeddings, "--k", "900", "--metric", "mean_rank", *KEPT)
    assert "Expected mean rank, from 60 source classes" in out and "accuracy" not in out
    assert "figure written" in out


def test_metric_of_a_back_test_and_a_report(run, embeddings, tmp_path, strict):
    sizes = "--n-source", "50", "--k", "60", "--n-pilots", "2", "--draws", "100"
    code, out, _ = run("backtest", embeddings, *sizes, "--metric", "recall@5", "--json")
    answer = strict(out)
    assert code == 0 and answer["metric"] == "recall@5" and len(answer["rows"]) == 1
    options = "--k", "900", "--metric", "ndcg@10", "--no-posterior"
    code, _, err = run("report", embeddings, *options, *FEW)
    assert code in ANSWERED and "left out" not in err
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<title>On 900 documents: nDCG@10 0." in page


def test_metrics_that_do_not_exist_or_have_no_target(run, embeddings):
    arguments = "extrapolate", embeddings, "--k", "60"
    for wrong, name in ((["cosine"], "metric"), (["mrr", "--target", "0.9"], "--target")):
        code, out, err = run(*arguments, "--metric", *wrong)
        assert code == 2 and out == "" and err.startswith(f"error: {name}: ")


# Bad input


# Arguments with what the error names, and the exit code.
BAD = {
    "no file": ("extrapolate missing.npz --k 500", "missing.npz", 2),
    "wrong ending": ("extrapolate task.txt --k 500", "task.txt", 4),
    "no labels": ("compare task.npy --k 500", "task.npy", 4),
    "curve without size": ("extrapolate curve.csv --k 9", "curve.csv", 4),
    "nan": ("extrapolate nan.csv --k 9", "nan.csv: scores", 4),
    "option of other files": ("extrapolate pilot.npz --k 9 --n-test 9", "n_test", 4),
    "words for k": ("extrapolate pilot.npz --k many", "--k", 2),
    "fractional k": ("extrapolate pilot.npz --k 10.5", "--k", 2),
    "k of one": ("extrapolate pilot.npz --k 1", "--k", 2),
    "k twice": ("extrapolate pilot.npz --k 9,9", "--k", 2),
    "no k": ("extrapolate pilot.npz --k ''", "--k", 2),
    "report is no page": ("report pilot.npz --k 9 --out a.pdf", "--out", 2),
    "report in a file": ("report pilot.npz --k 9 --out task.txt/a.html", "--out", 1),
    "demo too large": ("demo --n-classes 99999", "n_classes", 2),
    "demo too small": ("demo --n-classes 2", "n_classes", 2),
}


@pytest.mark.parametrize(("arguments", "name", "expected"), BAD.values(), ids=BAD)
def test_bad_input_is_one_line(run, embeddings, tmp_path, monkeypatch, arguments, name, expected):
    def fit(*anything):
        raise AssertionError("started a long computation")

    monkeypatch.setattr(analysis, "fitted", fit)
    (tmp_path / "task.txt").write_text("")
    np.save(tmp_path / "task.npy", np.eye(4))
    (tmp_path / "curve.csv").write_text("k,accuracy\n2,0.9\n5,0.8\n")
    (tmp_path / "nan.csv").write_text("y,a,b,c\na,1,0,0\nb,,1,0\nc,0,0,1\n")
    code, out, err = run(*shlex.split(arguments), "--quiet")
    assert code == expected and out == ""
    assert len(err.splitlines()) == 1 and err.startswith(f"error: {name}: ")


@pytest.mark.parametrize(
    "arguments",
    ["guess", "extrapolate", "extrapolate pilot.npz"]
    + [
        f"extrapolate pilot.npz --k 9 {wrong}"
        for wrong in (
            "--draws 0",
            "--chains two",
            "--seed -1",
            "--target high",
            "--target 1",
            "--ci-prob 90",
            "--nothing",
            "--distance city",
        )
    ],
)
def test_bad_usage(run, arguments, tmp_path):
    (tmp_path / "pilot.npz").touch()
    code, out, err = run(*arguments.split())
    assert code == 2 and out == "" and "Traceback" not in err and "Usage" in err


# What can go wrong late


def test_posterior_is_kept_when_the_figure_fails(run, embeddings, monkeypatch, tmp_path, strict):
    def fail(*arguments, **options):
        raise RuntimeError("no fonts")

    monkeypatch.setattr("classex_bayes.plots.accuracy_plot.plot_accuracy", fail)
    code, out, err = run("extrapolate", embeddings, "--k", "500", "--json", *KEPT)
    found = strict(out)
    assert code == 1 and list(paths(found)) == ["posterior"]
    errors = [line for line in err.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1 and "the figure could not be written (no fonts)" in errors[0]
    assert "Traceback" not in err
    assert (tmp_path / paths(found)["posterior"]).exists()


@pytest.mark.nightly
def test_results_are_printed_when_the_posterior_cannot_be_kept(
    run, embeddings, monkeypatch, tmp_path
):
    def fail(model, path):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("classex_bayes.bayes.storage.save", fail)
    code, out, err = run("extrapolate", embeddings, "--k", "500", *KEPT)
    assert code == 1 and "Expected accuracy" in out and "Traceback" not in err
    assert "the posterior could not be written" in err and "No space left on device" in err


@pytest.mark.nightly
def test_the_posterior_goes_elsewhere_when_its_folder_fails(
    run, embeddings, monkeypatch, tmp_path, strict
):
    from classex_bayes.bayes import storage

    save, elsewhere = storage.save, tmp_path / "elsewhere"
    elsewhere.mkdir()

    def fail_once(model, path):
        if "results" in str(path):
            raise OSError(28, "No space left on device")
        return save(model, path)

    monkeypatch.setattr(storage, "save", fail_once)
    monkeypatch.setattr(analysis.tempfile, "gettempdir", lambda: str(elsewhere))
    code, out, err = run("extrapolate", embeddings, "--k", "500", "--json", *KEPT)
    assert code == 1 and "No space left on device" in err
    (kept,) = elsewhere.glob("pilot-*.nc")
    assert paths(strict(out))["posterior"] == str(kept)


@pytest.mark.parametrize(
    "place", ["pilot.npz", pytest.param("pilot.npz/a/b", marks=pytest.mark.nightly)]
)
def test_a_folder_that_cannot_be_made_takes_away_no_answer(
    run, embeddings, monkeypatch, tmp_path, strict, place
):
    monkeypatch.setattr(analysis.tempfile, "gettempdir", lambda: str(tmp_path))
    before = (tmp_path / embeddings).read_bytes()
    code, out, err = run("extrapolate", embeddings, "--k", "500", "--json", "--out", place, *FEW)
    found = strict(out)
    assert code == 1 and err.startswith(f"error: --out: cannot write to {place}")
    assert "the answer goes to standard output" in err and "Traceback" not in err
    assert "the figure could not be written" in err
    (kept,) = tmp_path.glob("pilot-*.nc")  # of this run alone
    assert paths(found)["posterior"] == str(kept) and found["predictions"][0]["k"] == 500
    assert (tmp_path / embeddings).read_bytes() == before


def test_compare_with_all(run, scores, strict):
    code, out, _ = run("compare", scores, "--k", "500", "--all", "--json", *FEW)
    names = {row["estimator"] for row in strict(out)["predictions"]}
    assert code in ANSWERED and {e.name for e in literature()} <= names


# Report


def embedded(path):
    text = path.read_text(encoding="utf-8")
    start = text.index('id="numbers">') + len('id="numbers">')
    return text[start : text.index("</script>", start)]


def test_report(run, embeddings, tmp_path, strict):
    options = [embeddings, "--k", "60,5000", "--target", "0.6", "--json", *FEW]
    code, out, _ = run("report", *options, "-o", "pages/found.html")
    assert code in ANSWERED
    found = strict(out)
    page = strict(embedded(tmp_path / "pages" / "found.html"))
    only = "files", "verb", "required", "failed"
    assert {name: page[name] for name in found if name not in only} == {
        name: value for name, value in found.items() if name not in only
    }
    assert page["source"] == "pilot.npz"
    kept = load(tmp_path / paths(found)["posterior"])
    assert paths(found)["posterior"] == "pages/found.nc"
    assert paths(found)["report"] == "pages/found.html"
    # The same seed gives the same numbers without a report.
    code, out, _ = run("extrapolate", *options)
    own = [row for row in page["predictions"] if row["estimator"] == "BayesianExtrapolator"]
    other = strict(out)
    assert code in ANSWERED and own == other["predictions"] and len(page["predictions"]) == 8
    for name in ("classes_until", "prob_at_least", "diagnostics", "task", "seed"):
        assert page[name] == other[name]
    assert kept.predict([5000]).mean[5000] == pytest.approx(own[1]["mean"])


@pytest.mark.parametrize("n_classes", [12, 60])
def test_a_report_prints_the_estimates_that_its_page_shows(run, pilot, tmp_path, n_classes):
    """Of few classes no point estimates; of 60 those that the data do not contradict."""
    probes, gallery, y = (part[: 2 * n_classes] for part in pilot.sample)
    np.savez(tmp_path / "some.npz", probes=probes, gallery=gallery[:n_classes], y=y)
    _, out, err = run("report", "some.npz", "--k", "500", "--bounds", "--no-posterior", *FEW)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    for name in ("ClassExReg", "KDE(ucv)", "KDE(bcv)", "MomentBounds"):
        shown = f'class="reference">{name}' in page
        assert (f"\n {name} " in out, f"left out: {name}: " in err) == (shown, not shown)
    assert ('class="reference">ClassExReg' in page) is (n_classes == 60)
    assert 'class="reference">KDE(ucv)' not in page


def test_a_report_without_references_and_posterior(run, embeddings, tmp_path, strict):
    options = ["report", embeddings, "--k", "500,900", "--target", "0.6", "--json", *FEW]
    (tmp_path / "report.nc").write_text("of another run")
    code, out, err = run(*options, "--no-references", "--no-posterior")
    found = strict(out)
    assert code in ANSWERED and paths(found) == {"report": "report.html"}
    assert (tmp_path / "report.nc").read_text() == "of another run" and "replaced" not in err
    assert {row["estimator"] for row in found["predictions"]} == {"BayesianExtrapolator"}
    text = (tmp_path / "report.html").read_text()
    for row in found["prob_at_least"]["predictions"]:
        assert f"Expected accuracy on {row['k']} classes is at least 60% with probability" in text


def test_posterior_is_kept_when_the_report_fails(run, embeddings, monkeypatch, tmp_path, strict):
    def fail(*arguments, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("classex_bayes.report.page.html", fail)
    code, out, err = run("report", embeddings, "--k", "500", "--json", *FEW)
    assert code == 1 and list(paths(strict(out))) == ["posterior"] and "Traceback" not in err
    assert "the report could not be written ([Errno 28] No space left on device)" in err
    assert not (tmp_path / "report.html").exists() and (tmp_path / "report.nc").exists()


def test_report_says_what_to_install(run, embeddings, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    code, out, err = run("report", embeddings, "--k", "500")
    assert code == 2 and out == "" and len(err.splitlines()) == 1
    assert 'error: a report needs jinja2: pip install "classex-bayes[report]"' in err


# A process of its own


def test_scores_that_look_like_distances_are_noted(run, tmp_path):
    rng = np.random.default_rng(1)
    np.savez(tmp_path / "d.npz", scores=rng.normal(size=(40, 40)) - 3 * np.eye(40), y=range(40))
    _, _, err = run("diagnose", "d.npz")
    assert (
        "the sign of the scores is reversed" in err
        and "pass --lower-is-better for distances" in err
    )
    _, _, err = run("diagnose", "d.npz", "--lower-is-better")
    assert "reversed" not in err
    scores = rng.normal(size=(40, 40)) + 3 * np.eye(40)
    np.savez(tmp_path / "d.npz", scores=scores, y=range(40))
    _, _, err = run("diagnose", "d.npz", "--lower-is-better")
    assert "the sign of the scores is reversed" in err and "leave --lower-is-better out" in err
    np.savez(tmp_path / "d.npz", scores=scores, y=np.roll(range(40), 1))
    _, _, err = run("diagnose", "d.npz")
    assert "no better than wrong ones. Check whether y is in another order" in " ".join(err.split())


@pytest.mark.parametrize(
    ("text", "k"), [("1e4", [10_000]), ("1_000,5e3", [1000, 5000]), ("300,500", [300, 500])]
)
def test_numbers_of_classes_in_other_hands(text, k):
    assert parse_counts(text) == k


def test_options_of_the_data_are_arguments_of_the_library():
    """A file is read with them under their names."""
    makers = [getattr(SourceTask, name) for name in dir(SourceTask) if name.startswith("from_")]
    known = {
        name for make in (*makers, cb.Sampling, cb.read_task) for name in signature(make).parameters
    }
    options = {field.name for field in fields(TaskOptions)}
    assert options - known == {"lower_is_better", "design"}  # the opposite, and a file of arguments


def test_a_design_of_groups(run, scores, tmp_path, strict):
    rows = "\n".join(f"{j},{j // 3}" for j in range(60))
    (tmp_path / "design.csv").write_text(f"class,group\n{rows}\n")
    options = "--design", "design.csv", "--sibling-share", "0.25", "--k", "500", "--json"
    code, out, _ = run("extrapolate", scores, *options, *FEW)
    matrix, y = arrays_of(tmp_path / scores).values()
    sampling = cb.Sampling(groups=np.arange(60) // 3, sibling_share=0.25)
    task = SourceTask.from_scores(matrix, y, sampling=sampling, random_seed=0)
    model = cb.BayesianExtrapolator().fit(
        task, sampler={"draws": 150, "chains": 2}, random_seed=3, progressbar=False
    )
    assert code in ANSWERED
    (found,) = strict(out)["predictions"]
    assert found["mean"] == pytest.approx(model.predict(500).mean[500], rel=1e-9)


def test_a_comma_for_thousands_is_refused(run, scores):
    code, _, err = run("extrapolate", scores, "--k", "1,000", *FEW)
    assert code == 2 and err.startswith("error: --k: ") and "write 1_000 for 1,000" in err


@pytest.mark.parametrize("text", ["20.000", "300,1.000", "nan"])
def test_a_point_for_thousands_is_refused(text):
    with pytest.raises(DataError, match="--k: expected whole numbers"):
        parse_counts(text)


def test_version(run):
    from classex_bayes import __version__

    assert run("--version") == (0, f"classex-bayes {__version__}\n", "")


@pytest.mark.nightly
def test_streams_that_are_closed_or_without_letters(embeddings, tmp_path, monkeypatch):
    name = tmp_path / "nämé.npz"
    (tmp_path / embeddings).rename(name)
    letters = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(letters, encoding="ascii"))
    monkeypatch.setattr(sys, "stderr", None)
    options = [str(name), "--k", "99", *FEW, "--out", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", ["classex-bayes", "extrapolate", *options])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
        sys.exit(0)
    assert (stopped.value.code or 0) in ANSWERED
    assert rb"n\xe4m\xe9.nc" in letters.getvalue()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="of Linux")
def test_a_full_disk_for_the_answer_is_an_exit_code():
    version = [sys.executable, "-c", "from classex_bayes.cli import main; main()", "--version"]
    with open("/dev/full", "w") as full:
        ended = subprocess.run(version, stdout=full, stderr=subprocess.PIPE, check=False)
    assert ended.returncode == 1 and b"Traceback" not in ended.stderr


def test_bounds_beside_the_posterior(run, embeddings, pilot, strict):
    k = ["--k", "60,5000", "--bounds"]
    code, out, _ = run("extrapolate", embeddings, *k, "--ci-prob", "0.8", "--json", *FEW)
    assert code in ANSWERED
    rows = [row for row in strict(out)["predictions"] if row["estimator"] == "MomentBounds"]
    task = SourceTask.from_embeddings(*pilot.sample, random_seed=3)
    expected = MomentBounds().fit(task).predict([60, 5000]).interval(0.8)
    np.testing.assert_allclose([row["lower"] for row in rows], expected["lower"])
    assert {row["interval_type"] for row in rows} == {"confidence"}
    assert {row["mean"] for row in rows} == {None}
    _, out, _ = run("compare", embeddings, *k, *FEW)
    (line,) = [line for line in out.splitlines() if "MomentBounds" in line and "5,000" in line]
    assert " - " in line
