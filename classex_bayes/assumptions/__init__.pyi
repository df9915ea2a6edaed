from .diagnosis import TaskReport as TaskReport
from .drift import Drift as Drift
