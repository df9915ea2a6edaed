"""The shell as a part of programs: streams, exit codes, JSON, faults, and files that fail."""

import re
import shlex
from inspect import signature
from pathlib import Path

import numpy as np
import pytest
from documented_json import PAGE, conform, section
from documented_json import VERBS as DOCUMENTED
from helpers import ANSWERED, paths, random_scores
from typer.main import get_command

import classex_bayes as cb
from classex_bayes import cli
from classex_bayes.bayes import sampling
from classex_bayes.evaluate import extrapolation_check
from classex_bayes.task import Finding

FIT = ["--draws", "150", "--chains", "2"]
CONVERGED = ["--draws", "500", "--chains", "4"]
QUICK = {"report": ["--no-posterior", "--no-references"]}
SMALL = {
    "extrapolate": ["s.npz", "--k", "60,9000", "--target", "0.5", *FIT],
    "compare": ["s.npz", "--k", "9000", *FIT],
    "classifiers": ["s.npz", "t.npz", "--k", "60,9000", *FIT],
    "diagnose": ["s.npz"],
    "open-set": ["s.npz", "--k", "9000", "--fpir", "0.1", *FIT],
}
VERBS = get_command(cli.app).commands


def test_every_verb_is_tried_and_documented():
    assert set(VERBS) == {*SMALL, "demo", "report"} == set(DOCUMENTED)
    for verb in re.findall(r"^classex-bayes ([\w-]+)", PAGE, re.MULTILINE):
        assert verb in VERBS


@pytest.mark.nightly
@pytest.mark.parametrize("verb", SMALL)
def test_results_and_words_have_their_streams(run, strict, two, tmp_path, verb):
    options, before = SMALL[verb], set(tmp_path.iterdir())
    code, out, err = run(verb, *options)
    assert code in ANSWERED and "note" not in out and "Traceback" not in err
    notes = re.findall("^note.*", err, flags=re.MULTILINE)
    assert err and len(notes) == len(set(notes))
    again, text, quiet = run(verb, *options, "--quiet")
    assert (again, text) == (code, out)
    assert all(line.startswith("failed: ") for line in quiet.splitlines())
    again, text, err = run(verb, *options, "--quiet", "--json")
    assert (again, err) == (code, "") and strict(text)["verb"] == verb
    assert set(tmp_path.iterdir()) == before


@pytest.mark.nightly
def test_keys_do_not_depend_on_the_question(run, strict, two):
    """`strict` compares with the page."""
    fit = ["s.npz", "--k", "60", "--json", *FIT]
    one = strict(run("extrapolate", *fit)[1])
    other = strict(run("extrapolate", *fit, "--metric", "mrr", "--ci-prob", "0.5")[1])
    assert set(one) == set(other) and set(one["predictions"][0]) == set(other["predictions"][0])
    Path("design.csv").write_text("class,group\n" + "".join(f"{j},{j // 2}\n" for j in range(60)))
    grouped = strict(run("extrapolate", *fit, "--sampling", "design.csv")[1])
    assert grouped["sensitivity"][0]["prior_share"] is None  # limits of ranks have no designs
    with pytest.raises(AssertionError):
        conform({name: value for name, value in one.items() if name != "notes"})
    with pytest.raises(AssertionError):
        conform({**one, "ci_prob": None})


def test_the_help_has_every_exit_code_of_the_page(run):
    page = section("Exit codes").replace("`", "")
    table = re.findall(r"^\| (\d+) \| (.+) \|$", page, re.MULTILINE)
    words = " ".join(run("--help")[1].split())
    assert len(table) == 8 and all(f"{code} {meaning}" in words for code, meaning in table)


