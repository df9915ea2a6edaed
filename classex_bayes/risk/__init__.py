"""Wing: the average cost of an answer in place of its accuracy."""

from classex_bayes.risk.average_test_risk import average_test_risk, average_test_risk_cov
from classex_bayes.risk.polynomial_risk import noise_amplification

__all__ = ["average_test_risk", "average_test_risk_cov", "noise_amplification"]
