"""Surroundings that fail: chains that diverge, folders that cannot be written, another locale."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers import paths

import classex_bayes
from classex_bayes.bayes import sampling


def test_a_sampler_that_diverges_is_noted(run, embeddings, monkeypatch, strict):
    draw = sampling.sample_by_nutpie

    def wild(prior, data, settings, seed):
        return draw(prior, data, replace(settings, target_accept=1e-9), seed)

    monkeypatch.setattr(sampling, "sample_by_nutpie", wild)
    options = ["--k", "500", "--draws", 100, "--chains", 2, "--json", "--out", "."]
    code, out, err = run("extrapolate", embeddings, *options)
    found = strict(out)
    problems = found["diagnostics"]["problems"]
    assert code == 3 and problems[-1].endswith("of 200 draws diverged")
    assert "not converged: " in err and Path(paths(found)["figure"]).exists()
    notes = [row["note"] for row in found["notes"]]
    assert {f"not converged: {problem}" for problem in problems} <= set(notes)
    assert 0 <= found["predictions"][0]["mean"] <= 1


# Writes nowhere but in its working folder and where numba keeps what it compiles, for all tests
# the same place: without that an answer takes a quarter of a minute.
READ_ONLY = """
import os, sys

places = [os.getcwd(), os.devnull, sys.argv.pop(1)]

def refuse(event, arguments):
    if event not in ("open", "os.mkdir") or not isinstance(arguments[0], str):
        return
    path = os.path.abspath(arguments[0])
    writes = event == "os.mkdir" or (arguments[2] or 0) & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
    if writes and not path.startswith(tuple(places)):
        raise OSError(30, "Read-only file system", path)

sys.addaudithook(refuse)
from classex_bayes.cli import main
main()
"""


@pytest.mark.slow
def test_a_first_answer_in_a_read_only_home_and_another_locale(
    run, strict, tmp_path, drawn_once, monkeypatch
):
    monkeypatch.setattr(sampling, "sample_by_nutpie", drawn_once)
    names = np.array(["ä", "b", "c"])
    lines = ["ä,b,c,y", *(f"{i % 5},{i % 3}.5,{i % 2},{names[i % 3]}" for i in range(12))]
    (tmp_path / "a.csv").write_bytes("\r\n".join(lines).encode())
    options = ["extrapolate", "a.csv", "--k", "9", "--draws", "50", "--chains", "2", "--out", "."]
    options += ["--json", "--quiet"]
    nowhere = dict.fromkeys(("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"), os.devnull)
    locale = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    compiled = os.environ.get("NUMBA_CACHE_DIR") or str(Path(classex_bayes.__file__).parent)
    found = subprocess.run(
        [sys.executable, "-c", READ_ONLY, compiled, *options],
        cwd=tmp_path, env={**os.environ, **nowhere, **locale, "TMPDIR": str(tmp_path)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert found.stderr == ""
    assert {"a.nc", "a.png"} <= {path.name for path in tmp_path.iterdir()}
    code, out, _ = run(*options)
    assert code == found.returncode == 3 and strict(out) == strict(found.stdout)
