"""What the command loads, and what it says where its extra is missing."""

import logging
import subprocess
import sys

import numpy as np
import pytest
from helpers import ANSWERED

from classex_bayes.cli.console import Terminal
from classex_bayes.cli.options import present
from classex_bayes.exceptions import DataError


def test_the_command_without_its_extra_says_what_to_install():
    code = (
        "import sys; sys.modules['typer'] = None; from classex_bayes.__main__ import main; main()"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 2
    message = 'error: the command line needs typer: pip install "classex-bayes[cli]"\n'
    assert (run.stdout, run.stderr) == ("", message)


def test_an_interruption_of_the_start_is_no_traceback():
    code = (
        "import builtins, sys; from classex_bayes.__main__ import main\n"
        "def interrupted(*_): raise KeyboardInterrupt\n"
        "builtins.__import__ = interrupted\nmain()"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout, run.stderr) == (130, "", "interrupted\n")


# What `pip install "classex-bayes[cli]"` leaves out.
WITHOUT_EXTRAS = """
import sys
sys.modules.update(dict.fromkeys(["bokeh", "h5netcdf", "h5py", "jinja2", "matplotlib", "plotly"]))
"""


@pytest.mark.nightly
def test_an_answer_needs_no_extra_and_others_say_which(tmp_path):
    np.savez(tmp_path / "r.npz", ranks=np.arange(90) % 9 + 1, y=np.arange(90) % 30, n_classes=30)
    fit = ["r.npz", "--k", "99", "--draws", "50", "--chains", "2", "-q"]

    def run(*arguments):
        code = f"{WITHOUT_EXTRAS}from classex_bayes.__main__ import main; main()"
        command = [sys.executable, "-c", code, *arguments]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    answer = run("compare", *fit, "--bounds")
    assert answer.returncode in ANSWERED and "MomentBounds" in answer.stdout, answer.stderr
    for verb, extra in {"extrapolate": "files,plots", "backtest": "plots"}.items():
        needed = ["--n-source", "20"] if verb == "backtest" else []
        refused = run(verb, *fit, *needed, "--out", "results")
        assert refused.returncode == 2 and f'"classex-bayes[{extra}]"' in refused.stderr
    refused = run("report", *fit)
    assert refused.returncode == 2 and '"classex-bayes[report]"' in refused.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["r.npz"]


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["plot_accuracy", "plots.plot_det"])
def test_a_plot_without_its_extra_says_what_to_install(name):
    code = f"{WITHOUT_EXTRAS}from classex_bayes import *\nimport classex_bayes as cb\n"
    code += f"try:\n    cb.{name}()\n"
    code += "except ImportError as error:\n    print(error)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert '"classex-bayes[plots]"' in found.stdout


@pytest.mark.parametrize("verb", ["extrapolate", "compare", "report", "backtest"])
def test_a_missing_file_is_named_at_once(verb, tmp_path):
    code = (
        "import sys; from classex_bayes.cli import main\n"
        f"sys.argv = ['classex-bayes', '{verb}', 'nowhere.npz', '--k', '100']\n"
        "try:\n    main()\nfinally:\n    assert 'numpy' not in sys.modules"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (run.returncode, run.stderr) == (2, "error: nowhere.npz: there is no such file\n")


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(DataError, match="this is a folder, expected a file; name the files in it"):
        present([tmp_path])
    stored = tmp_path / "scores.zarr"
    stored.mkdir()
    assert present([stored]) == [stored]


def test_quiet_silences_the_log_and_other_runs_do_not():
    log = logging.getLogger("classex_bayes")
    for quiet in (True, False):
        Terminal(quiet, as_json=False)
        assert log.isEnabledFor(logging.WARNING) is not quiet
