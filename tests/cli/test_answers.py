"""Verbs say what the library says in Python with the same seed."""

import re

import numpy as np
import pytest
from helpers import ANSWERED, arrays_of, paths, random_scores

import classex_bayes as cb

FIT = ["--draws", "150", "--chains", "2"]
FEW = [*FIT, "--seed", "3"]
KEPT = ["--out", "results", *FEW]  # of an answer whose files are read
SAMPLER = {"sampler": {"draws": 150, "chains": 2}, "progressbar": False}


def rows_of(found, estimator="BayesianExtrapolator"):
    return [row for row in found["predictions"] if row["estimator"] == estimator]


def test_extrapolate(run, embeddings, python, pilot, tmp_path, strict):
    options = ["--k", "60,5e3", "--target", "0.6", "--ci-prob", "0.8", "--bounds", *KEPT]
    code, out, _ = run("extrapolate", embeddings, *options, "--json")
    assert code in ANSWERED
    found, model = strict(out), python(pilot.task)
    predicted, table = model.predict([60, 5000]), rows_of(found)
    interval = predicted.interval(0.8)
    assert [row["k"] for row in table] == [60, 5000]
    np.testing.assert_allclose([row["mean"] for row in table], predicted.mean)
    for side in ("lower", "upper"):
        np.testing.assert_allclose([row[side] for row in table], interval[side])
    until, stated = model.classes_until(0.6), found["classes_until"]
    assert (stated["target"], stated["median"]) == (0.6, until.median)
    assert (stated["lower"], stated["upper"]) == until.interval(0.8)
    assert (found["task"]["n_classes"], found["task"]["n_test"]) == (60, 120)
    assert found["diagnostics"]["divergences"] == model.diagnosis_.divergences
    assert found["diagnostics"]["r_hat"] == pytest.approx(model.diagnosis_.r_hat)
    notes = [row["note"] for row in found["notes"] if row["estimator"] == model.name]
    assert notes == list(predicted.notes) and (found["seed"], found["ci_prob"]) == (3, 0.8)
    assert found["warnings"] == [] and found["classes_at_random"] is None
    sensitivity = cb.sensitivity(model, [60, 5000]).table
    for name in ("mean", "prior", "likelihood_pull"):
        np.testing.assert_allclose([row[name] for row in found["sensitivity"]], sensitivity[name])
    bounds = rows_of(found, "MomentBounds")
    expected = cb.MomentBounds().fit(pilot.task).predict([60, 5000]).interval(0.8)
    np.testing.assert_allclose([row["lower"] for row in bounds], expected["lower"])
    assert {(row["interval_type"], row["mean"]) for row in bounds} == {("confidence", None)}
    # The files are those of this fit.
    kept = cb.load(tmp_path / paths(found)["posterior"])
    np.testing.assert_allclose(kept.predict([60, 5000]).mean, predicted.mean)
    assert (tmp_path / paths(found)["figure"]).read_bytes().startswith(b"\x89PNG")


def test_the_table(run, scores, tmp_path):
    options = ["--k", "60", "--k", "2_000", "--target", "0.5", "--ci-prob", "0.7", "--bounds"]
    code, out, err = run("extrapolate", scores, *options, *KEPT)
    assert code in ANSWERED and "60 classes" in err and "70%" in out
    posterior = cb.load(tmp_path / "results" / "scores.nc")
    predicted = posterior.predict([60, 2000])
    for k, name in ((60, "60"), (2000, "2,000")):
        lower, upper = predicted.interval(0.7, "eti").loc[k]
        row = rf"{name}\b.*{predicted.mean[k]:.4f}.*{lower:.4f} to {upper:.4f}"
        assert re.search(row, out)
        assert re.search(rf"MomentBounds +{name} .*0\.\d+ to", out)
    limits = (float(f"{limit:.3g}") for limit in posterior.classes_until(0.5).interval(0.7))
    lower, upper = (f"{limit:,.0f}" for limit in limits)
    assert f"{lower} to {upper}" in out


