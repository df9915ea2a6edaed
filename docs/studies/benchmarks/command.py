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

_IN_ORDER = [
    waits, refit, size, sampling, density, searches, products, bandwidth, memory, gpu, classex,
    pydataless, install,
]  # fmt: skip
BENCHMARKS: dict[str, Callable[[Setup], list[Measurement]]] = {
    function.__name__: function for function in _IN_ORDER
}
_COMMAND = "python docs/studies/benchmarks"
_NOTES = (
    "FAIL means that we missed our own target; the package works. `--only NAME` runs the section\n"
    "with this name in brackets, `--json FILE` writes all repeats, and `--versions OLD NEW`\n"
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
    for name in options.only or every:
        title, _, about = (inspect.getdoc(BENCHMARKS[name]) or name).partition("\n\n")
        parts = [f"## {title.rstrip('.')} ({name})", about, _measured(run, name, setup)]
        sections.append("\n\n".join(filter(None, parts)) + "\n")
        print(sections[-1], flush=True)
    if options.json:
        run.write(options.json)
    if options.markdown:
        when = f"on {run.date} with version {run.version}, all in one run"
        intro = (
            f"# Benchmarks\n\n`{_COMMAND}` measured speed, memory and size\non {run.where}, {when}."
        )
        options.markdown.write_text("\n".join([f"{intro}\n{_NOTES}\n", *sections]), "utf-8")


def _measured(run: BenchmarkRun, name: str, setup: Setup) -> str:
    """Run a benchmark and return its table, or the reason for skipping it."""
    try:
        with quiet():  # draws are timed and not used
            run.measurements[name] = BENCHMARKS[name](setup)
    except Skipped as reason:
        run.skipped[name] = str(reason)
    except ImportError as error:
        run.skipped[name] = f"needs {error.name}, not installed"
    else:
        return markdown(table(run.measurements[name]), {"peak memory, MB": ",.0f"})
    return f"SKIP: {run.skipped[name]}"
