"""Runs of the benchmarks as JSON and as tables."""

import json
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd

from classex_bayes import __version__
from studies.benchmarks.measurement import Measurement

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

    small: bool
    measurements: dict[str, list[Measurement]] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    version: str = __version__
    date: str = field(default_factory=lambda: date.today().isoformat())
    machine: dict[str, Any] = field(default_factory=machine)

    @property
    def where(self) -> str:
        """Short description of the machine."""
        facts = self.machine
        return f"{facts['cores']} cores, {facts['cpu']}, Python {facts['python']}"

    def write(self, path: Path) -> None:
        """Write the run as JSON."""
        path.write_text(json.dumps(asdict(self), indent=1) + "\n", "utf-8")


def table(measurements: Sequence[Measurement]) -> pd.DataFrame:
    """Values with ranges, and the columns of peak memory and targets that have any content."""
    rows = [
        {
            "benchmark": measurement.name,
            "median (range)": f"{_with_range(measurement)} {measurement.unit}",
            "peak memory, MB": measurement.megabytes,
            "target": _reach(measurement),
        }
        for measurement in measurements
    ]
    return pd.DataFrame(rows).dropna(axis=1, how="all")


def _with_range(measurement: Measurement) -> str:
    """The value, with the smallest and the largest repeat if there are several."""
    low, high = (_number(end) for end in measurement.range)
    spread = f" ({low} to {high})" if len(measurement.repeats) > 1 else ""
    return f"{_number(measurement.value)}{spread}"


def _number(value: float) -> str:
    return f"{value:{',.0f' if abs(value) >= 100 else '.3g'}}"


def _reach(measurement: Measurement) -> str | None:
    """The target, and whether it was reached."""
    if measurement.reach is None:
        return None
    sign, verdict = "<=" if measurement.at_most else ">=", "PASS" if measurement.passed else "FAIL"
    return f"{sign} {measurement.reach:,g}: {verdict}"
