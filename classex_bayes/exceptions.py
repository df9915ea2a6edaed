"""Errors and warnings of the package: one place, each inheriting from the built-in it refines."""

import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

_PACKAGE = str(Path(__file__).parent)


class DataError(ValueError):
    """An argument is not as the function expects; the message says which one and where."""


def no_such_file(path: Path) -> DataError:
    """Error for an input file that is missing, or is a folder."""
    if path.is_dir():
        return DataError(f"{path}: this is a folder, expected a file; name the files in it")
    return DataError(f"{path}: there is no such file")


class NotFittedError(RuntimeError):
    """A fitted quantity was requested before `fit`."""


class Interrupted(KeyboardInterrupt):
    """A long computation was interrupted; `partial` contains the finished part.

    Attributes
    ----------
    partial : object
        Model with the draws so far, or back-test or table of the tasks so far; None if nothing was
        finished.
    """

    def __init__(self, message: str, partial: Any = None) -> None:
        super().__init__(message)
        self.partial = partial
        if partial is not None:
            self.add_note("the attribute `partial` of this exception contains the finished part")


def require_extra(extra: str, use: str, *modules: str) -> None:
    """Raise unless modules can be imported: `use` needs them, and the extra installs them."""
    for module in modules:
        try:
            import_module(module)
        except ImportError as error:
            name = module.split(".")[0]
            package = {"sklearn": "scikit-learn"}.get(name, name)
            raise ImportError(
                f'{use} needs {package}: pip install "classex-bayes[{extra}]"', name=name
            ) from error


class DataWarning(UserWarning):
    """The data of a fit are probably faulty, such as scores of the wrong sign."""


class ExtrapolationWarning(UserWarning):
    """A prediction is so far beyond the observed classes that the prior dominates it."""


class ConvergenceWarning(UserWarning):
    """The sampler's diagnostics show that the posterior draws are not reliable yet."""


def warn(message: str, category: type[Warning]) -> None:
    """Issue a warning located at the first line outside the package, whatever the call's depth."""
    warnings.warn(message, category, stacklevel=2, skip_file_prefixes=(_PACKAGE,))
