"""Writes the output of a command into docs/command_line.md."""

import subprocess
import sys

from studies.figures.questions import output
from studies.pages import write_parts

ARGUMENTS = (
    "extrapolate --recalls 1=.52,5=.843,10=.92 --n-test 25000 --n-classes 1000 --k 5000 --quiet"
)


def main() -> None:
    """Run the command that needs no file."""
    command = [sys.executable, "-m", "classex_bayes", *ARGUMENTS.split()]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    write_parts("command_line.md", {"recalls": output(printed)})
