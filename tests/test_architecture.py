"""The house and its rooms: imports run downwards, public names are documented."""

import ast
import inspect
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpydoc.validate import validate
from public_names import NAMES, PUBLIC

import classex_bayes

PACKAGE = Path(classex_bayes.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))
# The trunk, from the ground up; a floor knows those below it.
TRUNK = (
    {"_version", "exceptions", "plot_method", "typing"},
    {"arrays", "formatting"},
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
SAMPLING = {"pymc", "pytensor", "nutpie", "numpyro", "blackjax"}


def room_of(file):
    """First part of the path below the package, without its ending."""
    return file.relative_to(PACKAGE).parts[0].removesuffix(".py")


@cache
def nodes_of(file):
    """All nodes of the syntax tree of a file."""
    return [*ast.walk(ast.parse(file.read_text(encoding="utf-8")))]


def imported(file):
    """Full names of everything a file imports, wherever in the file, with their lines."""
    for node in nodes_of(file):
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
        ("core/x.py", "from classex_bayes.task.source_task import SourceTask"),
        ("core/x.py", "def f():\n    import pandas"),
        ("task/x.py", "from classex_bayes import results"),
        ("results/x.py", "import classex_bayes.bayes"),
        ("estimators/x.py", "def f():\n    from pymc import sample"),
        ("plots/x.py", "if True:\n    import classex_bayes.cli"),
        ("report/x.py", "from classex_bayes.cli import main"),
    ],
)
def test_violations_are_seen(tmp_path, monkeypatch, place, line):
    monkeypatch.setattr(sys.modules[__name__], "PACKAGE", tmp_path)
    file = tmp_path / place
    file.parent.mkdir(exist_ok=True)
    file.write_text(line)
    assert len(list(violations(file))) == 1


def test_no_two_files_have_one_name():
    names = Counter(file.name for file in FILES)
    assert [name for name, times in names.items() if times > 1 and not name.startswith("__")] == []


def test_no_two_classes_have_one_name():
    classes = (n for file in FILES for n in nodes_of(file) if isinstance(n, ast.ClassDef))
    names = Counter(node.name for node in classes)
    assert [name for name, times in names.items() if times > 1] == []


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


def untyped(tree):
    """Names of parameters whose annotation has Any, and of what loops take from these."""
    names = {
        argument.arg
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        for argument in [*node.args.args, *node.args.kwonlyargs, node.args.vararg]
        if argument is not None and argument.annotation is not None
        if "Any" in ast.unparse(argument.annotation).replace("[", " ").replace("]", " ").split()
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.For | ast.comprehension):
            used = {part.id for part in ast.walk(node.iter) if isinstance(part, ast.Name)}
            if used and used <= names | {"zip", "enumerate"}:
                names |= {part.id for part in ast.walk(node.target) if isinstance(part, ast.Name)}
    return names


