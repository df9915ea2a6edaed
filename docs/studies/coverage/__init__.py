"""How often intervals hold the truth and how far predictions err: the measured tables of pages."""
