"""Draws the picture of README.md, that of `classex-bayes demo`, with letters for a phone."""

import os
import subprocess
import sys
from pathlib import Path
from shutil import copyfile
from tempfile import TemporaryDirectory

from studies.pages import DOCS


def main() -> None:
    """Run the command of README.md."""
    with TemporaryDirectory() as folder:
        settings = Path(folder, "matplotlibrc")
        settings.write_text("font.size: 14\n", encoding="utf-8")
        subprocess.run(
            [sys.executable, "-m", "classex_bayes", "demo", "--out", folder],
            env=os.environ | {"MATPLOTLIBRC": str(settings)},
            check=True,
        )
        (picture,) = Path(folder).glob("demo-*.png")
        copyfile(picture, DOCS / "demo.png")
