from .gaussian import GaussianNearestNeighbor as GaussianNearestNeighbor
from .laws import EmbeddedLaw as EmbeddedLaw
from .laws import EmbeddingSample as EmbeddingSample
from .laws import FavorabilityLaw as FavorabilityLaw
from .laws import KnownLaw as KnownLaw
from .laws import RankSample as RankSample
from .sphere import VonMisesFisher as VonMisesFisher
