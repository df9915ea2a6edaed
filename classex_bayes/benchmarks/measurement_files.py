"""Runs of the benchmarks as JSON and as Markdown, and comparisons of two runs."""

import json
import math
import os
import platform
from dataclasses import asdict, dataclass, field
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from classex_bayes._version import __version__
from classex_bayes.benchmarks.measurement import ABSOLUTE_UNITS, Measurement
from classex_bayes.exceptions import DataError

_PACKAGES = "numpy", "scipy", "numba", "nutpie", "pymc"
_CPU_FILE = Path("/proc/cpuinfo")


def machine() -> dict[str, Any]:
    """The machine of the benchmarks: cores, processor and versions."""
    versions = {}
    for name in _PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:  # packaged under another name
            continue
    return {
        "cores": os.cpu_count(),
        "cpu": _cpu(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        **versions,
    }


def _cpu() -> str:
    """Name of the processor, or of its architecture if the system does not give it."""
    if _CPU_FILE.exists():
        for line in _CPU_FILE.read_text("utf-8").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()


@dataclass(frozen=True)
class BenchmarkRun:
    """Measurements of one run by benchmark, and why others were skipped."""

    measurements: dict[str, list[Measurement]]
    skipped: dict[str, str]
    small: bool = False
    version: str = __version__
    date: str = field(default_factory=lambda: date.today().isoformat())
    machine: dict[str, Any] = field(default_factory=machine)

    @property
    def where(self) -> str:
        """Short description of the machine."""
        known = self.machine
        return f"{known['cores']} cores, {known['cpu']}, Python {known['python']}"

    @property
    def rows(self) -> list[tuple[str, ...]]:
        """Rows of a table: benchmark, value with range, target, verdict and option."""
        rows: list[tuple[str, ...]] = [
            (
                measured.name,
                f"{_with_range(measured)} {measured.unit}",
                _reach(measured),
                {True: "PASS", False: "FAIL", None: ""}[measured.passed],
                f"--only {name}",
            )
            for name, several in self.measurements.items()
            for measured in several
        ]
        return rows + [
            (name, why, "", "SKIP", f"--only {name}") for name, why in self.skipped.items()
        ]

    def write(self, path: Path) -> None:
        """Write the run as JSON."""
        measured = [
            {
                "benchmark": name,
                **asdict(one),
                "repeats": list(one.repeats),
                "value": one.value,
                "range": list(one.range),
                "passed": one.passed,
            }
            for name, several in self.measurements.items()
            for one in several
        ]
        run = {
            "version": self.version,
            "date": self.date,
            "machine": self.machine,
            "measurements": measured,
            "skipped": self.skipped,
            "small": self.small,
        }
        path.write_text(json.dumps(run, indent=1) + "\n", "utf-8")

    @classmethod
    def read(cls, path: Path) -> "BenchmarkRun":
        """Read a run from a file that `write` made."""
        try:
            run = json.loads(path.read_text("utf-8"))
            measurements: dict[str, list[Measurement]] = {}
            for row in run["measurements"]:
                numbers = [float(value) for value in row["repeats"]]
                if not numbers or not all(map(math.isfinite, numbers)):
                    raise ValueError(f"repeats of {row['name']}: {row['repeats']}")
                name, unit, reach = str(row["name"]), str(row["unit"]), row["reach"]
                measured = Measurement(name, numbers, reach, unit, bool(row["at_most"]))
                measurements.setdefault(str(row["benchmark"]), []).append(measured)
            about = (run[name] for name in ("skipped", "small", "version", "date", "machine"))
            found = cls(measurements, *about)
            str(found.where)  # which needs what is known of the machine
            return found
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise DataError(
                f"compare: {path} is no file of benchmarks ({error!r}); expected one that --json "
                "wrote"
            ) from error


def comparison_rows(old: BenchmarkRun, new: BenchmarkRun) -> list[tuple[str, ...]]:
    """Rows of new values over old ones: ratios first, then times and rates of a machine.

    A value has changed if all repeats of one run are above all of the other.
    """
    before, after = (
        {measured.name: measured for several in run.measurements.values() for measured in several}
        for run in (old, new)
    )
    both = [name for name in after if name in before]
    both.sort(key=lambda name: after[name].unit in ABSOLUTE_UNITS)
    rows: list[tuple[str, ...]] = [
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
    return rows + [
        (name, "", _with_range(before[name]), "", "gone") for name in before if name not in after
    ]


def _verdict(old: Measurement, new: Measurement) -> str:
    if min(len(old.repeats), len(new.repeats)) < 2:
        return "no range"
    (low, high), (lowest, highest) = old.range, new.range
    if lowest <= high and low <= highest:
        return "within the ranges"
    return "better" if (new.value < old.value) == new.at_most else "worse"


def _with_range(measured: Measurement) -> str:
    """The value, and the smallest and largest repeat where there are several."""
    low, high = (_number(end) for end in measured.range)
    spread = f" ({low} to {high})" if len(measured.repeats) > 1 else ""
    return f"{_number(measured.value)}{spread}"


def _number(value: float) -> str:
    return f"{value:{',.0f' if abs(value) >= 100 else '.3g'}}"


def _reach(measured: Measurement) -> str:
    if measured.reach is None:
        return ""
    return f"{'<=' if measured.at_most else '>='} {measured.reach:,g}"
