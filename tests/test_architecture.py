"""Architecture: imports run downwards without circles, and load what is heavy only on use."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from numpydoc.validate import validate
from public_names import NAMES, PUBLIC

import classex_bayes

PACKAGE = Path(classex_bayes.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))
# The trunk, from the ground up; a floor knows those below it.
TRUNK = (
    {"_version", "exceptions", "plot_method", "typing"},
    {"array_access", "formatting"},
    {"core"},
    {"arguments"},
    {"task"},
    {"simulate", "results", "io", "parallel"},
    {"estimators"},
    {"bayes"},
    WINGS := {
        "assumptions",
        "identification",
        "information",
        "open_set",
        "risk",
    },
    {"evaluate"},
    {"plots"},
    {"report"},
    {"cli"},
    {"__main__"},
)
LEVEL = {room: level for level, rooms in enumerate(TRUNK) for room in rooms}
SAMPLING = {"pymc", "pytensor", "nutpie"}


def room_of(file):
    """First part of the path below the package, without its ending."""
    return file.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(file):
    """Full names of everything a file imports, wherever in the file, with their lines."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}:{node.lineno}: relative import"
            yield from ((f"{node.module}.{alias.name}", node.lineno) for alias in node.names)


# Results have methods that draw them; this file imports the plots when such a method is asked for.
UPWARDS = ("plot_method.py", "classex_bayes.plots")


def violations(file):
    """Imports of a file that the layers forbid, as text."""
    room = room_of(file)
    for name, line in imported(file):
        if (file.name, name) == UPWARDS:
            continue
        top, *inner = name.split(".")
        if top == "classex_bayes":
            # The root holds the version and names that load on use; it belongs to no layer.
            other = inner[0] if inner and inner[0] in LEVEL else None
            bad = other not in (None, room) and LEVEL[other] >= LEVEL[room]
        else:
            allowed = {"numpy", "scipy", "numba", "threadpoolctl", "array_api_compat"}
            allowed |= {"lazy_loader", "jax", "torch", *sys.stdlib_module_names}
            samples = top in SAMPLING and room not in {"bayes", *WINGS}
            bad = top not in allowed if room == "core" else samples
        if bad:
            yield f"{file.relative_to(PACKAGE)}:{line} imports {name}"


def test_every_file_has_a_room():
    assert {room_of(file) for file in FILES} - {"__init__"} == set(LEVEL)


def test_imports_run_downwards():
    inside = [file for file in FILES if room_of(file) != "__init__"]
    assert [text for file in inside for text in violations(file)] == []


@pytest.mark.parametrize(
    ("place", "line"),
    [
        ("core/x.py", "def f():\n    import pandas"),
        ("task/x.py", "from classex_bayes import results"),
        ("risk/x.py", "from classex_bayes.open_set import OpenSetExtrapolator"),
        ("estimators/x.py", "def f():\n    from pymc import sample"),
        ("report/x.py", "if True:\n    import classex_bayes.cli"),
    ],
)
def test_violations_are_seen(tmp_path, monkeypatch, place, line):
    monkeypatch.setattr(sys.modules[__name__], "PACKAGE", tmp_path)
    file = tmp_path / place
    file.parent.mkdir(exist_ok=True)
    file.write_text(line)
    assert len(list(violations(file))) == 1


def module_of(file):
    """Dotted name of a file of the package, below the package."""
    parts = file.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def arrows():
    """For every module the modules of the package that it imports, wherever in the file."""
    modules = {module_of(file) for file in FILES}
    found = {}
    for file in FILES:
        own = (
            name
            for name, _ in imported(file)
            if name.startswith("classex_bayes.") and (file.name, name) != UPWARDS
        )
        names = [name.removeprefix("classex_bayes.") for name in own]
        targets = {n if n in modules else n.rpartition(".")[0] for n in names}
        found[module_of(file)] = targets & modules - {"", module_of(file)}
    return found


def test_no_circles():
    arrow = {module: set(targets) for module, targets in arrows().items() if module}
    # A module that imports nothing that is left, or that nothing left imports, is in no circle.
    while ends := [
        module
        for module, targets in arrow.items()
        if not targets & arrow.keys() or not any(module in others for others in arrow.values())
    ]:
        for module in ends:
            del arrow[module]
    assert {module: targets & arrow.keys() for module, targets in arrow.items()} == {}


# What is loaded when


def modules_after(code):
    """Top-level modules that a fresh interpreter has loaded after running `code`."""
    shown = f"{code}\nimport sys\nprint(*{{name.split('.')[0] for name in sys.modules}})"
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", shown], capture_output=True, text=True, check=True
    )
    # The first process on a machine tells that it compiles.
    assert not [line for line in run.stderr.splitlines() if not line.startswith("compiling")]
    return set(run.stdout.split())


def test_importing_the_package_loads_nothing_heavy():
    heavy = {"numpy", "scipy", "pandas", "xarray", "arviz_base", "arviz_stats", "matplotlib"}
    assert not modules_after("import classex_bayes as cb; dir(cb)") & (heavy | SAMPLING)


