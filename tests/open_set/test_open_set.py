"""Open-set identification and selective classification, in a world whose rates are known."""

import pickle

import numpy as np
import pytest
import xarray as xr
from scipy.optimize import brentq
from sklearn.base import clone

import classex_bayes as cb

FEW = {"sampler": {"draws": 100, "chains": 2}, "random_seed": 1}
SAMPLES = ["chain", "draw"]


@pytest.fixture(scope="module")
def pilot(world):
    return world.task(120, random_seed=1)


@pytest.fixture(scope="module")
def model(pilot):
    return cb.OpenSetExtrapolator().fit(pilot, **FEW)


@pytest.fixture(scope="module", params=[5, pytest.param(40, marks=pytest.mark.slow)])
def many(world, request):
    """Models of several pilots."""
    tasks = (world.task(100, seed) for seed in range(request.param))
    return [
        cb.OpenSetExtrapolator().fit(task, sampler={"draws": 60, "chains": 2}, random_seed=seed)
        for seed, task in enumerate(tasks)
    ]


@pytest.fixture(scope="module")
def of_similarities():
    """A fit to similarities without a perfect match."""
    rng = np.random.default_rng(0)
    gallery, y = rng.normal(size=(80, 10)), np.repeat(np.arange(80), 2)
    probes = gallery[y] + 0.8 * rng.normal(size=(160, 10))
    return cb.OpenSetExtrapolator().fit(cb.SourceTask.from_scores(probes @ gallery.T, y), **FEW)


def predictions(model):
    """Draws of all rates at a threshold."""
    threshold = model.best_wrong_score_
    found = [
        predict(500, threshold=threshold) for predict in (model.predict, model.predict_selective)
    ]
    return xr.Dataset({name: getattr(part, name) for part in found for name in part.labels})


# Statistical truth


def test_intervals_contain_the_rates_of_a_world_of_power_laws(world, many):
    """90% intervals of many pilots, at several numbers of classes and levels of FPIR."""
    inside = {"fnir": [], "fpir": []}
    for k, fpir in [(300, 0.6), (1000, 0.1), (1000, 0.3), (3000, 0.1), (3000, 0.6)]:
        threshold = world.threshold(k, fpir)
        truth = dict(zip(inside, world.rates(k, threshold), strict=True))
        for fitted in many:
            rates = fitted.predict(k, threshold=threshold)
            for name, expected in truth.items():
                lower, upper = rates.interval(name, 0.9, "eti").sel(k=k).values
                inside[name].append(lower <= expected <= upper)
    for held in inside.values():
        # The cells of one pilot are alike: n pilots count as little more than n.
        assert np.mean(held) >= 0.9 - 1.7 * np.sqrt(0.09 / len(many))


def test_a_small_mean_fpir_is_not_far_from_the_true_one(world, many):
    """Beyond the wrong scores of the pilots, where the mean is above the median of the draws."""
    ratios = []
    for k, fpir in [(300, 0.01), (1000, 0.01)]:
        threshold = world.threshold(k, fpir)
        ratios += [float(m.predict(k, threshold=threshold).fpir.mean()) / fpir for m in many]
    assert 0.6 < np.median(ratios) < 3.5


@pytest.mark.parametrize(("rate", "k", "limit"), [("fpir", 1000, 0.05), ("fnir", 100, 0.75)])
def test_a_threshold_keeps_its_promise(world, many, rate, k, limit):
    """FPIR at ten times the classes of the pilot, FNIR at its own: with a probability of 95%."""
    kept = []
    for fitted in many:
        chosen = fitted.predict(k, **{rate: limit})
        assert 0.9 * limit < np.quantile(getattr(chosen, rate), 0.95) <= limit
        truth = dict(zip(("fnir", "fpir"), world.rates(k, chosen.threshold.item()), strict=True))
        kept.append(truth[rate] <= limit)
    assert np.mean(kept) >= 0.95 - 1.7 * np.sqrt(0.05 / len(many))


