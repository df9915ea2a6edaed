"""PseudoLikelihood and what it alone uses."""
