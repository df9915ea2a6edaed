from .extrapolator import BayesianExtrapolator as BayesianExtrapolator
from .law_model import LawModel as LawModel
from .model.priors import MixturePrior as MixturePrior
from .model.priors import Prior as Prior
