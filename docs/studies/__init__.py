"""The simulations and tables of the papers, computed again with every estimator."""
