"""One vocabulary: every public signature against the table of docs/arguments.md."""

import ast
import inspect
import re
from collections import defaultdict
from pathlib import Path

import pytest
from public_names import PUBLIC

import classex_bayes as cb

PAGE = (Path(__file__).parents[1] / "docs" / "arguments.md").read_text(encoding="utf-8")
# scikit-learn's verbs, which take and return parameters by name.
FOREIGN = {"self", "cls", "deep", "params"}
OBJECTS = {
    "BayesianExtrapolator()": cb.BayesianExtrapolator().get_params(),
    "MixturePrior()": cb.MixturePrior(),
    "MixturePrior(bandwidth=0.25)": cb.MixturePrior(bandwidth=0.25),
    "TailPrior()": cb.TailPrior(),
    "Accuracy()": cb.core.named_metric("accuracy"),
    "Estimand()": inspect.signature(cb.Extrapolation).parameters["estimand"].default,
}


def rows(page):
    """Arguments of a part of the page with their defaults, in order."""
    for names, defaults, _ in re.findall(r"^\| (`.+?) \| (.+?) \| (.+?) \|$", page, flags=re.M):
        parts = re.findall(r"\{.*?\}|\(.*?\)|\w+\([^)]*\)|[^,\s][^,]*", defaults)
        for name in re.findall(r"`(\w+)`", names):
            yield name, [part.strip() for part in parts]


def default_of(text):
    """Value of a default as the table writes it."""
    if text == "required":
        return inspect.Parameter.empty
    return OBJECTS[text] if text in OBJECTS else ast.literal_eval(text)


def value_of(default):
    """A default in the form in which it is compared."""
    if isinstance(default, cb.BayesianExtrapolator):
        return default.get_params()
    return dict(default) if type(default).__name__ == "mappingproxy" else default


def is_one_of(default, allowed):
    """Whether a default is one of those that the table allows, and of the same type."""
    found = value_of(default)
    return any(type(found) is type(value) and found == value for value in allowed)


ORDERED = [name for name, _ in rows(PAGE[: PAGE.index("## Arguments in any order")])]
TABLE = {name: list(map(default_of, defaults)) for name, defaults in rows(PAGE)}


def is_result(value):
    """Whether a class is made by functions: its docstring has attributes and no parameters."""
    text = inspect.getdoc(value) or ""
    return inspect.isclass(value) and "\nAttributes\n" in text and "\nParameters\n" not in text


SIGNATURES = {
    name: [p for p in inspect.signature(value).parameters.values() if p.name not in FOREIGN]
    for name, value in PUBLIC.items()
    if not getattr(value, "_is_protocol", False)
    and not name.endswith(("Error", "Warning"))
    and not is_result(value)
}


def users():
    """Public objects by the arguments that they take."""
    found = defaultdict(set)
    for name, parameters in SIGNATURES.items():
        for parameter in parameters:
            found[parameter.name].add(getattr(PUBLIC[name], "__qualname__", name))
    return found


def test_the_table_has_the_shared_arguments_and_no_others():
    shared = {name for name, takers in users().items() if len(takers) > 1}
    assert shared == TABLE.keys()
    assert len(TABLE) == len(list(rows(PAGE)))


def test_defaults():
    unlike = [
        (name, str(parameter), TABLE[parameter.name])
        for name, parameters in SIGNATURES.items()
        for parameter in parameters
        if parameter.name in TABLE and not is_one_of(parameter.default, TABLE[parameter.name])
    ]
    assert unlike == [], "defaults that docs/arguments.md does not have"


def test_the_table_has_no_other_defaults():
    taken = [p for parameters in SIGNATURES.values() for p in parameters]
    unused = [
        (name, default)
        for name, defaults in TABLE.items()
        for default in defaults
        if not any(p.name == name and is_one_of(p.default, [default]) for p in taken)
    ]
    assert unused == []


def test_order():
    for name, parameters in SIGNATURES.items():
        if not inspect.isclass(PUBLIC[name]):  # parameters of a constructor go as in the model
            places = [ORDERED.index(p.name) for p in parameters if p.name in ORDERED]
            assert places == sorted(places), name


@pytest.mark.parametrize("function", [cb.compare, cb.backtest, cb.extrapolate_groups, cb.plan])
def test_k_follows_the_task(function):
    order = ["estimator", "estimators", "task", "n_source", "k"]
    heads = [name for name in inspect.signature(function).parameters if name in order]
    assert heads == sorted(heads, key=order.index)
