"""Save and load fitted models: draws, data and provenance in one netCDF or zarr file."""

from pathlib import Path
from typing import Any

from classex_bayes.bayes.extrapolator import BayesianExtrapolator
from classex_bayes.bayes.idata import data_of, prior_of
from classex_bayes.exceptions import DataError
from classex_bayes.io.whole_files import read_tree, write_tree
from classex_bayes.task.validation import file_path


def save(model: BayesianExtrapolator, path: str | Path) -> Path:
    """Write a fitted model to a file.

    Parameters
    ----------
    model : BayesianExtrapolator
        A fitted model.
    path : str or Path
        Ends in .nc (netCDF) or .zarr. The file appears whole or not at all.

    Returns
    -------
    Path

    Raises
    ------
    NotFittedError
        The model has no draws yet.
    DataError
        Unknown ending.
    OSError
        The file cannot be written; the model keeps its draws.
    """
    if not isinstance(model, BayesianExtrapolator):
        raise DataError(f"model: expected a BayesianExtrapolator, found {type(model).__name__}")
    return write_tree(model.idata, file_path(path, "path"))


def load(path: str | Path) -> BayesianExtrapolator:
    """Read a model written by `save`.

    Parameters
    ----------
    path : str or Path
        A .nc or .zarr file.

    Returns
    -------
    BayesianExtrapolator
        Predicts like the model that was saved; its `task` is None, since scores are not stored.

    Raises
    ------
    FileNotFoundError
        No such file.
    DataError
        Not a file of this package.
    """
    tree = read_tree(file_path(path, "path"))
    attributes: dict[Any, Any] = tree.attrs
    if attributes.get("modeling_interface") != "classex_bayes":
        raise DataError(f"path: {path} was not written by classex_bayes.save")
    try:
        prior = prior_of(attributes)
        model = BayesianExtrapolator(prior, attributes["likelihood"])
        for name in ("n_classes", "n_test", "design_effect", "task_kind", "random_seed"):
            attributes[name]
        model._adopt(tree, prior, data_of(tree), ())
        model.diagnosis_  # noqa: B018, since only a whole posterior can be judged
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"path: {path} is damaged or of another version ({error!r})") from error
    return model