def test_fnir_at_a_rank_in_a_world_of_power_laws(world, model):
    threshold = world.threshold(1000, 0.5)
    for rank in (1, 3, 20):
        rates = model.predict(1000, threshold=threshold, rank=rank)
        expected, _ = world.rates(1000, threshold, rank)
        sd = float(rates.fnir.std())
        assert float(rates.fnir.mean()) == pytest.approx(expected, abs=3 * sd)
        assert rates.rank == rank


@pytest.mark.nightly
def test_printed_characters_from_pilots():
    everything, inside, errors, of_alike = cb.load_glyphs().task(), [], [], []
    for seed in range(1, 5):
        fitted = cb.OpenSetExtrapolator().fit(everything.subsample(100, random_seed=seed), **FEW)
        thresholds = fitted.thresholds(1000, 8)[1:6]
        found = fitted.predict([300, 2964], threshold=thresholds)
        truth = cb.open_set.open_set_rates(everything, [300, 2964], thresholds)
        for name in ("fnir", "fpir"):
            bounds = found.interval(name, 0.99, "eti")
            above = truth[name] >= bounds.sel(ci_bound="lower")
            inside.append(float((above & (truth[name] <= bounds.sel(ci_bound="upper"))).mean()))
        errors.append(float(np.abs(found.fpir.mean(SAMPLES)[1] - truth.fpir[1]).max()))
        # One minus (1 - FMR)^k, which takes probes for alike, is far off where FPIR is large.
        at_2 = cb.open_set.open_set_rates(everything, 2, thresholds).fpir
        naive = 1 - (1 - at_2.values[0] / 2) ** 2964
        of_alike.append(float(np.abs(naive - truth.fpir[1].values).max()))
    assert np.mean(inside) >= 0.9
    assert np.mean(errors) < np.mean(of_alike) / 3


def test_on_the_source_classes_it_agrees_with_the_pilot(pilot, model):
    k = pilot.n_classes - 1
    thresholds = model.thresholds(k, 10)[:6]
    found, seen = (
        model.predict(k, threshold=thresholds),
        cb.open_set.open_set_rates(pilot, k, thresholds),
    )
    for name in ("fnir", "fpir"):
        rate = getattr(found, name).sel(k=k)
        away = (rate.mean(SAMPLES) - seen[name].sel(k=k)) / rate.std(SAMPLES)
        assert float(np.abs(away).max()) < 3


def test_unequal_weights_leave_fewer_independent_probes(world):
    """The information on the level, less that of its prior, is in proportion to their number."""
    weight = np.where(np.arange(200) < 180, 1.0, 20.0)
    information, number = [], []
    for class_weight in (np.full(200, 1 / 200), weight / weight.sum()):
        task = world.task(200, 6, class_weight=class_weight)
        level = cb.OpenSetExtrapolator().fit(task, **FEW).posterior_["wrong_level"]
        information.append(float(level.var()) ** -1 - 0.2**-2)
        number.append(task.n_test / task.design_effect())
    assert number[1] < 0.3 * number[0]
    ratio = information[1] / information[0]
    assert ratio == pytest.approx(number[1] / number[0], rel=0.4)


def test_few_enrolled_classes_at_loose_thresholds():
    """Wrong scores above such thresholds are many, so that the pilot tells their rates."""
    rng = np.random.default_rng(5)
    task = cb.SourceTask.from_scores(rng.normal(size=(600, 600)) + 3 * np.eye(600), range(600))
    fitted = cb.OpenSetExtrapolator().fit(task, **FEW)
    for k, threshold in ((2, 2.0), (2, 2.5), (10, 2.0), (10, 2.4)):
        rates = fitted.predict(k, threshold=threshold)
        exact = cb.open_set.open_set_rates(task, k, threshold).fpir.item()
        assert float(rates.fpir.mean()) == pytest.approx(exact, rel=0.15)
    found = float(fitted.predict(10, fpir=0.5).threshold[0])
    assert cb.open_set.open_set_rates(task, 10, found).fpir.item() <= 0.5
    # The lists of 32 wrong classes end there, which tells nothing of 10, but enough of 600.
    with pytest.raises(cb.DataError):
        fitted.predict([10, 600], threshold=1.0)
    assert float(fitted.predict(600, threshold=1.0).fpir.mean()) > 0.999


