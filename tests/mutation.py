"""Mutation testing: one change of the code at a time, which the tests of its module must notice.

    python tests/mutation.py core/subsets.py task/validation.py --mutants 20 --seed 1

No file is changed: a process of its own imports the changed module for each mutant. Left out are
what changes no number by construction: private constants of modules (sizes of blocks, steps),
annotations, decorators, `strict` of `zip`.
"""

import argparse
import ast
import multiprocessing
import os
import random
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any

import hypothesis
import numba
import pandas  # noqa: F401
import pytest
import scipy.stats  # noqa: F401

ROOT = Path(__file__).resolve().parents[1]
MEMORY = 8 * 2**30  # bytes allowed to a mutant; what needs more is killed
# Tests of a module beside its doctests and tests/<folder>/test_<module>.py.
TESTS = {
    "core/influence.py": "core/ranks/test_tiles.py",
    "core/ranks/array_access.py": "core/ranks/test_array_backends.py task/test_arrays_anywhere.py",
    "core/ranks/array_backends.py": "task/test_arrays_anywhere.py",
    "core/ranks/defeats.py": "task/test_merge.py",
    "core/ranks/embeddings.py": "core/ranks/test_losses.py core/ranks/test_tiles.py "
    "task/test_arrays_anywhere.py",
    "core/ranks/losses.py": "core/ranks/test_tiles.py",
    "core/ranks/packed_bits.py": "core/ranks/test_tiles.py task/test_arrays_anywhere.py",
    "core/ranks/shards.py": "task/test_merge.py",
    "core/ranks/sources.py": "core/ranks/test_losses.py core/ranks/test_tiles.py task/test_task.py",
    "core/ranks/ties.py": "core/ranks/test_losses.py core/test_influence.py task/test_task.py",
    "core/ranks/tiles.py": "core/ranks/test_losses.py",
    "core/sharded_influence.py": "task/test_merge.py task/test_distributed.py",
    "core/subsets.py": "core/test_metrics.py",
    "task/validation.py": "task/test_bad_input.py task/test_task.py task/test_frames.py "
    "task/test_merge.py io/test_io_formats.py",
}
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


def sites(node: ast.AST, top: bool = True) -> Iterator[tuple[ast.AST, dict[str, Any]]]:
    """Nodes that can be changed, with their changes, in the order of the code."""
    match node:
        case ast.Assign(targets=[ast.Name(id=name)]) if top and name.startswith("_"):
            return
        case ast.keyword(arg="strict") | ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return
    if change := changed(node):
        yield node, change
    inner = top and not isinstance(node, ast.FunctionDef)
    for field, value in ast.iter_fields(node):
        if field not in ("annotation", "returns", "decorator_list"):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from sites(child, inner)


def run_tests(path: Path, tree: ast.Module, tests: list[str], cache: str | None) -> None:
    """Exit with pytest's status, the module being the tree."""
    original, code = SourceFileLoader.get_code, compile(tree, path, "exec")
    SourceFileLoader.get_code = lambda self, name: (
        code if self.path == str(path) else original(self, name)
    )
    numba.config.CACHE_DIR = cache or numba.config.CACHE_DIR
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    for stream in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
    # Plain assertions: otherwise pytest reads the module whose doctests it runs by itself.
    options = ["-x", "-q", "--assert=plain", "-p", "no:cacheprovider"]
    os._exit(pytest.main([*options, "-o", "python_functions=test_*", *tests]))


def survives(path: Path, tree: ast.Module, tests: list[str], seconds: float) -> bool:
    """Whether the tests pass with the changed module, in the time."""
    with tempfile.TemporaryDirectory() as cache:
        # What numba keeps is looked up by the file, which did not change.
        place = cache if "numba" in path.read_text() else None
        process = multiprocessing.get_context("fork").Process(
            target=run_tests, args=(path, tree, tests, place)
        )
        process.start()
        process.join(seconds)
        process.kill()
        process.join()
    return process.exitcode == 0


def main() -> None:
    """Make a sample of mutants of each module and tell which survive."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("modules", nargs="+", help="such as core/subsets.py")
    parser.add_argument("--mutants", type=int, default=10, help="at most so many of a module")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    os.chdir(ROOT)
    hypothesis.settings.register_profile("short", phases=["explicit", "generate"], database=None)
    hypothesis.settings.load_profile("short")
    for module in arguments.modules:
        path = ROOT / "classex_bayes" / module
        own = Path("tests", module).with_name(f"test_{path.name}")
        tests = [f"tests/{name}" for name in TESTS.get(module, "").split()]
        tests = [str(path), *([str(own)] if own.exists() else []), *tests]
        start = time.monotonic()
        if not survives(path, ast.parse(path.read_text()), tests, 3600):
            sys.exit(f"the tests of {module} fail without a change")
        seconds = 20 + 4 * (time.monotonic() - start)  # loops may have lost their end
        n_sites = len(list(sites(ast.parse(path.read_text()))))
        chosen = random.Random(arguments.seed).sample(range(n_sites), n_sites)
        killed, made = 0, chosen[: arguments.mutants]
        for place in made:
            tree = ast.parse(path.read_text())
            node, change = list(sites(tree))[place]
            before = ast.unparse(node)
            for attribute, value in change.items():
                setattr(node, attribute, value)
            ast.fix_missing_locations(tree)
            if survives(path, tree, tests, seconds):
                print(
                    f"survived: {module}:{node.lineno}: {before} -> {ast.unparse(node)}", flush=True
                )
            else:
                killed += 1
        print(f"{module}: {killed} of {len(made)} killed, {n_sites} possible", flush=True)


if __name__ == "__main__":
    main()
