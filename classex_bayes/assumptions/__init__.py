"""Wing: checks of the assumptions. Diagnosis, marginality, drift."""
