"""The shell as a part of programs: streams, exit codes, JSON, no files; thin verbs and Python."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest
from documented_json import PAGE, conform, schemas, section
from helpers import ANSWERED, arrays_of, random_scores
from typer.main import get_command

import classex_bayes as cb
from classex_bayes import cli
from classex_bayes.bayes.law_model import LawModel
from classex_bayes.cli.exit_codes import ExitCode

FIT = ["--draws", "150", "--chains", "2"]
QUICK = {"report": ["--no-posterior", "--no-references"]}
TWO_PILOTS = ["--n-pilots", "2", "--jobs", "1"]
SMALL = {
    "extrapolate": ["s.npz", "--k", "60,9000", "--target", "0.5", *FIT],
    "compare": ["s.npz", "--k", "9000", *FIT],
    "classifiers": ["s.npz", "t.npz", "--k", "60,9000", *FIT],
    "diagnose": ["s.npz"],
    "plan": ["--k", "500", "--width", "0.3", "--classes", "60", "--repeats", "1", *TWO_PILOTS],
    "sensitivity": ["s.npz", "--k", "60,9000", *FIT],
    "open-set": ["s.npz", "--k", "9000", "--fpir", "0.1", *FIT],
    "backtest": ["s.npz", "--n-source", "50", "--k", "60", *TWO_PILOTS, "--draws", "100"],
}


@pytest.fixture
def task(tmp_path):
    scores, y = random_scores(3, 60, 3, lead=2)
    np.savez(tmp_path / "s.npz", scores=scores, y=y)
    np.savez(tmp_path / "t.npz", scores=scores - 0.5 * scores[::-1], y=y)
    return cb.SourceTask.from_scores(scores, y)


def verbs(command, name=""):
    for key, verb in command.commands.items():
        if hasattr(verb, "commands"):
            yield from verbs(verb, f"{name}{key} ")
        else:
            yield f"{name}{key}", verb


VERBS = dict(verbs(get_command(cli.app)))


def test_every_verb_is_tried():
    assert set(VERBS) == {*SMALL, "demo", "report"}


@pytest.mark.parametrize("verb", SMALL)
def test_results_and_words_have_their_streams(run, strict, task, tmp_path, verb):
    options = SMALL[verb]
    code, out, err = run(verb, *options)
    assert code in ANSWERED and "note" not in out and "Traceback" not in err
    notes = re.findall("^note.*", err, flags=re.MULTILINE)
    assert err and len(notes) == len(set(notes))
    # Lines of a pipe have no frames, and none is cut.
    assert not re.search("[╭─│┃━┏…]", out)
    again, text, err = run(verb, *options, "--quiet", "--json")
    assert (again, err) == (code, "") and strict(text)["verb"] == verb
    assert {path.name for path in tmp_path.iterdir()} == {"s.npz", "t.npz"}


def test_keys_do_not_depend_on_what_is_asked(run, strict, task):
    """`strict` compares with the page."""
    fit = ["s.npz", "--k", "60", "--json", *FIT]
    plain = strict(run("extrapolate", *fit)[1])
    asked = strict(run("extrapolate", *fit, "--metric", "mrr", "--ci-prob", "0.5")[1])
    assert set(plain) == set(asked) and set(plain["predictions"][0]) == set(asked["predictions"][0])
    with pytest.raises(AssertionError):
        conform({name: value for name, value in plain.items() if name != "notes"})
    with pytest.raises(AssertionError):
        conform({**plain, "ci_prob": "0.89"})


def test_the_page_has_the_json_of_every_verb():
    assert set(schemas()) == set(VERBS)
    for name, verb in VERBS.items():
        assert "--json" in {option for setting in verb.params for option in setting.opts}, name


def test_the_page_and_the_help_have_every_exit_code(run):
    table = re.findall(r"^\| (\d+) \| (.+) \|$", section("Exit codes"), re.MULTILINE)
    assert [(int(code), text) for code, text in table] == [(c.value, c.meaning) for c in ExitCode]
    words = " ".join(run("--help")[1].split())
    assert all(f"{code.value} {code.meaning}" in words for code in ExitCode)


def test_options_stand_in_one_order():
    """Any two options that two verbs share have the same order there."""
    orders = [[s.opts[0] for s in verb.params] for verb in VERBS.values()]
    pairs = {(a, b) for order in orders for i, a in enumerate(order) for b in order[i + 1 :]}
    assert {(a, b) for a, b in pairs if (b, a) in pairs} == set()


@pytest.mark.parametrize(
    ("target", "required", "code", "is_met"), [(0.05, 0.5, 0, True), (0.3, 0.5, 5, False)]
)
def test_a_requirement_is_an_exit_code(run, strict, task, target, required, code, is_met):
    options = ["s.npz", "--k", "60,400", "--target", target, "--draws", "500", "--chains", "4"]
    found, out, err = run("extrapolate", *options, "--require", required, "--json")
    answer = strict(out)
    assert found == code and answer["required"] == {"probability": required, "is_met": is_met}
    probabilities = [row["probability"] for row in answer["prob_at_least"]["predictions"]]
    assert (min(probabilities) >= required) is is_met and "error" not in err
    assert answer["failed"] == []


def test_a_requirement_needs_a_target(run, task):
    code, out, err = run("extrapolate", "s.npz", "--k", "60", "--require", "0.9")
    assert (code, out) == (2, "") and err.startswith("error: --require: found 0.9 without --target")


@pytest.mark.nightly
def test_a_reader_that_is_gone_ends_the_program_in_silence(task, tmp_path):
    command = [sys.executable, "-W", "error", "-m", "classex_bayes", "diagnose", "s.npz", "--json"]
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    reader, writer = os.pipe()
    os.close(reader)
    found = subprocess.run(
        command, cwd=tmp_path, stdout=writer, stderr=subprocess.PIPE, env=buffered, check=False
    )
    os.close(writer)
    assert found.returncode == ExitCode.READER_GONE and b"rror" not in found.stderr


def test_help_and_errors_have_no_frames_in_a_pipe(run):
    for arguments in (["--help"], ["plan", "--help"], ["plan"], ["plan", "--k", "9", "--no"]):
        code, out, err = run(*arguments)
        assert code in (0, 2) and "Usage" in out + err and not re.search("[╭─│]", out + err)


# Thin verbs


def test_diagnose_is_the_library(run, strict, task, tmp_path):
    report = cb.diagnose(task, random_seed=4)
    code, out, _ = run("diagnose", "s.npz", "--seed", 4)
    assert (code, out) == (0, f"{report!r}\n")
    scores, y = random_scores(3, 60, 3, lead=-2)
    np.savez(tmp_path / "bad.npz", scores=scores, y=y)
    assert run("diagnose", "bad.npz")[0] == 0
    # An accurate classifier has few errors and no fault.
    scores, y = random_scores(3, 60, 3, lead=5)
    np.savez(tmp_path / "good.npz", scores=scores, y=y)
    code, out, _ = run("diagnose", "good.npz", "--strict")
    assert code == 0 and "nothing found" in out and "\nnote         number of errors" in out
    code, out, _ = run("diagnose", "bad.npz", "--strict", "--json")
    failed = [check["name"] for check in strict(out)["checks"] if check["passed"] is False]
    assert code == 5 and "accuracy on few classes" in failed and not strict(out)["passed"]


def test_plan_is_the_library(run, strict):
    options = ["--k", "1e3", "--guess", "100=0.9", "--excludes", "0.9", "--classes", "60"]
    options += ["--repeats", "1", "--n-pilots", "2", "--seed", "2", "--ci-prob", "0.8", "--jobs", 1]
    code, out, _ = run("plan", *options, "--json")
    found, settings = strict(out), {"n_pilots": 2, "random_seed": 2, "ci_prob": 0.8, "n_jobs": 1}
    expected = cb.plan({100: 0.9}, 1000, excludes=0.9, classes=[60], repeats=[1], **settings)
    assert code == 0 and [row["reached"] for row in found["designs"]] == [None]
    for name in expected.table:
        np.testing.assert_allclose([row[name] for row in found["designs"]], expected.table[name])
    assert found["advice"] == expected.advice and found["width"] is None


def test_plan_from_a_pilot(run, strict, task):
    code, out, err = run("plan", "s.npz", *SMALL["plan"], "--json")
    accuracy = strict(out)["assumed"]["mean"]
    assert code == 0 and 0.05 < accuracy < task.accuracy(60)[0] and "SourceTask: 60 classes" in err


WRONG = {
    "two k": (["--k", "9,99", "--width", "0.1"], "--k"),
    "nothing": (["--k", "9"], "--width, --excludes"),
    "guess": (["--k", "9", "--width", "0.1", "--guess", "100:0.9"], "--guess"),
    "both": (["s.npz", "--k", "9", "--width", "0.1", "--guess", "9=0.9"], "--guess"),
    "word": (["--k", "9", "--excludes", "luck"], "excludes"),
}


@pytest.mark.parametrize(("options", "name"), WRONG.values(), ids=WRONG)
def test_plans_that_make_no_sense_are_one_line(run, task, options, name):
    code, out, err = run("plan", *options)
    assert (code, out) == (2, "") and err.startswith(f"error: {name}: ") and err.count("\n") == 1


def test_classifiers_are_compared_as_in_the_library(run, strict, task):
    options = ["classifiers", "s.npz", "t.npz", "--k", "60,900", *FIT, "--seed", 5]
    code, out, err = run(*options, "--metric", "recall@2", "--ci-prob", "0.8", "--json")
    second = cb.read_task("t.npz")
    expected = cb.compare_classifiers(
        {"s": task, "t": second},
        [60, 900],
        metric="recall@2",
        sampler={"draws": 150, "chains": 2},
        random_seed=5,
        progressbar=False,
    )
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
    _, words, _ = run(*options)
    assert "s minus t at k = 900: " in words and "above 0 with probability" in words


@pytest.mark.parametrize("verb", ["extrapolate", "compare", "report", "classifiers", "sensitivity"])
def test_fits_that_did_not_converge_have_an_exit_code(run, task, verb):
    files = ["s.npz", "t.npz"][: 1 + (verb == "classifiers")]
    single = ["--draws", "100", "--chains", "1", *QUICK.get(verb, [])]
    code, out, err = run(verb, *files, "--k", "900", *single)
    assert code == ExitCode.NOT_CONVERGED and "900" in out
    assert "a single chain cannot show whether it converged" in err


def test_classifiers_with_faulty_data_have_an_exit_code(run, task):
    scores = arrays_of("s.npz")
    np.savez("reversed.npz", scores=-scores["scores"], y=scores["y"])
    code, _, err = run("classifiers", "s.npz", "reversed.npz", "--k", "60", *CONVERGED)
    assert code == 5 and "reversed" in err and err.count("among 2 classes") == 1
    code, _, err = run("classifiers", "s.npz", "s.npz", "--k", "60", *FIT)
    assert code == 2 and "a file twice" in err


def test_one_classifier_is_no_comparison(run, task):
    code, out, err = run("classifiers", "s.npz", "--k", "900")
    assert (code, out) == (2, "") and err.startswith("error: FILES: expected one for each")


def test_sensitivity_is_the_library(run, strict, task):
    code, out, _ = run("sensitivity", "s.npz", "--k", "60,900", *FIT, "--seed", 5, "--json")
    model = cb.BayesianExtrapolator().fit(
        task, sampler={"draws": 150, "chains": 2}, random_seed=5, progressbar=False
    )
    expected, rows = cb.sensitivity(model, [60, 900]), strict(out)["rows"]
    assert code in ANSWERED and strict(out)["sentences"] == list(expected.sentences)
    for name in ("mean", "prior", "likelihood_pull"):
        np.testing.assert_allclose([row[name] for row in rows], expected.table[name])


def test_the_page_shows_commands_that_exist():
    for verb in re.findall(r"^(?:\t)?classex-bayes ([\w-]+)", PAGE, re.MULTILINE):
        assert verb in {name.split()[0] for name in VERBS}


# Faulty data and the gate

CONVERGED = ["--draws", "500", "--chains", "4"]


@pytest.mark.parametrize("verb", ["extrapolate", "report", "compare", "sensitivity"])
def test_faulty_data_have_an_exit_code(run, tmp_path, verb):
    scores, y = random_scores(3, 60, 3, lead=-2)
    np.savez(tmp_path / "bad.npz", scores=scores, y=y)
    options = [verb, "bad.npz", "--k", "400", *CONVERGED, *QUICK.get(verb, [])]
    code, out, err = run(*options, "--quiet")
    assert code == ExitCode.NOT_MET == run("diagnose", "bad.npz", "--strict")[0]
    fault, other = (out, err) if verb == "report" else (err, out)  # it makes all checks
    first = fault.splitlines()[0]
    assert first.startswith("failed: data: ") and "sign of the scores is reversed" in first
    assert "400" in out  # the numbers are printed all the same
    assert "reversed" not in other and "failed" not in other
    # Without --quiet the warning comes when the file is read, and no second time.
    loud = run(*options)
    assert (loud[0], loud[1]) == (code, out) and "warning: the accuracy among 2" in loud[2]
    assert "failed" not in loud[2] and loud[2].count("among 2 classes") == 1


def test_a_contradicted_pilot_has_an_exit_code(run, task, monkeypatch):
    monkeypatch.setattr(LawModel, "contradiction_", "the model contradicts its pilot")
    fit = ["s.npz", "--k", "60", *CONVERGED]
    said = "failed: model: The model contradicts its pilot"
    code, _, err = run("extrapolate", *fit, "--quiet")
    assert (code, err.strip()) == (ExitCode.NOT_CONVERGED, said)
    code, out, _ = run("report", *fit, "--quiet", *QUICK["report"])
    assert code == ExitCode.NOT_CONVERGED and said in out


def test_the_gate_passes(run, task):
    gate = ["s.npz", "--k", "60", "--strict", "--target", "0.05", "--require", "0.5", *CONVERGED]
    code, out, _ = run("extrapolate", *gate)
    assert code == 0 and out.splitlines()[0] == "passed: all checks"


def test_the_gate_names_the_requirement_first(run, task):
    wanted = "--target", "0.9", "--require", "0.95"
    code, out, _ = run("extrapolate", "s.npz", "--k", "400", "--strict", *wanted, *CONVERGED)
    first = out.splitlines()[0]
    assert code == 5 and first.startswith("failed: accuracy at least 0.9 on 400 classes")


def test_the_gate_makes_the_checks_that_read_scores_again(run, strict, tmp_path):
    scores, y = random_scores(3, 60)
    np.savez(tmp_path / "twice.npz", scores=np.vstack([scores, scores]), y=np.tile(y, 2))
    fit = ["twice.npz", "--k", "60", *CONVERGED]
    assert run("extrapolate", *fit)[0] == 0
    code, out, _ = run("extrapolate", *fit, "--strict", "--json")
    (fault,) = strict(out)["failed"]
    assert code == 5 and fault.startswith("data: Copies of instances: 60 of 120 instances repeat")
