"""Plots: thin functions over `arviz_plots.PlotCollection`, one file each."""

import lazy_loader

from classex_bayes.exceptions import require_extra

# Of every backend, since its ticks are those of every plot.
require_extra("plots", "a plot", "matplotlib")

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
