from .checks.posterior_checks import PredictiveReport as PredictiveReport
from .checks.sensitivity import Sensitivity as Sensitivity
from .checks.tail_checks import TailReport as TailReport
from .extrapolator import BayesianExtrapolator as BayesianExtrapolator
from .model.priors import MixturePrior as MixturePrior
from .model.priors import Prior as Prior
