"""Checks of the file of a fitted model: its checksum, its attributes and its numbers.

The checksum covers names, dimensions, values and attributes. It does not depend on the bytes of
the file, so it is the same in netCDF and zarr, with any compression.
"""

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from typing import Any, get_args

import numpy as np
import xarray as xr

from classex_bayes.arguments import is_real
from classex_bayes.bayes.provenance import seeds_of
from classex_bayes.bayes.sampling import SamplerSettings
from classex_bayes.core.dependence import AnswerDependence
from classex_bayes.exceptions import DataError
from classex_bayes.formatting import brief
from classex_bayes.task.evidence import MadeFrom
from classex_bayes.task.validation import FEWEST_CLASSES
from classex_bayes.typing import NumberArray

FILE_FORMAT = 1  # version of the groups and attributes
_OF_EVERY_MODEL = {  # attributes
    "n_classes", "n_test", "design_effect", "task_kind", "random_seed", "random_seed_spawn_key",
}  # fmt: skip
_OF_A_SAMPLER = "sample_stats", {"sampler"}  # group and attributes
_DRAWS = "posterior", "mixture"  # groups
_CHECKSUM, _FORMAT = "checksum", "file_format"
_ROUNDING = 1e-6  # largest relative error of a sum


def seal(tree: xr.DataTree) -> dict[str, Any]:
    """Attributes that `refuse_changed` checks, for a tree as it is read from a file."""
    tree.attrs[_FORMAT] = FILE_FORMAT
    return {_FORMAT: FILE_FORMAT, _CHECKSUM: _checksum(tree)}


def refuse_changed(tree: xr.DataTree) -> None:
    """Raise if the format is unknown or the checksum is wrong, and remove the seal."""
    attributes: dict[Any, Any] = tree.attrs
    file_format: Any = attributes.get(_FORMAT, FILE_FORMAT)
    if not (is_real(file_format) and file_format == FILE_FORMAT):
        raise DataError(
            f"its file format is {brief(np.asarray(file_format).tolist())}, and this version reads "
            f"format {FILE_FORMAT}; update classex_bayes, or fit again"
        )
    written = attributes.pop(_CHECKSUM, None)
    if written is None:
        raise DataError("its checksum is missing; use another copy, or fit again")
    if written != _checksum(tree):
        raise DataError(
            "its checksum does not match: the file was changed or damaged after it was saved; use "
            "another copy, or fit again"
        )
    attributes.pop(_FORMAT, None)


def _checksum(tree: xr.DataTree) -> str:
    """Digest of the groups, the same for every file format."""
    digest = hashlib.sha256()

    def add(*parts: bytes) -> None:
        for part in parts:
            digest.update(len(part).to_bytes(8, "little"))
            digest.update(part)

    for node in sorted(tree.subtree, key=lambda node: node.path):
        group = node.to_dataset(inherit=False)
        add(node.path.encode(errors="surrogatepass"), _plain_attributes(group.attrs))
        for name in sorted(map(str, group.variables)):
            variable = group.variables[name]
            role = "coordinate" if name in group.coords else "variable"
            add(json.dumps([name, role, variable.dims, variable.shape], default=str).encode())
            add(*_plain_values(np.asarray(variable.values)), _plain_attributes(variable.attrs))
    return f"sha256:{digest.hexdigest()}"


def _plain_attributes(attributes: Mapping[Any, Any]) -> bytes:
    """Attributes as JSON. Every value becomes a list, because netCDF returns [x] as x."""
    values = {str(name): _plain_items(value) for name, value in attributes.items()}
    return json.dumps(values, sort_keys=True, default=str).encode()


def _plain_items(value: Any) -> list[Any]:
    items = [
        item.item() if isinstance(item, np.generic) else item
        for item in np.ravel(np.asarray(value, dtype=object))
    ]
    return [item.hex() if isinstance(item, float) else item for item in items]


