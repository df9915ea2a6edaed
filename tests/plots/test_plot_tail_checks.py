"""The plot of tail checks draws its table: shares that lost, beside replicates, at 1 / p."""

import numpy as np
import pytest

import classex_bayes as cb
from classex_bayes.exceptions import DataError
from classex_bayes.plots.tail_checks_plot import plot_tail_checks


@pytest.fixture(scope="module")
def checks(pilot):
    few = pilot.task.subsample(80, random_seed=2)
    model = cb.ScoreInformedExtrapolator().fit(few, draws=100, chains=2, random_seed=1)
    return cb.tail_checks(model, ci_prob=0.8, ci_kind="hdi")


@pytest.mark.parametrize(("prob", "kind"), [(0.8, "hdi"), (0.5, "eti")])
def test_it_draws_the_table(checks, prob, kind):
    plot = plot_tail_checks(checks, ci_prob=prob, ci_kind=kind, backend="matplotlib")
    axes, table = plot.get_viz("plot"), checks.table
    (line,), (band, points) = axes.lines, axes.collections
    np.testing.assert_allclose(line.get_data(), [1 / table["p"], table["mean"]])
    observed = np.column_stack([1 / table["p"], table["lost"]])
    np.testing.assert_allclose(points.get_offsets(), observed)
    assert axes.get_title() == f"Local tails against held-out classes: p-value {checks.p_value:.2f}"
    assert axes.get_xscale() == "log"
    outline = band.get_paths()[0].vertices
    if kind == "hdi":  # the interval of the table
        limits = np.concatenate([table["hdi80_lb"], table["hdi80_ub"]])
    else:
        shares = checks.replicated.values.reshape(-1, len(table))
        limits = np.quantile(shares, [0.25, 0.75], axis=0).ravel()
    corners = np.column_stack([np.tile(1 / table["p"], 2), limits])
    assert all(np.isclose(outline, corner).all(axis=1).any() for corner in corners)


def test_groups_run_from_shallow_to_deep(checks):
    assert (np.diff(checks.table["p"]) < 0).all()
    assert checks.replicated.sizes["group"] == len(checks.table)


def test_refused(checks):
    with pytest.raises(DataError, match="checks: expected what tail_checks returns, found DataF"):
        plot_tail_checks(checks.table)
