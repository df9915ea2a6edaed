"""Plots of FNIR and FPIR against brute force and exact rates."""

import numpy as np
import pytest
from drawn import drawn_by

import classex_bayes as cb
from classex_bayes.exceptions import DataError, NotFittedError

BEST_WRONG = "best wrong score of the pilot"
BEST_NONMATED = "best score of the non-mated probes"
det_plot, threshold_plot = drawn_by(cb.plots.plot_det), drawn_by(cb.plots.plot_threshold)


@pytest.fixture(scope="module")
def scores(pilot):
    """Distances of 80 classes of the pilot, and the true classes."""
    probes, gallery, y = pilot.sample
    few = y < 80
    return ((probes[few, None] - gallery[:80]) ** 2).sum(axis=-1), y[few]


def test_the_best_wrong_score_may_lie_beyond_the_thresholds_of_few_classes():
    pilot = cb.load_glyphs().task().subsample(800, random_seed=1)
    model = cb.OpenSetExtrapolator().fit(pilot, sampler={"draws": 100}, random_seed=1)
    assert model.best_wrong_score_ < model.thresholds(2, 200).min()  # distances
    chart = det_plot(model, 2)
    assert not any("best wrong" in str(mark) for mark in chart.marks)


def test_fnir_at_a_given_fpir_is_that_of_each_draw(open_set):
    chart = det_plot(open_set, 5000, rank=2, ci_prob=0.8, ci_kind="eti")
    ribbon, band, *_ = chart.marks
    fine = open_set.predict(5000, threshold=open_set.thresholds(5000, 200), rank=2)
    fpir = fine.fpir.values.reshape(-1, 200)
    fnir = fine.fnir.values.reshape(-1, 200)
    for place in (3, 20, 36):
        # The tightest threshold whose FPIR is above the given one, in every draw by itself.
        nearest = (fpir > ribbon.x[place]).sum(axis=1).clip(0, 199)
        there = fnir[np.arange(len(fnir)), nearest]
        assert ribbon.y[place] == pytest.approx(there.mean(), rel=0.01)
        limits = [side[place] for side in band.y]
        assert limits == pytest.approx(np.quantile(there, [0.1, 0.9]), rel=0.02)
    # All but a tenth of the draws reach as far as the curve, on each side.
    ends = np.quantile(fpir[:, -1], 0.9), np.quantile(fpir[:, 0], 0.1)
    assert ribbon.x[[0, -1]] == pytest.approx(ends, rel=1e-2)
    assert np.all(np.diff(ribbon.y) <= 0)


def test_truth_is_exact(open_set, pilot):
    chart = det_plot(open_set, 100, truth=pilot.task, rank=3)
    exact = cb.open_set.open_set_rates(pilot.task, 100, open_set.thresholds(100, 30), rank=3)
    shown = exact.fpir.values[0] > 1e-6
    line = chart.mark("truth", "line")
    np.testing.assert_allclose(
        [line.x, line.y], [exact.fpir.values[0, shown], exact.fnir.values[0, shown]]
    )
    assert chart.y_labels == ["FNIR at rank 3"]
    both = threshold_plot(open_set, 100, truth=pilot.task, rank=3)
    fpir, fnir = (mark for mark in both.marks if mark.series == "truth")
    assert both.y_labels == ["FPIR", "FNIR at rank 3"]
    rates = cb.open_set.open_set_rates(pilot.task, 100, fnir.x, rank=3)
    np.testing.assert_allclose(fnir.y, rates.fnir[0])
    np.testing.assert_allclose(fpir.y, cb.open_set.open_set_rates(pilot.task, 100, fpir.x).fpir[0])
    assert fpir.y.min() > 1e-6


@pytest.mark.parametrize("higher_is_better", [True, False])
def test_rates_against_the_threshold(scores, higher_is_better):
    distances, y = scores
    sign = -1 if higher_is_better else 1
    task = cb.SourceTask.from_scores(sign * distances, y, higher_is_better=higher_is_better)
    model = cb.OpenSetExtrapolator().fit(task, sampler={"draws": 20, "chains": 2}, random_seed=1)
    chart = threshold_plot(model, 5000, ci_prob=0.9, ci_kind="eti")
    expected = model.predict(5000, threshold=chart.marks[0].x)
    for panel, rate in enumerate(("fpir", "fnir")):
        mean = chart.mark("5,000 enrolled, 90% credible interval", "line", panel)
        drawn = np.maximum(getattr(expected, rate).sel(k=5000), 1e-6)
        np.testing.assert_allclose(mean.y, drawn.mean(["chain", "draw"]))
    wrong = np.ma.masked_array(distances, np.eye(80, dtype=bool)[y])
    assert model.best_wrong_score_ == pytest.approx(sign * wrong.min(), rel=1e-9)
    best = chart.mark(BEST_WRONG, "line")
    assert best.x == pytest.approx([sign * wrong.min()] * 2, rel=1e-9)
    label = "scores from it" if higher_is_better else "distances up to it"
    assert label in chart.x_label
    # The mark of the DET curve is at the FPIR of that threshold, if the curve reaches it.
    det = det_plot(model, 5000)
    marks = [m.x for m in det.of(BEST_WRONG, "points")]
    fpir = model.predict(5000, threshold=sign * wrong.min() * (1 + 1e-12)).fpir.mean().item()
    curve = next(m.x for m in det.marks if m.kind == "line")
    reached = [fpir] if curve[0] <= fpir <= curve[-1] else []
    assert np.ravel(marks) == pytest.approx(reached, rel=1e-3)
    assert reached or higher_is_better


def test_probes_of_no_class_have_their_own_best_wrong_score(scores):
    distances, y = scores
    half = np.arange(80) < 40
    task = cb.SourceTask.from_scores(
        distances[half[y]][:, half], y[half[y]], higher_is_better=False
    )
    others = distances[~half[y]][:, half]
    few = {"sampler": {"draws": 20, "chains": 2}, "random_seed": 1}
    model = cb.OpenSetExtrapolator().fit(task, nonmated=others, **few)
    assert model.best_wrong_score_ == pytest.approx(others.min(), rel=1e-9)
    assert BEST_NONMATED in det_plot(model, 500).series
    beyond = model.predict(500, threshold=0.9 * others.min()).notes
    assert any("non-mated" in note for note in beyond)
    # A perfect match is nearer than all that a curve shows, so it is not on it.
    others[0, 0] = 0.0
    model.fit(task, nonmated=others, **few)
    assert model.best_wrong_score_ == 0
    assert BEST_NONMATED not in det_plot(model, 500, ci_prob=0.1).series


def test_a_curve_for_each_number_of_classes(open_set):
    enrolled = [name for name in det_plot(open_set).series if "enrolled" in name]
    assert [name.split(" ")[0] for name in enrolled] == ["60", "600", "6,000"]


def test_what_is_refused(open_set, pilot):
    for plot in (det_plot, threshold_plot):
        for k, truth in ((200, pilot.task), (100, {100: 0.5})):  # of 200 classes; no task
            with pytest.raises(DataError):
                plot(open_set, k, truth=truth)
        for wrong in ({"k": 100, "rank": 0}, {"k": 1}):
            with pytest.raises(DataError):
                plot(open_set, **wrong)
        with pytest.raises(NotFittedError):
            plot(cb.OpenSetExtrapolator(), 100)
