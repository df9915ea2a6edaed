"""The plot of tail checks draws its table: shares that lost, beside replicates, at 1 / p."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from classex_bayes.exceptions import DataError
from classex_bayes.plots.drawing import chart_of
from classex_bayes.plots.tail_checks_plot import plot_tail_checks


@pytest.mark.parametrize(("prob", "kind"), [(0.89, "eti"), (0.5, "eti"), (0.5, "hdi")])
def test_it_draws_the_table(results, prob, kind):
    checks = results["tails"]
    chart, table = chart_of(plot_tail_checks)(checks, ci_prob=prob, ci_kind=kind), checks.table
    band, line, points = chart.marks
    assert_allclose([line.x, line.y[0]], [1 / table["p"], table["mean"]])
    assert_allclose([points.x, points.y[0]], [1 / table["p"], table["lost"]])
    assert chart.title == f"Local tails against held-out classes: p-value {checks.p_value:.2f}"
    shares = checks.replicated.values.reshape(-1, len(table))
    if prob == 0.89:  # the interval of the table
        assert_allclose(band.y, [table["eti89_lb"], table["eti89_ub"]])
    elif kind == "eti":
        assert_allclose(band.y, np.quantile(shares, [0.25, 0.75], axis=0))
    else:
        held = np.mean((band.y[0] <= shares) & (shares <= band.y[1]), axis=0)
        assert np.all(held >= 0.5)


def test_groups_run_from_shallow_to_deep(results):
    checks = results["tails"]
    assert (np.diff(checks.table["p"]) < 0).all()
    assert checks.replicated.sizes["group"] == len(checks.table)


def test_refused(results):
    with pytest.raises(DataError, match="checks: expected what tail_checks returns, found DataF"):
        plot_tail_checks(results["tails"].table)
