"""The log density, compiled: an option that makes sampling faster and changes no number."""