def test_dedicated_nonmated_probes_set_fpir(world, pilot, model):
    """Probes that are nearer to all classes by a known factor."""
    rng = np.random.default_rng(3)
    scores = np.exp(world.location_sd * rng.standard_normal((300, 1)))
    scores = 0.8 * scores * rng.random((300, 120)) ** (1 / world.exponent)
    dedicated = cb.OpenSetExtrapolator().fit(pilot, nonmated=scores, **FEW)
    threshold = world.threshold(1000, 0.2)
    found = dedicated.predict(1000, threshold=threshold)
    _, expected = world.rates(1000, threshold / 0.8)
    assert float(found.fpir.mean()) == pytest.approx(expected, abs=3 * float(found.fpir.std()))
    same = model.predict(1000, threshold=threshold).fnir
    np.testing.assert_array_equal(found.fnir.values, same.values)
    # A classifier that abstains meets no strangers, however near they are.
    near = cb.OpenSetExtrapolator().fit(pilot, nonmated=0.01 * scores, **FEW)
    chosen = [each.predict_selective(1000, accuracy=0.2) for each in (near, model)]
    xr.testing.assert_equal(chosen[0].threshold, chosen[1].threshold)


@pytest.mark.nightly
def test_exponents_that_differ_between_probes_keep_some_from_false_positives():
    """Without the scatter between probes FPIR of 0.6 is predicted as 0.72."""
    nodes, weight = np.polynomial.hermite_e.hermegauss(101)

    def fpir(threshold):
        log_chance = np.minimum(6 * np.exp(0.4 * nodes) * np.log(threshold), -1e-12)
        return 1 - weight @ np.exp(3000 * np.log1p(-np.exp(log_chance))) / weight.sum()

    threshold = brentq(lambda at: fpir(at) - 0.6, 1e-3, 0.9)
    means = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        exponent = 6 * np.exp(0.4 * rng.standard_normal((150, 1)))
        log_p = np.log(rng.random((150, 150)))
        np.fill_diagonal(log_p, np.minimum(-7 + 2 * rng.standard_normal(150), -1e-3))
        task = cb.SourceTask.from_scores(
            np.exp(log_p / exponent), range(150), higher_is_better=False
        )
        fitted = cb.OpenSetExtrapolator().fit(task, **FEW)
        means.append(float(fitted.predict(3000, threshold=threshold).fpir.mean()))
    assert np.mean(means) == pytest.approx(0.6, abs=0.06)


def test_selective_classification_of_independent_scores(world):
    """True and wrong scores are independent given the location: both rates by simulation."""
    big = world.task(2000, 9)
    fitted = cb.OpenSetExtrapolator().fit(world.task(200, 5), **FEW)
    thresholds = [world.threshold(1000, fpir) for fpir in (0.05, 0.3)]
    found = fitted.predict_selective(1000, threshold=thresholds)
    truth = cb.open_set.open_set_rates(big, 1000, thresholds)
    answered = found.answered.mean(SAMPLES) - truth.answered
    assert np.all(np.abs(answered) < 3 * found.answered.std(SAMPLES) + 0.03)
    accuracy = found.accuracy.mean(SAMPLES) - truth.accuracy
    assert np.all(np.abs(accuracy) < 3 * found.accuracy.std(SAMPLES))
    # Where the true score tells nothing of the wrong ones, they decline like a power law.
    assert float(fitted.posterior_["decline"].mean()) == pytest.approx(1, abs=0.35)


