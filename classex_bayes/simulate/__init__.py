"""Recognition tasks drawn from known laws, with their exact accuracy at every number of classes."""

from classex_bayes.simulate.embedded_law import EmbeddedLaw, EmbeddingSample
from classex_bayes.simulate.features import FeatureSample, GaussianClasses
from classex_bayes.simulate.gaussian import (
    BivariateNormal,
    GaussianKnownCentres,
    GaussianNearestNeighbor,
)
from classex_bayes.simulate.hierarchy import HierarchicalNormal
from classex_bayes.simulate.laws import FavorabilityLaw, KnownLaw, RankSample
from classex_bayes.simulate.scorers import (
    lda_scores,
    logistic_scores,
    naive_bayes_scores,
    qda_scores,
)
from classex_bayes.simulate.sphere import UniformSphere, VonMisesFisher
from classex_bayes.simulate.stress import BetaLaw, StudentLaw, identifiable, zoo

__all__ = [
    "BetaLaw",
    "BivariateNormal",
    "EmbeddedLaw",
    "EmbeddingSample",
    "FavorabilityLaw",
    "FeatureSample",
    "GaussianClasses",
    "GaussianKnownCentres",
    "GaussianNearestNeighbor",
    "HierarchicalNormal",
    "KnownLaw",
    "RankSample",
    "StudentLaw",
    "UniformSphere",
    "VonMisesFisher",
    "identifiable",
    "lda_scores",
    "logistic_scores",
    "naive_bayes_scores",
    "qda_scores",
    "zoo",
]
