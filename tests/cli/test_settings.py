"""Help, completion, streams, and settings from a file."""

import re
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from helpers import ANSWERED
from typer.main import get_command

from classex_bayes import cli
from classex_bayes.bayes.sampling import SamplerSettings
from classex_bayes.cli import analysis
from classex_bayes.evaluate.trials import SAMPLER


def verbs(command, name="classex-bayes"):
    for key, verb in command.commands.items():
        if hasattr(verb, "commands"):
            yield from verbs(verb, f"{name} {key}")
        else:
            yield f"{name} {key}", verb


VERBS = dict(verbs(get_command(cli.app)))


@pytest.mark.parametrize("name", VERBS)
def test_every_verb_shows_examples_that_it_would_run(name, run, tmp_path):
    code, out, _ = run(*name.split()[1:], "--help")
    examples = VERBS[name].epilog.split("\n\n")[1:]
    assert code == 0 and "Examples:" in out and examples
    (tmp_path / "settings.toml").write_text("k = 9")
    root, called = get_command(cli.app), []
    dict(verbs(root))[name].callback = lambda **settings: called.append(settings)
    for example in examples:
        for word in example.split():  # files of these names
            if Path(word).suffix in {".npz", ".npy", ".csv", ".h5", ".parquet"}:
                (tmp_path / word).touch()
        root.main(example.split()[1:], "classex-bayes", standalone_mode=False)
    assert example.startswith(name) and len(called) == len(examples)


def test_defaults_are_those_of_python():
    for verb, fit in (("extrapolate", asdict(SamplerSettings())), ("backtest", SAMPLER)):
        defaults = {p.name: p.default for p in VERBS[f"classex-bayes {verb}"].params}
        assert (defaults["draws"], defaults["chains"]) == (fit["draws"], fit["chains"])
        assert defaults["ci_prob"] is None


def test_output_that_is_piped_has_no_colours(tmp_path, process, run, monkeypatch):
    terminal = {"TERM": "xterm-256color"}
    for verb in ([], ["extrapolate"]):
        found = process(*verb, "--help", **terminal)
        assert "\x1b" not in found.stdout + found.stderr and "extrapolate" in found.stdout
    bad = process("extrapolate", tmp_path / "missing.npz", "--k", "9", **terminal)
    assert bad.returncode == 2 and bad.stdout == "" and "\x1b" not in bad.stderr
    assert bad.stderr.startswith("error: ") and len(bad.stderr.splitlines()) == 1
    np.savez(tmp_path / "s.npz", ranks=np.arange(40) % 7 + 1, y=np.arange(40), n_classes=40)
    monkeypatch.setenv(*terminal.popitem())
    code, out, err = run("extrapolate", "s.npz", "--k", "99", "--draws", "50", "--chains", "1")
    assert "\x1b" not in out + err and "Expected accuracy, from 40 source classes" in out
    assert code == 3  # a single chain cannot show whether it converged


def test_shells_complete_verbs_settings_and_choices(process):
    def completed(words):
        return process(
            _CLASSEX_BAYES_COMPLETE="complete_bash",
            COMP_WORDS=f"classex-bayes {words}",
            COMP_CWORD=str(len(words.split(" "))),
        ).stdout.split()

    assert completed("ex") == ["extrapolate"]
    assert completed("backtest --n-s") == ["--n-source"]
    assert completed("extrapolate --embedding-metric c") == ["cosine"]


# Settings from a file


SETTINGS = """
k = [60, 5_000]
draws = 150
no-files = true
chains = 2
seed = 3
target = 0.6

[extrapolate]
ci-prob = 0.8
json = true

[backtest]
n-source = 50
"""


def test_settings_come_from_a_file_and_flags_go_before(run, strict, embeddings, few, tmp_path):
    (tmp_path / "run.toml").write_text(SETTINGS)
    by_flags = run(
        "extrapolate", embeddings, "--k", "60,5000", "--target", "0.6", "--ci-prob", "0.8",
        "--json", "--no-files", *few,
    )  # fmt: skip
    by_file = run("extrapolate", embeddings, "--config", "run.toml")
    assert by_flags[0] == by_file[0] in ANSWERED and strict(by_flags[1]) == strict(by_file[1])
    mixed = run("extrapolate", "--config", "run.toml", embeddings, "--k", "300", "--seed", "4")
    found = strict(mixed[1])
    assert [row["k"] for row in found["predictions"]] == [300] and found["seed"] == 4


def test_files_may_be_settings(run, strict, embeddings, tmp_path):
    (tmp_path / "run.toml").write_text(f'{SETTINGS}\n[compare]\nfiles = ["{embeddings}"]\n')
    code, out, _ = run("compare", "--config", "run.toml", "--json")
    assert code in ANSWERED and strict(out)["task"]["n_classes"] == 60


# Contents with what the error names.
WRONG = {
    "unknown": ("targt = 0.9", "--config: run.toml has 'targt'"),
    "of another verb": ("[extrapolate]\nn-source = 5", "--config: run.toml has 'n-source'"),
    "no verb": ("[predict]\nk = 5", "--config: run.toml has 'predict'"),
    "itself": ("config = 'run.toml'", "--config: run.toml has 'config'"),
    "no TOML": ("k: 5", "--config: run.toml"),
    "no text": (b"\xff\xfe", "--config: run.toml"),
    "bad value": ("k = 'many'", "--k"),
}


@pytest.mark.parametrize(("content", "name"), WRONG.values(), ids=WRONG)
def test_bad_settings_are_one_line(run, embeddings, tmp_path, monkeypatch, content, name):
    monkeypatch.setattr(analysis, "fitted", None)
    (tmp_path / "run.toml").write_bytes(content if isinstance(content, bytes) else content.encode())
    k = [] if content == "k = 'many'" else ["--k", "9"]
    code, out, err = run("extrapolate", embeddings, *k, "--config", "run.toml", "--quiet")
    assert code == 2 and out == ""
    assert err.startswith(f"error: {name}") and len(err.splitlines()) == 1


def test_flags_of_a_file_are_taken_back_and_underscores_do(run, strict, scores, tmp_path):
    settings = ["distances = true", "json = true", "no_files = true", "ci_prob = 0.8", "k = 300"]
    (tmp_path / "run.toml").write_text("\n".join([*settings, "draws = 150", "chains = 2"]))
    code, out, _ = run("extrapolate", scores, "--config", "run.toml")
    assert code in ANSWERED and strict(out)["predictions"][0]["mean"] < 0.1
    code, out, _ = run("extrapolate", scores, "--config", "run.toml", "--scores", "--no-json")
    assert code in ANSWERED and "80% interval" in out and re.search(r" 300 +0\.[4-8]", out)


def test_a_file_of_settings_that_is_not_there(run, embeddings):
    code, out, err = run("extrapolate", embeddings, "--k", "9", "--config", "none.toml")
    assert code == 2 and out == "" and err.startswith("error: --config: cannot read none.toml")


@pytest.mark.parametrize(
    ("setting", "option"),
    [("draws = 'many'", "--draws"), ("ci-prob = 90", "--ci-prob"), ("json = 5.5", "--json")],
)
def test_values_of_a_wrong_type_are_refused(run, embeddings, tmp_path, setting, option):
    (tmp_path / "run.toml").write_text(setting)
    code, out, err = run("extrapolate", embeddings, "--k", "9", "--config", "run.toml")
    assert code == 2 and out == "" and re.search(f"Invalid value for '?{option}", err)
