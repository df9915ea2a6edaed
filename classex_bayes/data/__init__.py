"""Source tasks: validation, construction, simulation and packaged data."""
