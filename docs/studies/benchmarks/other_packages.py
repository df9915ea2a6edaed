"""Comparison with the packages of the papers, on the same data and in one run."""

import json
import subprocess
from collections.abc import Callable, Sequence, Set
from pathlib import Path
from shutil import which
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from classex_bayes import KDE, ClassExReg, Extrapolation, SourceTask, load_glyphs
from classex_bayes.estimators import PitmanYor
from classex_bayes.estimators.classexreg import basis_columns
from classex_bayes.typing import FloatArray
from studies.benchmarks.measurement import Measurement, Setup, Skipped, seconds

_K = np.array([200, 1000, 3000])
_REPEATS = 5
# Arguments: library, scores, labels from 1, numbers of classes, repeats. Each call prints a line
# with its name, its seconds and its predictions. ClassEx needs pracma loaded.
_R = """
given <- commandArgs(TRUE)
.libPaths(c(given[1], .libPaths()))
suppressMessages({library(pracma); library(ClassEx)})
scores <- as.matrix(read.csv(given[2], header = FALSE))
y <- scan(given[3], quiet = TRUE)
k <- as.numeric(strsplit(given[4], ",")[[1]])
k1 <- ncol(scores)
largest <- qnorm(1 - 1 / k1^2)
calls <- list(
  "KDE(ucv)" = function() kernel_extrap(scores, y, k, "ucv"),
  "ClassExReg" = function() ClassExReg(
    scores, y, lapply(1:10 / 10, function(h) get_gaussian_basis_mat(largest, h, 2:k1, k)),
    2:k1, 25
  )
)
for (name in names(calls)) for (i in 1:as.numeric(given[5])) {
  start <- proc.time()[["elapsed"]]
  predicted <- suppressWarnings(calls[[name]]())
  took <- proc.time()[["elapsed"]] - start
  cat(name, sprintf("%.17g", c(took, predicted)), "\\n")
}
"""
# The same for pydataless. Its argument is JSON: numbers of classes, their accuracies, numbers of
# classes to predict, repeats.
_PYDATALESS = """
import json, sys, time
import numpy as np
from dataless import PYPExtrapolation
measured_k, accuracy, k, repeats = json.loads(sys.argv[1])
for _ in range(repeats):
    start = time.perf_counter()
    model = PYPExtrapolation(np.array(measured_k), correctness=np.array(accuracy))
    predicted = np.asarray(model.predict(np.array(k)), dtype=float)
    print("PitmanYor", time.perf_counter() - start, *predicted.tolist())
"""


def classex(setup: Setup) -> list[Measurement]:
    """Speed relative to the R package ClassEx, on 100 characters."""
    if which("Rscript") is None or setup.r_library is None:
        raise Skipped(
            'needs R with ClassEx: Rscript -e \'remotes::install_github("snarles/ClassEx", '
            "lib = FOLDER)', then --r-library FOLDER"
        )
    glyphs = load_glyphs().task().subsample(20 if setup.small else 100, random_seed=3)
    matrix = glyphs.scores.scores(np.arange(glyphs.n_test))
    task = SourceTask.from_scores(matrix, glyphs.y)
    with TemporaryDirectory() as folder:
        scores, labels, script = (Path(folder) / name for name in ("scores", "labels", "script.R"))
        np.savetxt(scores, matrix, "%.17g", ",")
        np.savetxt(labels, task.y + 1, "%d")
        script.write_text(_R, "utf-8")
        sizes, repeats = ",".join(map(str, _K)), str(_repeats(setup))
        command: list[str | Path] = [
            "Rscript",
            script,
            setup.r_library,
            scores,
            labels,
            sizes,
            repeats,
        ]
        theirs = _timed(command, {"KDE(ucv)", "ClassExReg"})

    def regression() -> Extrapolation:
        basis_columns.cache_clear()  # R computes the basis, too
        return ClassExReg(n_resamples=25, random_seed=1).fit(task).predict(_K)

    ours: dict[str, Callable[[], Any]] = {
        "KDE(ucv)": lambda: KDE("ucv").fit(task).predict(_K).mean.to_numpy(),
        "ClassExReg": regression,
    }
    measurements = [row for name in ours for row in _compared(name, "R", ours[name], theirs[name])]
    apart = np.abs(ours["KDE(ucv)"]() - theirs["KDE(ucv)"][0][1:]).max()
    text = "largest difference of KDE(ucv) from R"
    return [*measurements, Measurement(text, [float(apart)], 1e-3, "accuracy", True)]


def pydataless(setup: Setup) -> list[Measurement]:
    """Speed relative to pydataless, on a curve of 100 characters."""
    if setup.pydataless is None:
        raise Skipped(
            "needs a separate environment: python -m venv FOLDER, FOLDER/bin/pip install "
            "pydataless==1.1.0, then --pydataless FOLDER/bin/python"
        )
    task = load_glyphs().task().subsample(100, random_seed=3)
    measured_k = np.array([2, 3, 5, 10, 20, 50, 100])
    accuracy = task.accuracy(measured_k)
    curve = SourceTask.from_accuracies(measured_k, accuracy, n_test=task.n_test, n_classes=100)
    given = json.dumps([measured_k.tolist(), accuracy.tolist(), _K.tolist(), _repeats(setup)])
    theirs = _timed([setup.pydataless, "-c", _PYDATALESS, given], {"PitmanYor"})["PitmanYor"]

    def ours() -> FloatArray:
        return PitmanYor().fit(curve).predict(_K).mean.to_numpy()

    apart = float(np.abs(ours() - theirs[0][1:]).max())
    text = "largest difference of PitmanYor from pydataless"
    difference = Measurement(text, [apart], 1e-3, "accuracy", True)
    return [*_compared("PitmanYor", "pydataless", ours, theirs), difference]


def _repeats(setup: Setup) -> int:
    return 2 if setup.small else _REPEATS


def _timed(command: Sequence[str | Path], expected: Set[str]) -> dict[str, list[list[float]]]:
    """Run a program; return its output lines (seconds, then predictions) by their first word."""
    try:
        ran = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    except OSError as error:
        raise Skipped(f"{command[0]} cannot be started: {error.strerror}") from error
    lines: dict[str, list[list[float]]] = {}
    for name, *numbers in (line.split() for line in ran.stdout.splitlines()):
        lines.setdefault(name, []).append([float(number) for number in numbers])
    if ran.returncode or expected - lines.keys():
        errors = ran.stderr.strip().splitlines() or ["it printed no error"]
        raise Skipped(f"{command[0]} failed: {errors[-1]}")
    return lines


def _compared(
    name: str, package: str, ours: Callable[[], object], theirs: list[list[float]]
) -> list[Measurement]:
    """Time of another package, and our speed relative to it. A first call warms up."""
    ours()
    times = [line[0] for line in theirs]
    ratios = [time / seconds(ours) for time in times]
    return [
        Measurement(f"{package}'s {name}", times, None, "seconds", at_most=True),
        Measurement(name, ratios, 1, f"times {package}'s rate"),
    ]
