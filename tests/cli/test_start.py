"""What the command loads, and what it says where its extra is missing."""

import logging
import subprocess
import sys

import pytest

from classex_bayes.cli.console import Terminal


def test_the_command_without_its_extra_says_what_to_install():
    code = (
        "import sys; sys.modules['typer'] = None; from classex_bayes.__main__ import main; main()"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 2
    message = 'error: the command line needs typer: pip install "classex-bayes[cli]"\n'
    assert (run.stdout, run.stderr) == ("", message)


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


def test_quiet_silences_the_log_and_other_runs_do_not():
    log = logging.getLogger("classex_bayes")
    for quiet in (True, False):
        Terminal(quiet, as_json=False)
        assert log.isEnabledFor(logging.WARNING) is not quiet