def members(tree):
    """Public attributes of the classes of a file."""
    bodies = [node.body for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    for node in (node for body in bodies for node in body):
        if isinstance(node, ast.FunctionDef):
            yield node.name
        elif isinstance(node, ast.AnnAssign):
            yield ast.unparse(node.target)


def reached_through_any(tree, names):
    """Attributes among `names` that are read from what has the type Any."""
    for part in tree.body:  # a function or a class
        unknown = untyped(part)
        for node in ast.walk(part):
            if isinstance(node, ast.Attribute) and node.attr in names:
                owner = getattr(node.value, "id", getattr(node.value, "attr", ""))
                if owner in unknown:
                    yield ast.unparse(node)


# Classes of tasks from the ground up, and what users pass has the type Any: it may be anything.
TASK_CLASSES = (
    "rank_table", "rank_bins", "rank_variance", "accuracy_curve", "task_statistics", "source_task"
)  # fmt: skip
OF_ARRAYS = {*dir(np.ndarray), *dir(pd.DataFrame)}


def test_no_circles_through_any():
    """Tables, their variance, checks and tasks are used with their types, which a circle lacks."""
    room = {file.stem: ast.parse(file.read_text()) for file in FILES if room_of(file) == "task"}
    names = {name for stem in TASK_CLASSES for name in members(room[stem])} - OF_ARRAYS
    assert {"weight", "design_effect", "require", "warnings"} <= names
    found = {stem: [*reached_through_any(tree, names)] for stem, tree in room.items()}
    assert {stem: uses for stem, uses in found.items() if uses} == {}
    hidden = (
        "def f(tests: Sequence[Any]):\n    return [test.weight for test in tests]",
        "def f(table: Any):\n    return table.weight",
        "class A:\n    def __init__(self, table: Any): self.table = table\n"
        "    def f(self): return self.table.weight",
    )
    assert all([*reached_through_any(ast.parse(source), names)] for source in hidden)


OTHERS = {"_asdict", "_cache", "_fields", "_make", "_meta", "_replace"}  # of libraries


def test_private_attributes_stay_in_their_modules():
    touched = []
    for file in FILES:
        at_home, nodes = {"self", "cls"}, nodes_of(file)
        own = {node.name for node in nodes if isinstance(node, ast.FunctionDef)} | {
            node.attr
            for node in nodes
            if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") in at_home
        }
        touched += [
            f"{file.relative_to(PACKAGE)}:{node.lineno} {ast.unparse(node)}"
            for node in nodes
            if isinstance(node, ast.Attribute)
            and node.attr.startswith("_")
            and not node.attr.startswith("__")
            and node.attr not in own | OTHERS
            and getattr(node.value, "id", "") not in at_home
            and ast.unparse(node.value) != "super()"
        ]
    assert touched == []


WORDS = {"made_from", "unknown"}  # of data, for readers


def conditions(nodes):
    """All expressions that decide what is done next."""
    for node in nodes:
        if isinstance(node, ast.If | ast.IfExp | ast.While):
            yield node.test
        elif isinstance(node, ast.comprehension):
            yield from node.ifs
        elif isinstance(node, ast.Compare):
            yield node
        elif isinstance(node, ast.Match | ast.Subscript):
            yield node.subject if isinstance(node, ast.Match) else node.slice


def steering(nodes):
    """Conditions and keys that depend on the words of data."""
    return [
        ast.unparse(condition)
        for condition in conditions(nodes)
        for node in ast.walk(condition)
        if isinstance(node, ast.Attribute) and node.attr in WORDS
    ]


def test_columns_decide_and_words_explain():
    """A new kind of data with a word of its own is treated by its columns alone."""
    found = {file.name: steering(nodes_of(file)) for file in FILES}
    assert {name: conditions for name, conditions in found.items() if conditions} == {}
    templates = [file.read_text(encoding="utf-8") for file in PACKAGE.rglob("*.jinja")]
    assert templates and not any("made_from ==" in text for text in templates)
    for line in (
        "if task.table.made_from == 'decisions': pass",
        "bins = 2 if table.made_from in words else 48",
        "[task for task in tasks if 'ranks' in task.record.made_from]",
        "note = NOTES[table.made_from]",
    ):
        assert steering(ast.walk(ast.parse(line)))


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
    with pytest.raises(AttributeError, match=r"it is classex_bayes\.estimators\.PitmanYor"):
        _ = classex_bayes.PitmanYor
    with pytest.raises(AttributeError, match=r"it is classex_bayes\.results\.Bounds"):
        _ = classex_bayes.Bounds
    with pytest.raises(AttributeError, match=r"No classex_bayes attribute Pitman$"):
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
    assert sorted(classex_bayes.__all__) == sorted(set(classex_bayes.__all__))
    assert dir(classex_bayes) == sorted(classex_bayes.__all__)
    assert classex_bayes.simulate.GaussianNearestNeighbor.__doc__
    # Importing a file would hide a function of its name.
    hidden = [file for file in FILES if f"classex_bayes.{room_of(file)}.{file.stem}" in NAMES]
    assert hidden == []
    with pytest.raises(AttributeError, match="extrapolate"):
        classex_bayes.extrapolate  # noqa: B018, since reading it raises


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
    assert len(files) > 200 and deep == []


def docstring_errors(name, value):
    """What numpydoc finds in a docstring."""
    # GL08: none at all; PR: parameters missing, unknown, out of order, without a description;
    # RT04, RT05, YD: what comes back; SS: the summary.
    wanted = {"GL01", "GL03", "GL06", "GL07", "GL08", "PR01", "PR02", "PR03", "PR05", "PR06"}
    wanted |= {"PR07", "PR10", "RT04", "RT05", "SS01", "SS02", "SS03", "SS06", "YD01"}
    text = inspect.getdoc(value) or ""
    # Classes that others make describe attributes; one line may do for a single parameter.
    if inspect.isclass(value):
        brief = "\nAttributes\n" in text or getattr(value, "_is_protocol", False)
    else:
        brief = "\n" not in text and len(inspect.signature(value).parameters) <= 2
    if brief:
        wanted.remove("PR01")
    return [f"{code} {text}" for code, text in validate(name)["errors"] if code in wanted]


def test_docstrings():
    errors = {name: docstring_errors(name, value) for name, value in PUBLIC.items()}
    assert {name: found for name, found in errors.items() if found} == {}


def swallows(name, value):
    """Whether a function takes arguments of any name."""
    # scikit-learn's `set_params` takes parameters by name and checks them; exceptions take any.
    # A protocol is not called. Plots check what goes to the figure
    # (tests/plots/test_every_plot.py: test_axes_that_do_not_fit). `read_task` has the arguments of
    # the constructors and refuses others (tests/test_bad_calls.py).
    protocol = getattr(value, "_is_protocol", False)
    plot = ".plot_" in name and not inspect.isclass(value)
    if protocol or plot or name.endswith((".set_params", ".read_task", "Error", "Warning")):
        return False
    loose = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}
    return bool({p.kind for p in inspect.signature(value).parameters.values()} & loose)


def test_no_argument_is_swallowed():
    assert [name for name, value in PUBLIC.items() if swallows(name, value)] == []
