"""Help, completion, defaults and streams."""

from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from typer.main import get_command

from classex_bayes import cli
from classex_bayes.bayes.sampling import SamplerSettings
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


@pytest.mark.nightly
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


@pytest.mark.nightly
def test_shells_complete_verbs_settings_and_choices(process):
    def completed(words):
        return process(
            _CLASSEX_BAYES_COMPLETE="complete_bash",
            COMP_WORDS=f"classex-bayes {words}",
            COMP_CWORD=str(len(words.split(" "))),
        ).stdout.split()

    assert completed("ex") == ["extrapolate"]
    assert completed("backtest --n-s") == ["--n-source"]
    assert completed("extrapolate --distance c") == ["cosine"]
