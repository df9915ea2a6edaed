"""Speed and memory of the package, all in one run: docs/benchmarks.md."""

import argparse
import inspect
from collections.abc import Sequence
from pathlib import Path

from studies.benchmarks import (  # noqa: F401, since importing registers their benchmarks
    fitting,
    other_packages,
    ranking,
)
from studies.benchmarks.measurement import BENCHMARKS, Measurement, Setup, Skipped
from studies.benchmarks.measurement_files import BenchmarkRun, comparison
from studies.pages import markdown
from studies.shared import quiet

_COMMAND = "python docs/studies/benchmarks"
_FILES = (
    "FAIL means that we missed our target. The package still works. `--json FILE` writes the "
    "measurements with all repeats, and `--compare OLD NEW` compares two such files."
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmarks and show which reach their targets, or compare two runs."""
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--only", nargs="+", choices=BENCHMARKS, metavar="NAME", help=", ".join(BENCHMARKS))
    add("--small", action="store_true", help="see that all run; the ratios mean nothing")
    add("--markdown", type=Path, metavar="FILE", help="write the page")
    add("--json", type=Path, metavar="FILE", help="write the measurements and their repeats")
    add("--compare", type=Path, nargs=2, metavar=("OLD", "NEW"), help="compare files; run nothing")
    add("--pydataless", type=Path, metavar="PYTHON", help="Python that has pydataless")
    add("--r-library", type=Path, metavar="FOLDER", help="folder of R packages with ClassEx")
    options = parser.parse_args(arguments)
    if options.compare:
        old, new = map(BenchmarkRun.read, options.compare)
        for name, run in {"old": old, "new": new}.items():
            small = "; run with --small, its ratios mean nothing" if run.small else ""
            print(f"{name}: version {run.version}, {run.date}, {run.where}{small}")
        print(markdown(comparison(old, new)))
        return
    names = options.only or list(BENCHMARKS)
    run = _run(names, Setup(options.small, options.pydataless, options.r_library))
    table = markdown(run.table)
    print(table)
    if options.json:
        run.write(options.json)
    if options.markdown:
        when = f"on {run.date} with version {run.version}, all in one run"
        intro = f"# Benchmarks\n\n`{_COMMAND}` measured these numbers on {run.where}, {when}."
        about = "\n".join(f"- `{name}`: {inspect.getdoc(BENCHMARKS[name])}" for name in names)
        options.markdown.write_text(f"{intro} {_FILES}\n\n{table}\n\n{about}\n", "utf-8")


def _run(names: list[str], setup: Setup) -> BenchmarkRun:
    """Run benchmarks one by one, and skip those whose requirements are missing."""
    measurements: dict[str, list[Measurement]] = {}
    skipped = {}
    for name in names:
        try:
            with quiet():  # draws are timed and not used
                measurements[name] = BENCHMARKS[name](setup)
        except Skipped as reason:
            skipped[name] = str(reason)
        except ImportError as error:
            skipped[name] = f"needs {error.name}, not installed"
    return BenchmarkRun(measurements, skipped, setup.small)