def test_names_of_a_subpackage_say_where_they_are():
    with pytest.raises(AttributeError, match=r"classex_bayes\.estimators\.PitmanYor"):
        _ = classex_bayes.PitmanYor
    with pytest.raises(AttributeError):
        _ = classex_bayes.Pitman


def test_only_bayes_loads_pymc_and_arrays_in_memory_load_no_dask():
    code = (
        "import sys, numpy as np, classex_bayes as cb\n"
        "task = cb.SourceTask.from_embeddings(np.eye(4), np.eye(4), [1, 0, 2, 3])\n"
        "task.accuracy_cov([2, 3])\n"
        "assert 'dask' not in sys.modules\n"
        "cb.ClassExReg(random_seed=1).fit(task).predict(9).summary()\n"
        "cb.KDE, cb.simulate"
    )
    # Where JAX is installed, arviz_base itself refers to it.
    assert not modules_after(code) & (SAMPLING - {"jax"} | {"arviz_plots", "matplotlib"})


@pytest.mark.nightly
def test_a_fit_loads_what_it_needs():
    code = (
        "import classex_bayes as cb\n"
        "task = cb.SourceTask.from_ranks([1, 2, 3, 1, 6], range(5), n_classes=10,"
        " untested='competitors')\n"
        "model = cb.BayesianExtrapolator()\n"
        "import warnings; warnings.simplefilter('ignore')\n"
        "few = {'draws': 50, 'tune': 50}\n"
        "model.fit(task, sampler=few, random_seed=1, progressbar=False).predict(9)"
    )
    other_questions = {"h5py", "h5netcdf", "typer", "rich", "joblib"}
    assert not modules_after(code) & {"pymc", "pytensor", *other_questions}


# Public names


def test_public_names():
    assert dir(classex_bayes) == sorted(set(classex_bayes.__all__))
    # Importing a file would hide a function of its name.
    hidden = [file for file in FILES if f"classex_bayes.{room_of(file)}.{file.stem}" in NAMES]
    assert hidden == []


def test_tests_and_studies_import_public_names_from_public_places():
    public = {f"classex_bayes.{name}" for name in classex_bayes.__all__}
    homes = {
        f"{value.__module__}.{value.__name__}": name
        for name, value in NAMES.items()
        if value.__module__ not in public
    }
    tests = Path(__file__).parent
    files = [*tests.rglob("*.py"), *(tests.parent / "docs" / "studies").rglob("*.py")]
    deep = [
        f"{file}:{line} imports {homes[name]} from its module"
        for file in files
        for name, line in imported(file)
        if name in homes
    ]
    assert deep == []


def docstring_errors(name):
    """Whether numpydoc misses a docstring (GL08), or finds unknown parameters (PR02)."""
    return [code for code, _ in validate(name)["errors"] if code in {"GL08", "PR02"}]


def test_every_public_name_has_a_docstring():
    errors = {name: docstring_errors(name) for name in PUBLIC}
    assert {name: found for name, found in errors.items() if found} == {}


# Size

# A few percent above what the package has. What is new takes something out, and a commit that
# raises a number says what for.
BUDGET = {"lines": 37_030, "files": 174, "functions": 1_950, "classes": 224}
BUDGET_OF_FIRST_EXAMPLE = {"files": 54, "functions": 535}
FIRST_EXAMPLE = """
import sys
from pathlib import Path
import numpy as np
import classex_bayes as cb
rng = np.random.default_rng(1)
y = np.repeat(np.arange(50), 2)
scores = rng.normal(size=(100, 50)) + 2.5 * np.eye(50)[y]
package, entered = str(Path(cb.__file__).parent), set()
def enter(frame, event, argument):
    code = frame.f_code
    if event == "call" and code.co_filename.startswith(package) and code.co_name[0] != "<":
        entered.add((code.co_filename, code.co_name, code.co_firstlineno))
cb.BayesianExtrapolator, cb.SourceTask.from_scores(scores[:60, :30], y[:60])  # imports
sys.setprofile(enter)
task = cb.SourceTask.from_scores(scores, y)
model = cb.BayesianExtrapolator().fit(task, random_seed=1, progressbar=False)
prediction = model.predict([100, 1000])
print(prediction, file=sys.stderr)
prediction.interval(0.9)
sys.setprofile(None)
print(len({file for file, *_ in entered}), len(entered))
"""


def over(budget, found):
    return {
        name: f"{found[name]:,} of {most:,}" for name, most in budget.items() if found[name] > most
    }


def test_the_package_keeps_to_its_budget():
    nodes = [type(node) for file in FILES for node in ast.walk(ast.parse(file.read_text()))]
    found = {
        "lines": sum(len(file.read_text().splitlines()) for file in FILES),
        "files": len(FILES),
        "functions": nodes.count(ast.FunctionDef) + nodes.count(ast.AsyncFunctionDef),
        "classes": nodes.count(ast.ClassDef),
    }
    assert over(BUDGET, found) == {}


@pytest.mark.nightly
def test_the_first_example_keeps_to_its_budget():
    command = [sys.executable, "-c", FIRST_EXAMPLE]
    answer = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = dict(zip(BUDGET_OF_FIRST_EXAMPLE, map(int, answer.split()), strict=True))
    assert over(BUDGET_OF_FIRST_EXAMPLE, found) == {}