def _plain_values(values: NumberArray) -> tuple[bytes, bytes]:
    """Type and bytes of an array; text as JSON."""
    if values.dtype.kind not in "biufc":
        return b"text", json.dumps(values.ravel().tolist(), default=str).encode()
    little = values.astype(values.dtype.newbyteorder("<"), order="C")
    if little.dtype.kind == "f":
        little[np.isnan(little)] = np.nan  # NaN has many bit patterns
    return little.dtype.str.encode(), little.tobytes()


def refuse_unsound(tree: xr.DataTree) -> None:
    """Raise if attributes or numbers are such as no fit produces.

    The checksum cannot show this if `idata` was edited before it was saved.
    """
    for node in tree.subtree:
        group, attributes = _OF_A_SAMPLER
        wanted = _OF_EVERY_MODEL | (attributes if group in node.children else set())
        missing = wanted - node.attrs.keys()
        if missing and "modeling_interface" in node.attrs:
            raise DataError(f"it lacks {', '.join(sorted(missing))}")
        for name in sorted(_ATTRIBUTES.keys() & node.attrs.keys()):
            expected, holds = _ATTRIBUTES[name]
            if not _holds(holds, node.attrs[name]):
                raise DataError(
                    f"attribute {name} is {brief(node.attrs[name])}, expected {expected}"
                )
        if "random_seed" in node.attrs and not _holds(seeds_of, node.attrs):
            raise DataError("attributes random_seed, random_seed_spawn_key are no seed")
        if node.name in _NUMBERS:
            sizes = node.parent.attrs if node.parent is not None else {}
            _refuse_numbers(node.name, node.to_dataset(inherit=False), sizes)


def _holds(rule: Callable[[Any], Any], value: Any) -> bool:
    """Whether a rule holds for a value of a file. The value may have any type."""
    try:
        return bool(rule(value))
    except Exception:
        return False


def _refuse_numbers(group: str, data: xr.Dataset, sizes: Mapping[Any, Any]) -> None:
    """Raise if the numbers of a group cannot come from a fit to a task of these sizes."""
    for name in sorted(map(str, data.variables)):
        variable = data[name]
        if variable.dtype.kind not in "biuf":
            raise DataError(f"{group}/{name} holds {variable.dtype}, expected numbers")
        if not np.isfinite(variable.values).all():
            raise DataError(f"{group}/{name} holds NaN or infinity")
        if group in _DRAWS and name in data.indexes and not data.indexes[name].is_unique:
            raise DataError(f"{group}/{name} has an entry twice")
        for names, expected, holds in _NUMBERS[group]:
            if name in names and not holds(variable, sizes):
                raise DataError(f"{group}/{name}: expected {expected}")


def _whole(smallest: int) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, int | np.integer) and bool(value >= smallest)


def _real(smallest: float) -> Callable[[Any], bool]:
    return lambda value: is_real(value) and smallest <= value < math.inf


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _texts(value: Any, fewest: int = 0) -> bool:
    """Whether a value is a JSON list of texts, at least `fewest` of them distinct."""
    items = json.loads(value)
    return isinstance(items, list) and all(map(_text, items)) and len({*items}) >= fewest


def _dependence(value: Any) -> bool:
    fields = json.loads(value)
    AnswerDependence(**fields)
    numbers = [value for name, value in fields.items() if name != "accuracy" or value is not None]
    return all(is_real(number) and math.isfinite(number) for number in numbers)


