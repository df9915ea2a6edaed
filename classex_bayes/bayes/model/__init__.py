"""The model: prior, likelihood and their PyMC graph."""
