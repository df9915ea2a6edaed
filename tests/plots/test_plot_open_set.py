"""Plots of FNIR and FPIR against brute force and exact rates."""

import numpy as np
import pytest

import classex_bayes as cb
from classex_bayes.exceptions import DataError, NotFittedError
from classex_bayes.plots.open_set_plot import TRUTH, det_chart

BEST_WRONG = "best wrong score of the pilot"
BEST_NONMATED = "best score of the non-mated probes"
K = [100, 5000]


@pytest.fixture(scope="module")
def scores(pilot):
    """Distances of the pilot, and the true classes."""
    probes, gallery, y = pilot.sample
    return ((probes[:, None] - gallery) ** 2).sum(axis=-1), y


@pytest.fixture(scope="module")
def model(pilot):
    return cb.OpenSetExtrapolator().fit(pilot.task, draws=150, chains=2, random_seed=1)


def line(plot, name, panel="panel"):
    return plot.viz[name][panel].item().get_xydata().T


def test_fnir_at_a_given_fpir_is_that_of_each_draw(model):
    chart = det_chart(model, 5000, rank=2, ci_prob=0.8, ci_kind="eti")
    ribbon, band = chart.marks[0], chart.marks[1]
    ribbon, band = (band, ribbon) if ribbon.kind == "band" else (ribbon, band)
    fine = model.predict(5000, threshold=model.thresholds(5000, 400), rank=2)
    fpir = fine.fpir.values.reshape(-1, 400)
    fnir = fine.fnir.values.reshape(-1, 400)
    for place in (3, 20, 36):
        # The tightest threshold whose FPIR is above the given one, in every draw by itself.
        nearest = (fpir > ribbon.x[place]).sum(axis=1).clip(0, 399)
        there = fnir[np.arange(len(fnir)), nearest]
        assert ribbon.y[0][place] == pytest.approx(there.mean(), rel=0.01)
        limits = [side[place] for side in band.y]
        assert limits == pytest.approx(np.quantile(there, [0.1, 0.9]), rel=0.02)
    # All but a tenth of the draws reach as far as the curve, on each side.
    ends = np.quantile(fpir[:, -1], 0.9), np.quantile(fpir[:, 0], 0.1)
    assert ribbon.x[[0, -1]] == pytest.approx(ends, rel=1e-4)
    assert np.all(np.diff(ribbon.y[0]) <= 0)


def test_truth_is_exact(model, pilot):
    plot = cb.plots.plot_det(model, K, truth=pilot.task, rank=3, backend="matplotlib")
    exact = cb.open_set_rates(pilot.task, 100, model.thresholds(100, 30), rank=3)
    shown = exact.fpir.values[0] > 1e-6
    np.testing.assert_allclose(
        line(plot, f"line {TRUTH}"), [exact.fpir.values[0, shown], exact.fnir.values[0, shown]]
    )
    assert plot.get_viz("plot").get_ylabel() == "FNIR at rank 3"
    both = cb.plots.plot_threshold(model, K, truth=pilot.task, rank=3, backend="matplotlib")
    x, y = line(both, f"line fnir {TRUTH}", "fnir")
    np.testing.assert_allclose(y, cb.open_set_rates(pilot.task, 100, x, rank=3).fnir[0])
    x, y = line(both, f"line fpir {TRUTH}", "fpir")
    np.testing.assert_allclose(y, cb.open_set_rates(pilot.task, 100, x).fpir[0])
    assert y.min() > 1e-6


