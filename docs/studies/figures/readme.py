"""README.md: its picture, and what `classex-bayes demo` and the code print."""

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import NullFormatter, PercentFormatter, StrMethodFormatter
from PIL import Image

import classex_bayes as cb
from studies.figures.outputs import with_outputs
from studies.figures.questions import output
from studies.pages import DOCS, write_parts

README = DOCS.parent / "README.md"
PICTURE = DOCS / "demo.png"
BLUE, ORANGE, GREY = "#0072b2", "#c04c00", "#555555"  # told apart by colour-blind readers
SIZE, DPI = (9, 5.2), 100  # 900 pixels, with letters that are legible at half this width


def run_demo() -> tuple[str, "cb.BayesianExtrapolator"]:
    """Run the command with its defaults: what it prints, and the posterior that it saves."""
    with TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "classex_bayes", "demo", "--out", folder]
        printed = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
        (path,) = Path(folder).glob("demo-*.nc")
        table, *_ = printed.partition("posterior written")  # only with --out
        return table, cb.load(path)


def draw(axis, model) -> None:
    """Draw pilot, prediction and truth, each with its name next to it."""
    whole = cb.load_glyphs().task()
    pilot = whole.subsample(model.predict(2).n_classes, random_seed=3)  # as in the demo
    size, end = pilot.n_classes, whole.n_classes
    k = np.unique(np.geomspace(2, end, 60).astype(int))
    pred, tested = model.predict(k), pilot.grid(14)
    limits = pred.interval(0.9)
    lower, upper = limits.iloc[-1]
    mean, truth = pred.mean.iloc[-1], whole.accuracy(end).item()

    axis.fill_between(k, limits["lower"], limits["upper"], color=BLUE, alpha=0.22, lw=0)
    axis.plot(k, pred.mean, color=BLUE, lw=3)
    beyond = k[k >= size]
    axis.plot(beyond, whole.accuracy(beyond), "--", color=ORANGE, lw=3)
    axis.plot(tested, pilot.accuracy(tested), "o", color="black", ms=9)
    axis.axvline(size, color=GREY, ls=":", lw=2)

    axis.text(2, 0.84, f"pilot:\n{size} classes\ntested", va="center")
    axis.text(1.2 * size, 0.94, f"predicted for up to\n{end:,} classes", color=BLUE, va="center")
    right = 1.12 * end
    interval = f"90% interval\n{100 * lower:.0f} to {upper:.0%}"
    axis.text(right, truth + 0.018, f"predicted {mean:.0%}\n{interval}", color=BLUE, va="bottom")
    axis.text(right, truth + 0.003, f"true accuracy\n{truth:.0%}", color=ORANGE, va="top")

    axis.set(xscale="log", xlim=(1.7, end), ylim=(0.63, 1.01))
    axis.set(xlabel="number of classes", ylabel="accuracy")
    axis.set_xticks([2, 10, 100, 1000])
    axis.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axis.xaxis.set_minor_formatter(NullFormatter())
    axis.yaxis.set_major_formatter(PercentFormatter(1, 0))
    axis.spines[["top", "right"]].set_visible(False)


def main() -> None:
    """Draw the picture, write what the command prints, and run the code on the same pilot."""
    printed, model = run_demo()
    with plt.rc_context({"font.size": 18}):
        figure, axis = plt.subplots(figsize=SIZE, layout="constrained")
        draw(axis, model)
        figure.savefig(PICTURE, dpi=DPI)
    Image.open(PICTURE).convert("RGB").quantize(64).save(PICTURE, optimize=True)

    write_parts("../README.md", {"demo": output(printed)})
    README.write_text(with_outputs(README.read_text("utf-8")), "utf-8")
