from .bounds import AccuracyBound as AccuracyBound
from .bounds import bayes_accuracy_bound as bayes_accuracy_bound
from .bounds import bayes_accuracy_variance as bayes_accuracy_variance
from .bounds import information_bound as information_bound
from .bounds import largest_accuracy as largest_accuracy
from .bounds import smallest_information as smallest_information
from .implied import ImpliedInformation as ImpliedInformation
from .implied import implied_information as implied_information
