"""What an installation of the package brings."""

from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, files, metadata, requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from studies.benchmarks.measurement import Measurement, Setup

_PACKAGE = "classex-bayes"
_OF_DEVELOPERS = "docs", "studies", "test"
_SMALLEST = 1.0  # megabytes of an extra that has a row


def install(setup: Setup) -> list[Measurement]:
    """Size of an installation on disk.

    An extra counts what it adds. Extras of developers, and those that add nothing or are only
    partly installed here, are left out.
    """
    base = _closure([Requirement(_PACKAGE)])
    measurements = [_row(f"pip install {_PACKAGE}", base)]
    extras = metadata(_PACKAGE).get_all("Provides-Extra", [])
    for extra in [name for name in extras if name not in _OF_DEVELOPERS]:
        try:
            added = _closure([Requirement(f"{_PACKAGE}[{extra}]")]) - base
        except PackageNotFoundError:
            continue
        row = _row(f"extra `{extra}`, added", added)
        measurements += [row] * (row.value >= _SMALLEST)
    return measurements


def _row(text: str, names: set[str]) -> Measurement:
    unit = f"MB in {len(names)} distributions" if len(names) > 1 else "MB"
    return Measurement(text, [sum(map(_megabytes, names))], None, unit, at_most=True)


def _required(name: str, extra: str = "") -> list[Requirement]:
    """Requirements of a distribution with an extra on this machine."""
    required = map(Requirement, requires(name) or [])
    here = {"extra": extra}
    return [needed for needed in required if not needed.marker or needed.marker.evaluate(here)]


def _closure(requirements: Sequence[Requirement]) -> set[str]:
    """Names of the distributions that requirements bring, and of those that these bring."""
    todo = list(requirements)
    seen: set[tuple[str, str]] = set()
    while todo:
        requirement = todo.pop()
        name = canonicalize_name(requirement.name)
        for extra in {"", *requirement.extras}:
            if (name, extra) not in seen:
                seen.add((name, extra))
                todo += _required(name, extra)
    return {name for name, _ in seen}


def _megabytes(name: str) -> float:
    paths = [Path(file.locate()) for file in files(name) or []]
    return sum(path.stat().st_size for path in paths if path.exists()) / 1e6
