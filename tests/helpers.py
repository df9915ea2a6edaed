"""Tasks and comparisons that tests in several files need."""

import warnings
from contextlib import contextmanager

import numpy as np
import pytest
import xarray as xr
from hypothesis import settings
from scipy.stats import hypergeom

from classex_bayes import SourceTask
from classex_bayes.core import named_metric
from classex_bayes.exceptions import ConvergenceWarning, DataError

ANSWERED = 0, 3  # exit codes; so few draws need not converge


def few_examples(number):
    """Settings of a property whose examples are slow: so many by day, and more by night."""
    return settings(max_examples=number * settings.default.max_examples // 20)


def short_fit(draws, tune=200, chains=2):
    """Arguments of a fit with few draws."""
    sampler = {"draws": draws, "tune": tune, "chains": chains}
    return {"sampler": sampler, "random_seed": 1, "progressbar": False}


def paths(found):
    """Files of a document of the command line, by name."""
    return {row["name"]: row["path"] for row in found["files"]}


def arrays_of(path):
    """Arrays of an .npz file, which is closed again."""
    with np.load(path) as archive:
        return dict(archive)


def random_scores(seed=0, k1=12, repeats=1, lead=1.5):
    """Normal scores of k1 classes, the true one ahead by `lead`, and the labels."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(k1), repeats)
    scores = rng.normal(size=(y.size, k1))
    scores[np.arange(y.size), y] += lead
    return scores, y


def score_task(seed=0, k1=12, repeats=1, **options):
    return SourceTask.from_scores(*random_scores(seed, k1, repeats), random_seed=1, **options)


def weighted_scores(rng, n_classes, most_repeats, untested=0):
    """Scores, labels and class weights of a test with unequal repeats and competitors."""
    repeats = rng.integers(1, most_repeats + 1, n_classes)
    repeats[:untested] = 0
    y = rng.permutation(np.repeat(np.arange(n_classes), repeats))
    scores = rng.normal(size=(y.size, n_classes)) + rng.normal(size=n_classes)
    scores[np.arange(y.size), y] += 1
    weight = rng.uniform(0.2, 1, n_classes) * (repeats > 0)
    return scores, y, weight / weight.sum()


def between_classes(means, weight):
    """Covariance of weighted means (k1, m), pair by pair; weights (k1, m).

    With S_a = sum w_la^2 the products of a and b have weights sqrt(w_la w_lb) and the factor
    sqrt(f_a f_b), f_a = S_a / (1 - S_a): for c_a classes of equal weight that is 1 / (c_a - 1).
    """
    squares = (weight**2).sum(axis=0)
    factor = squares / (1 - squares)
    deviation = means - (weight * means).sum(axis=0)
    found = np.zeros((means.shape[1], means.shape[1]))
    for w, d in zip(weight, deviation, strict=True):
        found += np.sqrt(np.outer(factor * w, factor * w)) * np.outer(d, d)
    return found


def influences(scores, y, class_weight, k, metric):
    """Influences by deleting every class in turn, those of test classes alone, means and pairs."""
    n_classes, wins = scores.shape[1], scores < scores[np.arange(y.size), y][:, None]
    weight = (class_weight / np.maximum(np.bincount(y, minlength=n_classes), 1))[y]
    k = np.minimum(k, n_classes - 1)

    def chance(won):
        return named_metric(metric).given_n_better(n_classes - 2 - won, n_classes - 1, k)

    won = wins.sum(axis=1)
    untouched = chance(np.maximum(won - 1, 0))
    deleted = np.empty((2, n_classes, k.size))
    means = np.zeros((n_classes, k.size))
    for j in range(n_classes):
        kept = y != j
        values = chance(wins[kept].sum(axis=1) - wins[kept, j]), untouched[kept]
        deleted[:, j] = weight[kept] @ np.array(values) / (1 - class_weight[j])
        if not kept.all():
            means[j] = untouched[~kept].mean(axis=0)
    psi, tests_alone = (n_classes - 1) * (deleted.mean(axis=1, keepdims=True) - deleted)

    gain = np.where((won > 0)[:, None], chance(np.maximum(won - 1, 0)), 0.0) - chance(
        np.minimum(won, n_classes - 2)
    )
    phi = np.zeros((n_classes, n_classes, k.size))
    for i, own in enumerate(y):
        others = np.arange(n_classes) != own
        centred = (wins[i] - won[i] / (n_classes - 1)) * others
        phi[own] += weight[i] * centred[:, None] * gain[i]
    weights = np.repeat(class_weight[:, None], k.size, axis=1)
    return psi, tests_alone, means, weights, phi.reshape(n_classes**2, -1)


def class_accuracies(n_better, y, n_classes, k, metric="accuracy"):
    """Metric (k1, n_k) of each class on k (n_k,) classes; 0 for classes without instances.

    Hypergeometric numbers of the better classes are among k - 1 competitors.
    """
    number = np.arange(k.max())
    law = hypergeom(n_classes - 1, np.asarray(n_better)[:, None, None], k[:, None] - 1)
    gain = {
        "accuracy": number == 0,
        "recall@3": number < 3,
        "mrr@2": (number < 2) / (1 + number),
    }[metric]
    chance = law.pmf(number) @ gain
    means = np.zeros((n_classes, k.size))
    for true in np.unique(y):
        means[true] = chance[y == true].mean(axis=0)
    return means


def dyadic_covariance(tests, k, metric="accuracy"):
    """Covariance of a metric by its definition, within and between tests (scores, y, weights).

    If weights differ, the part of the test classes alone is that of `between_classes`.
    """
    psi, tests_alone, means, weights, phi = (
        np.hstack(parts) for parts in zip(*(influences(*t, k, metric) for t in tests), strict=True)
    )
    n_classes = len(psi)
    covariance = psi.T @ psi / (n_classes * (n_classes - 1)) - phi.T @ phi
    if np.ptp(weights[weights > 0]) > 1e-12:
        covariance -= tests_alone.T @ tests_alone / (n_classes * (n_classes - 1))
        covariance += between_classes(means, weights)
    return covariance


def joint_covariance_by_definition(tests, k, metric="accuracy"):
    """`dyadic_covariance`; negative variances become those between classes, uncorrelated."""
    means, weights = [], []
    for scores, y, class_weight in tests:
        n_better = (scores > scores[np.arange(y.size), y][:, None]).sum(axis=1)
        means.append(class_accuracies(n_better, y, scores.shape[1], k, metric))
        weights.append(np.repeat(class_weight[:, None], k.size, axis=1))
    means, weights = np.hstack(means), np.hstack(weights)
    covariance = dyadic_covariance(tests, k, metric)
    clustered = np.diag(between_classes(means, weights))
    bad = np.diag(covariance) <= 1e-12 * clustered  # zero, up to rounding
    covariance[bad] = covariance[:, bad] = 0
    covariance[bad, bad] = clustered[bad]
    values, vectors = np.linalg.eigh(covariance)
    return (vectors * values.clip(0)) @ vectors.T


def ranked_task(n_better, n_classes, y=None, **options):
    """Task of wrong classes above the true one; without labels the classes take turns."""
    y = np.arange(len(n_better)) % n_classes if y is None else y
    return SourceTask.from_ranks(np.asarray(n_better) + 1, y, n_classes=n_classes, **options)


def few_errors(k1=40, seed=0):
    """Task of one instance a class that loses to 2% of the others."""
    return ranked_task(np.random.default_rng(seed).binomial(k1 - 1, 0.02, size=k1), k1)


def verdict(task, name):
    """Whether the data pass the check of this name."""
    return next(check.passed for check in task.checks if check.name == name)


def better_classes(task):
    """Smallest and largest number (n,) of classes that may be better than the true one."""
    return task.table.min_better, task.table.max_better


def n_competitors(task):
    """Number (n,) of classes that each instance counts as ranked among, without the true one."""
    return task.table.n_competitors


def known_ranks(task):
    """Ranks of a task; None if they are known only within bounds or not at all."""
    try:
        return task.ranks
    except DataError:
        return None


def assert_same_task(found, expected, classes=None, rtol=0.0):
    """Compare all that estimators see; `classes` are the names that `found` must have."""
    assert (found.n_classes, found.n_test) == (expected.n_classes, expected.n_test)
    assert found.classes == (expected.classes if classes is None else classes)
    assert found.notes == expected.notes
    np.testing.assert_array_equal(known_ranks(found), known_ranks(expected))
    k = expected.grid()
    if k.size == 0:  # no accuracy is known
        return
    np.testing.assert_array_equal(found.accuracy(k), expected.accuracy(k))
    np.testing.assert_array_equal(found.accuracy_bounds(k), expected.accuracy_bounds(k))
    np.testing.assert_allclose(
        found.accuracy_cov(k), expected.accuracy_cov(k), rtol=rtol, atol=rtol * 1e-5
    )
    assert found.design_effect() == pytest.approx(expected.design_effect(), rel=1e-3)


# Of laws that no classifier has, such as random ranks, fits warn.
unsound_data = pytest.mark.filterwarnings("ignore::classex_bayes.exceptions.DataWarning")


def embedded(n_classes, repeats, seed, groups=1, noise=0.6, dim=4):
    """Probes, gallery and labels; classes of a group of `groups` lie near each other."""
    rng = np.random.default_rng(seed)
    centre = rng.standard_normal((-(-n_classes // groups), dim))
    centre = np.repeat(centre, groups, axis=0)[:n_classes]
    if groups > 1:
        centre = centre + 0.5 * rng.standard_normal(centre.shape)
    gallery = centre + noise * rng.standard_normal(centre.shape)
    y = np.repeat(np.arange(n_classes), repeats)
    return centre[y] + noise * rng.standard_normal((y.size, dim)), gallery, y


def draws_of_the_prior(prior, data, settings, seed):
    """Draws in the form of a sampler, without the compilation that sampling needs."""
    from classex_bayes.bayes.model.likelihoods import prior_draws

    rng = np.random.default_rng(seed)
    chains = [prior_draws(prior, data, settings.draws, rng) for _ in range(settings.chains)]
    posterior = xr.concat(chains, "chain").assign_coords(chain=range(settings.chains))
    diverging = xr.zeros_like(posterior["weights"].isel(knot=0, drop=True), bool)
    stats = diverging.to_dataset(name="diverging")
    return xr.DataTree.from_dict({"posterior": posterior, "sample_stats": stats})


@contextmanager
def uncompiled():
    """What a model does with its draws does not depend on their law."""
    from classex_bayes.bayes import sampling

    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        patch.setattr(sampling, "sample_by_nutpie", draws_of_the_prior)
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield
