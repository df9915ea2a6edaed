"""Mutation testing: one change of the code at a time, which the tests should notice.

    PYTHONPATH=tests pytest -n 2 --dist loadfile -p line_recorder
    python tests/mutation.py estimators core/subsets.py --mutants 20 --seed 1

The first command notes which lines every test executes. The second runs, for each mutant of a
random sample, the tests that execute its statement, until one fails. No file is changed: a
process of its own imports the changed module for each mutant. Left out are what changes no number
by construction: private constants of modules (sizes of blocks, steps), annotations, decorators,
`strict` of `zip`. Tests that start processes do not count, since these import the module as it is.
"""

import argparse
import ast
import json
import multiprocessing
import os
import random
import resource
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.machinery import SourceFileLoader
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import line_recorder
import numba
import pandas  # noqa: F401, since processes of mutants shall find it imported
import pymc  # noqa: F401, likewise
import pytest
import scipy.stats  # noqa: F401, likewise

ROOT = line_recorder.ROOT
MEMORY = 6 * 2**30  # bytes allowed to a mutant; what needs more is killed
SWAPPED = {
    **dict.fromkeys([ast.Add, ast.MatMult], ast.Sub),
    **dict.fromkeys([ast.Sub, ast.BitXor], ast.Add),
    **dict.fromkeys([ast.Div, ast.FloorDiv, ast.Mod, ast.Pow], ast.Mult),
    **{ast.Mult: ast.Div, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd},
    **{ast.LShift: ast.RShift, ast.RShift: ast.LShift, ast.And: ast.Or, ast.Or: ast.And},
    **{ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt},
    **{ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is},
    **{ast.In: ast.NotIn, ast.NotIn: ast.In, ast.USub: ast.UAdd},
}
PAIRS = "min max, minimum maximum, argmin argmax, any all, floor ceil, zeros ones, sum prod"
RENAMED = {a: b for pair in PAIRS.split(", ") for a, b in (pair.split(), pair.split()[::-1])}


def changed(node: ast.AST) -> dict[str, Any]:
    """Attributes of a node that make it a mutant; none where there is nothing to change."""
    match node:
        case ast.Compare(ops=[first, *others]) if type(first) in SWAPPED:
            return {"ops": [SWAPPED[type(first)](), *others]}
        case ast.BinOp(op=op) | ast.AugAssign(op=op) | ast.BoolOp(op=op) | ast.UnaryOp(op=op) if (
            type(op) in SWAPPED
        ):
            return {"op": SWAPPED[type(op)]()}
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return {"operand": ast.UnaryOp(ast.Not(), operand)}
        case ast.Attribute(attr=name) | ast.Name(id=name) if name in RENAMED:
            return {"attr" if isinstance(node, ast.Attribute) else "id": RENAMED[name]}
        case ast.Constant(value=bool() as value):
            return {"value": not value}
        case ast.Constant(value=int() | float() as value):
            return {"value": value + 1}
        case ast.If(test=test) | ast.IfExp(test=test) if isinstance(test, ast.Name | ast.Call):
            return {"test": ast.UnaryOp(ast.Not(), test)}
        case ast.Expr(value=ast.Call()):
            return {"value": ast.Constant(None)}
    return {}


class Site(NamedTuple):
    """A node to change, the change, and the lines of its statement; none where it is imported."""

    node: ast.AST
    change: dict[str, Any]
    lines: range | None


def sites(node: ast.AST, lines: range | None = None) -> Iterator[Site]:
    """Nodes that can be changed, in the order of the code."""
    match node:
        case ast.Assign(targets=[to]) if lines is None and ast.unparse(to).strip("(")[0] == "_":
            return
        case ast.keyword(arg="strict") | ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return
        case ast.FunctionDef():
            lines = range(node.lineno, node.end_lineno + 1)
        case ast.stmt() if lines is not None:
            lines = range(node.lineno, node.end_lineno + 1)
    if change := changed(node):
        yield Site(node, change, lines)
    for field, value in ast.iter_fields(node):
        if field not in ("annotation", "returns", "decorator_list"):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from sites(child, lines)


class Mutant(NamedTuple):
    """A module with one change, and the tests that should fail."""

    path: Path
    tree: ast.Module
    tests: list[str]
    text: str


