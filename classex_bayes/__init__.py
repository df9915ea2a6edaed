"""Extrapolate a classifier's accuracy to more classes, with a posterior.

Everything below loads on first use, so that importing the package costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from classex_bayes.bayes.extrapolator import BayesianExtrapolator
    from classex_bayes.bayes.priors import DirichletPrior, MixturePrior
    from classex_bayes.bayes.storage import load, save
    from classex_bayes.data import simulate
    from classex_bayes.data.datasets import load_glyphs
    from classex_bayes.data.task import SourceTask
    from classex_bayes.estimators.classexreg import ClassExReg
    from classex_bayes.estimators.kde import KDE
    from classex_bayes.evaluate.compare import compare
    from classex_bayes.exceptions import (
        ConvergenceWarning,
        DataError,
        ExtrapolationWarning,
        NotFittedError,
    )
    from classex_bayes.plots.checks import plot_ppc
    from classex_bayes.plots.curve import plot_accuracy
    from classex_bayes.plots.discriminability import plot_discriminability
    from classex_bayes.results import ClassesUntil, Extrapolation

_WHERE = {
    "BayesianExtrapolator": "bayes.extrapolator",
    "ClassExReg": "estimators.classexreg",
    "ClassesUntil": "results",
    "ConvergenceWarning": "exceptions",
    "DataError": "exceptions",
    "DirichletPrior": "bayes.priors",
    "Extrapolation": "results",
    "ExtrapolationWarning": "exceptions",
    "KDE": "estimators.kde",
    "MixturePrior": "bayes.priors",
    "NotFittedError": "exceptions",
    "SourceTask": "data.task",
    "compare": "evaluate.compare",
    "load": "bayes.storage",
    "load_glyphs": "data.datasets",
    "plot_accuracy": "plots.curve",
    "plot_discriminability": "plots.discriminability",
    "plot_ppc": "plots.checks",
    "save": "bayes.storage",
    "simulate": "data.simulate",
}

__all__ = [
    "KDE",
    "BayesianExtrapolator",
    "ClassExReg",
    "ClassesUntil",
    "ConvergenceWarning",
    "DataError",
    "DirichletPrior",
    "Extrapolation",
    "ExtrapolationWarning",
    "MixturePrior",
    "NotFittedError",
    "SourceTask",
    "__version__",
    "compare",
    "load",
    "load_glyphs",
    "plot_accuracy",
    "plot_discriminability",
    "plot_ppc",
    "save",
    "simulate",
]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(f"{__name__}.{_WHERE[name]}")
    value = module if name == "simulate" else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
