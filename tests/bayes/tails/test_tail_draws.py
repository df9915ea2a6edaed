"""Laws from the tails of scores alone: what may change them and what may not."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import softmax
from scipy.stats import norm, t

from classex_bayes import SourceTask, TailPrior
from classex_bayes.bayes.tails import calibration
from classex_bayes.bayes.tails.tail_model import TailParameters
from classex_bayes.simulate import GaussianNearestNeighbor

K = np.array([120, 1200, 10_000])
LAW = GaussianNearestNeighbor(10, 0.14)
PRIOR = TailPrior()


def points_of(draws):
    """Points (n, 5) of draws from the tails."""
    return TailParameters(*(draws.parameters[name] for name in TailParameters._fields)).points


def test_powers_of_distances_and_their_source_change_nothing(tails, task_of, distances):
    matrix, y = distances()
    found = tails(task_of()).law.expected(K)
    squares = SourceTask.from_scores(matrix**2, y, higher_is_better=False)
    assert_allclose(tails(squares).law.expected(K), found, atol=1e-5)
    probes, gallery, _ = LAW.sample(120, random_seed=0)
    embedded = SourceTask.from_embeddings(probes, gallery, y)
    assert_allclose(tails(embedded).law.expected(K), found, atol=1e-5)
    order = np.argsort(matrix, axis=1)[:, :60]
    lists = SourceTask.from_search(
        order, y, n_classes=120, distances=np.take_along_axis(matrix, order, axis=1)
    )
    # The part of shared competitors, unknown from lists, changes how much classes are resampled.
    assert_allclose(tails(lists).law.expected(K).mean(0), found.mean(0), atol=0.01)


@pytest.fixture(scope="module")
def unscaled(tails, distances):
    """Laws of scores whose scale as distances is unknown."""
    matrix, y = distances()
    return tails(SourceTask.from_scores(7 - matrix, y), size=1000)


@pytest.mark.parametrize(("size", "origin"), [(1e300, 0), (1e-318, -1e-317), (4.0, 0), (1, 1e8)])
def test_neither_unit_nor_origin_of_scores_matters(tails, distances, unscaled, size, origin):
    matrix, y = distances()
    found = tails(SourceTask.from_scores(origin + size * (7 - matrix), y), size=1000)
    # Forms of nearly equal evidence may change places, and with them single draws.
    assert_allclose(
        found.law.expected(K).mean(axis=0), unscaled.law.expected(K).mean(axis=0), atol=0.02
    )
    if 1e-150 < size < 1e150:  # whose squares are in the range of numbers
        probs = [sorted(fit.prob for fit in laws.draws.fits) for laws in (found, unscaled)]
        assert len(probs[0]) == 2
        assert_allclose(*probs, atol=1e-3)


@pytest.fixture(scope="module")
def of_logits(tails):
    """Logits of instances with different noise, their labels, and laws from their tails."""
    rng, y = np.random.default_rng(6), np.arange(300) % 150
    templates = rng.normal(size=(150, 12))
    noise = np.exp(0.3 * rng.normal(size=(300, 1))) * rng.normal(size=(300, 12))
    logits = (templates[y] + noise) @ templates.T - 0.5 * (templates**2).sum(axis=1)
    return logits, y, tails(SourceTask.from_scores(logits, y))


@pytest.mark.parametrize(
    ("temperature", "dtype", "tolerance"),
    [(1, "f8", 1e-9), (0.4, "f8", 1e-9), (5, "f4", 1e-3), (1, "f4", 1e-3)],
)
def test_probabilities_say_what_logits_say(tails, of_logits, temperature, dtype, tolerance):
    """Both forms have equal tails, whatever the temperature and the normaliser of a row."""
    logits, y, expected = of_logits
    shares = softmax(logits / temperature, axis=1)
    rest = np.random.default_rng(7).uniform(0.1, 1, size=(300, 1))  # others have left-out classes
    for probs in (shares, rest * shares):
        found = tails(SourceTask.from_scores(probs.astype(dtype), y))
        for fits in zip(found.draws.fits, expected.draws.fits, strict=True):
            names, tables = {fit.form.name for fit in fits}, [fit.table.weight for fit in fits]
            assert len(names) == 1
            assert_allclose(*tables, atol=tolerance)
        accuracies = (laws.law.expected(K).mean(axis=0) for laws in (found, expected))
        assert_allclose(*accuracies, atol=tolerance)


def test_probabilities_in_half_precision(tails, of_logits):
    """A third is rounded to 0, and others to multiples of 6e-8, which moves the tails a little."""
    logits, y, expected = of_logits
    probs = softmax(logits, axis=1).astype(np.float16)
    assert 0.2 < (probs == 0).mean() < 0.5
    found = tails(SourceTask.from_scores(probs, y)).law.expected(K).mean(axis=0)
    assert_allclose(found, expected.law.expected(K).mean(axis=0), atol=0.05)


def test_logarithms_are_of_scores_between_0_and_1(tails, distances):
    matrix, y = distances()
    kernel = np.exp(-matrix)
    for largest, names in ((1.0, {"as given", "logarithms"}), (1.001, None)):
        scores = np.where(kernel == kernel.max(), largest, kernel)
        fits = tails(SourceTask.from_scores(scores, y)).draws.fits
        found = {fit.form.name for fit in fits}
        assert found == names if names else "logarithms" not in found


def test_all_forms_predict_the_same_held_out_ranks(tails, distances):
    """Evidences of unlike data could not be compared: a few rows have too few scores for an sd."""
    matrix, y = distances()
    scores = 7 - matrix
    order = np.argsort(-scores, axis=1)
    few = np.arange(0, 120, 13)
    for row in few:
        scores[row, order[row, 14:]] = -np.inf
        scores[row, row] = 7 - matrix[row, row]
    centred, standardised = (f.table for f in tails(SourceTask.from_scores(scores, y)).draws.fits)
    assert_array_equal(centred.n_better, standardised.n_better)
    assert_allclose(centred.weight.sum(axis=1), standardised.weight.sum(axis=1), rtol=1e-9)


def test_a_form_without_distances_is_left_out(tails, distances):
    """Minus the probability of all other classes, saturated, so a row may have an sd of 1e-10.

    Divided by it, other rows are as far. Without held-out instances the form would have the largest
    evidence.
    """
    matrix, y = distances()
    rest = softmax(-16 * matrix, axis=1) - 1
    (only,) = tails(SourceTask.from_scores(rest, y)).draws.fits
    assert only.form.name == "centred in each row"


def test_the_log_prior_is_that_of_independent_laws(tails, task_of):
    """Of the slope a t law, of the others, on their scales, normal ones."""
    draws = tails(task_of(60), size=50).draws
    values, error = points_of(draws), draws.parameters["slope_error"]
    unit = ((values - PRIOR.mean) / PRIOR.scale).T
    expected = norm.logpdf(unit[[0, 2, 3, 4]]).sum(axis=0) + t.logpdf(unit[1], 3)
    expected += norm.logpdf(error, PRIOR.slope_error, PRIOR.slope_error_sd)
    assert np.ptp(draws.log_prior - expected) < 1e-6 and np.ptp(expected) > 1


def test_probabilities_of_the_forms(unscaled):
    """Posterior probabilities, in whose proportion the laws are drawn."""
    draws = unscaled.draws
    probs = np.array([fit.prob for fit in draws.fits])
    logs = np.array([fit.sample.log_evidence for fit in draws.fits])
    assert (np.diff(probs) <= 0).all() and probs.sum() == pytest.approx(1)
    assert_allclose(np.log(probs) - logs, np.log(probs[0]) - logs[0], atol=1e-8)
    drawn = np.bincount(draws.form_place, minlength=probs.size)
    assert_allclose(drawn / 1000, probs, atol=1e-3)
    for place in (0, 1):
        here = draws.form_place == place
        expected = draws.fits[place].table.log_likelihood(points_of(draws)[here])
        assert_allclose(draws.log_likelihood[draws.form_place == place], expected, rtol=1e-8)


def test_scores_without_an_origin_lose_little(tails, task_of, unscaled):
    """An origin a little above the best score is near that of the distances."""
    expected = tails(task_of()).law.expected(K).mean(0)
    assert len(unscaled.draws.fits) > 1
    # The standard deviation of the posterior is 0.1 at 10,000 classes.
    assert_allclose(unscaled.law.expected(K).mean(0), expected, atol=0.1)


def test_the_error_of_the_tail_grows_with_the_number_of_classes(tails, task_of):
    found = tails(task_of())
    error = found.draws.parameters["slope_error"]
    assert error.mean() == pytest.approx(PRIOR.slope_error, abs=0.01)
    assert error.std() == pytest.approx(PRIOR.slope_error_sd, rel=0.15)
    slopes = [np.polyfit(error, accuracy, 1)[0] for accuracy in found.law.expected(K).T]
    assert 0 < slopes[0] < slopes[1] < slopes[2]


def test_repeats_and_untested_classes(tails):
    rng = np.random.default_rng(1)
    probes, gallery, y = LAW.sample(100, random_seed=3)
    probes = np.repeat(probes[:40], 3, axis=0) + 0.01 * rng.normal(size=(120, 10))
    once = SourceTask.from_embeddings(probes[::3], gallery, y[:40], untested="competitors")
    task = SourceTask.from_embeddings(probes, gallery, np.repeat(y[:40], 3), untested="competitors")
    many, single = (tails(t).law.expected(np.array([100, 1000])) for t in (task, once))
    assert_allclose(many.mean(0), single.mean(0), atol=0.04)
    # Alike instances of a class tell nothing more.
    assert_allclose(many.std(0), single.std(0), rtol=0.5)


def test_classes_of_weight_zero_are_competitors(tails, distances):
    matrix, y = distances(200)
    weight = np.where(np.arange(200) < 100, 0.0, 1.0)
    task = SourceTask.from_scores(matrix, y, higher_is_better=False, class_weight=weight)
    tested = SourceTask.from_scores(
        matrix[y >= 100], y[y >= 100], higher_is_better=False, untested="competitors"
    )
    k = np.array([200, 2000])
    assert_allclose(
        tails(task).law.expected(k).mean(0), tails(tested).law.expected(k).mean(0), atol=0.02
    )


def test_alike_instances_of_a_class_do_not_calibrate_again(tails):
    rng = np.random.default_rng(1)
    probes, gallery, y = LAW.sample(100, random_seed=3)
    copies = np.repeat(probes, 20, axis=0) + 1e-4 * rng.normal(size=(2000, 10))
    many = tails(SourceTask.from_embeddings(copies, gallery, np.repeat(y, 20)), size=1000)
    single = tails(SourceTask.from_embeddings(probes, gallery, y), size=1000)
    for name in ("level", "slope", "look_alikes"):
        assert getattr(many, name).std() > 0.8 * getattr(single, name).std()


@pytest.mark.filterwarnings("ignore::classex_bayes.exceptions.DataWarning")
@pytest.mark.parametrize("true", [0.0, 1e-300, 1.2, 1e300])
def test_extreme_pilots_have_laws(tails, true):
    matrix = np.random.default_rng(0).uniform(1, 2, size=(60, 60))
    np.fill_diagonal(matrix, true)
    task = SourceTask.from_scores(matrix, np.arange(60), higher_is_better=False)
    values = tails(task).law.expected(np.array([2, 60, 10**6, 10**12]))
    assert np.isfinite(values).all() and ((values >= 0) & (values <= 1)).all()


def test_a_sample_of_instances_counts_for_what_it_holds(tails, constants):
    """Of alike instances it loses nothing; of independent ones it has less information."""
    rng = np.random.default_rng(2)
    probes, gallery, y = LAW.sample(100, repeats=3, random_seed=4)
    copies = np.repeat(probes, 20, axis=0) + 1e-4 * rng.normal(size=(6000, 10))
    alike = SourceTask.from_embeddings(copies, gallery, np.repeat(y, 20))
    independent = SourceTask.from_embeddings(probes, gallery, y)
    for task, most, wider in ((alike, 1500, 1.0), (independent, 60, 1.4)):
        whole = tails(task, size=1000)
        with constants(calibration, _MOST_INSTANCES=most):
            part = tails(task, size=1000)
        counted = part.draws.fits[0].table.weight.sum()
        assert counted == pytest.approx(min(task.n_test / task.design_effect(), most), rel=0.01)
        if task is alike:
            both = (cumulated(found.draws.fits[0].table) for found in (part, whole))
            assert_allclose(*both, atol=0.02)
        assert part.slope.mean() == pytest.approx(whole.slope.mean(), abs=whole.slope.std())
        assert part.slope.std() == pytest.approx(wider * whole.slope.std(), rel=0.2)


def unequal_classes(weight_of_large=1.0):
    """Four classes of 3,000 instances, which often err, and 116 of two, which seldom do."""
    gallery = np.random.default_rng(3).normal(size=(120, 10)) * 1.5
    sizes = np.repeat([3000, 2], [4, 116])
    y, noise = np.repeat(np.arange(120), sizes), np.random.default_rng(4).normal(size=(12_232, 10))
    noise *= np.where(y < 4, 2.0, 1.0)[:, None]
    weight = np.repeat([weight_of_large, 1.0], [4, 116])
    return SourceTask.from_embeddings(gallery[y] + noise, gallery, y, class_weight=weight)


@pytest.mark.parametrize("large", [20.0, 1.0, 0.0])
def test_a_sample_of_instances_has_the_losses_and_depths_of_all(tails, constants, large):
    """Classes count by their weights, whatever their numbers of instances."""
    task = unequal_classes(large)
    whole = tails(task, size=100).draws.fits[0].table
    with constants(calibration, _MOST_INSTANCES=1000):
        part = tails(task, size=100).draws.fits[0].table
    losses = [table.n_better @ table.weight.sum(axis=1) for table in (part, whole)]
    assert losses[0] == pytest.approx(losses[1], rel=0.05)
    assert_allclose(*(cumulated(table) for table in (part, whole)), atol=0.02)


def cumulated(table):
    """Share of the weight up to each depth."""
    return np.cumsum(table.weight.sum(axis=0)) / table.weight.sum()


@pytest.mark.parametrize("mask", [-1e13, -3.4e38])
def test_a_masked_row_of_logits_changes_little(tails, mask):
    """The mask is no score: neither the origin nor the standard deviation of the others moves."""
    rng = np.random.default_rng(0)
    gallery = rng.normal(size=(100, 10))
    logits = (gallery + 0.45 * rng.normal(size=gallery.shape)) @ gallery.T
    logits -= (gallery**2).sum(axis=1) / 2
    masked = logits.copy()
    masked[7, np.argsort(logits[7])[:75]] = mask
    plain, found = (
        tails(SourceTask.from_scores(s, range(100))).law.expected(K) for s in (logits, masked)
    )
    assert_allclose(found.mean(axis=0), plain.mean(axis=0), atol=0.06)


def test_rounded_distances_predict_as_exact_ones(tails, distances):
    """A quarter of the instances is tied, and answers change in 4% of them."""
    matrix, y = distances()
    exact, rounded = (
        tails(SourceTask.from_scores(scores, y, higher_is_better=False)).law.expected(K)
        for scores in (matrix, 0.4 * np.ceil(matrix / 0.4))
    )
    assert_allclose(rounded.mean(axis=0), exact.mean(axis=0), atol=0.03)


@pytest.mark.nightly
def test_logits_whose_origins_differ_between_instances(tails):
    """Queries of unlike noise: each logit is a distance from an origin of its own.

    In 8 dimensions, which standardising does not make alike, the mean is 0.1 too low.
    """
    rng = np.random.default_rng(1)
    gallery, y = rng.normal(size=(8000, 40)), np.arange(300)
    gallery *= np.sqrt(40) / np.linalg.norm(gallery, axis=1, keepdims=True)
    noise = np.exp(0.7 * rng.normal(size=(8000, 1)))
    probes = gallery + noise * rng.normal(size=gallery.shape)
    size = (gallery**2).sum(axis=1) / 2
    logits = probes[:2000] @ gallery.T - size
    truth = np.mean(logits.argmax(axis=1) == np.arange(2000))
    middle, held = [], []
    for _ in range(6):
        pilot = rng.choice(8000, 300, replace=False)
        task = SourceTask.from_scores(probes[pilot] @ gallery[pilot].T - size[pilot], y)
        accuracy = tails(task).law.expected(np.array([8000]))
        lower, median, upper = np.quantile(accuracy, [0.05, 0.5, 0.95])
        middle.append(median)
        held.append(lower < truth < upper)
    assert abs(np.mean(middle) - truth) < 0.07
    assert sum(held) >= 4
