"""When not to trust a task: checks of what extrapolation assumes and needs."""

from classex_bayes.data.diagnosis.diagnose import diagnose
from classex_bayes.data.diagnosis.marginality import check_marginality
from classex_bayes.data.diagnosis.report import Check, ClassErrors, TaskReport

__all__ = ["Check", "ClassErrors", "TaskReport", "check_marginality", "diagnose"]
