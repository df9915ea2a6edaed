"""Top-m accuracy against enumeration of all subsets, exact fractions and arbitrary precision."""

from fractions import Fraction
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import betaincc, ndtr

from classex_bayes.core import RadialBasis, named_metric
from classex_bayes.core.metrics import Accuracy, expected_top_accuracy
from classex_bayes.core.subsets import (
    top_accuracy_given_n_better,
)
from classex_bayes.results import Estimand

# mu, sd, k, and the accuracies at each top, from a 22-digit trapezoid rule over Z with the
# binomial probabilities added up term by term.
TOP = (1, 2, 5, 100)
TRUTH = """
3.0 0.5 100 0.7799657876263 0.9258593147824 0.9919402307764 1
3.0 0.5 1000000 0.0002912335807262 0.0007132253059429 0.002376032376425 0.07513629150324
3.0 0.5 1000000000000 9.134731333703e-16 2.96773394598e-15 1.705600695315e-14 9.022824239278e-12
6.5 0.25 100 0.9999999858195 1 1 1
6.5 0.25 1000000 0.9998568665762 0.9999998962049 0.9999999999999 1
6.5 0.25 1000000000000 0.01798136292198 0.0402819429456 0.1073683762025 0.7090430045287
0.5 1.0 2 0.6381631950841 1 1 1
0.5 1.0 3 0.4825928708949 0.7937335192733 1 1
6.5 0.25 2 0.9999999998568 1 1 1
6.5 0.25 3 0.9999999997135 1 1 1
"""
BASES = st.builds(RadialBasis.regular, st.floats(-5, -1), st.floats(1, 9), st.floats(0.1, 1.5))


# Subsets of the source classes


def exact_chance(n_better, n_classes, k, top):
    """Hypergeometric CDF in exact fractions."""
    wins, drawn = n_classes - 1 - n_better, k - 1
    ways = sum(comb(n_better, j) * comb(wins, drawn - j) for j in range(min(top, drawn + 1)))
    return float(Fraction(ways, comb(n_classes - 1, drawn)))


@given(n_classes=st.integers(2, 300), data=st.data())
def test_chance_in_exact_fractions(n_classes, data):
    n_better = np.arange(n_classes)
    k = data.draw(st.lists(st.integers(1, n_classes), min_size=1, max_size=4))
    top = data.draw(st.integers(1, n_classes + 2))
    expected = [[exact_chance(v, n_classes, j, top) for j in k] for v in range(n_classes)]
    found = top_accuracy_given_n_better(n_better, n_classes, np.array(k), top)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize(
    ("n_classes", "n_better", "k", "top"),
    [
        *((10**6, 5, 200_001, 2), (10**6, 99_999, 51, 5), (10**6, 100, 999_000, 100)),
        *((10**6, 49_015, 2001, 100), (10**6, 999_000, 1001, 1000), (10**5, 60_000, 100, 61)),
    ],
)
def test_chance_among_many_classes(n_classes, n_better, k, top):
    found = top_accuracy_given_n_better(np.array([n_better]), n_classes, np.array([k]), top).item()
    # Losses and drawn classes may change places, which makes the shorter one the sum.
    drawn, marked = sorted((n_better, k - 1))
    expected = exact_chance(marked, n_classes, drawn + 1, top)
    assert 0.001 < expected < 1
    assert found == pytest.approx(expected, abs=1e-13)


def test_many_distinct_losses_go_in_blocks():
    n_better, k = np.arange(0, 10**6, 5), np.array([2, 1000, 10**6])
    found = Accuracy(10).average(n_better, 10**6, k, np.full(n_better.size, 1 / n_better.size))
    # Losses are uniform, so that every rank among k is as likely.
    np.testing.assert_allclose(found, np.minimum(10 / k, 1), rtol=0, atol=5e-6)


# More classes


@pytest.mark.parametrize("line", TRUTH.strip().splitlines())
def test_known_digits(line):
    mu, sd, k, *truth = map(float, line.split())
    basis = RadialBasis(np.array([mu]), sd)
    found = [expected_top_accuracy(basis, np.array([int(k)]), top).item() for top in TOP]
    np.testing.assert_allclose(found, truth, rtol=0, atol=1e-11)


