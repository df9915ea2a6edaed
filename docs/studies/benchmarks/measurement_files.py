"""Runs of the benchmarks as JSON and as tables, and comparisons of two runs."""

import json
import os
import platform
from dataclasses import asdict, dataclass, field
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd

from classex_bayes import __version__
from studies.benchmarks.measurement import ABSOLUTE_UNITS, Measurement

_PACKAGES = "numpy", "scipy", "numba", "nutpie", "pymc"
_CPU_FILE = Path("/proc/cpuinfo")


def machine() -> dict[str, Any]:
    """Return cores, processor, system and versions of the machine that runs the benchmarks."""
    return {
        "cores": os.cpu_count(),
        "cpu": _cpu(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        **{name: version(name) for name in _PACKAGES},
    }


def _cpu() -> str:
    """Name of the processor, or of its architecture if the name is not available."""
    if _CPU_FILE.exists():
        for line in _CPU_FILE.read_text("utf-8").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()


@dataclass(frozen=True)
class BenchmarkRun:
    """Measurements of one run by benchmark, and the reasons for skipping others."""

    measurements: dict[str, list[Measurement]]
    skipped: dict[str, str]
    small: bool = False
    version: str = __version__
    date: str = field(default_factory=lambda: date.today().isoformat())
    machine: dict[str, Any] = field(default_factory=machine)

    @property
    def where(self) -> str:
        """Short description of the machine."""
        facts = self.machine
        return f"{facts['cores']} cores, {facts['cpu']}, Python {facts['python']}"

    @property
    def table(self) -> pd.DataFrame:
        """Benchmark, value with range, target, verdict and option."""
        rows = [
            (
                measurement.name,
                f"{_with_range(measurement)} {measurement.unit}",
                _reach(measurement),
                {True: "PASS", False: "FAIL", None: ""}[measurement.passed],
                f"--only {name}",
            )
            for name, several in self.measurements.items()
            for measurement in several
        ]
        rows += [(name, why, "", "SKIP", f"--only {name}") for name, why in self.skipped.items()]
        columns = ["benchmark", "measured, median (range)", "target", "", "option to run only this"]
        return pd.DataFrame(rows, columns=columns)

    def write(self, path: Path) -> None:
        """Write the run as JSON."""
        measurements = [
            {
                "benchmark": name,
                **asdict(measurement),
                "repeats": list(measurement.repeats),
                "value": measurement.value,
                "range": list(measurement.range),
                "passed": measurement.passed,
            }
            for name, several in self.measurements.items()
            for measurement in several
        ]
        run = {
            "version": self.version,
            "date": self.date,
            "machine": self.machine,
            "measurements": measurements,
            "skipped": self.skipped,
            "small": self.small,
        }
        path.write_text(json.dumps(run, indent=1) + "\n", "utf-8")

    @classmethod
    def read(cls, path: Path) -> "BenchmarkRun":
        """Read a run from a file that `write` made."""
        run = json.loads(path.read_text("utf-8"))
        measurements: dict[str, list[Measurement]] = {}
        for row in run["measurements"]:
            measurement = Measurement(
                row["name"], row["repeats"], row["reach"], row["unit"], row["at_most"]
            )
            measurements.setdefault(row["benchmark"], []).append(measurement)
        about = (run[name] for name in ("skipped", "small", "version", "date", "machine"))
        return cls(measurements, *about)


def comparison(old: BenchmarkRun, new: BenchmarkRun) -> pd.DataFrame:
    """New values over old ones: ratios first, then times and rates of a machine.

    A value has changed if all repeats of one run are above all repeats of the other.
    """
    before, after = (
        {item.name: item for several in run.measurements.values() for item in several}
        for run in (old, new)
    )
    both = [name for name in after if name in before]
    both.sort(key=lambda name: after[name].unit in ABSOLUTE_UNITS)
    rows = [
        (
            name,
            f"{after[name].value / before[name].value:.3f}" if before[name].value else "",
            f"{_with_range(before[name])} {before[name].unit}",
            f"{_with_range(after[name])} {after[name].unit}",
            "" if old.small or new.small else _verdict(before[name], after[name]),
        )
        for name in both
    ]
    rows += [
        (name, "", "", _with_range(after[name]), "new") for name in after if name not in before
    ]
    rows += [
        (name, "", _with_range(before[name]), "", "gone") for name in before if name not in after
    ]
    return pd.DataFrame(rows, columns=["benchmark", "new / old", "old", "new", ""])


def _verdict(old: Measurement, new: Measurement) -> str:
    if min(len(old.repeats), len(new.repeats)) < 2:
        return "no range"
    (low, high), (lowest, highest) = old.range, new.range
    if lowest <= high and low <= highest:
        return "within the ranges"
    return "better" if (new.value < old.value) == new.at_most else "worse"


def _with_range(measurement: Measurement) -> str:
    """The value, with the smallest and the largest repeat if there are several."""
    low, high = (_number(end) for end in measurement.range)
    spread = f" ({low} to {high})" if len(measurement.repeats) > 1 else ""
    return f"{_number(measurement.value)}{spread}"


def _number(value: float) -> str:
    return f"{value:{',.0f' if abs(value) >= 100 else '.3g'}}"


def _reach(measurement: Measurement) -> str:
    if measurement.reach is None:
        return ""
    return f"{'<=' if measurement.at_most else '>='} {measurement.reach:,g}"
