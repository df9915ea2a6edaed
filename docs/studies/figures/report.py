"""Draws the picture of the report in docs/command_line.md; it needs Chromium."""

import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image

import classex_bayes as cb
from studies.pages import FIGURES

PICTURE = FIGURES / "report.png"
SIZE = 1010, 1240


def main():
    """Write a page on 200 of the packaged characters, and photograph its beginning."""
    task = cb.load_glyphs().task().subsample(200, random_seed=1)
    model = cb.BayesianExtrapolator().fit(task, random_seed=1, progressbar=False)
    with TemporaryDirectory() as folder:
        path = Path(folder, "report.html")
        cb.write_report(
            model, [1000, 2965], path, target=0.7,
            source="200 of 2965 printed characters",
        )  # fmt: skip
        subprocess.run(
            [
                shutil.which("chromium") or "google-chrome", "--headless", "--no-sandbox",
                "--hide-scrollbars", "--window-size={},{}".format(*SIZE),
                f"--screenshot={PICTURE}", path.absolute().as_uri(),
            ],
            check=True,
        )  # fmt: skip
    # A palette shows no less, at a third of the bytes; this one keeps the colours of thin lines.
    palette = Image.open(PICTURE).convert("RGB").quantize(256, Image.Quantize.MAXCOVERAGE)
    palette.save(PICTURE, optimize=True)
