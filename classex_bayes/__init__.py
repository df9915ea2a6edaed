"""Extrapolate a classifier's accuracy to more classes, with a posterior.

Everything below loads on first use, so that importing the package costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from classex_bayes import identification, information
    from classex_bayes.bayes.drift import measure_drift
    from classex_bayes.bayes.extrapolator import BayesianExtrapolator
    from classex_bayes.bayes.posterior_checks import posterior_checks
    from classex_bayes.bayes.priors import DirichletPrior, MixturePrior
    from classex_bayes.bayes.risk import BayesianRisk
    from classex_bayes.bayes.score_informed import ScoreInformedExtrapolator
    from classex_bayes.bayes.sensitivity import sensitivity
    from classex_bayes.bayes.stacking import StackedExtrapolator, stack
    from classex_bayes.bayes.storage import load, save
    from classex_bayes.core.drift import DriftPrior
    from classex_bayes.data import simulate
    from classex_bayes.data.datasets import load_glyphs
    from classex_bayes.data.diagnosis import check_marginality, diagnose
    from classex_bayes.data.risk import average_test_risk, average_test_risk_cov
    from classex_bayes.data.task import SourceTask
    from classex_bayes.estimators.bootstrap import bootstrap
    from classex_bayes.estimators.classexreg import ClassExReg
    from classex_bayes.estimators.cleanex import CleaneX
    from classex_bayes.estimators.exponential import MixedExponential
    from classex_bayes.estimators.high_dimensional import HighDimensional
    from classex_bayes.estimators.kde import KDE
    from classex_bayes.estimators.literature import literature
    from classex_bayes.estimators.moment_risk import MomentRisk
    from classex_bayes.estimators.pseudolikelihood import PseudoLikelihood
    from classex_bayes.estimators.risk import PolynomialRisk, kappa
    from classex_bayes.estimators.two_parameter import TwoParameter
    from classex_bayes.evaluate.backtest import backtest
    from classex_bayes.evaluate.classifiers import compare_classifiers
    from classex_bayes.evaluate.compare import compare
    from classex_bayes.evaluate.groups import extrapolate_groups
    from classex_bayes.evaluate.plan import plan
    from classex_bayes.exceptions import (
        ConvergenceWarning,
        DataError,
        ExtrapolationWarning,
        Interrupted,
        NotFittedError,
    )
    from classex_bayes.identification.encoding import EncodingModel
    from classex_bayes.io.tasks import read_task
    from classex_bayes.plots.backtest import plot_backtest
    from classex_bayes.plots.checks import plot_ppc, plot_prior_predictive
    from classex_bayes.plots.classifiers import plot_classifiers
    from classex_bayes.plots.curve import plot_accuracy
    from classex_bayes.plots.diagnosis import plot_diagnosis
    from classex_bayes.plots.discriminability import plot_discriminability
    from classex_bayes.plots.drift import plot_drift
    from classex_bayes.plots.groups import plot_groups
    from classex_bayes.plots.plan import plot_plan
    from classex_bayes.plots.questions import plot_classes_until, plot_prob_at_least
    from classex_bayes.plots.sensitivity import plot_sensitivity
    from classex_bayes.report.page import write_report
    from classex_bayes.results import Asked, ClassesUntil, Extrapolation

_WHERE = {
    "Asked": "results",
    "BayesianExtrapolator": "bayes.extrapolator",
    "BayesianRisk": "bayes.risk",
    "ClassExReg": "estimators.classexreg",
    "ClassesUntil": "results",
    "CleaneX": "estimators.cleanex",
    "ConvergenceWarning": "exceptions",
    "Interrupted": "exceptions",
    "DataError": "exceptions",
    "DirichletPrior": "bayes.priors",
    "DriftPrior": "core.drift",
    "EncodingModel": "identification.encoding",
    "Extrapolation": "results",
    "ExtrapolationWarning": "exceptions",
    "HighDimensional": "estimators.high_dimensional",
    "KDE": "estimators.kde",
    "MixedExponential": "estimators.exponential",
    "MixturePrior": "bayes.priors",
    "MomentRisk": "estimators.moment_risk",
    "NotFittedError": "exceptions",
    "PolynomialRisk": "estimators.risk",
    "PseudoLikelihood": "estimators.pseudolikelihood",
    "ScoreInformedExtrapolator": "bayes.score_informed",
    "SourceTask": "data.task",
    "StackedExtrapolator": "bayes.stacking",
    "TwoParameter": "estimators.two_parameter",
    "average_test_risk": "data.risk",
    "average_test_risk_cov": "data.risk",
    "backtest": "evaluate.backtest",
    "bootstrap": "estimators.bootstrap",
    "check_marginality": "data.diagnosis",
    "compare": "evaluate.compare",
    "compare_classifiers": "evaluate.classifiers",
    "diagnose": "data.diagnosis",
    "extrapolate_groups": "evaluate.groups",
    "identification": "identification",
    "information": "information",
    "kappa": "estimators.risk",
    "literature": "estimators.literature",
    "load": "bayes.storage",
    "load_glyphs": "data.datasets",
    "measure_drift": "bayes.drift",
    "plan": "evaluate.plan",
    "plot_accuracy": "plots.curve",
    "plot_backtest": "plots.backtest",
    "plot_classes_until": "plots.questions",
    "plot_classifiers": "plots.classifiers",
    "plot_diagnosis": "plots.diagnosis",
    "plot_discriminability": "plots.discriminability",
    "plot_drift": "plots.drift",
    "plot_groups": "plots.groups",
    "plot_plan": "plots.plan",
    "plot_ppc": "plots.checks",
    "plot_prior_predictive": "plots.checks",
    "plot_prob_at_least": "plots.questions",
    "plot_sensitivity": "plots.sensitivity",
    "posterior_checks": "bayes.posterior_checks",
    "read_task": "io.tasks",
    "save": "bayes.storage",
    "sensitivity": "bayes.sensitivity",
    "simulate": "data.simulate",
    "stack": "bayes.stacking",
    "write_report": "report.page",
}
_MODULES = ("identification", "information", "simulate")

__all__ = [
    "KDE",
    "Asked",
    "BayesianExtrapolator",
    "BayesianRisk",
    "ClassExReg",
    "ClassesUntil",
    "CleaneX",
    "ConvergenceWarning",
    "DataError",
    "DirichletPrior",
    "DriftPrior",
    "EncodingModel",
    "Extrapolation",
    "ExtrapolationWarning",
    "HighDimensional",
    "Interrupted",
    "MixedExponential",
    "MixturePrior",
    "MomentRisk",
    "NotFittedError",
    "PolynomialRisk",
    "PseudoLikelihood",
    "ScoreInformedExtrapolator",
    "SourceTask",
    "StackedExtrapolator",
    "TwoParameter",
    "__version__",
    "average_test_risk",
    "average_test_risk_cov",
    "backtest",
    "bootstrap",
    "check_marginality",
    "compare",
    "compare_classifiers",
    "diagnose",
    "extrapolate_groups",
    "identification",
    "information",
    "kappa",
    "literature",
    "load",
    "load_glyphs",
    "measure_drift",
    "plan",
    "plot_accuracy",
    "plot_backtest",
    "plot_classes_until",
    "plot_classifiers",
    "plot_diagnosis",
    "plot_discriminability",
    "plot_drift",
    "plot_groups",
    "plot_plan",
    "plot_ppc",
    "plot_prior_predictive",
    "plot_prob_at_least",
    "plot_sensitivity",
    "posterior_checks",
    "read_task",
    "save",
    "sensitivity",
    "simulate",
    "stack",
    "write_report",
]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(f"{__name__}.{_WHERE[name]}")
    value = module if name in _MODULES else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
