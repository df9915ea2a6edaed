"""Open-set identification and selective classification, in a world whose rates are known."""

import pickle
import warnings

import numpy as np
import pytest
import xarray as xr
from scipy.optimize import brentq
from scipy.special import softmax
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


def characters(n_classes, random_seed):
    return cb.load_glyphs().task().subsample(n_classes, random_seed=random_seed)


# Statistical truth


def test_intervals_hold_in_a_world_of_power_laws(world, many):
    """90% intervals of many pilots, at several numbers of classes and levels of FPIR."""
    cells = [(300, 0.6), (1000, 0.1), (1000, 0.3), (3000, 0.1), (3000, 0.6)]
    at = {cell: world.threshold(*cell) for cell in cells}
    truth = {cell: world.rates(cell[0], at[cell]) for cell in cells}
    held = []
    for fitted in many:
        for (k, fpir), threshold in at.items():
            rates = fitted.predict(k, threshold=threshold)
            for name, expected in zip(("fnir", "fpir"), truth[k, fpir], strict=True):
                lower, upper = rates.interval(name, 0.9, "eti").sel(k=k).values
                held.append((name, lower <= expected <= upper))
    for name in ("fnir", "fpir"):
        share = np.mean([inside for rate, inside in held if rate == name])
        # The cells of one pilot are alike: n pilots count as little more than n.
        assert share >= 0.9 - 1.7 * np.sqrt(0.09 / len(many))


def test_the_threshold_keeps_its_promise(world, many):
    """FPIR at ten times the classes of the pilot, promised with a probability of 95%."""
    kept = []
    for fitted in many:
        chosen = fitted.predict(1000, fpir=0.05)
        assert np.quantile(chosen.fpir, 0.95) == pytest.approx(0.05, rel=0.03)
        kept.append(world.rates(1000, float(chosen.threshold[0]))[1] <= 0.05)
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
def test_printed_characters_from_a_pilot():
    everything = cb.load_glyphs().task()
    fitted = cb.OpenSetExtrapolator().fit(characters(100, 1), **FEW)
    thresholds = fitted.thresholds(1000, 8)[1:6]
    found = fitted.predict([300, 2964], threshold=thresholds)
    truth = cb.open_set.open_set_rates(everything, [300, 2964], thresholds)
    for name in ("fnir", "fpir"):
        bounds = found.interval(name, 0.99, "eti")
        inside = (truth[name] >= bounds.sel(ci_bound="lower")) & (
            truth[name] <= bounds.sel(ci_bound="upper")
        )
        assert float(inside.mean()) >= 0.8
    # One minus (1 - FMR)^k, which takes probes for alike, is far off where FPIR is large.
    at_2 = cb.open_set.open_set_rates(everything, 2, thresholds).fpir
    naive = 1 - (1 - at_2.values[0] / 2) ** 2964
    error = float(np.abs(found.fpir.mean(SAMPLES)[1] - truth.fpir[1]).max())
    assert error < 0.1 < np.abs(naive - truth.fpir[1].values).max()


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
    """The information on the slope, less that of its prior, is in proportion to their number."""
    weight = np.where(np.arange(200) < 180, 1.0, 20.0)
    information, number = [], []
    for class_weight in (np.full(200, 1 / 200), weight / weight.sum()):
        task = world.task(200, 6, class_weight=class_weight)
        slope = cb.OpenSetExtrapolator().fit(task, **FEW).posterior_["wrong_slope"]
        information.append(float(slope.var()) ** -1 - 0.2**-2)
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
    with pytest.raises(cb.DataError, match=r"^threshold:"):
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


def test_a_pareto_tail_is_one_of_log_distances(world):
    """In a world of one location and exponent, the tail of all pairs is exponential."""
    alike = type(world)(location_sd=0.0, mean=-9.0)
    fitted = cb.OpenSetExtrapolator(tail="pareto").fit(alike.task(150, 4), **FEW)
    threshold = alike.threshold(10_000, 0.1)
    rates = fitted.predict(10_000, threshold=threshold)
    lower, upper = rates.interval("fpir", 0.95, "eti").values[0]
    assert lower <= 0.1 <= upper
    assert any("extrapolated (tail='pareto')" in note for note in rates.notes)