@pytest.mark.nightly
def test_poor_probes_are_far_from_all_classes():
    """A part of the distance is the probe's own: without its decline the accuracy is 0.77."""

    def task(n_classes, seed):
        rng = np.random.default_rng(seed)
        gallery = rng.normal(size=(n_classes, 6))
        probes = gallery + 0.25 * rng.normal(size=gallery.shape)
        poor = 0.8 * np.exp(0.7 * rng.standard_normal(n_classes))
        distances = ((probes[:, None] - gallery) ** 2).sum(axis=-1) + poor[:, None] ** 2
        return cb.SourceTask.from_scores(distances, range(n_classes), higher_is_better=False)

    truth = cb.open_set.open_set_rates(task(2500, 99), 1500, 0.5)
    means = []
    for seed in range(2):
        fitted = cb.OpenSetExtrapolator().fit(task(150, seed), **FEW)
        found = fitted.predict_selective(1500, threshold=0.5)
        means.append([float(found.accuracy.mean()), float(found.answered.mean())])
    accuracy, answered = np.mean(means, axis=0)
    assert accuracy == pytest.approx(float(truth.accuracy[0, 0]), abs=0.07)
    assert answered == pytest.approx(float(truth.answered[0, 0]), abs=0.05)


def test_blocked_pairs_leave_the_rates_of_the_others():
    """Some probes have few candidates, as after blocking; the others are ruled out at any k."""
    rng, k1, k = np.random.default_rng(5), 200, 1500
    centres, y = rng.normal(size=(k, 8)), np.arange(400) % k1
    probes = centres[y] + 0.55 * rng.normal(size=(400, 8))
    scores = -np.linalg.norm(probes[:, None] - centres, axis=2)
    is_true = np.arange(k) == y[:, None]
    blocked = (rng.random(400) < 0.3)[:, None] & (rng.random((400, k)) > 2 / k1) & ~is_true
    scores[blocked] = -np.inf
    task = cb.SourceTask.from_scores(scores[:, :k1], y)
    model = cb.OpenSetExtrapolator().fit(task, **FEW)
    wrong = np.where(is_true, -np.inf, scores)
    threshold = float(np.quantile(wrong[:, :k1].max(axis=1), 0.98))
    open_set, selective = (
        predict([k1, k], threshold=threshold)
        for predict in (model.predict, model.predict_selective)
    )
    for size in (k1, k):
        best, true = wrong[:, :size].max(axis=1), scores[np.arange(400), y]
        answered = np.maximum(best, true) >= threshold
        fpir, share = (best >= threshold).mean(), answered.mean()
        lower, upper = open_set.interval("fpir", 0.95).sel(k=size).values
        assert lower <= fpir <= upper
        assert abs(selective.answered.sel(k=size).mean() - share) < 0.05
    loose = float(np.quantile(wrong[:, :k1].max(axis=1), 0.5))
    right = (true > wrong[:, :k].max(axis=1)) & (true >= loose)
    accuracy = right.sum() / (np.maximum(wrong.max(axis=1), true) >= loose).sum()
    predicted = model.predict_selective(k, threshold=loose)
    assert abs(predicted.accuracy.mean() - accuracy) < 0.05


def test_a_promised_accuracy(world):
    easy = type(world)(mean=-12.0).task(120, 3)
    model = cb.OpenSetExtrapolator().fit(easy, **FEW)
    chosen = model.predict_selective([120, 1000], accuracy=0.95)
    assert np.all(chosen.accuracy.quantile(0.05, SAMPLES) >= 0.95 - 1e-9)
    assert float(chosen.threshold[1]) < float(chosen.threshold[0])  # distances: tighter
    # 120 right answers promise no more among 1,000 classes.
    assert np.isnan(model.predict_selective(1000, accuracy=0.995).threshold)


def test_rates_with_very_many_classes(world, model):
    threshold = world.threshold(1000, 0.5)
    many = [10**9, 10**10, 10**12]
    with pytest.warns(cb.exceptions.ExtrapolationWarning):
        rates = model.predict(many, threshold=threshold, rank=3)
    fnir, fpir = (rate.mean(SAMPLES).values for rate in (rates.fnir, rates.fpir))
    assert np.all(np.diff(fnir) >= 0) and np.all(fnir > 0.7) and np.all(fnir <= 1)
    assert np.all(np.diff(fpir) >= 0) and np.all(fpir > 0.99) and np.all(fpir <= 1)


