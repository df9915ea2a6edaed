"""The copula of the ranks of a class against bivariate normal laws, and the mixture by hand."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal, norm

from classex_bayes.bayes.checks.class_ranks import (
    RHO,
    RandomClasses,
    bins_by_class,
    latent_limits,
    replicated_bins,
)

SHARE = np.array([0.7, 0.1, 0.08, 0.07, 0.05])
AT_RANDOM = np.array([0.02, 0.04, 0.14, 0.3, 0.5])


def both_below(limit, correlation):
    """Chance that two standard normal variables of a correlation are both below a limit."""
    covariance = [[1, correlation], [correlation, 1]]
    return multivariate_normal([0, 0], covariance, allow_singular=True).cdf([limit, limit])


def test_limits_are_normal_quantiles_in_both_tails():
    share = np.array([1e-20, 0.3, 0.7 - 1e-18, 1e-18])
    expected = [norm.ppf(1e-20), norm.ppf(0.3), norm.isf(1e-18)]
    assert_allclose(latent_limits(share), expected, rtol=1e-12)
    assert_allclose(latent_limits(np.vstack([share, share])), [expected, expected], rtol=1e-12)


@pytest.mark.parametrize(("rho", "between"), [(0.0, 0.0), (0.3, 0.0), (0.8, 0.15)])
def test_spread_of_replicated_classes_is_that_of_the_copula(rho, between):
    rng = np.random.default_rng(5)
    n_classes, repeats, n_tasks = 40, 3, 2000
    position = np.repeat(np.arange(n_classes), repeats)
    limits = latent_limits(SHARE)
    drawn = np.array([replicated_bins(limits, rho, between, position, rng) for _ in range(n_tasks)])
    right = (drawn == 0).reshape(n_tasks, n_classes, repeats)
    # One value a task, as the classes of a task are not independent.
    of_class = (right[:, :, 0] & right[:, :, 1]).mean(axis=1)
    of_two = (right[:, :-1, 0] & right[:, 1:, 0]).mean(axis=1)
    for found, expected in (
        ((drawn == 0).mean(axis=1), 0.7),
        ((drawn == 4).mean(axis=1), 0.05),
        (of_class, both_below(limits[0], rho + between)),
        (of_two, both_below(limits[0], between)),
    ):
        assert abs(found.mean() - expected) < 4.5 * found.std() / np.sqrt(n_tasks)
    # The variance of a class's share of right answers.
    pair = both_below(limits[0], rho + between) - 0.7**2
    variance = (0.7 * 0.3 + (repeats - 1) * pair) / repeats
    squares = ((right.mean(axis=2) - 0.7) ** 2).mean(axis=1)
    assert abs(squares.mean() - variance) < 4.5 * squares.std() / np.sqrt(n_tasks)


def test_counts_by_class():
    found = bins_by_class(np.array([0, 2, 2, 1]), np.array([1, 0, 0, 1]), 3)
    assert found.tolist() == [[0, 0, 2], [1, 1, 0]]


def likelihood(bins, share, rho):
    """Probability of the ranks of one class, by a fine rule over its effect."""
    limits = np.concatenate([[-np.inf], norm.ppf(np.cumsum(share)[:-1]), [np.inf]])

    effect = np.linspace(-8, 8, 2001)
    cdf = norm.cdf((limits[:, None] - np.sqrt(rho) * effect) / np.sqrt(1 - rho))
    of_ranks = np.prod(np.diff(cdf, axis=0)[bins], axis=0)
    return np.trapezoid(of_ranks * norm.pdf(effect), effect)


@pytest.mark.parametrize("rho", [0.0, 0.35, 0.7])
def test_evidence_and_probabilities_are_those_of_the_mixture(rho):
    classes = [[0, 0, 0], [0, 1], [4, 3, 4], [0, 0, 0], [4, 4]]
    position = np.repeat(np.arange(5), [len(bins) for bins in classes])
    counts = bins_by_class(np.concatenate(classes), position, 5)
    weight = np.array([1.5, 0.5, 1.0, 0.75, 1.25])
    mixture = RandomClasses(SHARE, AT_RANDOM, 5)
    total, chance = [], []
    for share in mixture.fractions:
        sound = np.maximum(SHARE - share * AT_RANDOM, 0.02 * SHARE)
        sound = [likelihood(bins, sound / sound.sum(), rho) for bins in classes]
        at_random = [
            (AT_RANDOM[bins].prod() + likelihood(bins, AT_RANDOM, 0.6)) / 2 for bins in classes
        ]
        at_random = share * np.array(at_random)
        both = (1 - share) * np.array(sound) + at_random
        total.append(weight @ np.log(both))
        chance.append(at_random / both)
    tables = mixture.tables(rho)
    assert mixture.fractions[0] == 0 and np.argmax(total) > 0
    assert mixture.evidence(counts, weight, tables) == pytest.approx(max(total) - total[0], 1e-3)
    expected = chance[int(np.argmax(total))]
    assert_allclose(mixture.probability(counts, weight, tables), expected, rtol=2e-3)


def test_with_one_instance_each_there_is_no_evidence():
    rng = np.random.default_rng(1)
    counts = bins_by_class(rng.choice(5, 200, p=SHARE), np.arange(200), 5)
    mixture = RandomClasses(SHARE, AT_RANDOM, 200)
    possible = mixture.fractions * AT_RANDOM.max() < SHARE[-1]
    assert possible.sum() > 5
    for rho in (0.0, 0.5):
        table = np.log(AT_RANDOM), *mixture.log_likelihoods(counts, mixture.tables(rho))
        mixed = np.logaddexp(
            np.log1p(-mixture.fractions[possible, None]) + table[1][possible],
            np.log(np.maximum(mixture.fractions[possible, None], 1e-300)) + table[2],
        )
        assert_allclose(mixed, mixed[:1].repeat(possible.sum(), axis=0), atol=1e-3)


@pytest.mark.parametrize("rho", [0.1, 0.5])
def test_correlation_is_learnt_from_the_classes_that_are_not_at_random(rho):
    rng = np.random.default_rng(3)
    position = np.repeat(np.arange(400), 5)
    bins = replicated_bins(latent_limits(SHARE), rho, 0.0, position, rng)
    broken = bins.copy()
    broken[:120] = rng.choice(5, 120, p=AT_RANDOM)
    law = 0.94 * SHARE + 0.06 * AT_RANDOM
    for drawn, share in ((bins, SHARE), (broken, law)):
        counts = bins_by_class(drawn, position, 5)
        posterior = RandomClasses(share, AT_RANDOM, 400).rho_posterior(counts, np.ones(400))
        mean = posterior @ RHO
        sd = np.sqrt(posterior @ (RHO - mean) ** 2)
        assert abs(mean - rho) < 3 * max(sd, 0.025) and sd < 0.1
    # Classes of one instance say nothing of it, so the prior remains.
    single = bins_by_class(bins[:80], np.arange(80), 5)
    prior = RandomClasses(SHARE, AT_RANDOM, 80).rho_posterior(single, np.ones(80))
    assert prior @ RHO == pytest.approx(0.3, abs=0.02)
