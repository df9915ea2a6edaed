"""Save and load fitted models: draws, data and provenance in one netCDF or zarr file."""

import json
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import xarray as xr

from classex_bayes.arguments import file_path
from classex_bayes.bayes.fitted import FittedModel
from classex_bayes.bayes.idata import MIXTURE, split_weights
from classex_bayes.bayes.integrity import is_of_first_layout, refuse_changed, refuse_unsound
from classex_bayes.bayes.model.priors import MixturePrior, Prior
from classex_bayes.exceptions import DataError, DataWarning, warn
from classex_bayes.io.whole_files import read_tree

_GROUPS = "posterior", "observed_data"
_NO_CHECKSUM = (
    "the model comes from a file of the first layout, which has no checksum: had it been damaged, "
    "its numbers could be wrong"
)


def save(model: FittedModel, path: str | Path) -> Path:
    """Write a fitted model to a file.

    Parameters
    ----------
    model : estimator with a posterior
        A fitted model, such as `BayesianExtrapolator` or `OpenSetExtrapolator`.
    path : str or Path
        Ends in .nc (netCDF) or .zarr. The file appears whole or not at all. It holds no scores,
        but the names of the classes and the ranks of their instances in bins. To leave these out,
        delete the group ``ranks_by_class`` of ``model.idata`` first.

    Returns
    -------
    Path

    Raises
    ------
    NotFittedError
        The model has no draws yet.
    DataError
        Unknown ending; or a file could not describe the model's prior or class, so that it could
        not be loaded.
    OSError
        The file cannot be written; the model keeps its draws.
    """
    if not isinstance(model, FittedModel):
        raise DataError(
            "model: expected an estimator that draws from a posterior, such as "
            f"BayesianExtrapolator, found {type(model).__name__}"
        )
    if model.is_fitted and _public_class(type(model).__name__) is not type(model):
        raise DataError(
            f"model: {type(model).__name__} is no class of this package, which could not load it; "
            "save `model.idata` with its method `to_netcdf`"
        )
    return model.save(path)


def load(path: str | Path, *, prior: Prior | Mapping[str, Prior] | None = None) -> Any:
    """Read a model written by `save`.

    Parameters
    ----------
    path : str or Path
        A .nc or .zarr file.
    prior : Prior or mapping from str to Prior, optional
        A prior of your own with which the model was fitted: files have its name and fields, not
        its code. Of a `StackedExtrapolator`, priors of your own by their names.

    Returns
    -------
    estimator with a posterior
        Predicts like the model that was saved; its `task` is None, since scores are not stored.

    Raises
    ------
    FileNotFoundError
        No such file.
    DataError
        Not a file of this package; its content does not agree with its checksum, it has lost
        that, or it holds numbers that no fit leaves; a prior of your own is missing or not that
        of the fit.

    Warns
    -----
    DataWarning
        The file has the first layout, from before checksums. Predictions carry a note.

    Notes
    -----
    Files have a checksum over all groups, values and attributes, which is the same in netCDF and
    zarr. A file that was changed after it was saved is refused.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> import classex_bayes as cb
    >>> task = cb.SourceTask.from_ranks([1] * 45 + [2, 3, 6, 10, 31], range(50), n_classes=50)
    >>> model = cb.BayesianExtrapolator().fit(
    ...     task, draws=500, tune=500, chains=2, random_seed=1, progressbar=False
    ... )
    >>> again = load(save(model, mkdtemp() + "/pilot.nc"))
    >>> bool((again.predict(500).accuracy == model.predict(500).accuracy).all())
    True
    """
    tree = read_tree(file_path(path, "path"))
    attributes: dict[Any, Any] = tree.attrs
    interface = attributes.get("modeling_interface")
    if not isinstance(interface, str) or interface != "classex_bayes":
        raise DataError(f"path: {path} was not written by classex_bayes.save")
    try:
        if is_of_first_layout(tree):
            _convert_first_layout(tree)
            warn(f"path: {path}: {_NO_CHECKSUM}; save it again", DataWarning)
        else:
            refuse_changed(tree)
        refuse_unsound(tree)
    except DataError as error:
        raise DataError(f"path: {path} cannot be trusted: {error}") from None
    except Exception as error:  # such as text that is no Unicode
        raise DataError(f"path: {path} cannot be trusted: {error!r}") from error
    name = attributes.get("estimator")
    kind = _public_class(name)
    if not (isinstance(kind, type) and issubclass(kind, FittedModel)):
        raise DataError(f"path: {path} has a {name}, which this version does not know")
    try:
        for group in _GROUPS:
            tree[group]
        return kind.from_idata(tree, prior)
    except DataError:
        raise
    except Exception as error:  # a file may hold anything
        raise DataError(f"path: {path} is damaged or of another version ({error!r})") from error


def _convert_first_layout(tree: xr.DataTree) -> None:
    """Bring a file of the first layout to the form of today."""
    for group in MIXTURE:
        if group in tree.children and "weights" in tree[group]:
            for part, draws in split_weights(
                tree[group].to_dataset(), MixturePrior.descriptions, group
            ).items():
                tree[part] = xr.DataTree(draws)
    attributes: dict[Any, Any] = tree.attrs
    attributes["estimator"] = "BayesianExtrapolator"
    if isinstance(attributes.get("task_kind"), str):
        attributes["task_kind"] = attributes["task_kind"].replace("losses", "ranks")
    attributes["doubts"] = json.dumps([_NO_CHECKSUM])


def _public_class(name: Any) -> Any:
    """Class of fitted models by its public name, which stays where modules are moved."""
    package: Any = import_module(__name__.partition(".")[0])
    if name not in package.__all__:
        return None
    return getattr(package, name)
