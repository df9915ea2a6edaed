"""The documentation: names are in the reference, links lead somewhere, code calls what exists."""

import ast
import contextlib
import functools
import importlib
import inspect
import json
import pydoc
import re
import typing
from operator import attrgetter
from pathlib import Path
from urllib.parse import unquote

import pytest
from public_names import NAMES

import classex_bayes as cb
from classex_bayes.bayes.tails.tail_model import TAIL_PARAMETERS

ROOT = Path(__file__).parents[1]
# mypy knows the types of other studies.
SCRIPTS = sorted(
    file for room in ("coverage", "figures") for file in (ROOT / "docs/studies" / room).glob("*.py")
)
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
PAGES = [
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *NOTEBOOKS,
]


def text_of(page):
    """Markdown of a page, or of a notebook's cells, without code blocks."""
    text = page.read_text(encoding="utf-8")
    if page.suffix == ".ipynb":
        cells = json.loads(text)["cells"]
        text = "\n\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")
    return re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)


def anchors(page):
    """Anchors of a page's headings, as code hosts and MyST make them."""
    titles = re.findall(r"^#+ +(.+)$", text_of(page), flags=re.MULTILINE)
    plain = (re.sub(r"[^\w\- ]", "", title.lower()) for title in titles)
    return {title.strip().replace(" ", "-") for title in plain}


def dead_links(page):
    """Targets within the project that do not exist."""
    for target in re.findall(r"\]\(([^)\s]+)\)", text_of(page)):
        path, _, anchor = unquote(target).partition("#")
        if "://" in path:
            continue
        file = (page.parent / path).resolve() if path else page
        pages = {".md", ".ipynb"}
        if not file.exists() or (anchor and file.suffix in pages and anchor not in anchors(file)):
            yield target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page):
    assert list(dead_links(page)) == []