def mutant(path: Path, number: int, records: list[Any], budget: float) -> Mutant:
    """Change one site of a file; `budget` are recorded seconds of its tests."""
    module = path.relative_to(ROOT / "classex_bayes").as_posix()
    tree = ast.parse(path.read_text())
    node, change, lines = list(sites(tree))[number]
    before = ast.unparse(node)
    for attribute, value in change.items():
        setattr(node, attribute, value)
    ast.fix_missing_locations(tree)
    place, name = Path(module).parent, f"test_{path.name}"
    able = [
        (name not in test, seconds, test)  # the module's tests first, the quickest first
        for test, seconds, executed in records
        if module in executed and (lines is None or not set(lines).isdisjoint(executed[module]))
    ]
    ordered = sorted(able)
    spent = accumulate(seconds for _, seconds, _ in ordered)
    tests = [test for (*_, test), total in zip(ordered, spent, strict=True) if total <= budget]
    if not tests:  # compiled functions are invisible
        tests = [f"tests/{place}"]
    return Mutant(path, tree, tests, f"{module}:{node.lineno}: {before} -> {ast.unparse(node)}")


class Failures:
    """pytest plugin that writes the first test that fails to a file."""

    def __init__(self, place: str) -> None:
        self.place = Path(place)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep a test's name."""
        if report.failed:
            self.place.write_text(report.nodeid)


def elsewhere(*_: object, **__: object) -> None:
    """Skip a test that starts a process, which would import the module without its change."""
    pytest.skip("needs another process")


def run_tests(mutant: Mutant, scratch: str) -> None:
    """Exit with pytest's status, the module being the mutant."""
    original, code = SourceFileLoader.get_code, compile(mutant.tree, mutant.path, "exec")
    SourceFileLoader.get_code = lambda self, name: (
        code if self.path == str(mutant.path) else original(self, name)
    )
    if "jit" in mutant.path.read_text():
        # What numba keeps is looked up by the file, which did not change.
        numba.config.CACHE_DIR = scratch
    multiprocessing.process.BaseProcess.start = elsewhere
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    for stream in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
    name = f"test_{mutant.path.name}"
    parts = [[t for t in mutant.tests if (name in t) is first] for first in (True, False)]
    # Plain assertions: otherwise pytest reads the module whose doctests it runs by itself.
    options = ["-x", "-q", "--assert=plain", "-p", "no:cacheprovider"]
    for part in filter(None, parts):  # in two runs, since most mutants do not see the second
        if status := pytest.main([*options, *part], plugins=[Failures(f"{scratch}/failed")]):
            os._exit(status)
    os._exit(0)


def outcome(mutant: Mutant, seconds: float) -> str:
    """What becomes of a mutant; one that needs too long has lost the end of a loop, or is slow."""
    with tempfile.TemporaryDirectory() as scratch:
        process = multiprocessing.get_context("fork").Process(
            target=run_tests, args=(mutant, scratch)
        )
        process.start()
        process.join(seconds)
        status = process.exitcode
        process.kill()
        process.join()
        failed = Path(scratch, "failed")
        by = failed.read_text() if failed.exists() else "an import"
    if status is None:
        return "too long"
    return {0: "SURVIVED", 4: "NO TESTS", 5: "NO TESTS"}.get(status, f"killed by {by}")


def main() -> None:
    """Try a random sample of mutants and tell which survive."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("places", nargs="+", help="such as core/subsets.py or estimators")
    parser.add_argument("--mutants", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--budget", type=float, default=60, help="recorded seconds of its tests")
    parser.add_argument("--limit", type=float, default=1200, help="seconds that they may take")
    arguments = parser.parse_args()
    os.chdir(ROOT)
    os.environ["HYPOTHESIS_PROFILE"] = "mutants"
    records = [
        json.loads(line)
        for file in line_recorder.RECORDS.glob("*.jsonl")
        for line in file.read_text().splitlines()
    ]
    files = sorted(
        file
        for place in arguments.places
        for file in [ROOT / "classex_bayes" / place]
        for file in ([file] if file.is_file() else file.rglob("*.py"))
    )
    possible = [
        (file, number)
        for file in files
        for number, _ in enumerate(sites(ast.parse(file.read_text())))
    ]
    size = min(arguments.mutants, len(possible))
    # In random order: those tried before an interruption are a random sample, too.
    chosen = random.Random(arguments.seed).sample(possible, size)
    counts: Counter[str] = Counter()
    with ThreadPoolExecutor(arguments.jobs) as threads:
        made = [mutant(*place, records, arguments.budget) for place in chosen]
        outcomes = threads.map(partial(outcome, seconds=arguments.limit), made)
        for tried, found in zip(made, outcomes, strict=True):
            counts[found.split(" by ")[0]] += 1
            print(f"{tried.text}: {found}", flush=True)
    print(f"{size} of {len(possible)} possible mutants: {dict(counts)}")


if __name__ == "__main__":
    main()
