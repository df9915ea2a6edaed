"""The command where its extra is not installed."""

import subprocess
import sys


def test_the_command_without_its_extra_says_what_to_install():
    code = (
        "import sys; sys.modules['typer'] = None; from classex_bayes.__main__ import main; main()"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    message = 'error: the command line needs typer: pip install "classex-bayes[cli]"\n'
    assert (run.stdout, run.stderr) == ("", message)
