"""The copula of the ranks of a class against bivariate normal laws, and the mixture by hand."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import binom, multivariate_normal, norm

from classex_bayes import SourceTask
from classex_bayes.bayes.checks.class_ranks import RHO, ClassRanks, class_log_likelihood
from classex_bayes.core.basis import n_better_bins
from classex_bayes.simulate import GaussianNearestNeighbor

SHARE = np.array([0.7, 0.1, 0.08, 0.07, 0.05])
AT_RANDOM = np.array([0.02, 0.04, 0.14, 0.3, 0.5])


def ranks_of(counts, share=SHARE, weight=None, uniform=AT_RANDOM):
    """Ranks of classes, of equal weights by default, with a known law."""
    counts = np.asarray(counts)
    weight = np.ones(len(counts)) if weight is None else np.asarray(weight)
    return ClassRanks(
        counts, weight / weight.sum(), [*range(len(counts))], np.atleast_2d(share), uniform
    )


def counts_of(bins, position, n_bins=5):
    """Instances of every class in every bin."""
    counts = np.zeros((position.max() + 1, n_bins), int)
    np.add.at(counts, (position, bins), 1)
    return counts


def copula_bins(rho, position, rng, share=SHARE):
    """Bins of the ranks of instances whose latents are correlated within a class."""
    of_class = rng.standard_normal(position.max() + 1)[position]
    of_instance = rng.standard_normal(position.size)
    latent = np.sqrt(rho) * of_class + np.sqrt(1 - rho) * of_instance
    return np.searchsorted(norm.ppf(np.cumsum(share)[:-1]), latent)


def both_below(limit, correlation):
    """Chance that two standard normal variables of a correlation are both below a limit."""
    covariance = [[1, correlation], [correlation, 1]]
    return multivariate_normal([0, 0], covariance, allow_singular=True).cdf([limit, limit])


def test_spread_of_replicated_classes_is_that_of_the_copula():
    rng = np.random.default_rng(5)
    position = np.repeat(np.arange(400), 3)
    ranks = ranks_of(counts_of(copula_bins(0.6, position, rng), position))
    drawn = ranks.replicates(rng)
    pairs = [both_below(norm.ppf(0.7), rho) - 0.7**2 for rho in RHO]
    # The variance of a class's share of right answers.
    variance = (0.7 * 0.3 + 2 * ranks.posterior.rho @ pairs) / 3
    for found, expected in ((drawn, 0.7), ((drawn - 0.7) ** 2, variance)):
        of_task = found.mean(axis=1)  # classes of a task have one rho
        assert abs(of_task.mean() - expected) < 4.5 * of_task.std() / np.sqrt(len(drawn))


def test_discrepancies_by_hand():
    counts = [[10, 0, 0, 0, 0], [5, 5, 0, 0, 0], [9, 0, 1, 0, 0], [0, 0, 0, 5, 5]]
    ranks = ranks_of(counts, weight=[0.4, 0.3, 0.2, 0.1])
    found = ranks.discrepancies(np.ones((3, 4)))
    mean = 0.4 + 0.15 + 0.18
    sd = np.sqrt(0.4 * (1 - mean) ** 2 + 0.3 * (0.5 - mean) ** 2 + 0.2 * 0.17**2 + 0.1 * mean**2)
    assert [observed for observed, _ in found] == pytest.approx([sd, 0])
    assert_allclose([draws for _, draws in found], [[0, 0, 0], [1, 1, 1]], atol=1e-12)


def likelihood(bins, share, rho):
    """Probability of the ranks of one class, by a fine rule over its effect."""
    limits = np.concatenate([[-np.inf], norm.ppf(np.cumsum(share)[:-1]), [np.inf]])

    effect = np.linspace(-8, 8, 2001)
    cdf = norm.cdf((limits[:, None] - np.sqrt(rho) * effect) / np.sqrt(1 - rho))
    of_ranks = np.prod(np.diff(cdf, axis=0)[bins], axis=0)
    return np.trapezoid(of_ranks * norm.pdf(effect), effect)


def test_probabilities_are_those_of_the_mixture():
    classes = [[0, 0, 0], [0, 1], [4, 3, 4], [0, 0, 0], [4, 4]]
    position = np.repeat(np.arange(5), [len(bins) for bins in classes])
    weight = np.array([1.5, 0.5, 1.0, 0.75, 1.25])
    ranks = ranks_of(counts_of(np.concatenate(classes), position), weight=weight)
    independent = np.array([AT_RANDOM[bins].prod() for bins in classes])
    at_random = (independent + [likelihood(bins, AT_RANDOM, 0.6) for bins in classes]) / 2
    fractions = np.append(0, np.geomspace(0.2, 0.5, 5))
    none, total = np.empty((2, RHO.size, 6))
    chance = np.empty((RHO.size, 6, 5))
    for i, rho in enumerate(RHO):
        for j, share in enumerate(fractions):
            sound = np.maximum(SHARE - share * AT_RANDOM, 0.02 * SHARE)
            sound = [likelihood(bins, sound / sound.sum(), rho) for bins in classes]
            sound, broken = (1 - share) * np.array(sound), share * at_random
            prior = norm.pdf(rho, 0.3, 0.15) * (0.1 if share else 0.5)
            none[i, j] = prior * np.prod(sound ** (weight / 1.5))
            total[i, j] = prior * np.prod((sound + broken) ** (weight / 1.5))
            chance[i, j] = broken / (sound + broken)
    assert ranks.posterior.none_at_random == pytest.approx(none.sum() / total.sum(), rel=1e-3)
    total /= total.sum()
    assert_allclose(ranks.posterior.rho, total.sum(axis=1), rtol=2e-3, atol=1e-9)
    assert_allclose(ranks.posterior.at_random, np.einsum("ij,ijk->k", total, chance), rtol=2e-3)


@pytest.mark.parametrize("rho", [0.0, 0.3, 0.9])
def test_single_instances_have_the_law_of_the_model(rho):
    share = np.array([0.6, 0.4 - 1.1e-4, 1e-4, 1e-5])
    found = np.exp(class_log_likelihood(np.eye(4), share, rho))
    assert_allclose(found, share, rtol=2e-3)
    # So with one instance each the likelihood does not depend on the share of random classes.
    position = np.arange(200)
    counts = counts_of(np.random.default_rng(1).choice(5, 200, p=SHARE), position)
    fractions = np.array([0.0, 0.01, 0.05, 0.09])
    totals = [
        np.log(
            (1 - f) * np.exp(class_log_likelihood(counts, (SHARE - f * AT_RANDOM) / (1 - f), rho))
            + f * counts @ AT_RANDOM
        )
        for f in fractions
    ]
    assert_allclose(totals, totals[:1] * 4, atol=1e-3)


@pytest.mark.parametrize("rho", [0.1, 0.5])
def test_correlation_is_learnt_from_the_classes_that_are_not_at_random(rho):
    rng = np.random.default_rng(3)
    position = np.repeat(np.arange(400), 5)
    bins = copula_bins(rho, position, rng)
    broken = bins.copy()
    broken[:120] = rng.choice(5, 120, p=AT_RANDOM)
    law = 0.94 * SHARE + 0.06 * AT_RANDOM
    for drawn, share in ((bins, SHARE), (broken, law)):
        ranks = ranks_of(counts_of(drawn, position), share)
        posterior = ranks.posterior.rho
        mean = posterior @ RHO
        sd = np.sqrt(posterior @ (RHO - mean) ** 2)
        assert abs(mean - rho) < 3 * max(sd, 0.025) and sd < 0.1
        assert ranks.at_random.passed == (drawn is not broken)
    # Classes of one instance say nothing of it, so the prior remains.
    single = ranks_of(counts_of(bins[:80], np.arange(80))).posterior.rho
    assert single @ RHO == pytest.approx(0.3, abs=0.02)


def test_sound_classes_seldom_seem_random():
    """Classes of the copula with correlations from the prior, unequal repeats and weights."""
    rng = np.random.default_rng(8)
    none = []
    for rho in np.clip(rng.normal(0.3, 0.15, 150), 0, 0.9):
        repeats = rng.integers(1, 12, 40)
        position = np.repeat(np.arange(40), repeats)
        counts = counts_of(copula_bins(rho, position, rng), position)
        none.append(ranks_of(counts, weight=rng.lognormal(0, 1, 40)).posterior.none_at_random)
    assert np.mean(np.array(none) < 0.05) <= 0.05


def test_a_binomial_test_of_each_class_would_alarm_at_sound_classes():
    """Gaussian classes: some are nearer to others, and all of their instances are harder."""
    law, k1, repeats = GaussianNearestNeighbor(dim=8, noise_variance=0.12), 60, 10
    bin_ends = n_better_bins(k1)
    counts = []
    for seed in range(40):
        probes, gallery, y = law.sample(k1, repeats=repeats, random_seed=seed)
        task = SourceTask.from_embeddings(probes, gallery, y)
        counts.append(counts_of(np.searchsorted(bin_ends, task.ranks - 1), y, bin_ends.size))
    share = np.maximum(np.mean(counts, axis=(0, 1)) / repeats, 1e-9)
    uniform = np.diff(bin_ends, prepend=-1) / k1
    by_class, mixture = [], []
    for found in counts:
        chance = binom.cdf(found[:, 0], repeats, found[:, 0].mean() / repeats)
        by_class.append(k1 * chance.min())  # Bonferroni
        ranks = ranks_of(found, share / share.sum(), uniform=uniform)
        mixture.append(ranks.posterior.none_at_random)
    assert np.mean(np.array(by_class) < 0.05) > 0.3
    assert np.min(mixture) > 0.05