# Coherence


def test_longer_lists_miss_fewer(model):
    threshold = model.thresholds(500, 12)[3]
    by_rank = [model.predict(500, threshold=threshold, rank=rank).fnir for rank in (1, 2, 9)]
    assert np.all(np.diff(by_rank, axis=0) <= 1e-12)


def test_units_of_distances_do_not_matter(world):
    """Powers and factors of the distances, and complete lists of them."""
    distances = np.asarray(world.task(80, 2).table.source.matrix)
    threshold = world.threshold(500, 0.3)

    def rates(task, threshold):
        found = cb.OpenSetExtrapolator().fit(task, **FEW).predict(500, threshold=threshold)
        return float(found.fnir.mean()), float(found.fpir.mean())

    def scaled(power, factor):
        scores = factor * distances**power
        task = cb.SourceTask.from_scores(scores, range(80), higher_is_better=False)
        return rates(task, factor * threshold**power)

    expected = scaled(1, 1)
    assert scaled(2, 1) == pytest.approx(expected, abs=2e-3)
    assert scaled(1, 1e-3) == pytest.approx(expected, abs=2e-3)
    order = np.argsort(distances, axis=1)
    listed = np.take_along_axis(distances, order, axis=1)
    lists = cb.SourceTask.from_search(order, range(80), n_classes=80, distances=listed)
    assert rates(lists, threshold)[1] == pytest.approx(expected[1], abs=0.05)


def test_same_seed_same_rates(pilot, model):
    again = cb.OpenSetExtrapolator().fit(pilot, **FEW)
    xr.testing.assert_equal(predictions(again), predictions(model))
    other = cb.OpenSetExtrapolator().fit(pilot, **{**FEW, "random_seed": 2})
    assert not predictions(other).equals(predictions(model))


# Notes, results, files


def test_beyond_the_best_wrong_score_a_note_says_so(world, pilot, model):
    best = float(-pilot.nearest_classes.scores.max())
    inside = model.predict(500, threshold=1.01 * best)
    beyond = model.predict(500, threshold=0.9 * best)
    assert not any("no wrong score" in note for note in inside.notes)
    assert any("no wrong score" in note and f"{best:.6g}" in note for note in beyond.notes)
    # Intervals widen on the scale of the logarithm.
    spread = [float(np.log(rates.fpir).std()) for rates in (inside, beyond)]
    assert spread[1] > spread[0]
    with pytest.warns(cb.exceptions.ExtrapolationWarning, match="120"):
        far = model.predict(100_000, threshold=best)
    assert any("depends on the model" in note for note in far.notes)


def test_results_have_tables(model):
    thresholds = model.thresholds(500, 3)
    one = model.predict([120, 500], threshold=thresholds[1])
    assert one.fnir.dims == ("chain", "draw", "k") and one.threshold.dims == ("k",)
    table = one.summary(0.9, "eti", "none")
    assert table.columns.tolist() == ["threshold", "mean", "sd", "eti90_lb", "eti90_ub"]
    assert table.index.tolist() == [("FNIR", 120), ("FNIR", 500), ("FPIR", 120), ("FPIR", 500)]
    assert table.loc[("FPIR", 500), "mean"] == pytest.approx(float(one.fpir.sel(k=500).mean()))
    several = model.predict([120, 500], threshold=thresholds)
    assert several.fpir.dims == ("chain", "draw", "k", "threshold")
    assert len(several.summary()) == 12
    frame = several.to_dataframe()
    assert {"chain", "draw", "k", "threshold", "fnir", "fpir"} <= set(frame.columns)


def test_saved_models_predict_the_same(world, pilot, of_similarities, tmp_path):
    strangers = np.random.default_rng(0).random((40, 120))
    prior = cb.TailPrior(slope=1.0)
    fitted = cb.OpenSetExtrapolator(drift=0.2, tail_prior=prior).fit(
        pilot, nonmated=strangers, **FEW
    )
    loaded = cb.load(cb.save(fitted, tmp_path / "pilot.nc"))
    assert loaded.is_fitted_to(pilot) and not loaded.is_fitted_to(world.task(120, 8))
    assert loaded.drift == 0.2 and loaded.tail_prior == prior and loaded.task is None
    pickled = pickle.loads(pickle.dumps(fitted))
    without_end = cb.load(cb.save(of_similarities, tmp_path / "similarities.nc"))
    for again, model in ((loaded, fitted), (pickled, fitted), (without_end, of_similarities)):
        xr.testing.assert_equal(predictions(again), predictions(model))


# Scales of scores


def test_nonmated_scores_may_be_better_than_all_of_the_pilot():
    """Scores without a perfect match have a scale without an end."""
    rng = np.random.default_rng(0)
    gallery = rng.normal(size=(80, 8))
    task = cb.SourceTask.from_scores((gallery + rng.normal(size=(80, 8))) @ gallery.T, range(80))
    others = 2.2 * rng.normal(size=(60, 8)) @ gallery.T
    best = max(task.nearest_classes.scores.max(), task.nearest_classes.true.max())
    assert others.max() > best
    model = cb.OpenSetExtrapolator().fit(task, nonmated=others, **FEW)
    # Their slopes are steeper than those of distances, which is no reason to doubt.
    rates = model.predict(800, threshold=float(best))
    assert not any("overtake" in note for note in rates.notes)
    exact = float((others > best).any(axis=1).mean())
    assert exact < float(rates.fpir.mean()) < 1


def test_negative_similarities_are_not_better_than_perfect_distances():
    """They are passed as distances, whose perfect value they exceed."""
    rng = np.random.default_rng(0)
    gallery = rng.normal(size=(80, 8))
    scores, others = rng.normal(size=(2, 80, 8)) @ gallery.T
    scores += (gallery**2).sum(axis=1) * np.eye(80)
    thresholds = []
    for sign in (1, -1):
        task = cb.SourceTask.from_scores(sign * scores, range(80), higher_is_better=sign > 0)
        few = {"draws": 30, "chains": 1}
        model = cb.OpenSetExtrapolator().fit(
            task, nonmated=sign * others, sampler=few, random_seed=1
        )
        thresholds.append(sign * model.predict(800, fpir=0.1).threshold.item())
    assert thresholds[0] == pytest.approx(thresholds[1], rel=1e-6)


def test_the_unit_of_similarities_does_not_matter():
    rng = np.random.default_rng(0)
    gallery = rng.normal(size=(80, 8))
    scores = (gallery + 0.5 * rng.normal(size=gallery.shape)) @ gallery.T
    means, errors, thresholds = [], [], []
    for unit in (1.0, 1e300):
        task = cb.SourceTask.from_scores(scores * unit, range(80))
        model = cb.OpenSetExtrapolator().fit(task, **FEW)
        fpir = model.predict(8000, threshold=22 * unit).fpir.values
        means.append(fpir.mean())
        errors.append(fpir.std() / np.sqrt(fpir.size))
        thresholds.append(model.predict(8000, fpir=0.05).threshold.item() / unit)
    # Rounding changes the draws, so the means differ by their Monte Carlo error.
    assert np.ptp(means) < 4 * np.hypot(*errors)
    assert thresholds[1] == pytest.approx(thresholds[0], rel=0.1)


def test_the_model_tells_what_it_is(pilot, model):
    assert "120" in repr(model) and model.pareto_k_ < 0.7
    assert {"level", "wrong_slope", "decline"} <= set(model.posterior_)
    assert clone(model).get_params() == {"drift": 0.35, "tail_prior": cb.TailPrior()}
    assert {"level", "wrong_slope"} <= set(model.summary().index)
    skipped = cb.compare([model, cb.ClassExReg(random_seed=1)], pilot, 500).skipped
    assert list(skipped) == ["OpenSetExtrapolator"]


# Lists that end, and strangers


