"""What is drawn of classifiers and of groups."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from classex_bayes.evaluate.classifiers import ClassifierComparison
from classex_bayes.evaluate.groups import GroupedExtrapolation
from classex_bayes.exceptions import DataError
from classex_bayes.plots.accuracy_plot import plot_accuracy
from classex_bayes.plots.classifiers_plot import plot_classifiers
from classex_bayes.plots.groups_plot import plot_groups
from classex_bayes.results import Extrapolation

K = [1000, 10, 100]


@pytest.fixture(scope="module")
def predictions():
    rng = np.random.default_rng(0)
    return {
        name: Extrapolation.from_draws(
            K, rng.beta(a, 3, size=(2, 50, 3)), name, "credible", n_classes=10
        )
        for name, a in (("near", 9), ("far", 5))
    }


def test_classifiers(predictions):
    found = ClassifierComparison(predictions, None, True)
    plot = plot_classifiers(found, ci_prob=0.9, backend="none")
    curve = plot.viz["line accuracy near, 90% credible interval"]["accuracy"].item()
    assert_allclose(curve["x"], sorted(K))
    assert_allclose(curve["y"], predictions["near"].mean.sort_index())
    best = plot.viz["line probability of being best far, 90% credible interval"]
    best = best["probability of being best"].item()
    assert_allclose(best["y"], found.prob_best()["far"].sort_index())


def test_classifiers_in_two_panels(predictions, tmp_path):
    plot = plot_classifiers(ClassifierComparison(predictions, None, True), backend="matplotlib")
    axes = plot.get_viz("figure").axes
    assert [ax.get_ylabel() for ax in axes] == ["accuracy", "probability of being best"]
    assert {ax.get_xscale() for ax in axes} == {"log"}
    bands_and_dots = len(axes[0].collections)
    assert bands_and_dots == 4 and len(axes[0].lines) == len(axes[1].lines) == 2
    plot.savefig(tmp_path / "classifiers.png")


def test_classifiers_in_one_panel_in_colours_of_the_user(predictions):
    import matplotlib as mpl
    from matplotlib import pyplot as plt

    found, (_, axes) = ClassifierComparison(predictions, None, True), plt.subplots()
    with pytest.raises(DataError, match=r"ax: found one panel.* cb.plot_accuracy\(list\(result"):
        plot_classifiers(found, ax=axes)
    colors = ["#b2182b", "#2166ac"]
    with mpl.rc_context({"axes.prop_cycle": mpl.cycler(color=colors)}):
        plot_accuracy(list(found.predictions.values()), ax=axes)
    assert [line.get_color() for line in axes.lines] == colors
    names = [text.get_text().split(",")[0] for text in axes.get_legend().get_texts()]
    assert names == ["near", "far"]


def test_groups(predictions):
    mix = pd.Series({"near": 0.25, "far": 0.75})
    found = GroupedExtrapolation(predictions, mix, mix, mix, None)
    plot = plot_groups(found, ci_prob=0.9, backend="none")
    overall = plot.viz["line overall, 90% credible interval"]["panel"].item()
    assert_allclose(overall["y"], found.overall.mean.sort_index())
    assert "line near (share 0.25), 90% credible interval" in plot.viz.children


def test_a_single_number_of_classes(predictions, tmp_path):
    single = {
        name: Extrapolation(p.draws.isel(k=[0]), name, "credible", 10)
        for name, p in predictions.items()
    }
    mix = pd.Series({"near": 0.25, "far": 0.75})
    for plot in (
        plot_classifiers(ClassifierComparison(single, None, True), backend="matplotlib"),
        plot_groups(GroupedExtrapolation(single, mix, mix, mix, None), backend="matplotlib"),
    ):
        plot.savefig(tmp_path / "single.png")


def test_nothing_to_draw():
    with pytest.raises(DataError, match="result: expected a ClassifierComparison, found dict"):
        plot_classifiers({})
    with pytest.raises(DataError, match="result: expected a GroupedExtrapolation, found dict"):
        plot_groups({})