def test_options_of_the_data_are_arguments_of_the_library():
    """A file is read with them under their names."""
    makers = [
        getattr(cb.SourceTask, name) for name in dir(cb.SourceTask) if name.startswith("from_")
    ]
    known = {
        name for make in (*makers, cb.Sampling, cb.read_task) for name in signature(make).parameters
    }
    options = {parameter.name for parameter in VERBS["diagnose"].params}
    assert options - {"files", "strict", "seed", "as_json", "quiet"} <= known


# Bad options and bad data. The error names the first words; one line, or the usage.
BAD = {
    "extrapolate missing.npz --k 500": (2, "error: missing.npz: "),
    "extrapolate task.txt --k 500": (4, "error: task.txt: "),
    "compare task.npy --k 500": (4, "error: task.npy: "),
    "extrapolate curve.csv --k 9": (4, "error: curve.csv: "),
    "extrapolate nan.csv --k 9": (4, "error: nan.csv: scores: "),
    "extrapolate s.npz --k 9 --n-test 9": (4, "error: --n-test: "),
    "extrapolate --k 9": (4, "error: paths: "),
    "extrapolate --k 9 --recalls 1=52 --n-test 9 --n-classes 9": (4, "error: --recalls: found 52"),
    "extrapolate --k 9 --recalls 1=.5 --n-test 9": (4, "error: arguments: "),
    "extrapolate s.npz --k 9 --recalls 1=.5": (4, "error: --recalls: found files"),
    "extrapolate --k 9 --recalls .5": (2, "Usage"),
    "extrapolate s.npz --k many": (2, "error: --k: "),
    "extrapolate s.npz --k 10.5": (2, "error: --k: "),
    "extrapolate s.npz --k 1": (2, "error: --k: "),
    "extrapolate s.npz --k 9,9": (2, "error: --k: "),
    "extrapolate s.npz --k ''": (2, "error: --k: "),
    "extrapolate s.npz --k 20.000": (2, "error: --k: "),
    "extrapolate s.npz --k 300,1.000": (2, "error: --k: "),
    "extrapolate s.npz --k nan": (2, "error: --k: "),
    "extrapolate s.npz --k 9 --k 9": (2, "error: --k: "),
    "extrapolate s.npz --k 1,000": (2, "error: --k: "),
    "extrapolate s.npz --k 60 --metric cosine": (2, "error: --metric: "),
    "extrapolate s.npz --k 60 --metric mean_rank --target 0.9": (2, "error: --target: "),
    "classifiers s.npz t.npz --k 60 --metric mrr --target 9": (2, "error: --target: "),
    "extrapolate s.npz --k 60 --require 0.9": (2, "error: --require: "),
    "extrapolate s.npz --k 60 --out task.txt/a": (1, "error: --out: "),
    "open-set s.npz --k 9 --fpir 0.1 --out task.txt": (1, "error: --out: "),
    "report s.npz --k 9 --out a.pdf": (2, "error: --out: "),
    "report s.npz --k 9 --out task.txt/a.html": (1, "error: --out: "),
    "report ranks.npz --k 9 --fpir 0.01": (4, "error: task: "),
    "demo --n-classes 99999": (2, "error: --n-classes: "),
    "demo --n-classes 2": (2, "error: --n-classes: "),
    "classifiers --k 900": (2, "Usage"),
    "classifiers s.npz --k 900": (2, "error: FILES: "),
    "classifiers s.npz s.npz --k 900": (2, "error: FILES: "),
    "open-set s.npz --k 9": (2, "error: --fpir, --fnir, --threshold: "),
    "open-set s.npz --k 9 --fpir 0.1 --threshold 1": (2, "error: --fpir, --fnir, --threshold: "),
    "open-set ranks.npz --k 9 --fpir 0.1": (4, "error: task: "),
    "open-set other.npz stranger.npz --k 9 --fpir 0.1": (
        4,
        "error: other.npz, stranger.npz: nonmated ",
    ),
    "open-set ids.npz --k 9 --fpir 0.1": (4, "error: nonmated_distances: "),
    "open-set s.npz --k 9 --fpir 0.1 --sampling task.txt": (2, "Usage"),
    "open-set --k 9 --fpir 0.1": (2, "Usage"),
    "open-set s.npz --k 9 --fpir 3": (2, "Usage"),
    "open-set s.npz --k 9 --fpir low": (2, "Usage"),
    "guess": (2, "Usage"),
    "extrapolate": (2, "Usage"),
    "extrapolate s.npz": (2, "Usage"),
    "extrapolate s.npz --k 9 --draws 0": (2, "Usage"),
    "extrapolate s.npz --k 9 --chains two": (2, "Usage"),
    "extrapolate s.npz --k 9 --seed -1": (2, "Usage"),
    "open-set s.npz --k 9 --threshold 1 --prob-kept 0.9": (2, "error: --prob-kept: "),
    "extrapolate s.npz --k 9 --target high": (2, "Usage"),
    "extrapolate s.npz --k 9 --target 1": (2, "error: --target: "),
    "extrapolate s.npz --k 9 --ci-prob 90": (2, "Usage"),
    "extrapolate s.npz --k 9 --nothing": (2, "Usage"),
    "extrapolate s.npz --k 9 --distance city": (2, "Usage"),
}