@pytest.mark.filterwarnings("ignore::classex_bayes.exceptions.DataWarning")
def test_a_threshold_beyond_the_ends_of_lists(world):
    distances = np.asarray(world.task(80, 2).table.source.matrix).copy()
    np.fill_diagonal(distances, 5 * distances.max())  # the true class is never listed
    distances[:40, :40][np.eye(40, dtype=bool)] = 1e-3
    order = np.argsort(distances, axis=1)[:, :20]
    task = cb.SourceTask.from_search(
        order, range(80), n_classes=80, distances=np.take_along_axis(distances, order, axis=1)
    )
    fitted = cb.OpenSetExtrapolator().fit(task, **FEW)
    for k in (5, 80, 500):
        fitted.predict(k, threshold=fitted.thresholds(k, 5))
    with pytest.raises(cb.DataError):
        fitted.predict(500, threshold=float(np.median(np.sort(distances, axis=1)[:, 18])))


def test_an_instance_without_any_score_is_never_identified(world):
    distances = np.array(world.task(80, 2).table.source.matrix)
    distances[5] = np.inf
    task = cb.SourceTask.from_scores(distances, range(80), higher_is_better=False)
    rates = cb.OpenSetExtrapolator().fit(task, **FEW).predict(80, threshold=distances[0].max())
    assert np.isfinite(rates.fpir).all() and float(rates.fnir.mean()) > 1 / 80


def test_candidate_lists_of_strangers_give_the_rates_of_all_their_scores():
    rng = np.random.default_rng(3)
    gallery, y = rng.normal(size=(100, 8)), np.arange(200) % 100
    distances = [
        ((probes[:, None] - gallery) ** 2).sum(axis=2)
        for probes in (gallery[y] + 0.6 * rng.normal(size=(200, 8)), rng.normal(size=(80, 8)))
    ]
    task = cb.SourceTask.from_scores(distances[0], y, higher_is_better=False)
    ids = np.argsort(distances[1], axis=1)[:, :40]
    of_ids = np.take_along_axis(distances[1], ids, axis=1)
    rates = []
    for nonmated in (distances[1], (ids, of_ids)):
        model = cb.OpenSetExtrapolator().fit(task, nonmated=nonmated, **FEW)
        rates.append(model.predict([100, 1000], threshold=1.5).fpir.values)
    np.testing.assert_allclose(rates[1], rates[0], rtol=1e-9)


@pytest.mark.parametrize("distance", ["sqeuclidean", "cosine", "dot"])
def test_embeddings_of_nonmated_probes_give_the_rates_of_their_scores(distance):
    rng = np.random.default_rng(3)
    gallery, others = rng.normal(size=(80, 8)), 1.5 * rng.normal(size=(60, 8))
    settings = {"distance": distance, "unanswered": [0, 1]}
    task = cb.SourceTask.from_embeddings(
        gallery + 0.6 * rng.normal(size=(80, 8)), gallery, range(80), **settings
    )
    product = others @ gallery.T
    scores = {
        "sqeuclidean": ((others[:, None] - gallery) ** 2).sum(axis=-1),
        "cosine": product / np.outer(*(np.linalg.norm(x, axis=1) for x in (others, gallery))),
        "dot": product,
    }[distance]
    rates = []
    for nonmated in (scores, others, others.astype("f4").astype(float)):
        model = cb.OpenSetExtrapolator().fit(task, nonmated=nonmated, **FEW)
        rates.append(model.predict(800, fpir=0.1).fpir.values)
    np.testing.assert_allclose(rates[1], rates[0], rtol=1e-6)


def test_lists_of_strangers_may_have_as_many_coordinates_as_classes():
    rng = np.random.default_rng(0)
    gallery = rng.normal(size=(30, 30))
    probes, others = gallery + rng.normal(size=(2, 30, 30))
    task = cb.SourceTask.from_embeddings(probes, gallery, range(30))
    distances = ((others[:, None] - gallery) ** 2).sum(axis=-1)
    order = np.argsort(distances, axis=1)
    listed = order, np.take_along_axis(distances, order, axis=1)
    rates = cb.OpenSetExtrapolator().fit(task, nonmated=listed, **FEW).predict(300, fpir=0.1)
    assert np.isfinite(rates.fpir).all()
