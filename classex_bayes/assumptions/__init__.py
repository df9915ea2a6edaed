"""Wing: when the assumptions fail. Diagnosis, marginality, drift."""
