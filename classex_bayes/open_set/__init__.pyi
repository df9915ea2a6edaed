from .observed_rates import open_set_rates as open_set_rates
from .open_set import OpenSetExtrapolator as OpenSetExtrapolator
from .open_set_prediction import OpenSetPrediction as OpenSetPrediction
from .open_set_prediction import SelectivePrediction as SelectivePrediction