@pytest.mark.parametrize("line", BAD)
def test_what_is_wrong_is_one_line_before_long_work(run, two, tmp_path, monkeypatch, line):
    def fit(*anything):
        raise AssertionError("started a long computation")

    monkeypatch.setattr(cb.BayesianExtrapolator, "fit", fit)
    (tmp_path / "task.txt").write_text("")
    np.save(tmp_path / "task.npy", np.eye(4))
    (tmp_path / "curve.csv").write_text("k,accuracy\n2,0.9\n5,0.8\n")
    (tmp_path / "nan.csv").write_text("y,a,b,c\na,1,0,0\nb,,1,0\nc,0,0,1\n")
    np.savez(tmp_path / "ranks.npz", ranks=np.arange(40) % 7 + 1, y=range(40), n_classes=40)
    half = {"scores": np.eye(4)[:, :3] + 0.1, "y": [0, 1, 2, 0]}
    for name, nonmated in (("other", 1), ("stranger", 2)):
        np.savez(tmp_path / f"{name}.npz", **half, nonmated=np.full((1, 3), nonmated))
    np.savez(tmp_path / "ids.npz", **half, nonmated_ids=[[0, 1]])
    code, start = BAD[line]
    quiet = [] if line in ("guess", "extrapolate") else ["--quiet"]
    found, out, err = run(*shlex.split(line), *quiet)
    assert (found, out) == (code, "") and err.startswith(start) and "Traceback" not in err
    assert len(err.splitlines()) == 1 or start == "Usage"
    assert not re.search("[╭─│]", err)


def test_a_threshold_out_of_range(run, scores, few):
    code, out, err = run("open-set", scores, "--k", "500", "--threshold", "99", *few, "--quiet")
    assert (code, out) == (2, "") and re.match(r"error: --threshold: .*\n$", err)


def test_numbers_of_classes_that_no_threshold_serves(run, strict, scores, few):
    """The others have their rates."""
    options = "--fpir", "1e-5", *few
    code, out, err = run("open-set", scores, "--k", "60,1000000000", *options, "--json")
    rows = strict(out)["predictions"]
    assert code == 0 and all((row["mean"] is None) == (row["k"] > 60) for row in rows)
    assert "1,000,000,000 classes" in err
    code, out, err = run("open-set", scores, "--k", "60,1000000000", *options)
    assert code == 0 and "FPIR  60 " in out and "nan" not in out
    code, _, err = run("open-set", scores, "--k", "1000000000", "--fpir", "0.04", *few)
    remedies = re.search("pass fpir=([0-9.]+) or prob_kept=([0-9.]+)$", err, re.M)
    kept = "--fpir", "0.04", "--prob-kept", remedies[2]
    for remedied in (("--fpir", remedies[1]), kept):
        _, out, _ = run("open-set", scores, "--k", "1000000000", *remedied, *few, "--json")
        assert None not in [row["mean"] for row in strict(out)["predictions"]]


