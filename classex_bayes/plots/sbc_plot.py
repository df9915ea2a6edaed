"""Ranks of simulation-based calibration."""

import xarray as xr
from arviz_plots import PlotCollection, plot_ecdf_pit

from classex_bayes.arguments import probability
from classex_bayes.evaluate.calibration import group_of_ranks
from classex_bayes.plots.chart import chosen_library


def plot_sbc(
    ranks: xr.DataTree, *, ci_prob: float = 0.99, coverage: bool = False, backend: str | None = None
) -> PlotCollection:
    """Draw the ECDF of the ranks less the uniform one, with a test of uniformity.

    Parameters
    ----------
    ranks : DataTree
        Of `classex_bayes.evaluate.calibration.sbc` or `posterior_sbc`.
    ci_prob : float
        Ranks that deviate are marked where uniform ones would show none with this chance.
    coverage : bool
        Draw the coverage of central intervals in place of the ranks.
    backend : {"matplotlib", "plotly", "bokeh", "none"}, optional
        Plotting library; ArviZ's rcParams by default.

    Returns
    -------
    PlotCollection

    Raises
    ------
    DataError
        `ranks` has no group of ranks.

    See Also
    --------
    classex_bayes.evaluate.calibration.uniformity : The simultaneous band in numbers.
    """
    group = group_of_ranks(ranks)
    probability(ci_prob, "ci_prob")
    name, library = chosen_library(backend)
    return plot_ecdf_pit(
        ranks,
        group=group,
        envelope_prob=ci_prob,
        coverage=coverage,
        backend=name,
        figure_kwargs=library.figure(2, log_x=False),
    )
