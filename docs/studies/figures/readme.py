"""Writes what the commands and the code of README.md print."""

import subprocess
import sys

import numpy as np

import classex_bayes as cb
from studies.figures.roles import with_outputs
from studies.pages import DOCS, write_parts

README = DOCS.parent / "README.md"


def main() -> None:
    """Run the command, and the code with the scores of the command's pilot."""
    command = [sys.executable, "-m", "classex_bayes", "demo"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    write_parts("../README.md", {"demo": f"```text\n{printed.rstrip()}\n```"})
    task = cb.load_glyphs().task().subsample(100, random_seed=3)
    scores = -np.sqrt(-task.scores.scores(np.arange(task.n_test)))  # distances, negated
    README.write_text(with_outputs(README.read_text("utf-8"), scores=scores, y=task.y), "utf-8")