def test_an_option_that_is_given_twice_is_an_error(run, scores):
    metrics = "--metric", "mrr", "--target", "0.9", "--metric=accuracy"
    code, out, err = run("extrapolate", scores, "--k", "60", *metrics)
    assert code == 2 and not out and "--metric: found it twice" in err


def test_remedies_of_the_library_are_options_of_the_shell(run, tmp_path):
    """Messages name arguments; the help says how they become options, which work."""
    assert "--ties unknown" in " ".join(run("--help")[1].split())
    y = np.repeat(np.arange(30), 2)
    scores = np.random.default_rng(1).normal(size=(60, 30)) + 2 * np.eye(30)[y]
    np.save(tmp_path / "labels.npy", y)
    for name, arrays, remedy, options in (
        ("alone.npy", scores, "labels=", ["--labels", "labels.npy"]),
        (
            "few.npz",
            {"ranks": [1, 1, 2], "y": [0, 1, 3], "n_classes": 4},
            "untested='competitors'",
            ["--untested", "competitors"],
        ),
        (
            "itself.npz",
            {"probes": scores, "gallery": scores, "y": range(60)},
            "ignore_identical=True",
            ["--ignore-identical"],
        ),
    ):
        if isinstance(arrays, dict):
            np.savez(tmp_path / name, **arrays)
        else:
            np.save(tmp_path / name, arrays)
        code, out, err = run("diagnose", name, "--strict")
        assert code and remedy in " ".join((out + err).split())
        assert remedy not in " ".join("".join(run("diagnose", name, *options)[1:]).split())


# Exit codes of answers


@pytest.mark.nightly
@pytest.mark.parametrize("verb", ["extrapolate", "compare", "report", "classifiers"])
def test_fits_that_did_not_converge_have_an_exit_code(run, two, verb):
    files = ["s.npz", "t.npz"][: 1 + (verb == "classifiers")]
    single = ["--draws", "100", "--chains", "1", *QUICK.get(verb, [])]
    code, out, err = run(verb, *files, "--k", "900", *single)
    assert code == 3 and "900" in out and "single chain" in err


@pytest.mark.nightly
def test_what_did_not_converge_is_noted_and_kept(run, two, strict):
    options = ["--k", "500", "--draws", 100, "--chains", 1, "--json", "--out", "."]
    code, out, err = run("extrapolate", "s.npz", *options)
    found = strict(out)
    problems, notes = found["diagnostics"]["problems"], [row["note"] for row in found["notes"]]
    assert code == 3 and problems and "not converged: " in err
    assert {f"not converged: {problem}" for problem in problems} <= set(notes)
    assert Path(paths(found)["figure"]).exists() and 0 <= found["predictions"][0]["mean"] <= 1


@pytest.mark.nightly
@pytest.mark.parametrize("verb", ["extrapolate", "report", "compare"])
def test_faulty_data_have_an_exit_code(run, two, verb):
    options = [verb, "bad.npz", "--k", "400", *CONVERGED, *QUICK.get(verb, [])]
    code, out, err = run(*options, "--quiet")
    assert code == 5 == run("diagnose", "bad.npz", "--strict")[0]
    fault, other = (out, err) if verb == "report" else (err, out)  # it makes all checks
    first = fault.splitlines()[0]
    assert first.startswith("failed: data: ") and "reversed" in first and "failed" not in other
    assert "400" in out  # the numbers are printed all the same
    # Without --quiet the warning comes when the file is read, and no second time.
    loud = run(*options)
    assert (loud[0], loud[1]) == (code, out)
    assert "failed" not in loud[2] and loud[2].count("reversed") == 1


