"""Thin functions over `arviz_plots.PlotCollection`."""
