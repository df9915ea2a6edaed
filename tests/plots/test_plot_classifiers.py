"""What is drawn of classifiers and of groups."""

import pytest
from numpy.testing import assert_allclose

from classex_bayes.exceptions import DataError
from classex_bayes.plots.classifiers_plot import plot_classifiers
from classex_bayes.plots.drawing import chart_of
from classex_bayes.plots.groups_plot import plot_groups

WORDS = {"ci_prob": 0.9, "ci_kind": "eti"}
BEST = "probability of being best"


@pytest.mark.parametrize("k", [None, [200, 1000], 200])
def test_classifiers(results, k):
    found = results["classifiers"]
    chart = chart_of(plot_classifiers)(found, k=k, **WORDS)
    assert chart.panels == chart.y_labels == ("accuracy", BEST)
    drawn = sorted(found.predictions["near"].k) if k is None else [k] if k == 200 else k
    for name, prediction in found.predictions.items():
        marks = [mark for mark in chart.marks if mark.series == f"{name}, 90% credible interval"]
        band, mean, *_ = (mark for mark in marks if mark.panel == "accuracy")
        best = next(mark for mark in marks if mark.panel == BEST)
        assert list(mean.x) == list(best.x) == drawn
        assert_allclose(mean.y[0], prediction.mean.loc[drawn])
        limits = prediction.interval(0.9, "eti").loc[drawn]
        assert_allclose(band.y, limits[["lower", "upper"]].to_numpy().T)
        assert_allclose(best.y[0], found.prob_best()[name].loc[drawn])


def test_groups(results):
    found = results["groups"]
    chart = chart_of(plot_groups)(found, **WORDS)
    overall = chart.mark("overall, 90% credible interval", "line")
    assert_allclose(overall.y[0], found.overall.mean.sort_index())
    for name, share in (("near", "0.25"), ("far", "0.75")):
        line = chart.mark(f"{name} (share {share}), 90% credible interval", "line")
        assert_allclose(line.y[0], found.by_group[name].mean.sort_index())


def test_nothing_to_draw():
    with pytest.raises(DataError, match="result: expected a ClassifierComparison, found dict"):
        plot_classifiers({})
    with pytest.raises(DataError, match="result: expected a GroupedExtrapolation, found dict"):
        plot_groups({})