@pytest.mark.parametrize("higher_is_better", [True, False])
def test_rates_against_the_threshold(scores, higher_is_better):
    distances, y = scores
    sign = -1 if higher_is_better else 1
    task = cb.SourceTask.from_scores(sign * distances, y, higher_is_better=higher_is_better)
    model = cb.OpenSetExtrapolator().fit(task, draws=100, chains=2, random_seed=1)
    plot = cb.plots.plot_threshold(model, K, ci_prob=0.9, ci_kind="eti", backend="matplotlib")
    for rate in ("fpir", "fnir"):
        for k in K:
            x, mean = line(plot, f"line {rate} {k:,} enrolled, 90% credible interval", rate)
            drawn = getattr(model.predict(K, threshold=x), rate).sel(k=k)
            np.testing.assert_allclose(mean, np.maximum(drawn, 1e-6).mean(["chain", "draw"]))
    wrong = np.ma.masked_array(distances, np.eye(200, dtype=bool)[y])
    assert model.best_wrong_score_ == pytest.approx(sign * wrong.min(), rel=1e-9)
    best, _ = line(plot, f"line fpir {BEST_WRONG}", "fpir")
    assert best == pytest.approx([sign * wrong.min()] * 2, rel=1e-9)
    label = "scores from it" if higher_is_better else "distances up to it"
    assert label in plot.get_viz("plot", "fpir").get_xlabel()
    # The mark of the DET curve is at the FPIR of that threshold.
    mark = det_chart(model, 5000).mark(BEST_WRONG, "points")
    fpir = model.predict(5000, threshold=sign * wrong.min() * (1 + 1e-12)).fpir.mean().item()
    assert mark.x == pytest.approx(fpir, rel=1e-3)


def test_probes_of_no_class_have_their_own_best_wrong_score(scores, pilot):
    distances, y = scores
    half = np.arange(200) < 100
    task = cb.SourceTask.from_scores(
        distances[half[y]][:, half], y[half[y]], higher_is_better=False
    )
    others = distances[~half[y]][:, half]
    model = cb.OpenSetExtrapolator().fit(task, nonmated=others, draws=100, chains=2, random_seed=1)
    assert model.best_wrong_score_ == pytest.approx(others.min(), rel=1e-9)
    assert BEST_NONMATED in [mark.series for mark in det_chart(model, 500).marks]
    beyond = model.predict(500, threshold=0.9 * others.min()).notes
    assert any("no non-mated score reaches" in note for note in beyond)
    # One that is nearer than all that a curve shows is not on it.
    others[0, 0] = 1e-9
    model.fit(task, nonmated=others, draws=100, chains=2, random_seed=1)
    assert model.best_wrong_score_ == pytest.approx(1e-9)
    chart = det_chart(model, 500, ci_prob=0.1)
    assert BEST_NONMATED not in [mark.series for mark in chart.marks]


@pytest.mark.parametrize("backend", ["matplotlib", "plotly", "bokeh"])
def test_rates_are_written_out(model, backend):
    plot = cb.plots.plot_threshold(model, K, backend=backend)
    left = plot.get_viz("plot", "fpir")
    if backend == "matplotlib":
        left.figure.canvas.draw()
        assert {"$10^{-2}$", "$10^{0}$"} <= {text.get_text() for text in left.get_yticklabels()}
        assert (left.get_xscale(), left.get_yscale()) == ("linear", "log")
    elif backend == "plotly":
        axes = left.figure.layout.yaxis, left.figure.layout.yaxis2
        assert [axis.tickformat for axis in axes] == [None, "~r"]  # powers, and written out
        assert axes[0].exponentformat == "power"
        # Each panel has the ticks that its own range asks for.
        assert axes[0].dtick == 1 and axes[1].dtick != 1
    else:
        right = plot.get_viz("plot", "fnir").yaxis[0]
        assert type(left.yaxis[0].formatter).__name__ == "LogTickFormatter"
        assert right.formatter.format == "0.[000000]"


def test_what_is_refused(model, pilot):
    with pytest.raises(DataError, match="model: expected an OpenSetExtrapolator"):
        cb.plots.plot_det(cb.ClassExReg(), 100)
    with pytest.raises(DataError, match="truth: it has 200 classes and tells rates on at most 199"):
        cb.plots.plot_det(model, 200, truth=pilot.task)
    with pytest.raises(DataError, match="truth: it has 200"):
        cb.plots.plot_threshold(model, [200, 300], truth=pilot.task)
    with pytest.raises(DataError, match="truth: expected a SourceTask"):
        cb.plots.plot_det(model, 100, truth={100: 0.5})
    with pytest.raises(DataError, match="rank"):
        cb.plots.plot_threshold(model, 100, rank=0)
    with pytest.raises(DataError, match="k: "):
        cb.plots.plot_det(model, 1)
    with pytest.raises(NotFittedError):
        cb.plots.plot_det(cb.OpenSetExtrapolator(), 100)
