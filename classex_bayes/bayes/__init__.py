"""The Bayesian model; the only room that imports PyMC."""
