"""Extrapolate a classifier's accuracy to more classes, with a posterior.

Everything below loads on first use, so that importing the package costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from classex_bayes._version import __version__

if TYPE_CHECKING:
    from classex_bayes import identification, information, risk, simulate
    from classex_bayes.assumptions.diagnosis import diagnose
    from classex_bayes.assumptions.drift import DriftPrior, measure_drift
    from classex_bayes.assumptions.marginality import check_marginality
    from classex_bayes.bayes.checks.posterior_checks import posterior_checks
    from classex_bayes.bayes.checks.sensitivity import sensitivity
    from classex_bayes.bayes.extrapolator import BayesianExtrapolator
    from classex_bayes.bayes.model.priors import DirichletPrior, MixturePrior, Prior
    from classex_bayes.bayes.stacking import StackedExtrapolator, stack
    from classex_bayes.bayes.storage import load, save
    from classex_bayes.estimators.bootstrap import bootstrap
    from classex_bayes.estimators.classexreg.classexreg import ClassExReg
    from classex_bayes.estimators.cleanex.cleanex import CleaneX
    from classex_bayes.estimators.exponential import MixedExponential
    from classex_bayes.estimators.high_dimensional import HighDimensional
    from classex_bayes.estimators.kde.kde import KDE
    from classex_bayes.estimators.literature import literature
    from classex_bayes.estimators.pseudolikelihood.pseudolikelihood import PseudoLikelihood
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
    from classex_bayes.io.task_files import read_task
    from classex_bayes.plots.plot_accuracy import plot_accuracy
    from classex_bayes.plots.plot_backtest import plot_backtest
    from classex_bayes.plots.plot_classes_until import plot_classes_until
    from classex_bayes.plots.plot_classifiers import plot_classifiers
    from classex_bayes.plots.plot_diagnosis import plot_diagnosis
    from classex_bayes.plots.plot_discriminability import plot_discriminability
    from classex_bayes.plots.plot_drift import plot_drift
    from classex_bayes.plots.plot_groups import plot_groups
    from classex_bayes.plots.plot_plan import plot_plan
    from classex_bayes.plots.plot_ppc import plot_ppc, plot_prior_predictive
    from classex_bayes.plots.plot_prob_at_least import plot_prob_at_least
    from classex_bayes.plots.plot_sensitivity import plot_sensitivity
    from classex_bayes.report.page import write_report
    from classex_bayes.results import ClassesUntil, Estimand, Extrapolation
    from classex_bayes.risk.bayesian_risk import BayesianRisk
    from classex_bayes.risk.moment_risk import MomentRisk
    from classex_bayes.risk.polynomial_risk import PolynomialRisk
    from classex_bayes.score_informed.score_informed import ScoreInformedExtrapolator
    from classex_bayes.task.glyphs import load_glyphs
    from classex_bayes.task.source_task import SourceTask

_WHERE = {
    "Estimand": "results",
    "BayesianExtrapolator": "bayes.extrapolator",
    "BayesianRisk": "risk.bayesian_risk",
    "ClassExReg": "estimators.classexreg.classexreg",
    "ClassesUntil": "results",
    "CleaneX": "estimators.cleanex.cleanex",
    "ConvergenceWarning": "exceptions",
    "Interrupted": "exceptions",
    "DataError": "exceptions",
    "DirichletPrior": "bayes.model.priors",
    "DriftPrior": "assumptions.drift",
    "EncodingModel": "identification.encoding",
    "Extrapolation": "results",
    "ExtrapolationWarning": "exceptions",
    "HighDimensional": "estimators.high_dimensional",
    "KDE": "estimators.kde.kde",
    "MixedExponential": "estimators.exponential",
    "MixturePrior": "bayes.model.priors",
    "MomentRisk": "risk.moment_risk",
    "NotFittedError": "exceptions",
    "PolynomialRisk": "risk.polynomial_risk",
    "Prior": "bayes.model.priors",
    "PseudoLikelihood": "estimators.pseudolikelihood.pseudolikelihood",
    "ScoreInformedExtrapolator": "score_informed.score_informed",
    "SourceTask": "task.source_task",
    "StackedExtrapolator": "bayes.stacking",
    "TwoParameter": "estimators.two_parameter",
    "backtest": "evaluate.backtest",
    "bootstrap": "estimators.bootstrap",
    "check_marginality": "assumptions.marginality",
    "compare": "evaluate.compare",
    "compare_classifiers": "evaluate.classifiers",
    "diagnose": "assumptions.diagnosis",
    "extrapolate_groups": "evaluate.groups",
    "identification": "identification",
    "information": "information",
    "literature": "estimators.literature",
    "load": "bayes.storage",
    "load_glyphs": "task.glyphs",
    "measure_drift": "assumptions.drift",
    "plan": "evaluate.plan",
    "plot_accuracy": "plots.plot_accuracy",
    "plot_backtest": "plots.plot_backtest",
    "plot_classes_until": "plots.plot_classes_until",
    "plot_classifiers": "plots.plot_classifiers",
    "plot_diagnosis": "plots.plot_diagnosis",
    "plot_discriminability": "plots.plot_discriminability",
    "plot_drift": "plots.plot_drift",
    "plot_groups": "plots.plot_groups",
    "plot_plan": "plots.plot_plan",
    "plot_ppc": "plots.plot_ppc",
    "plot_prior_predictive": "plots.plot_ppc",
    "plot_prob_at_least": "plots.plot_prob_at_least",
    "plot_sensitivity": "plots.plot_sensitivity",
    "posterior_checks": "bayes.checks.posterior_checks",
    "read_task": "io.task_files",
    "risk": "risk",
    "save": "bayes.storage",
    "sensitivity": "bayes.checks.sensitivity",
    "simulate": "simulate",
    "stack": "bayes.stacking",
    "write_report": "report.page",
}
_MODULES = ("identification", "information", "risk", "simulate")

__all__ = [
    "KDE",
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
    "Estimand",
    "Extrapolation",
    "ExtrapolationWarning",
    "HighDimensional",
    "Interrupted",
    "MixedExponential",
    "MixturePrior",
    "MomentRisk",
    "NotFittedError",
    "PolynomialRisk",
    "Prior",
    "PseudoLikelihood",
    "ScoreInformedExtrapolator",
    "SourceTask",
    "StackedExtrapolator",
    "TwoParameter",
    "__version__",
    "backtest",
    "bootstrap",
    "check_marginality",
    "compare",
    "compare_classifiers",
    "diagnose",
    "extrapolate_groups",
    "identification",
    "information",
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
    "risk",
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
