from .laws import EmbeddedLaw as EmbeddedLaw
from .laws import EmbeddingSample as EmbeddingSample
from .laws import GaussianNearestNeighbor as GaussianNearestNeighbor
from .laws import KnownLaw as KnownLaw
from .laws import VonMisesFisher as VonMisesFisher
