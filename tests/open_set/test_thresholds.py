"""Thresholds: which ones are accepted, their digits, and promises about both rates."""

import re
import warnings

import numpy as np
import pytest
from scipy.stats import beta

import classex_bayes as cb

FEW = {"sampler": {"draws": 60, "chains": 2}, "random_seed": 1}
SAMPLES = ["chain", "draw"]
pytestmark = pytest.mark.filterwarnings(
    "ignore::classex_bayes.exceptions.ExtrapolationWarning",
    "ignore::classex_bayes.exceptions.DataWarning",
)


def gaussian(seed=0, n_classes=60, dim=10, sd=0.4):
    rng = np.random.default_rng(seed)
    gallery = rng.normal(size=(n_classes, dim))
    return gallery + sd * rng.normal(size=gallery.shape), gallery, rng


def squared_distances(probes, gallery):
    return ((probes[:, None] - gallery) ** 2).sum(axis=-1)


def logits():
    probes, gallery, _ = gaussian(sd=0.7)
    return cb.SourceTask.from_scores(7 * probes @ gallery.T, range(60)), None


def identical_images():
    probes, gallery, _ = gaussian()
    probes[:4], gallery[10] = gallery[:4], gallery[11]
    return cb.SourceTask.from_embeddings(probes, gallery, range(60), distance="cosine"), None


def identical_images_as_raw_cosines():
    probes, gallery, _ = gaussian()
    probes[:4] = gallery[:4]
    probes, gallery = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (probes, gallery))
    return cb.SourceTask.from_scores(probes @ gallery.T, range(60)), None


def sigmoids_that_underflow():
    probes, gallery, _ = gaussian(sd=0.7)
    logits = 34 * probes @ gallery.T
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    return cb.SourceTask.from_scores(odds / (1 + odds), range(60)), None


def far_strangers():
    probes, gallery, rng = gaussian()
    task = cb.SourceTask.from_embeddings(probes, gallery, range(60))
    return task, squared_distances(5 * rng.normal(size=(50, 10)), gallery)


def near_strangers():
    probes, gallery, rng = gaussian()
    task = cb.SourceTask.from_embeddings(probes, gallery, range(60))
    return task, 0.01 * squared_distances(rng.normal(size=(50, 10)), gallery)


def tiny_units():
    probes, gallery, _ = gaussian()
    distances = 1e-318 * squared_distances(probes, gallery)
    return cb.SourceTask.from_scores(distances, range(60), higher_is_better=False), None


def short_lists():
    distances = squared_distances(*gaussian()[:2])
    ids = np.argsort(distances, axis=1)[:, :17]
    found = np.take_along_axis(distances, ids, axis=1)
    return cb.SourceTask.from_search(ids, range(60), n_classes=60, distances=found), None


@pytest.fixture(
    scope="module",
    params=[
        logits,
        identical_images,
        identical_images_as_raw_cosines,
        sigmoids_that_underflow,
        far_strangers,
        near_strangers,
        tiny_units,
        short_lists,
    ],
    ids=lambda case: case.__name__,
)
def model(request):
    task, nonmated = request.param()
    return cb.OpenSetExtrapolator().fit(task, nonmated=nonmated, **FEW)


@pytest.fixture(scope="module")
def cosines():
    people = cb.simulate.VonMisesFisher(dim=16, concentration=30)
    task = cb.SourceTask.from_embeddings(*people.sample(100, random_seed=3), distance="cosine")
    return cb.OpenSetExtrapolator().fit(task, **FEW)


# Thresholds that the model proposes


@pytest.mark.parametrize("k", [2, 5000])
def test_proposed_thresholds_are_accepted(model, k):
    thresholds = model.thresholds(k, 12)
    rates = model.predict(k, threshold=thresholds)
    selective = model.predict_selective(k, threshold=thresholds)
    for rate in (rates.fnir, rates.fpir, selective.accuracy, selective.answered):
        assert ((rate >= 0) & (rate <= 1)).all()
    for name in ("fpir", "fnir"):  # a limit that some threshold keeps
        limit = float(getattr(rates, name)[..., 0, 6].quantile(0.96))
        sought = model.predict(k, **{name: limit})
        again = model.predict(k, threshold=sought.threshold.item())
        for rate in ("fnir", "fpir"):
            np.testing.assert_array_equal(getattr(again, rate), getattr(sought, rate))


def test_plots_need_no_other_thresholds(model):
    cb.plots.plot_det(model, [2, 10**5])
    cb.plots.plot_threshold(model, [2, 60, 10**5])