@given(
    knot=st.floats(-4, 8),
    bandwidth=st.floats(0.02, 2),
    size=st.floats(np.log(3), np.log(1e12)),
    share=st.floats(0, 1),
)
def test_binomial_cdf_averaged_over_z(knot, bandwidth, size, share):
    k = round(np.exp(size))
    top = min(k - 1, 2 + round(np.exp(share * np.log(5000))))
    found = expected_top_accuracy(RadialBasis(np.array([knot]), bandwidth), np.array([k]), top)
    # The binomial CDF is a step in Z, some 0.1 / sqrt(top) wide.
    eps = np.arange(-9, 9, min(0.05, 0.02 / (bandwidth * np.sqrt(top))))
    weight = np.exp(-0.5 * eps**2)
    at_most = betaincc(top, k - top, ndtr(-knot - bandwidth * eps))
    assert found.item() == pytest.approx(weight @ at_most / weight.sum(), abs=1e-9)


@pytest.mark.parametrize("top", [1, 2, 100, 1000, 5000])
def test_uniform_favorability_is_guessing(top):
    # SciPy's betaincinv fails at top = 1000 for k from 1e8 on.
    k = np.unique(np.geomspace(2, 1e12, 41).round().astype(int))
    found = expected_top_accuracy(RadialBasis(np.array([0.0]), 1.0), k, top).ravel()
    rtol = 1e-12 if top > 1 else 1e-6
    np.testing.assert_allclose(found, np.minimum(top / k, 1), rtol=rtol, atol=1e-15)


@pytest.mark.parametrize(
    ("name", "m"),
    [
        *(("accuracy", 1), ("accuracy@1", 1), ("accuracy@5", 5), ("top12", 12)),
        (f"accuracy@{10**12 - 1}", 10**12 - 1),
    ],
)
def test_metric_of_a_name(name, m):
    assert named_metric(name) == Accuracy(m)
    assert named_metric(Accuracy(m).name) == Accuracy(m)


@pytest.mark.parametrize(
    ("metric", "names"),
    {
        "accuracy": "acc@1 P@1 Precision@1 rank-1 top1 precision_at_1",
        "accuracy@5": "top5 Top-5 top_5_accuracy top5_acc acc@5 top_k_accuracy@5",
        "hit_rate@10": "hits@10 HR@10 Hit@10 hits_at_10 hit_ratio@10 hit_rate_10",
        "recall@10": "R@10 recall_10 recall_at_10",
        "success@10": "success_10 S@10",
        "mrr": "recip_rank RR inverse_harmonic_mean_rank reciprocal-rank",
        "mrr@10": "MRR@10 RR@10 mrr_at_10 recip_rank@10",
        "ndcg@10": "ndcg_cut_10 nDCG@10 ndcg_at_10",
        "map": "AP average_precision",
        "map@5": "MAP@5 map_cut_5 AP@5 map_at_5",
        "map@r": "MAP@R mean_average_precision_at_r mAP@R",
        "precision@10": "P_10 P@10 precision_at_10 prec@10",
        "r_precision": "Rprec r-precision RPrec",
        "mean_rank": "MR MnR",
        "median_rank": "MedR MdR",
    }.items(),
)
def test_names_of_other_software(metric, names):
    for name in names.split():
        assert named_metric(name) == named_metric(metric)
        assert named_metric(name).name == metric


@pytest.mark.parametrize("name", ["nDCG@10", "NDCG@10", "MRR", "Recall@5"])
def test_names_of_metrics_have_any_case(name):
    assert named_metric(name) == named_metric(name.lower())


def test_precision_is_called_by_its_name():
    """Recall of one relevant document is an accuracy, and precision is none."""
    names = "accuracy@5", "recall@5", "hit_rate@5", "precision@5", "r_precision", "map@r"
    found = [Estimand(metric=name).quantity for name in names]
    assert found == ["accuracy", "accuracy", "accuracy", "precision", "r_precision", "map"]