@pytest.mark.nightly
def test_classifiers_with_faulty_data_have_an_exit_code(run, two):
    code, _, err = run("classifiers", "s.npz", "bad.npz", "--k", "60", *CONVERGED)
    assert code == 5 and err.count("reversed") == 1


@pytest.mark.nightly
def test_a_contradicted_pilot_has_an_exit_code(run, two, monkeypatch):
    failed = Finding("accuracy of the pilot", False, "the model contradicts it")
    monkeypatch.setattr(cb.BayesianExtrapolator, "checks_", (failed,))
    for verb in ("extrapolate", "report"):
        options = [verb, "s.npz", "--k", "60", *CONVERGED, "--quiet", *QUICK.get(verb, [])]
        assert run(*options)[0] == 5


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("target", "required", "code", "is_met"), [(0.05, 0.5, 0, True), (0.3, 0.5, 5, False)]
)
def test_a_requirement_is_an_exit_code(run, strict, two, target, required, code, is_met):
    options = ["s.npz", "--k", "60,400", "--target", target, "--require", required, *CONVERGED]
    found, out, err = run("extrapolate", *options, "--json")
    answer = strict(out)
    assert found == code and answer["required"] == {"probability": required, "is_met": is_met}
    probabilities = [row["probability"] for row in answer["prob_at_least"]["predictions"]]
    assert (min(probabilities) >= required) is is_met and "error" not in err
    assert answer["failed"] == []
    found, out, _ = run("extrapolate", *options, "--strict")
    first, *_ = lines = out.splitlines()
    assert found == code
    for k, chance in zip(("60", "400"), probabilities, strict=True):
        (line,) = (line for line in lines if f"on {k} classes: probability {chance:.3f}" in line)
        assert line.startswith("failed: ") is line.endswith("not met") is (chance < required)
    sound = "The checks found no fault", "Read with care"
    assert first.startswith(sound if is_met else "failed: ")


@pytest.mark.parametrize(("target", "code"), [("0.02", 0), ("0.9", 5)])
def test_gates_of_a_recommender(run, two, target, code):
    rng = np.random.default_rng(1)
    for name, odds in (("a", 1), ("b", 4)):  # b ranks the item that was chosen higher
        ranks = 1 + rng.binomial(99, rng.beta(0.4, odds, 300))
        np.savez(f"{name}.npz", ranks=ranks, y=np.arange(300), n_negatives=99)
    # With fewer draws, or with fewer errors, R-hat is above its limit in a few fits of a hundred,
    # and the exit code of convergence comes first.
    gate = ["--k", "200", "--k", "2000", "--metric", "hit_rate@10", "--require", "0.9"]
    gate += ["--draws", "2000", "--chains", "4"]
    found, out, _ = run("extrapolate", "a.npz", *gate, "--target", target)
    assert found == code
    met = "met" if code == 0 else "not met"
    for k in ("200", "2,000"):
        assert re.search(f"{target} on {k} items: .*: {met}$", out, re.M)
    found, out, _ = run("classifiers", "a.npz", "b.npz", "--no-paired", *gate, "--target", target)
    assert found == code
    assert out.count(f"required 0.9: {met}") == 4
    best, worst = ("b.npz", "a.npz") if code == 0 else ("a.npz", "b.npz")
    found, out, _ = run("classifiers", best, worst, "--no-paired", *gate)
    assert found == code and f"{best[0]} is the best on 2,000 items" in out


@pytest.mark.nightly
def test_the_gate_states_what_decides(run, tmp_path):
    scores, y = random_scores(3, 8, 4, lead=3)
    np.savez(tmp_path / "few.npz", scores=scores, y=y)
    code, out, _ = run("extrapolate", "few.npz", "--k", "5000", *CONVERGED, "--strict")
    assert code == 0 and out.startswith("Read with care") and "8 classes" in out


