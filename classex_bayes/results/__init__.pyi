from .extrapolation import Bounds as Bounds
from .extrapolation import ClassesUntil as ClassesUntil
from .extrapolation import Estimand as Estimand
from .extrapolation import Extrapolation as Extrapolation
from .pilot_extrapolation import PilotExtrapolation as PilotExtrapolation