def test_compare(run, embeddings, pilot, tmp_path, strict):
    resampled = "--n-resamples", "3"
    code, out, _ = run("compare", embeddings, "--k", "500", "--json", *resampled, *KEPT)
    assert code in ANSWERED
    found = strict(out)
    by_name = {row["estimator"]: row for row in found["predictions"]}
    for estimator in (cb.ClassExReg(random_seed=3), cb.KDE("ucv"), cb.KDE("bcv")):
        expected = estimator.fit(pilot.task).predict(500).mean[500]
        row = by_name.pop(estimator.name)
        assert row["mean"] == pytest.approx(expected)
        assert row["interval_type"] == "bootstrap" and row["lower"] < row["upper"]
    assert list(by_name) == ["BayesianExtrapolator"] and found["left_out"] == []
    assert (tmp_path / paths(found)["figure"]).exists()
    code, out, _ = run("compare", embeddings, "--k", "500", "--all", "--json", *FEW)
    names = {row["estimator"] for row in strict(out)["predictions"]}
    assert code in ANSWERED and {e.name for e in cb.literature()} <= names


def test_estimators_left_out_are_named(run, tmp_path, strict):
    (tmp_path / "curve.csv").write_text("k,accuracy\n2,0.95\n5,0.9\n20,0.8\n60,0.7\n200,0.6\n")
    options = ["--k", "1000", "--n-test", "400", "--n-classes", "200", "--json"]
    code, out, err = run("compare", "curve.csv", *options, *FEW)
    names = [row["estimator"] for row in strict(out)["left_out"]]
    assert code in ANSWERED and {"KDE(ucv)", "KDE(bcv)"} <= {*names}
    assert all(name in err for name in names)


def test_recall_of_several_relevant_documents(run, strict, tmp_path):
    rng = np.random.default_rng(1)
    scores = rng.normal(size=(40, 200)) + 3 * np.eye(40, 200) + 2 * np.eye(40, 200, 40)
    (tmp_path / "my.run").write_text(
        "".join(f"q{i} Q0 d{j} 0 {s} a\n" for (i, j), s in np.ndenumerate(scores))
    )
    judged = "".join(f"q{i} 0 d{i} 2\nq{i} 0 d{i + 40} 1\n" for i in range(40))
    (tmp_path / "qrels").write_text(judged)
    data = ["my.run", "--qrels", "qrels", "--n-classes", "200", "--k", "200"]
    code, out, _ = run("extrapolate", *data, "--metric", "recall@5", "--target", "0.1", *FEW)
    assert code in ANSWERED and "recall@5" in out
    found = strict(run("extrapolate", *data, "--metric", "ndcg", *FEW, "--json")[1])
    (row, *_) = rows_of(found)
    assert found["evidence"] == "ranks"  # those of all relevant documents have no scores
    task = cb.read_task("my.run", qrels="qrels", n_classes=200)
    assert row["lower"] < task.metric("ndcg").item() < row["upper"]


def test_demo(run, tmp_path, strict):
    code, out, _ = run("demo", "--json", "--n-classes", "150", *KEPT)
    found = strict(out)
    rows = rows_of(found)
    assert code in ANSWERED and [row["k"] for row in rows] == [150, 300, 1000, 2965]
    truths = [row["truth"] for row in rows]
    assert np.all(np.diff(truths) < 0) and truths[-1] == pytest.approx(0.688, abs=0.001)
    assert all(abs(row["error"]) < 0.25 for row in rows)
    assert (tmp_path / "results" / "demo-150-seed3.png").exists()
    _, out, _ = run("demo", "--n-classes", "150", *FEW)
    assert re.search(rf"^ *2,965 .* {truths[-1]:.4f} ", out, re.MULTILINE)


@pytest.mark.parametrize("verb", ["extrapolate", "compare"])
def test_metric(run, embeddings, pilot, strict, verb):
    code, out, _ = run(verb, embeddings, "--k", "60,900", "--metric", "mrr@10", "--json", *FEW)
    answer = strict(out)
    assert code in ANSWERED and answer["metric"] == "mrr@10"
    rows = answer["predictions"]
    expected = {"BayesianExtrapolator"}
    if verb == "compare":
        expected |= {f"SampledMetrics(maximum {what})" for what in ("likelihood", "entropy")}
        expected.add("SampledMetrics(bias variance)")
    assert {row["estimator"] for row in rows} == expected
    assert rows[0]["mean"] == pytest.approx(pilot.task.metric("mrr@10", 60), abs=0.04)


