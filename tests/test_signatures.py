"""One vocabulary: every public signature against the table of shared arguments."""

import inspect
from collections import defaultdict

import pytest
from public_names import PUBLIC
from shared_arguments import IN_ANY_ORDER, IN_ORDER

import classex_bayes as cb

# scikit-learn's verbs, which take and return parameters by name.
FOREIGN = {"self", "cls", "deep", "params"}
TABLE = IN_ORDER | IN_ANY_ORDER


def value_of(default):
    """A default in the form in which it is compared."""
    if isinstance(default, cb.BayesianExtrapolator):
        return default.get_params()
    return dict(default) if type(default).__name__ == "mappingproxy" else default


def is_one_of(default, allowed):
    """Whether a default is one of those that the table allows, and of the same type."""
    found = value_of(default)
    values = map(value_of, allowed)
    return any(type(found) is type(value) and found == value for value in values)


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
    assert shared == TABLE.keys() and not IN_ORDER.keys() & IN_ANY_ORDER.keys()


def test_defaults():
    unlike = [
        (name, str(parameter), TABLE[parameter.name])
        for name, parameters in SIGNATURES.items()
        for parameter in parameters
        if parameter.name in TABLE and not is_one_of(parameter.default, TABLE[parameter.name])
    ]
    assert unlike == [], "defaults that tests/shared_arguments.py does not have"


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
            names = [p.name for p in parameters if p.name in IN_ORDER]
            assert names == sorted(names, key=list(IN_ORDER).index), name


@pytest.mark.parametrize("function", [cb.compare, cb.backtest, cb.extrapolate_groups, cb.plan])
def test_k_follows_the_task(function):
    order = ["estimator", "estimators", "task", "n_source", "k"]
    heads = [name for name in inspect.signature(function).parameters if name in order]
    assert heads == sorted(heads, key=order.index)