def test_the_ends_of_the_range_are_accepted_and_nothing_beyond(model):
    for end in (-1e9, 1e9):
        with pytest.raises(cb.DataError) as refused:
            model.predict(60, threshold=end)
        ends = re.findall(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?", str(refused.value))[1:3]
        for accepted in map(float, ends):
            model.predict(60, threshold=accepted)


# Single draws


def test_every_draw_is_a_monotone_curve(model):
    """A denser set of thresholds than the knots of the curve, in and beyond the scores."""
    for k in (3, 5000):
        ends = model.thresholds(k, 2)
        rates = model.predict(k, threshold=np.linspace(*ends, 80))
        assert (rates.fpir.diff("threshold") <= 0).all()
        assert (rates.fnir.diff("threshold") >= 0).all()


def test_more_classes_never_lower_a_draw(model):
    thresholds = np.linspace(*model.thresholds(100, 2), 10)
    rates = model.predict([50, 1000, 10**6], threshold=thresholds)
    assert (rates.fpir.diff("k") >= -1e-12).all() and (rates.fnir.diff("k") >= -1e-12).all()


# No rate is certain


@pytest.mark.parametrize("are_found", [False, True])
def test_fnir_has_the_interval_of_jeffreys_if_none_or_all_are_found(are_found):
    """The posterior of a share of which none of n instances was seen: Beta(1/2, n + 1/2)."""
    distances = squared_distances(*gaussian(n_classes=80)[:2])
    k, threshold = 80, 1.01 * np.diag(distances).max()
    if not are_found:  # a wrong class has the best score of all
        k, threshold = 500, distances.min() / 2
        distances[0, 1] = threshold
    task = cb.SourceTask.from_scores(distances, range(80), higher_is_better=False)
    fitted = cb.OpenSetExtrapolator().fit(task, sampler={"draws": 500}, random_seed=1)
    rates = fitted.predict(k, threshold=threshold, rank=80)
    share = rates.fnir if are_found else 1 - rates.fnir
    n = 80 / task.design_effect()
    for prob in (0.5, 0.95):
        expected = beta.ppf(prob, 0.5, n + 0.5)
        assert float(share.quantile(prob)) == pytest.approx(expected, rel=0.15)
    noted = [note for note in rates.notes if "no true class of the pilot reaches" in note]
    if are_found:
        answered = fitted.predict_selective(80, threshold=threshold).answered
        np.testing.assert_allclose(1 - answered, rates.fnir, atol=1e-9)
        assert not noted
    else:
        assert f"{np.diag(distances).min():.6g}" in noted[0]


def test_a_threshold_beyond_all_scores_of_a_small_pilot_has_remedies_that_help():
    task, _ = logits()
    fitted = cb.OpenSetExtrapolator().fit(task, **FEW)
    strict = fitted.predict(3000, fpir=1e-4)
    assert strict.threshold.item() > task.nearest_classes.true.max()
    assert strict.fnir.mean() > 0.98
    (noted,) = [note for note in strict.notes if "no true class of the pilot reaches" in note]
    assert "fpir" in noted and "prob_kept" in noted
    for looser in ({"fpir": 0.5}, {"fpir": 0.1, "prob_kept": 0.5}):
        rates = fitted.predict(3000, **looser)
        assert rates.threshold.item() < strict.threshold.item()
        assert rates.fnir.mean() < 0.95
        assert not any("no true class of the pilot reaches" in note for note in rates.notes)


# Digits


def test_printed_thresholds_are_those_to_deploy(cosines):
    rates = cosines.predict([100, 10**6], fpir=0.01)
    for k in (100, 10**6):
        threshold = rates.threshold.sel(k=k).item()
        # The rows of FNIR come first. Each ends with threshold, mean, sd and limits.
        rows = [row for row in repr(rates).splitlines() if re.search(rf" {k:,} ", row)]
        printed = rows[0].split()[-5]
        assert float(printed) == threshold
        # The distance from the perfect match is printed with 4 or 5 digits.
        digits = len(printed.split(".")[1])
        assert 3 <= digits + np.log10(1 - threshold) <= 5


def test_thresholds_of_a_user_are_printed_as_they_are(cosines):
    assert " 0.1234567891 " in repr(cosines.predict(100, threshold=0.1234567891))


def test_rounding_is_to_the_strict_side(cosines):
    for limit in np.geomspace(1e-4, 0.5, 6):
        rates = cosines.predict(1000, fpir=limit)
        kept = np.quantile(rates.fpir, 0.95)
        assert 0.99 * limit <= kept <= limit
        missed = np.quantile(cosines.predict(1000, fnir=0.5 + limit / 2).fnir, 0.95)
        assert missed <= 0.5 + limit / 2


# A target for FNIR


def test_a_target_for_fnir_gives_the_tightest_threshold_that_keeps_it(cosines):
    rates = cosines.predict([100, 1000], fnir=0.6, prob_kept=0.9)
    for k in (100, 1000):
        assert np.quantile(rates.fnir.sel(k=k), 0.9) <= 0.6
        tighter = cosines.predict(k, threshold=rates.threshold.sel(k=k).item() + 0.02).fnir
        assert np.quantile(tighter, 0.9) > 0.6


@pytest.mark.parametrize(
    ("rate", "k", "limit", "harder"),
    [("fpir", 10**9, 1e-9, 0.99), ("fnir", 1000, 1e-9, 0.99), ("accuracy", 10**9, 0.9999, 1.01)],
)
def test_a_target_out_of_reach_is_missing_and_names_those_within_reach(
    cosines, rate, k, limit, harder
):
    predict = cosines.predict_selective if rate == "accuracy" else cosines.predict
    found = predict([2, k], **{rate: limit})
    missing = np.isnan(found.threshold.values)
    assert missing[1] and np.isnan(getattr(found, rate).sel(k=k)).all()
    assert f"{k:,}" in repr(found) and found.summary().isna().any(axis=None)
    (note,) = [note for note in found.notes if f"{k:,} classes" in note and "no threshold" in note]
    remedies = dict(re.findall(r"(\w+)=([0-9.e-]+)", note))
    reach = float(remedies[rate])
    assert not np.isnan(predict(k, **{rate: reach}).threshold)
    assert np.isnan(predict(k, **{rate: harder * reach}).threshold)
    if prob := remedies.get("prob_kept"):
        assert not np.isnan(predict(k, **{rate: limit}, prob_kept=float(prob)).threshold)


def test_strict_and_even_thresholds_are_in_one_table(cosines):
    k, probs = [100, 10**5], [0.95, 0.5]
    both = cosines.predict(k, fpir=0.01, prob_kept=probs)
    for prob in probs:
        single = cosines.predict(k, fpir=0.01, prob_kept=prob)
        part = both.threshold.sel(prob_kept=prob)
        assert np.array_equal(part, single.threshold)
        assert np.array_equal(both.fnir.sel(prob_kept=prob), single.fnir)
        strict = [note for note in single.notes if "prob_kept=[0.95, 0.5]" in note]
        assert len(strict) == (prob == 0.95)
    table = both.summary()
    assert table.columns[:2].tolist() == ["threshold", "prob_kept"] and len(table) == 8
    rows = table.loc[("FPIR", 10**5)]
    assert rows["prob_kept"].tolist() == probs
    assert rows["threshold"].tolist() == both.threshold.sel(k=10**5).values.tolist()
    assert {"prob_kept", "threshold"} <= set(both.to_dataframe().columns)
    assert "probability 0.95 or 0.5" in both.description and " 0.95 " in repr(both)


# Curves


def test_thresholds_are_even_along_the_curve(cosines):
    """Mean FNIR against mean FPIR on logarithmic axes, by distances between points."""
    for k in (100, 5000):
        thresholds = cosines.thresholds(k, 20)
        assert np.all(np.diff(thresholds) > 0) and thresholds.max() <= 1  # tighter from below
        rates = cosines.predict(k, threshold=thresholds)
        curve = [np.log(getattr(rates, name).mean(SAMPLES)[0]) for name in ("fpir", "fnir")]
        steps = np.hypot(*np.diff(curve, axis=1))
        # A step of FNIR at the score of a true class is one that no threshold divides.
        assert np.median(np.abs(steps / steps.mean() - 1)) < 0.25
        assert curve[0][0] <= np.log(0.91) + 0.01 and np.all(np.diff(curve[0]) <= 0)


# Notes


def test_a_list_longer_than_the_gallery_has_a_note(cosines):
    loose = cosines.thresholds(100)[0]
    (note,) = [
        note
        for note in cosines.predict([50, 1000], threshold=loose, rank=50).notes
        if "list of 50 candidates contains all 50 enrolled classes" in note
    ]
    assert "do not reach the threshold" in note
    inside = cosines.predict([51, 1000], threshold=loose, rank=50).notes
    assert not any("candidates" in note for note in inside)


def softmax(logits, *others):
    return np.exp(logits) / np.sum([np.exp(logits).sum(axis=1), *others], axis=0)[:, None]


@pytest.mark.parametrize(
    ("scores_of", "end"),
    [
        (lambda logits: 1 / (1 + np.exp(-logits)), 1),
        (lambda logits: 100 / (1 + np.exp(-logits)), 100),
        (lambda logits: np.exp(logits - logits.max(axis=1, keepdims=True)), 1),
        (lambda logits: softmax(logits, np.full(60, 1e4)), 1),  # without its unknown column
        (lambda logits: np.log10(softmax(logits, np.full(60, 1e4))), 0),
        (lambda logits: -np.log10(1 + np.exp(-logits)), 0),
    ],
    ids=["sigmoids", "percent", "p / max", "open softmax", "log10 p", "log10 sigmoids"],
)
def test_scores_that_come_near_an_end_have_a_note(scores_of, end):
    probes, gallery, _ = gaussian(sd=0.7)
    scores = scores_of(2 * probes @ gallery.T)
    fitted = cb.OpenSetExtrapolator().fit(cb.SourceTask.from_scores(scores, range(60)), **FEW)
    observed = fitted.predict(60, threshold=fitted.thresholds(60)[0])
    beyond = fitted.predict(5000, fpir=1e-3)
    assert not beyond.threshold > end
    for prediction in (observed, beyond):
        assert any(f"is above {end}, " in note for note in prediction.notes)


def test_cosines_that_are_passed_as_similarities_have_the_rates_of_embeddings():
    probes, gallery, _ = gaussian(sd=0.7)
    lengths = [np.linalg.norm(vectors, axis=1) for vectors in (probes, gallery)]
    cosines, y = probes @ gallery.T / np.outer(*lengths), range(60)
    assert cosines.min() < 0 and 0.5 < cosines.max() < 0.999
    similar = cb.SourceTask.from_scores(cosines.astype(np.float32), y)
    embedded = cb.SourceTask.from_embeddings(probes, gallery, y, distance="cosine")
    first, second = (cb.OpenSetExtrapolator().fit(task, **FEW) for task in (similar, embedded))
    rates = [model.predict([60, 5000], fpir=0.01) for model in (first, second)]
    assert np.allclose(rates[0].threshold, rates[1].threshold, rtol=1e-3)
    assert np.allclose(rates[0].fnir.mean(SAMPLES), rates[1].fnir.mean(SAMPLES), rtol=1e-2)
    said = ["perfect match, as of cosines" in " ".join(found.notes) for found in rates]
    assert said == [True, False]


@pytest.mark.parametrize("scale", [1, 0.01])
def test_scores_without_an_end_have_no_note_on_it(scale):
    probes, gallery, _ = gaussian(sd=0.7)
    scores = scale * probes @ gallery.T
    fitted = cb.OpenSetExtrapolator().fit(cb.SourceTask.from_scores(scores, range(60)), **FEW)
    assert not any("logits" in note for note in fitted.predict(5000, fpir=1e-3).notes)


def test_the_same_warning_is_issued_once():
    task, _ = identical_images()
    fitted = cb.OpenSetExtrapolator().fit(task, **FEW)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for k in (10_000, 10_000, 20_000):
            loose = fitted.thresholds(k)[0]
            assert any("600" in n or "k =" in n for n in fitted.predict(k, threshold=loose).notes)
        fitted.predict_selective(10_000, threshold=loose)
    assert sum(w.category is cb.exceptions.ExtrapolationWarning for w in caught) == 2


def test_equal_images_do_not_narrow_the_known_range():
    """Their distance of 0 is known, although its logarithm is infinite."""
    rng = np.random.default_rng(0)
    gallery, y = rng.normal(size=(60, 8)), np.arange(60)
    probes = gallery + 0.5 * rng.normal(size=gallery.shape)
    probes[:6] = gallery[:6]
    probes[7] *= 4.0
    distances = ((probes[:, None] - gallery) ** 2).sum(axis=-1)
    task = cb.SourceTask.from_scores(distances, y, higher_is_better=False)
    model = cb.OpenSetExtrapolator().fit(task, **FEW)
    farthest = float(distances[7, 7])
    assert farthest > np.sort(distances[:6], axis=1)[:, 32].max()
    rates = model.predict(1000, threshold=farthest)
    assert float(rates.fpir.mean()) > 0.99


def test_rounding_of_single_precision_is_no_better_than_perfect():
    """1 - cosine of an image that is enrolled, too, may be -1e-7."""
    rng = np.random.default_rng(1)
    gallery = rng.normal(size=(60, 8)).astype("f4")
    probes, strangers = gallery + 0.5 * rng.normal(size=(2, 60, 8)).astype("f4")
    for vectors in (gallery, probes, strangers):
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    distances = 1 - probes @ gallery.T, 1 - strangers @ gallery.T
    distances[1][np.arange(5), np.arange(5)] = -1.2e-7
    task = cb.SourceTask.from_scores(distances[0], np.arange(60), higher_is_better=False)
    model = cb.OpenSetExtrapolator().fit(task, nonmated=distances[1], **FEW)
    assert 0 < float(model.predict(100, threshold=0.05).fpir.mean()) < 1