def test_dead_links_are_seen(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# A title, long\n[a](#a-title-long) [b](#none) [c](none.md) ![d](none.png)\n")
    assert list(dead_links(page)) == ["#none", "none.md", "none.png"]


def test_every_name_of_the_reference_exists():
    text = "\n".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs/api").glob("*.md"))
    names = re.findall(r"^\.\. auto\w+:: (classex_bayes\.[\w.]+)$", text, re.MULTILINE)
    assert len(names) > 50 and [name for name in names if pydoc.locate(name) is None] == []


def test_every_public_name_is_in_the_reference():
    text = "\n".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs/api").glob("*.md"))
    documented = re.findall(r"^\.\. auto\w+:: ([\w.]+)$", text, re.MULTILINE)
    values = [attrgetter(name.removeprefix("classex_bayes."))(cb) for name in documented]
    assert [name for name, value in NAMES.items() if value not in values] == []


# Fields of the default priors by the parameter whose row of the background has their numbers.
PRIORS = {
    **{name: (name, f"{name}_sd") for name in (*TAIL_PARAMETERS, "slope_error")},
    "mu": ("location", "location_sd"),
    "tau": ("scale", "scale_log_sd"),
    "separation": ("separation",),
    "imbalance": (None, "imbalance"),
    "tail": ("tail", "tail_sd"),
    "sigma": ("deviation",),
}


@pytest.mark.parametrize("name", PRIORS)
def test_priors_of_the_background_are_the_defaults(name):
    text = (ROOT / "docs/background.md").read_text(encoding="utf-8")
    (law,) = re.findall(rf"^\|.*\| `{name}` \|.*?([^|]+)\|$", text, re.MULTILINE)
    numbers = re.findall(r"-?\d+\.?\d*", law.replace("^2", "").replace("t_3", ""))
    defaults = {**vars(cb.MixturePrior()), **vars(cb.TailPrior()), None: 0.0}
    assert [float(number) for number in numbers] == [defaults[field] for field in PRIORS[name]]


def python_code(page):
    """Python of a page or script: its code in one text, then the calls in its sentences."""
    text = page.read_text(encoding="utf-8")
    if page.suffix == ".py":
        return [text]
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    if page.suffix == ".ipynb":
        cells = json.loads(text)["cells"]
        blocks = ["".join(c["source"]) for c in cells if c["cell_type"] == "code"]
    return ["\n".join(blocks), *re.findall(r"`((?:cb|model|pred|task)\.[^`]+)`", text_of(page))]


@functools.cache
def assigned_attributes(owner):
    """Names that the methods of a class assign to `self`, and fields of dataclasses."""
    bases = [base for base in getattr(owner, "__mro__", ()) if "classex" in base.__module__]
    sources = [inspect.getsource(base) for base in bases]
    fields = {name for base in bases for name in vars(base).get("__annotations__", {})}
    return fields | set(re.findall(r"self\.(\w+)", "".join(sources)))


class Calls(ast.NodeVisitor):
    """Names and arguments of the package that a page uses; `errors` are those that do not exist.

    Types are followed through assignments, methods that return `Self` and annotated results; what
    they do not tell is not checked.
    """

    def __init__(self):
        self.errors = []
        self.values = {"cb": cb, "SourceTask": cb.SourceTask}
        self.instances = {
            "model": cb.BayesianExtrapolator,
            "pred": cb.Extrapolation,
            "task": cb.SourceTask,
        }

    def value(self, node):
        """Module, class or function that an expression names, or None."""
        if isinstance(node, ast.Name):
            return self.values.get(node.id)
        if not isinstance(node, ast.Attribute):
            return None
        owner = self.value(node.value) or self.instance(node.value)
        if owner is None:
            return None
        if not hasattr(owner, node.attr) and node.attr not in assigned_attributes(owner):
            self.errors.append(ast.unparse(node))
        named = getattr(owner, node.attr, None)
        return named if callable(named) or inspect.ismodule(named) else None

    def instance(self, node):
        """Class of what an expression gives, or None."""
        if isinstance(node, ast.Name):
            return self.instances.get(node.id)
        if not isinstance(node, ast.Call):
            return None
        function = self.value(node.func)
        if inspect.isclass(function):
            return function
        if not callable(function):
            return None
        result = inspect.signature(function).return_annotation
        if result == typing.Self:
            owner = node.func.value
            return self.value(owner) or self.instance(owner)
        return result if inspect.isclass(result) and result is not typing.Any else None

    def visit_Assign(self, node):
        self.generic_visit(node)
        for target in node.targets:
            if isinstance(target, ast.Name):
                self.values.pop(target.id, None)
                self.instances[target.id] = self.instance(node.value)

    def visit_ImportFrom(self, node):
        if node.module.split(".")[0] == "classex_bayes":
            module = importlib.import_module(node.module)
            self.values |= {alias.name: getattr(module, alias.name) for alias in node.names}

    def visit_Attribute(self, node):
        self.value(node)
        self.generic_visit(node)

    def visit_Call(self, node):
        self.generic_visit(node)
        function = self.value(node.func)
        if not callable(function):
            return
        # A method found on a class whose instance is used takes `self` first.
        bound = inspect.isfunction(function) and isinstance(node.func, ast.Attribute)
        bound = bound and self.value(node.func.value) is None
        arguments = [None] * bound
        arguments += [None for value in node.args if not isinstance(value, ast.Starred)]
        names = {word.arg: None for word in node.keywords if word.arg}
        try:
            inspect.signature(function).bind_partial(*arguments, **names)
        except TypeError as error:
            self.errors.append(f"{ast.unparse(node)}: {error}")


def unknown_names(snippets):
    """Names and arguments in Python code that the package does not have."""
    calls = Calls()
    for code in snippets:
        with contextlib.suppress(SyntaxError):  # a span that is no expression
            calls.visit(ast.parse(code))
    return calls.errors


@pytest.mark.parametrize(
    "page", [*PAGES, *SCRIPTS], ids=lambda page: page.relative_to(ROOT).as_posix()
)
def test_pages_call_what_exists(page):
    code, *spans = python_code(page)
    ast.parse(code)
    assert unknown_names([code, *spans]) == []


@pytest.mark.parametrize(
    "code",
    [
        "cb.SourceTask.from_losses(x)",
        "cb.risk.kappa(3)",
        "model.fit(task).predict(3, top=5)",
        "x = cb.KDE('ucv').fit(task)\nx.predict(3, 4)",
    ],
)
def test_unknown_names_are_seen(code):
    assert len(unknown_names([code])) > 0
    assert unknown_names(["x = cb.KDE('ucv').fit(task)\nx.predict(k=3)"]) == []


def empty_parts(text):
    """Names of generated parts of a page without content, or without an end."""
    for mark in re.finditer(r"^<!-- (?!end of |ci: )(.+?) -->\n", text, re.MULTILINE):
        content, end, _ = text[mark.end() :].partition(f"<!-- end of {mark[1]} -->")
        if not end or not content.strip():
            yield mark[1]


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if page.suffix == ".md"],
    ids=lambda page: page.relative_to(ROOT).as_posix(),
)
def test_no_generated_part_is_empty(page):
    assert list(empty_parts(page.read_text(encoding="utf-8"))) == []


def test_empty_parts_are_seen():
    text = "<!-- a -->\n1\n<!-- end of a -->\n<!-- b -->\n\n<!-- end of b -->\n<!-- c -->\n1\n"
    assert list(empty_parts(text)) == ["b", "c"]


def test_tables_of_the_papers_are_those_of_the_command():
    """No number of a table stands there by hand: each table is a part that the study wrote."""
    text = (ROOT / "docs/papers.md").read_text(encoding="utf-8")
    part = r"<!-- ([\w-]+) -->\n(Version .+?)<!-- end of \1 -->"
    parts = dict(re.findall(part, text, flags=re.DOTALL))
    wanted = {"table1-k500", "table1-k5000", "table2-characters"}
    assert set(parts) == wanted | {"table3", "nips2016"}
    assert all("\n|---|" in written for written in parts.values())
    assert "\n|" not in re.sub(part, "", text, flags=re.DOTALL)
