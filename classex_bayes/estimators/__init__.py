"""Point-estimate references of the literature; no PyMC in this room."""