_NOTES = "a JSON list of texts", _texts
# The expected value in words, and a rule that is true for it. A rule may raise for other values.
# Predictions do not use other attributes.
_ATTRIBUTES: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "estimator": ("a text", _text),
    "modeling_interface_version": ("a text", _text),
    "task_kind": (
        f"some of {', '.join(get_args(MadeFrom))}",
        lambda value: {*value.split(", ")} <= {*get_args(MadeFrom)},
    ),
    "n_classes": (f"a whole number >= {FEWEST_CLASSES}", _whole(FEWEST_CLASSES)),
    "n_test": ("a whole number >= 1", _whole(1)),
    "n_tasks": ("a whole number >= 2", _whole(2)),
    "design_effect": ("a positive number", lambda value: _real(0)(value) and value > 0),
    "siblings": (
        "a JSON list of three numbers >= 0",
        lambda value: len(items := json.loads(value)) == 3 and all(map(_real(0), items)),
    ),
    "dependence": ("the fields of AnswerDependence as JSON", _dependence),
    "sampler": (
        "the settings of a sampler as JSON",
        lambda value: SamplerSettings(**json.loads(value)),
    ),
    "likelihood": ("a text", _text),
    "shared": ("a text", _text),
    "interrupted": ("a text", _text),
    "bandwidth": ("a positive number", lambda value: _real(0)(value) and value > 0),
    "parameters": ("a JSON object", lambda value: isinstance(json.loads(value), dict)),
    "prior": ("a JSON object", lambda value: isinstance(json.loads(value)["type"], str)),
    "doubts": _NOTES,
    "pool_notes": _NOTES,
    "pareto_k": ("a number", is_real),
    "scale_kind": ("a text", _text),
    "scale_origin": ("a number", lambda value: isinstance(value, float | np.floating)),
    "score_notes": _NOTES,
}


# Names of variables, their expected values in words, and a rule that is true for them. The rule
# takes a variable and the attributes of the model.
_Rule = tuple[tuple[str, ...], str, Callable[[xr.DataArray, Mapping[Any, Any]], bool]]
_POSITIVE: _Rule = (
    ("design_effect", "n_classes", "n_test"),
    "positive numbers",
    lambda values, _: bool((values > 0).all()),
)
_COUNTS: _Rule = (
    ("loss_histogram", "counts"),
    "numbers of instances >= 0 that add up to n_test",
    lambda values, sizes: bool(
        (values >= 0).all() and math.isclose(values.sum(), sizes["n_test"], rel_tol=_ROUNDING)
    ),
)
_SHARES: _Rule = (
    ("accuracy", "error", "risk", "weight", "cost", "largest_cost", "smallest"),
    "numbers in [0, 1]",
    lambda values, _: bool(((values >= 0) & (values <= 1 + _ROUNDING)).all()),
)
_NOT_NEGATIVE: _Rule = (
    ("weight", "n_rivals"),
    "numbers >= 0",
    lambda values, _: bool((values >= 0).all()),
)
_KNOWN_K: _Rule = (
    ("k",),
    "numbers of classes in 2..n_classes",
    lambda values, sizes: bool(((values >= 2) & (values <= sizes["n_classes"])).all()),
)
_BIN_SHARES: _Rule = (
    ("matrix",),
    "shares of the bins >= 0 with the sum 1 for each task",
    lambda values, sizes: (
        "bin" not in values.dims
        or bool(
            (values >= 0).all()
            and (abs(values.sum("bin") / sizes.get("n_tasks", 1) - 1) <= _ROUNDING).all()
        )
    ),
)
_WEIGHTS: _Rule = (
    ("weights",),
    "weights >= 0 with the sum 1",
    lambda values, _: bool(
        (values >= 0).all() and (abs(values.sum("knot") - 1) <= _ROUNDING).all()
    ),
)
# Groups whose numbers must be finite, and further rules for some of their variables.
_NUMBERS: dict[str, tuple[_Rule, ...]] = {
    "posterior": (),
    "mixture": (_WEIGHTS,),
    "observed_data": (_COUNTS, _SHARES, _KNOWN_K),
    "constant_data": (_POSITIVE, _SHARES, _BIN_SHARES),
    "likelihood_data": (_POSITIVE, _SHARES, _COUNTS),
    "held_out_losses": (_NOT_NEGATIVE,),
}
