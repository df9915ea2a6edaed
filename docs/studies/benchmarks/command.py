"""Speed, memory and size of the package, all in one run: docs/benchmarks.md."""

import argparse
import inspect
from collections.abc import Callable, Sequence
from pathlib import Path

from studies.benchmarks.fitting import density, refit, sampling, size
from studies.benchmarks.gpu import gpu
from studies.benchmarks.install import install
from studies.benchmarks.measurement import Measurement, Setup, Skipped
from studies.benchmarks.measurement_files import BenchmarkRun, table
from studies.benchmarks.other_packages import classex, pydataless
from studies.benchmarks.ranking import bandwidth, memory, products
from studies.benchmarks.searches import searches
from studies.benchmarks.waits import WAITS, waits
from studies.pages import markdown
from studies.shared import quiet

Benchmark = Callable[[Setup], list[Measurement]]
_SECTIONS: dict[str, list[Benchmark]] = {
    "Command line": [waits],
    "Fits": [refit, size, sampling, density],
    "Ranks": [searches, products, bandwidth, memory],
    "Tasks on a GPU": [gpu],
    "Other packages": [classex, pydataless],
    "Installation": [install],
}
BENCHMARKS = {function.__name__: function for of in _SECTIONS.values() for function in of}
_COMMAND = "python docs/studies/benchmarks"
_NOTES = (
    "FAIL means that we missed our own target; the package works. `--only NAME` runs a benchmark\n"
    "whose name is in brackets, `--json FILE` writes all repeats, and `--versions OLD NEW`\n"
    "compares two versions."
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmarks and show which reach their targets."""
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--only", nargs="+", choices=BENCHMARKS, metavar="NAME", help=", ".join(BENCHMARKS))
    add("--waits", nargs="+", choices=WAITS, default=[], metavar="NAME", help=", ".join(WAITS))
    add("--versions", type=Path, nargs="+", default=[], metavar="PYTHON_OR_CLONE",
        help="run waits of versions in turn, and compare them pair by pair")  # fmt: skip
    add("--small", action="store_true", help="see that all run; the ratios mean nothing")
    add("--markdown", type=Path, metavar="FILE", help="write the page")
    add("--json", type=Path, metavar="FILE", help="write the measurements and their repeats")
    add("--pydataless", type=Path, metavar="PYTHON", help="Python that has pydataless")
    add("--r-library", type=Path, metavar="FOLDER", help="folder of R packages with ClassEx")
    options = parser.parse_args(arguments)
    setup = Setup(
        options.small, options.pydataless, options.r_library, options.versions, options.waits
    )
    every = ["waits"] if options.versions or options.waits else BENCHMARKS
    run, sections = BenchmarkRun(options.small), []
    for title, functions in _SECTIONS.items():
        names = [of.__name__ for of in functions if of.__name__ in (options.only or every)]
        if names:
            sections.append(_section(run, title, names, setup))
            print(sections[-1], flush=True)
    if options.json:
        run.write(options.json)
    if options.markdown:
        when = f"on {run.date} with version {run.version}, all in one run"
        intro = (
            f"# Benchmarks\n\n`{_COMMAND}` measured speed, memory and size\non {run.where}, {when}."
        )
        options.markdown.write_text("\n".join([f"{intro}\n{_NOTES}\n", *sections]), "utf-8")


def _section(run: BenchmarkRun, title: str, names: Sequence[str], setup: Setup) -> str:
    """Run benchmarks; return what they are about, a table of them all, and reasons for skipping."""
    documented = [(inspect.getdoc(BENCHMARKS[name]) or "").partition("\n\n")[2] for name in names]
    parts = [f"## {title} ({', '.join(names)})", "\n".join(filter(None, documented))]
    for name in names:
        try:
            with quiet():  # draws are timed and not used
                run.measurements[name] = BENCHMARKS[name](setup)
        except Skipped as reason:
            run.skipped[name] = str(reason)
        except ImportError as error:
            run.skipped[name] = f"needs {error.name}, not installed"
    rows = [row for name in names for row in run.measurements.get(name, [])]
    if rows:
        parts.append(markdown(table(rows), {"peak memory, MB": ",.0f"}))
    parts += [f"SKIP {name}: {run.skipped[name]}" for name in names if name in run.skipped]
    return "\n\n".join(filter(None, parts)) + "\n"
