"""Waits of a user: whole processes of the command line, of one version or of several in turn."""

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import numpy as np

from classex_bayes import load_glyphs
from studies.benchmarks.measurement import Measurement, Setup
from studies.pages import DOCS


@dataclass(frozen=True)
class Wait:
    """Arguments of `classex-bayes`, and the longest time in seconds that is our target."""

    arguments: str
    target: float | None = None
    new_machine: bool = False  # whether nothing is compiled
    exit_codes: Sequence[int] = (0,)
    of_import: bool = False  # whether target and time are multiples of the time of `_IMPORT`
    program: Sequence[str] = ("-m", "classex_bayes")


_IMPORT = Wait("", program=("-c", "import numpy, scipy.stats, pandas"))
_EXTRAPOLATION = "extrapolate scores.npz --k 1000,3000"
WAITS = {
    "later": Wait(_EXTRAPOLATION, 3),
    "first": Wait(_EXTRAPOLATION, 10, new_machine=True),
    "json": Wait("extrapolate scores200.npz --k 1000,3000 --json", 3, of_import=True),
    "help": Wait("--help", 1),
    "error": Wait("extrapolate missing.npz --k 1000", 1, exit_codes=[2]),
    "open-set": Wait("open-set scores.npz --k 1000 --fpir 0.01"),
    # Chains mix slowly on a softmax. The processor decides whether these pass the diagnostics.
    "many-ranks": Wait("extrapolate many_ranks.npz --k 1000", exit_codes=[0, 3]),
    # In a million instances posterior_checks finds that the tails of a softmax are no power law.
    "many-scores": Wait("extrapolate many_scores.npz --k 1000", exit_codes=[3, 5]),
}
# Runs a command; prints its seconds and the peak memory of its largest process in kilobytes. The
# memory of a process counts from that of its parent, so the parent is a small process.
_METER = """
import resource, subprocess, sys, time
start = time.perf_counter()
ended = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL)
took = time.perf_counter() - start
print(took, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(ended.returncode)
"""


def waits(setup: Setup) -> list[Measurement]:
    """Time and memory of the command line.

    In `first`, Python and numba still have to compile everything. The others have run before.
    The time of `json` is relative to that of `import numpy, scipy.stats, pandas`.
    `scores.npz` has 300 instances of 100 characters, and `scores200.npz` 600 of 200.
    `many_ranks.npz` and `many_scores.npz` have 1,000,000 instances of 20 classes.
    """
    import typer  # noqa: F401, since the shell needs it

    measurements = []
    versions = setup.versions or (DOCS.parent,)
    with TemporaryDirectory() as name:
        folder = Path(name)
        _write_files(folder, setup.small)
        for key in setup.waits or WAITS:
            wait = WAITS[key]
            repeats, unit = 1 if setup.small else 3, "seconds"
            runs = _in_turn(versions, wait, folder, repeats)
            for version, costs in zip(versions, runs, strict=True):
                text = f"{key}: `{wait.arguments}`" + (f", {version}" if setup.versions else "")
                times, memory = zip(*costs, strict=True)
                if wait.of_import:
                    (imports,), unit = _in_turn([version], _IMPORT, folder, repeats), "imports"
                    usual = median(took for took, _ in imports)
                    times = tuple(took / usual for took in times)
                measurements.append(Measurement(text, times, wait.target, unit, True, max(memory)))
            for version, costs in zip(versions[1:], runs[1:], strict=True):
                ratios = [new / old for (old, _), (new, _) in zip(runs[0], costs, strict=True)]
                text = f"{key}: {version} / {versions[0]}, pair by pair"
                measurements.append(Measurement(text, ratios, None, "times the time", True))
    return measurements


def _in_turn(
    versions: Sequence[Path], wait: Wait, folder: Path, repeats: int
) -> list[list[tuple[float, float]]]:
    """Seconds and megabytes of each run of each version, which follow each other: A B A B.

    The first round warms up.
    """
    runs: list[list[tuple[float, float]]] = [[] for _ in versions]
    for turn in range(repeats + 1):
        for number, version in enumerate(versions):
            compiled = folder / f"compiled-{number}{f'-{turn}' if wait.new_machine else ''}"
            runs[number].append(_run(version, wait, folder, compiled))
    return [costs[1:] for costs in runs]


def _run(version: Path, wait: Wait, folder: Path, compiled: Path) -> tuple[float, float]:
    """Run the command line of a Python, or of a clone with this Python, in a folder."""
    clone = (version / "classex_bayes").is_dir()
    python = sys.executable if clone else version.absolute()
    command = [python, *wait.program, *wait.arguments.split()]
    environment = {
        **os.environ,
        "PYTHONDONTWRITEBYTECODE": "",  # else every process would compile Python anew
        "PYTHONPATH": str(version.absolute()) if clone else "",
        "PYTHONPYCACHEPREFIX": str(compiled),
        "NUMBA_CACHE_DIR": str(compiled),
    }
    meter = [sys.executable, "-c", _METER, *map(str, command)]
    ran = subprocess.run(meter, env=environment, cwd=folder, capture_output=True, text=True)
    assert ran.returncode in wait.exit_codes, f"{version}: {wait.arguments}: {ran.stderr}"
    took, kilobytes = map(float, ran.stdout.split())
    return took, kilobytes * 1024 / 1e6


def _write_files(folder: Path, small: bool) -> None:
    for n_classes, file in (100, "scores.npz"), (200, "scores200.npz"):
        characters = load_glyphs().task().subsample(n_classes, random_seed=3)
        scores = characters.scores.scores(np.arange(characters.n_test))
        np.savez(folder / file, scores=scores, y=characters.y)
    rng = np.random.default_rng(5)
    n, n_classes = (10_000 if small else 1_000_000), 20
    # Logits whose softmax is calibrated.
    scores, y = rng.gumbel(size=(n, n_classes)).astype(np.float32), np.arange(n) % n_classes
    scores[np.arange(n), y] += 4
    np.savez(folder / "many_scores.npz", scores=scores, y=y)
    ranks = 1 + (scores > scores[np.arange(n), y][:, None]).sum(axis=1)
    np.savez(folder / "many_ranks.npz", ranks=ranks, y=y, n_classes=n_classes)