def test_formats_and_directions_agree(run, scores, tmp_path, strict):
    matrix, y = arrays_of(tmp_path / scores).values()
    np.save(tmp_path / "distances.npy", -matrix)
    np.save(tmp_path / "y.npy", y)
    names = [f"c{j}" for j in range(60)]
    rows = (
        ",".join([names[label], *map(repr, row.tolist())])
        for label, row in zip(y, matrix, strict=True)
    )
    (tmp_path / "scores.csv").write_text("\n".join([",".join(["y", *names]), *rows]))
    for part in range(2):
        np.savez(tmp_path / f"{part}.npz", scores=matrix[part::2], y=y[part::2])
    ways = [
        [scores],
        ["distances.npy", "--labels", "y.npy", "--lower-is-better"],
        ["scores.csv"],
    ]
    found = [strict(run("diagnose", *way, "--json")[1]) for way in ways]
    assert found[0] == found[1] == found[2] and found[0]["passed"]
    _, out, err = run("extrapolate", "0.npz", "1.npz", "--k", "999", "--json", *KEPT)
    assert paths(strict(out))["figure"] == "results/0-and-1-more.png" and "120 test" in err


def test_a_run_of_trec(run, tmp_path, strict):
    """Ten queries, of which the run lacks one; the file says nothing of the corpus."""
    listed = [f"q{i} Q0 d{j} 1 {5 - abs(i % 4 - j)} tag\n" for i in range(9) for j in range(3)]
    (tmp_path / "my.run").write_text("".join(listed))
    (tmp_path / "qrels").write_text("".join(f"q{i} 0 d{i % 4} 1\n" for i in range(10)))
    data = ["my.run", "--qrels", "qrels", "--n-classes", "30", "--k", "100"]
    code, _, err = run("extrapolate", *data, *FEW)
    assert code == 4 and "'q9'" in err and "missing='unanswered'" in err
    code, out, _ = run("extrapolate", *data, "--missing", "unanswered", "--json", *FEW)
    found = strict(out)["task"]
    assert code in ANSWERED and (found["n_classes"], found["n_test"]) == (30, 10)


