from .backtest import Backtest as Backtest
from .classifiers import AccuracyDifference as AccuracyDifference
from .classifiers import ClassifierComparison as ClassifierComparison
from .compare import Comparison as Comparison
from .extrapolation_check import ExtrapolationCheck as ExtrapolationCheck
from .groups import GroupedExtrapolation as GroupedExtrapolation
from .plan import Plan as Plan