@pytest.mark.nightly
def test_the_gate_makes_the_checks_that_read_scores_again(run, strict, tmp_path):
    scores, y = random_scores(3, 60)
    np.savez(tmp_path / "twice.npz", scores=np.vstack([scores, scores]), y=np.tile(y, 2))
    fit = ["twice.npz", "--k", "60", *CONVERGED]
    assert run("extrapolate", *fit)[0] == 0
    code, out, _ = run("extrapolate", *fit, "--strict", "--json")
    (fault,) = strict(out)["failed"]
    assert code == 5 and fault.startswith("data: Copies of instances: 60 of 120")


# Files that cannot be written


FULL = OSError(28, "No space left on device")
# Verb, function that fails, its error.
LATE = {
    "figure": ("extrapolate", "plot_accuracy", RuntimeError("no fonts")),
    "report": ("report", "Path.replace", FULL),
    "posterior": ("extrapolate", "save", FULL),
    "curve": ("open-set", "plots.plot_det", RuntimeError("no fonts")),
}


@pytest.mark.nightly
@pytest.mark.parametrize("what", LATE)
def test_an_answer_outlives_its_files(run, scores, few, monkeypatch, tmp_path, strict, what):
    (verb, place, error), replace = LATE[what], Path.replace

    def fail(*arguments, **options):
        if what == "report" and Path(arguments[1]).suffix != ".html":
            return replace(*arguments)
        raise error

    root = "pathlib" if what == "report" else "classex_bayes"
    monkeypatch.setattr(f"{root}.{place}", fail)
    options = ["--out", "o.html" if verb == "report" else "o", "--k", "500", "--json", *few]
    options += ["--fpir", "0.1"] if verb == "open-set" else []
    code, out, err = run(verb, scores, *options)
    kept = paths(strict(out))
    (line,) = (line for line in err.splitlines() if line.startswith("error: "))
    assert code == 1 and "Traceback" not in err and str(error) in line
    assert set(kept) == ({"figure"} if what == "posterior" else {"posterior"})
    assert all((tmp_path / path).exists() for path in kept.values())
    assert strict(out)["predictions"][0]["k"] == 500


@pytest.mark.nightly
def test_a_gate_extrapolates_within_the_pilot(
    run, strict, tmp_path, constants, computed_once, monkeypatch
):
    monkeypatch.setattr(sampling, "sample_by_nutpie", computed_once)  # with its whole warm-up
    # Each of 60 classes has a near-duplicate, which small parts of the pilot hardly contain. The
    # model reproduces the pilot itself.
    rng = np.random.default_rng(2)
    gallery = rng.normal(size=(300, 12))
    gallery[:60] = gallery[60:120]
    probes = gallery + 0.6 * rng.normal(size=gallery.shape)
    gallery += 1e-3 * rng.normal(size=gallery.shape)
    squares = ((probes[:, None] - gallery) ** 2).sum(axis=2)
    np.savez(tmp_path / "twins.npz", scores=-squares, y=np.arange(300))
    options = "twins.npz", "--k", "500", "--draws", "2000", "--evidence", "ranks"
    with constants(extrapolation_check, _MOST_PARTS=8):
        assert run("extrapolate", *options)[0] == 0
        code, out, _ = run("extrapolate", *options, "--strict", "--json", "--out", "gate")
        assert code == 5
        (fault,) = strict(out)["failed"]
        files = [tmp_path / paths(strict(out))["posterior"]]
        code, out, _ = run("report", *options, "--no-references", "-o", "page.html", "--json")
        assert code == 5 and strict(out)["failed"] == [fault]
        files.append(tmp_path / paths(strict(out))["posterior"])
    assert fault.startswith("model: ") and "within the pilot" in fault and "too high" in fault
    for file in files:  # with the result of the check, which came after the fit
        (note,) = (note for note in cb.load(file).predict(500).notes if "within the pilot" in note)
        assert note.lower() == fault.removeprefix("model: ").lower()