def test_options_of_the_data(run, embeddings, scores, python, pilot, tmp_path, strict):
    cosine = cb.SourceTask.from_embeddings(*pilot.sample, distance="cosine")
    _, out, _ = run("extrapolate", embeddings, "--k", "60", "--distance", "cosine", "--json", *FEW)
    (found,) = strict(out)["predictions"]
    assert found["mean"] == pytest.approx(python(cosine).predict(60).mean[60])
    rows = "\n".join(f"{j},{j // 3}" for j in range(60))
    (tmp_path / "design.csv").write_text(f"class,group\n{rows}\n")
    design = "--sampling", "design.csv"
    code, out, _ = run("extrapolate", scores, *design, "--k", "500", "--json", *FEW)
    matrix, y = arrays_of(tmp_path / scores).values()
    sampling = cb.Sampling(groups=np.arange(60) // 3)
    model = python(cb.SourceTask.from_scores(matrix, y, sampling=sampling))
    (found,) = strict(out)["predictions"]
    assert code in ANSWERED
    assert found["mean"] == pytest.approx(model.predict(500).mean[500], rel=1e-9)


def test_classes_that_look_broken_are_named(run, python, tmp_path, strict):
    rng, y = np.random.default_rng(1), np.repeat(np.arange(80), 4)
    matrix = rng.standard_normal((y.size, 80))
    broken = np.isin(y, [3, 17, 40, 58, 71])
    matrix[np.arange(y.size), y] += np.where(broken, 0, 2.9 + 0.7 * rng.standard_normal(80)[y])
    np.savez(tmp_path / "broken.npz", scores=matrix, y=y)
    code, out, err = run("extrapolate", "broken.npz", "--k", "500", "--json", *FEW)
    note = strict(out)["classes_at_random"]
    assert code in ANSWERED and f"note: {note}" in err
    assert " 40, " in note
    model = python(cb.SourceTask.from_scores(matrix, y))
    assert cb.posterior_checks(model)["classes: answered at random"].sentence == note


def test_missing_and_infinite_answers_are_null(run, embeddings, tmp_path, strict):
    single = ["--draws", 100, "--chains", 1]
    code, out, _ = run("extrapolate", embeddings, "--k", "500", "--json", *single)
    assert code == 3 and strict(out)["diagnostics"]["r_hat"] is None
    np.savez(tmp_path / "easy.npz", ranks=np.ones(300, int), y=np.arange(300), n_classes=300)
    code, out, _ = run("extrapolate", "easy.npz", "--k", "300", "--target", "0.01", "--json", *FEW)
    until = strict(out)["classes_until"]
    assert code in ANSWERED and until["median"] is None and until["largest"] == 10**12


# The report


def test_report(run, embeddings, tmp_path, strict):
    options = [embeddings, "--k", "60,5000", "--target", "0.6", "--json", *FEW]
    code, out, _ = run("report", *options, "-o", "pages/found.html")
    assert code in ANSWERED
    found, text = strict(out), (tmp_path / "pages/found.html").read_text(encoding="utf-8")
    page = strict(re.search(r'id="numbers">(.*?)</script>', text)[1])
    shared = found.keys() - {"files", "verb", "required", "failed"}
    assert {name: page[name] for name in shared} == {name: found[name] for name in shared}
    assert "pilot.npz" in text and len(found["predictions"]) == 8
    assert paths(found) == {"posterior": "pages/found.nc", "report": "pages/found.html"}
    # The same seed gives the same numbers without a report.
    code, out, _ = run("extrapolate", *options)
    other = strict(out)
    assert code in ANSWERED and rows_of(found) == other["predictions"]
    for name in ("classes_until", "prob_at_least", "diagnostics", "task", "seed"):
        assert found[name] == other[name]
    kept = cb.load(tmp_path / paths(found)["posterior"])
    assert kept.predict([5000]).mean[5000] == pytest.approx(rows_of(found)[1]["mean"])


def test_ranks_of_users_in_a_table(run, tmp_path):
    ranks = np.random.default_rng(1).integers(1, 30, 60)
    table = "y,ranks\n" + "".join(f"u{i},{rank}\n" for i, rank in enumerate(ranks))
    (tmp_path / "users.csv").write_text(table, encoding="utf-8")
    _, out, err = run("diagnose", "users.csv", "--n-negatives", "99")
    assert "100 items" in out + err


@pytest.mark.parametrize("n_classes", [12, 60])
def test_a_report_prints_the_estimates_that_its_page_shows(run, pilot, tmp_path, n_classes):
    """Of few classes no point estimates; of 60 those that the data do not contradict."""
    probes, gallery, y = (part[: 2 * n_classes] for part in pilot.sample)
    np.savez(tmp_path / "some.npz", probes=probes, gallery=gallery[:n_classes], y=y)
    _, out, err = run("report", "some.npz", "--k", "500", "--bounds", "--no-posterior", *FEW)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    for name in ("ClassExReg", "KDE(ucv)", "KDE(bcv)", "MomentBounds"):
        shown = f">{name}</th>" in page
        left_out = re.search(rf"left out: [^:]*{re.escape(name)}", err) is not None
        assert (f"\n{name} " in out, left_out) == (shown, not shown)
    assert (">ClassExReg</th>" in page) is (n_classes == 60)
    assert ">KDE(ucv)</th>" not in page


def test_a_report_without_references_and_posterior(run, embeddings, tmp_path, strict):
    options = ["report", embeddings, "--k", "500", "--json", *FEW]
    (tmp_path / "report.nc").write_text("of another run")
    code, out, _ = run(*options, "--no-references", "--no-posterior")
    found = strict(out)
    assert code in ANSWERED and paths(found) == {"report": "report.html"}
    assert (tmp_path / "report.nc").read_text() == "of another run"
    assert {row["estimator"] for row in found["predictions"]} == {"BayesianExtrapolator"}


def test_a_report_of_a_metric_and_with_rates(run, scores, tmp_path):
    options = ["--k", "900", "--no-posterior", *FEW]
    code, _, err = run("report", scores, "--metric", "ndcg@10", *options)
    assert code in ANSWERED and "left out" not in err
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<title>On 900 documents: nDCG@10 0." in page
    code, out, _ = run("report", scores, "--fpir", "0.05", "--no-references", *options)
    assert code in ANSWERED and "FNIR" in out and "FPIR" in out
    assert "Identification at a threshold" in (tmp_path / "report.html").read_text("utf-8")


# Identification at a threshold


@pytest.mark.parametrize("limit", [("fpir", 0.05, "5%"), ("fnir", 0.85, "85%")])
def test_open_set(run, scores, python, strict, tmp_path, limit):
    name, value, text = limit
    options = "--k", "59,3000", f"--{name}", text, "--rank", "2", "--ci-prob", "0.8"
    code, out, _ = run("open-set", scores, *options, "--json", *KEPT)
    found = strict(out)
    matrix, y = arrays_of(tmp_path / scores).values()
    model = python(cb.SourceTask.from_scores(matrix, y), cb.OpenSetExtrapolator)
    rates = model.predict([59, 3000], rank=2, **{name: value})
    rows = {(row["rate"], row["k"]): row for row in found["predictions"]}
    assert code == 0 and len(rows) == 4 and found["rank"] == 2
    assert [row["note"] for row in found["notes"]] == list(rates.notes)
    for (rate, k), row in rows.items():
        draws = rates.rates[rate].sel(k=k)
        assert row["mean"] == pytest.approx(draws.mean().item(), rel=1e-12)
        assert row["lower"] == pytest.approx(np.quantile(draws, 0.1), rel=1e-9)
        assert row["threshold"] == pytest.approx(rates.threshold.sel(k=k).item(), rel=1e-12)
    assert found["task"]["n_classes"] == 60 and found["seed"] == 3 and found["warnings"] == []
    assert isinstance(cb.load(tmp_path / paths(found)["posterior"]), cb.OpenSetExtrapolator)
    assert (tmp_path / paths(found)["figure"]).read_bytes().startswith(b"\x89PNG")


def test_nonmated_probes_of_the_file_are_used(run, pilot, python, strict, tmp_path):
    probes, gallery, y = pilot.sample
    others = np.random.default_rng(4).normal(size=(60, probes.shape[1]))
    cosines = others @ gallery.T / np.outer(*(np.linalg.norm(x, axis=1) for x in (others, gallery)))
    arrays = {"probes": probes, "gallery": gallery, "y": y, "nonmated": cosines}
    np.savez(tmp_path / "pilot.npz", **arrays, distance="cosine", group=y)
    options = "pilot.npz", "--k", "500", "--fpir", "0.05", *FEW
    code, out, err = run("open-set", *options, "--json")
    assert code == 0 and "group" in err and "nonmated" in err
    found = strict(out)
    assert found["n_nonmated"] == 60 and found["task"]["distance"] == "cosine"
    task = cb.SourceTask.from_embeddings(probes, gallery, y, distance="cosine")
    rates = python(task, cb.OpenSetExtrapolator, nonmated=cosines).predict(500, fpir=0.05)
    means = {row["rate"]: row["mean"] for row in found["predictions"]}
    assert means == pytest.approx({name: d.mean().item() for name, d in rates.rates.items()})


@pytest.mark.parametrize("kind", ["lists", "in one of two parts"])
def test_nonmated_probes_in_lists_and_in_parts(run, python, strict, tmp_path, kind):
    rng = np.random.default_rng(4)
    y, strangers = np.arange(60) % 40, rng.normal(size=(25, 40))
    scores = rng.normal(size=(60, 40)) + 4 * np.eye(40)[y]
    nonmated, files, parts = {"nonmated": strangers}, ["0.npz", "1.npz"], [slice(30), slice(30, 60)]
    if kind == "lists":
        ids = np.argsort(-strangers, axis=1)[:, :20]
        lists = ids, np.take_along_axis(strangers, ids, axis=1)
        nonmated = dict(zip(("nonmated_ids", "nonmated_distances"), lists, strict=True))
        files, parts = files[:1], [slice(60)]
    for file, rows in zip(files, parts, strict=True):
        np.savez(tmp_path / file, scores=scores[rows], y=y[rows], **nonmated)
        if kind != "lists":
            nonmated = {}  # once is enough
    options = "--k", "500", "--fpir", "0.05", *FEW
    code, out, _ = run("open-set", *files, *options, "--json")
    found = strict(out)
    given = lists if kind == "lists" else strangers
    model = python(cb.SourceTask.from_scores(scores, y), cb.OpenSetExtrapolator, nonmated=given)
    rates = model.predict(500, fpir=0.05)
    means = {row["rate"]: row["mean"] for row in found["predictions"]}
    assert code == 0 and found["n_nonmated"] == 25
    assert means == pytest.approx({name: d.mean().item() for name, d in rates.rates.items()})


def test_the_table_of_rates(run, embeddings, tmp_path):
    options = "--k", "3000", "--threshold", "4.5", "--out", "results"
    code, out, err = run("open-set", embeddings, *options, *FEW)
    rates = cb.load(tmp_path / "results" / "pilot-det.nc").predict(3000, threshold=4.5)
    shown = float(re.search(r"FPIR\W+3,000\W+4.5\W+([\d.]+)\W", out)[1])
    assert code == 0 and shown == pytest.approx(rates.fpir.mean().item(), abs=0.005)
    assert "squared distances" in out and "90%" in out and "nonmated" not in err


# Other verbs


def test_diagnose(run, strict, two, tmp_path):
    found = strict(run("diagnose", "s.npz", "--seed", 4, "--json")[1])["checks"]
    for row, check in zip(found, cb.diagnose(two, random_seed=4), strict=True):
        assert (row["name"], row["passed"]) == (check.name, check.passed)
        assert row["value"] is None or row["value"] == pytest.approx(check.value)
    assert run("diagnose", "bad.npz")[0] == 0
    # An accurate classifier has few errors and no fault.
    scores, y = random_scores(3, 60, 3, lead=5)
    np.savez(tmp_path / "good.npz", scores=scores, y=y)
    code, out, _ = run("diagnose", "good.npz", "--strict")
    assert code == 0 and "note" in out
    code, out, _ = run("diagnose", "bad.npz", "--strict", "--json")
    failed = [check["name"] for check in strict(out)["checks"] if check["passed"] is False]
    assert code == 5 and "accuracy on few classes" in failed and not strict(out)["passed"]


def test_scores_of_the_wrong_sign_are_noted(run, two):
    for options in (["bad.npz"], ["s.npz", "--lower-is-better"]):
        err = run("diagnose", *options)[2]
        assert "reversed" in err and "higher_is_better=False" in err
    assert "reversed" not in run("diagnose", "bad.npz", "--lower-is-better")[2]


def test_lists_of_similarities(run):
    lists = {"ids": (np.arange(30)[:, None] + [0, 1, 2]) % 30, "y": np.arange(30), "n_classes": 30}
    np.savez("lists.npz", distances=np.tile([0.9, 0.5, 0.1], (30, 1)), **lists)
    code, _, err = run("diagnose", "lists.npz")
    assert code == 4 and "higher_is_better=True" in err
    assert run("diagnose", "lists.npz", "--higher-is-better")[0] == 0


def test_classifiers(run, strict, two):
    options = ["classifiers", "s.npz", "t.npz", "--k", "60,900", *FIT, "--seed", 5]
    code, out, err = run(*options, "--metric", "recall@2", "--ci-prob", "0.8", "--json")
    tasks = {"s": two, "t": cb.read_task("t.npz")}
    expected = cb.compare_classifiers(tasks, [60, 900], metric="recall@2", random_seed=5, **SAMPLER)
    found = strict(out)
    assert code in ANSWERED and found["paired"] and err.count("SourceTask: 60 classes") == 2
    table = expected.summary(0.8, "eti", round_to="none").reset_index()
    for column, name in {"prob_best": "prob_best", "eti80_lb": "lower", "mean": "mean"}.items():
        np.testing.assert_allclose([row[name] for row in found["rows"]], table[column])
    assert [row["classifier"] for row in found["rows"]] == ["s", "s", "t", "t"]
    difference = expected.difference("s", "t").summary(0.8, "eti", round_to="none")
    (first, last) = found["differences"]
    assert (first["first"], first["second"], last["k"]) == ("s", "t", 900)
    assert last["prob_above"] == difference["prob_above"].loc[900]
    words = run(*options, "--target", "0.1")[1]
    assert "prob_reached" in words and "s minus t at k = 900: " in words
