from .embedded_laws import EmbeddedLaw as EmbeddedLaw
from .embedded_laws import EmbeddingSample as EmbeddingSample
from .embedded_laws import GaussianNearestNeighbor as GaussianNearestNeighbor
from .embedded_laws import VonMisesFisher as VonMisesFisher
from .laws import FavorabilityLaw as FavorabilityLaw
from .laws import KnownLaw as KnownLaw
from .laws import RankSample as RankSample
