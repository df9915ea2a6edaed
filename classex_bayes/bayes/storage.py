"""Save and load fitted models: draws, data and provenance in one netCDF or zarr file."""

from importlib import import_module
from inspect import ismodule
from itertools import chain
from pathlib import Path
from typing import Any

from classex_bayes.arguments import file_path
from classex_bayes.bayes.fitted import FittedModel
from classex_bayes.bayes.model.priors import Prior
from classex_bayes.exceptions import DataError
from classex_bayes.io.whole_files import read_tree


def save(model: FittedModel, path: str | Path) -> Path:
    """Write a fitted model to a file.

    Parameters
    ----------
    model : estimator with a posterior
        A fitted model, such as `BayesianExtrapolator` or `OpenSetExtrapolator`.
    path : str or Path
        Ends in .nc (netCDF) or .zarr. The file is written completely or not at all. It holds
        neither scores nor names of classes. If ``compute_log_likelihood`` was called, its group
        ``log_likelihood`` has the names of the classes, and notes may name some.

    Returns
    -------
    Path
        The path of the file.

    Raises
    ------
    NotFittedError
        The model has no draws yet.
    DataError
        The ending is unknown, or a file cannot describe a parameter such as your own prior.
    OSError
        The file cannot be written. The model keeps its draws.
    """
    if not isinstance(model, FittedModel):
        raise DataError(
            "model: expected an estimator that draws from a posterior, such as "
            f"BayesianExtrapolator, found {type(model).__name__}"
        )
    return model.save(path)


def load(path: str | Path, *, prior: Prior | None = None) -> Any:
    """Read a model written by `save`.

    Parameters
    ----------
    path : str or Path
        A .nc or .zarr file.
    prior : Prior, optional
        Your own prior, if the model was fitted with one. The file holds its name and fields, but
        not its code.

    Returns
    -------
    estimator with a posterior
        It predicts like the saved model. Its `task` is None, because files hold no scores. Plots
        and checks that compare the model with its pilot have an argument `task`. A model of your
        own class (`LawModel`) can be loaded if the class is defined or imported.

    Raises
    ------
    FileNotFoundError
        The file does not exist.
    DataError
        The file was not written by `save`, or was changed or damaged afterwards: its checksum,
        which covers all groups, does not match. Or your own prior is missing, or differs from the
        prior of the fit.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> import classex_bayes as cb
    >>> task = cb.SourceTask.from_ranks([1] * 45 + [2, 3, 6, 10, 31], range(50), n_classes=50)
    >>> model = cb.BayesianExtrapolator().fit(
    ...     task, sampler={"draws": 500, "tune": 500, "chains": 2}, random_seed=1, progressbar=False
    ... )
    >>> again = load(save(model, mkdtemp() + "/pilot.nc"))
    >>> bool((again.predict(500).accuracy == model.predict(500).accuracy).all())
    True
    """
    tree = read_tree(file_path(path, "path"))
    name = tree.attrs.get("estimator")
    kind = _model_class(name)
    if kind is None:
        raise DataError(
            f"path: {path} holds a model of the class {name}, which this version does not have; "
            "update classex_bayes, or import your own class first"
        )
    try:
        return kind.from_idata(tree, prior)
    except (KeyError, TypeError) as error:
        raise DataError(
            f"path: {path} is a file of another version ({error!r}); fit again"
        ) from error


def _model_class(name: Any) -> type[FittedModel] | None:
    """Class of models of this name: a public one, or one that was defined in this process."""
    package: Any = import_module(__name__.partition(".")[0])
    # Read one by one, since each imports its module.
    names = (getattr(package, public) for public in package.__all__)
    for place in chain([package], filter(ismodule, names)):
        public = getattr(place, name) if name in getattr(place, "__all__", ()) else None
        if isinstance(public, type) and issubclass(public, FittedModel):
            return public
    kinds = [FittedModel]
    for kind in kinds:  # grows
        kinds += kind.__subclasses__()
    return next((kind for kind in kinds if kind.__name__ == name), None)