def test_tied_wrong_scores_have_a_pareto_tail():
    """Probabilities that nearly all are 0: excesses over their common score are 0, too."""
    rng = np.random.default_rng(0)
    gallery, y = rng.normal(size=(80, 10)), np.repeat(np.arange(80), 2)
    logits = 60 * (gallery[y] + 0.8 * rng.normal(size=(160, 10))) @ gallery.T
    task = cb.SourceTask.from_scores(softmax(logits, axis=1), y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", cb.exceptions.ConvergenceWarning)
        fitted = cb.OpenSetExtrapolator(tail="pareto").fit(task, **FEW)
        fpir = fitted.predict(800, threshold=0.5).fpir
    assert bool(((fpir >= 0) & (fpir <= 1)).all())


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


def test_a_promised_accuracy(world):
    easy = type(world)(mean=-12.0).task(120, 3)
    model = cb.OpenSetExtrapolator().fit(easy, **FEW)
    chosen = model.predict_selective([120, 1000], accuracy=0.95)
    assert np.all(chosen.accuracy.quantile(0.05, SAMPLES) >= 0.95 - 1e-9)
    assert float(chosen.threshold[1]) < float(chosen.threshold[0])  # distances: tighter
    # 120 right answers promise no more among 1,000 classes.
    with pytest.raises(cb.DataError, match=r"^accuracy:"):
        model.predict_selective(1000, accuracy=0.995)


def test_every_accepted_true_class_is_in_a_list_of_all_classes(model):
    threshold = float(np.median(model.idata["observed_data"]["true_score"]))
    rates = model.predict([2, 20], threshold=-threshold, rank=20)
    loose, tight = rates.fnir.transpose("k", ...).values
    np.testing.assert_allclose(loose, tight)
    assert loose.mean() == pytest.approx(0.5, abs=0.05)


def test_rates_with_very_many_classes(world, model):
    threshold = world.threshold(1000, 0.5)
    many = [10**9, 10**10, 10**12]
    with pytest.warns(cb.exceptions.ExtrapolationWarning):
        rates = model.predict(many, threshold=threshold, rank=3)
    fnir, fpir = (rate.mean(SAMPLES).values for rate in (rates.fnir, rates.fpir))
    assert np.all(np.diff(fnir) >= 0) and np.all(fnir > 0.7) and np.all(fnir <= 1)
    assert np.all(np.diff(fpir) >= 0) and np.all(fpir > 0.99) and np.all(fpir <= 1)


# Order and coherence


def test_rates_move_as_they_must(model):
    thresholds = model.thresholds(500, 12)
    rates = model.predict([50, 500, 5000], threshold=thresholds)
    assert np.all(np.diff(thresholds) < 0)  # distances, from loose to tight
    fpir, fnir = rates.fpir.values, rates.fnir.values
    assert np.all(np.diff(fpir, axis=2) >= -1e-9) and np.all(np.diff(fpir, axis=3) <= 0)
    assert np.all(np.diff(fnir, axis=3) >= -1e-9) and np.all(np.diff(fnir, axis=2) >= -1e-9)
    assert np.all((fpir >= 0) & (fpir <= 1)) and np.all((fnir >= 0) & (fnir <= 1))
    by_rank = [model.predict(500, threshold=thresholds[3], rank=m).fnir.values for m in (1, 2, 9)]
    assert np.all(np.diff(by_rank, axis=0) <= 1e-12)
    selective = model.predict_selective(500, threshold=thresholds)
    assert np.all((selective.accuracy >= 0) & (selective.accuracy <= 1))
    assert np.all((selective.answered >= 0) & (selective.answered <= 1))


def test_units_of_scores_do_not_matter(world):
    """Powers and factors of the distances, and the same as similarities of lists."""
    distances = np.asarray(world.task(80, 2).table.source.matrix)
    threshold = world.threshold(500, 0.3)
    rates = {}
    for name, power, factor in (("plain", 1, 1), ("squared", 2, 1), ("scaled", 1, 1e-3)):
        task = cb.SourceTask.from_scores(
            factor * distances**power, range(80), higher_is_better=False
        )
        fitted = cb.OpenSetExtrapolator().fit(task, **FEW)
        rates[name] = fitted.predict(500, threshold=factor * threshold**power)
    order = np.argsort(distances, axis=1)
    lists = cb.SourceTask.from_search(
        order, range(80), n_classes=80, distances=np.take_along_axis(distances, order, axis=1)
    )
    rates["lists"] = cb.OpenSetExtrapolator().fit(lists, **FEW).predict(500, threshold=threshold)
    for name in ("squared", "scaled"):
        for rate in ("fnir", "fpir"):
            expected = float(getattr(rates["plain"], rate).mean())
            assert float(getattr(rates[name], rate).mean()) == pytest.approx(expected, abs=2e-3)
    assert float(rates["lists"].fpir.mean()) == pytest.approx(
        float(rates["plain"].fpir.mean()), abs=0.05
    )


def test_the_cosine_and_similarities_have_thresholds_from_below():
    rng = np.random.default_rng(0)
    gallery = rng.normal(size=(80, 10))
    task = cb.SourceTask.from_embeddings(
        gallery + 0.5 * rng.normal(size=gallery.shape), gallery, range(80), distance="cosine"
    )
    fitted = cb.OpenSetExtrapolator().fit(task, **FEW)
    rates = fitted.predict(800, threshold=[0.6, 0.9])
    assert np.all(rates.fpir.mean(SAMPLES).diff("threshold") < 0)
    found = fitted.thresholds(800, 5)
    assert np.all(np.diff(found) > 0) and found.max() <= 1


def test_sought_thresholds_can_be_given(model):
    """Also far beyond the scores of the pilot, where nobody is found."""
    sought = model.predict([500, 10_000], fpir=0.001)
    for row, k in enumerate((500, 10_000)):
        again = model.predict(k, threshold=float(sought.threshold[row]))
        np.testing.assert_array_equal(again.fpir[..., 0], sought.fpir[..., row])
        assert float(again.threshold[0]) == float(sought.threshold[row])


def test_same_seed_same_rates(pilot, model):
    again = cb.OpenSetExtrapolator().fit(pilot, **FEW)
    threshold = model.thresholds(500, 5)[2]
    for predict in ("predict", "predict_selective"):
        first = getattr(model, predict)(500, threshold=threshold)
        second = getattr(again, predict)(500, threshold=threshold)
        for name in first.labels:
            xr.testing.assert_equal(getattr(first, name), getattr(second, name))
    other = cb.OpenSetExtrapolator().fit(pilot, **{**FEW, "random_seed": 2})
    assert not np.array_equal(
        other.predict(500, threshold=threshold).fpir, model.predict(500, threshold=threshold).fpir
    )


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
    with pytest.warns(cb.exceptions.ExtrapolationWarning, match="120 enrolled classes"):
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
    assert "FPIR at most 0.1" in repr(model.predict(500, fpir=0.1))
    selective = model.predict_selective(500, threshold=thresholds[1])
    assert "selective classification" in repr(selective) and "answered" in repr(selective)
    with pytest.raises(cb.DataError, match=r"^rate:"):
        one.interval("x")
    with pytest.raises(cb.DataError, match=r"^rate:"):
        one.interval(0.95)


@pytest.mark.parametrize("ending", [".nc", ".zarr"])
def test_saved_models_predict_the_same(ending, world, pilot, tmp_path):
    rng = np.random.default_rng(0)
    fitted = cb.OpenSetExtrapolator(drift=0.2).fit(pilot, nonmated=rng.random((40, 120)), **FEW)
    loaded = cb.load(cb.save(fitted, tmp_path / f"pilot{ending}"))
    assert loaded.is_fitted_to(pilot) and not loaded.is_fitted_to(world.task(120, 8))
    assert loaded.drift == 0.2 and loaded.task is None
    threshold = fitted.thresholds(500, 4)[1]
    for copy in (loaded, pickle.loads(pickle.dumps(fitted))):
        for predict in ("predict", "predict_selective"):
            first = getattr(fitted, predict)(500, threshold=threshold)
            second = getattr(copy, predict)(500, threshold=threshold)
            for name in first.labels:
                xr.testing.assert_equal(getattr(first, name), getattr(second, name))


def test_similarities_without_a_perfect_match_are_averaged_over_their_scales():
    """Which scale is the most probable one is chance, and must not matter."""
    rng = np.random.default_rng(0)
    gallery, y = rng.normal(size=(80, 10)), np.repeat(np.arange(80), 2)
    probes = gallery[y] + 0.8 * rng.normal(size=(160, 10))
    task = cb.SourceTask.from_scores(probes @ gallery.T, y)
    fits = [cb.OpenSetExtrapolator().fit(task, **(FEW | {"random_seed": seed})) for seed in (0, 1)]
    assert all(len(fit.scales_) > 3 and fit.scales_.max() < 0.5 for fit in fits)
    assert fits[0].scales_.index[0] != fits[1].scales_.index[0]
    threshold = float(fits[0].thresholds(8000)[10])
    fpir = [fit.predict(8000, threshold=threshold).fpir.values.ravel() for fit in fits]
    assert abs(fpir[0].mean() - fpir[1].mean()) < 0.35 * np.std(fpir)
    place = fits[0].idata["scales"]["scale_place"].values.ravel()
    shares = np.bincount(place) / place.size
    np.testing.assert_allclose(shares, fits[0].scales_, atol=0.01)
    # Rates differ between scales by more than their draws do on one of them.
    means = [fpir[0][place == at].mean() for at in range(len(shares))]
    assert max(means) > 1.5 * min(means)


@pytest.mark.parametrize("ending", [".nc", ".zarr"])
def test_saved_scales_keep_their_draws(ending, tmp_path):
    rng = np.random.default_rng(0)
    gallery = rng.normal(size=(40, 6))
    task = cb.SourceTask.from_scores(
        rng.normal(size=(40, 6)) @ gallery.T + 9 * np.eye(40), range(40)
    )
    model = cb.OpenSetExtrapolator().fit(task, **FEW)
    assert len(model.scales_) > 2
    loaded = cb.load(cb.save(model, tmp_path / f"pilot{ending}"))
    threshold = float(model.thresholds(500, 4)[2])
    first, second = (part.predict(500, threshold=threshold) for part in (model, loaded))
    xr.testing.assert_equal(first.fpir, second.fpir)


def test_scales_are_those_that_nonmated_scores_allow():
    """Origins are a little beyond the best score of the pilot, and may be below others."""
    rng = np.random.default_rng(0)
    gallery = rng.normal(size=(80, 8))
    task = cb.SourceTask.from_scores((gallery + rng.normal(size=(80, 8))) @ gallery.T, range(80))
    others = 3 * rng.normal(size=(60, 8)) @ gallery.T
    model = cb.OpenSetExtrapolator().fit(task, nonmated=others, **FEW)
    assert len(cb.OpenSetExtrapolator().fit(task, **FEW).scales_) > len(model.scales_) > 0
    # Their slopes are steeper than those of distances, which is no reason to doubt.
    assert not any("overtake" in note for note in model.predict(800, threshold=20.0).notes)
    origins = [float(name.split()[0]) for name in model.scales_.index if name != "exp(-s)"]
    assert all(origin >= others.max() for origin in origins)
    few = cb.OpenSetExtrapolator().fit(task, sampler={"draws": 4, "chains": 1}, random_seed=1)
    assert np.isfinite(few.predict(800, threshold=20.0).fpir).all()


def test_negative_similarities_are_not_better_than_perfect_distances():
    """They are passed as distances, whose perfect value they exceed."""
    rng = np.random.default_rng(0)
    gallery = rng.normal(size=(80, 8))
    scores, others = rng.normal(size=(2, 80, 8)) @ gallery.T
    scores += (gallery**2).sum(axis=1) * np.eye(80)
    thresholds = []
    for sign in (1, -1):
        task = cb.SourceTask.from_scores(sign * scores, range(80), higher_is_better=sign > 0)
        model = cb.OpenSetExtrapolator().fit(task, nonmated=sign * others, **FEW)
        thresholds.append(sign * model.predict(800, fpir=0.1).threshold.item())
    assert thresholds[0] == pytest.approx(thresholds[1], rel=1e-6)


@pytest.mark.parametrize("unit", [1e-300, 1e-9, 1e300])
def test_the_unit_of_similarities_does_not_matter(unit):
    rng = np.random.default_rng(0)
    gallery = rng.normal(size=(80, 8))
    scores = (gallery + 0.5 * rng.normal(size=gallery.shape)) @ gallery.T
    predicted = []
    for size in (1.0, unit):
        task = cb.SourceTask.from_scores(scores * size, range(80))
        model = cb.OpenSetExtrapolator().fit(task, **FEW)
        assert "exp(-s)" in model.scales_
        fpir = model.predict(8000, threshold=22 * size).fpir.values
        threshold = model.predict(8000, fpir=0.05).threshold.item() / size
        predicted.append([fpir.mean(), fpir.std() / np.sqrt(fpir.size), threshold])
    # Rounding changes the draws, so the means differ by their Monte Carlo error.
    first, second = predicted
    assert abs(first[0] - second[0]) < 4 * np.hypot(first[1], second[1])
    assert first[2] == pytest.approx(second[2], rel=0.1)


def test_the_model_tells_what_it_is(pilot, model):
    assert "fitted to 120 enrolled classes and 120 probes" in repr(model)
    assert "distances" in model._repr_html_()
    assert model.scales_.to_dict() == {"-s": 1} and model.pareto_k_ < 0.7
    assert {"level", "wrong_slope", "decline"} <= set(model.posterior_)
    assert clone(model).get_params() == {"tail": "local", "discrepancy": 0.25, "drift": 0.35}
    assert {"level", "wrong_slope"} <= set(model.summary().index)
    skipped = cb.compare([model, cb.ClassExReg(random_seed=1)], pilot, 500).skipped
    assert "found neither threshold nor" in skipped["OpenSetExtrapolator"]


# Errors


@pytest.mark.parametrize(
    ("arguments", "argument"),
    [
        ({}, "threshold"),
        ({"threshold": 0.5, "fpir": 0.1}, "threshold"),
        ({"threshold": -1}, "threshold"),
        ({"threshold": 1e9}, "threshold"),
        ({"threshold": [0.5, np.nan]}, "threshold"),
        ({"threshold": "x"}, "threshold"),
        ({"fpir": 0}, "fpir"),
        ({"fpir": 0.1, "prob_kept": 1}, "prob_kept"),
        ({"threshold": 0.5, "rank": 0}, "rank"),
    ],
)
def test_bad_questions(model, arguments, argument):
    with pytest.raises(cb.DataError, match=rf"^{argument}:"):
        model.predict(500, **arguments)


def test_an_unreachable_promise(model):
    with pytest.raises(cb.DataError, match=r"^accuracy:"):
        model.predict_selective(10**6, accuracy=0.9999999, prob_kept=0.999)


@pytest.mark.parametrize(
    ("settings", "argument"),
    [
        ({"tail": "x"}, "tail"),
        ({"drift": -1}, "drift"),
        ({"discrepancy": -1}, "discrepancy"),
    ],
)
def test_bad_parameters(pilot, settings, argument):
    with pytest.raises(cb.DataError, match=rf"^{argument}:"):
        cb.OpenSetExtrapolator(**settings).fit(pilot)


@pytest.mark.parametrize(
    "scores",
    [
        np.ones((30, 7)),
        np.full((30, 120), np.nan),
        np.ones((3, 120)),
        -np.ones((30, 120)),
        np.ones((30, 120)),
    ],
    ids=["7 classes", "nan", "3 probes", "better than perfect", "ties"],
)
def test_bad_nonmated_scores(pilot, scores):
    with pytest.raises(cb.DataError, match=r"^nonmated:"):
        cb.OpenSetExtrapolator().fit(pilot, nonmated=scores, **FEW)


def test_scores_must_show_tails(world):
    rng = np.random.default_rng(0)
    ranks = cb.SourceTask.from_ranks(np.ones(30, int), range(30), n_classes=30)
    with pytest.raises(cb.DataError, match=r"^task:"):
        cb.OpenSetExtrapolator().fit(ranks)
    right = np.where(rng.random(30) < 0.7, np.arange(30), rng.integers(0, 30, 30))
    decisions = cb.SourceTask.from_scores(np.eye(30)[right], range(30))
    with (
        pytest.warns(cb.exceptions.DataWarning, match="as if they were decisions"),
        pytest.raises(cb.DataError, match=r"^task:"),
    ):
        cb.OpenSetExtrapolator().fit(decisions)
    with pytest.raises(cb.DataError, match=r"^task:"):
        cb.OpenSetExtrapolator().fit(world.task(12, 0))


@pytest.mark.filterwarnings("ignore::classex_bayes.exceptions.DataWarning")  # of one template
@pytest.mark.parametrize("seed", [0, 3, 6])
def test_own_thresholds_are_accepted_if_a_true_score_is_the_best(seed):
    rng = np.random.default_rng(seed)
    gallery = rng.normal(size=(60, 10))
    scores = 7 * (gallery + 0.7 * rng.normal(size=gallery.shape)) @ gallery.T
    fitted = cb.OpenSetExtrapolator().fit(cb.SourceTask.from_scores(scores, range(60)), **FEW)
    rates = fitted.predict(1000, threshold=fitted.thresholds(1000, 10))
    assert (rates.fnir.diff("threshold") >= 0).all()


def test_no_rate_is_certain(world):
    """A wrong class has the best score of all, so that no true class reaches it."""
    distances = np.asarray(world.task(80, 2).table.source.matrix).copy()
    distances[0, 1] = distances.min() / 2
    task = cb.SourceTask.from_scores(distances, range(80), higher_is_better=False)
    rates = cb.OpenSetExtrapolator().fit(task, **FEW).predict(500, threshold=distances[0, 1])
    assert (rates.fnir > 0.9).all() and (rates.fnir < 1).all()
    assert (rates.fnir.std(SAMPLES) > 0).all()


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
    with pytest.raises(cb.DataError, match=r"^threshold:"):
        fitted.predict(500, threshold=float(np.median(np.sort(distances, axis=1)[:, 18])))


def test_an_instance_without_any_score_is_never_identified(world):
    scores = -np.asarray(world.task(80, 2).table.source.matrix)
    scores[5] = -np.inf
    task = cb.SourceTask.from_scores(scores, range(80))
    rates = cb.OpenSetExtrapolator().fit(task, **FEW).predict(80, threshold=scores[0].min())
    assert np.isfinite(rates.fpir).all() and float(rates.fnir.mean()) > 1 / 80


def test_nonmated_scores_of_another_scale_are_refused():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(60, 60)) + 3 * np.eye(60)
    with pytest.raises(cb.DataError, match=r"^nonmated:"):
        cb.OpenSetExtrapolator().fit(
            cb.SourceTask.from_scores(scores, range(60)), nonmated=scores * 1000, **FEW
        )
