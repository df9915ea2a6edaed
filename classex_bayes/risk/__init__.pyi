from .average_risks import average_test_risk as average_test_risk
from .average_risks import average_test_risk_cov as average_test_risk_cov
from .bayesian_risk import BayesianRisk as BayesianRisk
from .hierarchical_cost import cost_from_levels as cost_from_levels
from .linear_risk import MomentRisk as MomentRisk
from .linear_risk import PolynomialRisk as PolynomialRisk
from .linear_risk import noise_amplification as noise_amplification
