"""Scores and embeddings that are not what they seem: faults are named, sound ones are silent."""

import h5py
import numpy as np
import pytest
from helpers import verdict
from scipy.special import expit, log_softmax, softmax
from scipy.stats import rankdata

import classex_bayes as cb
from classex_bayes.simulate import GaussianNearestNeighbor
from studies.laws import UniformSphere

pytestmark = pytest.mark.filterwarnings("ignore::classex_bayes.exceptions.DataWarning")

K1, REPEATS = 80, 2
Y = np.repeat(np.arange(K1), REPEATS)


def logits(seed=0):
    scores = np.random.default_rng(seed).normal(size=(Y.size, K1))
    scores[np.arange(Y.size), Y] += 2.5
    return scores


def cosines(dtype=float, seed=0):
    """Cosines of probes and templates, some of which are the same image."""
    probes, gallery, _ = UniformSphere(64, 0.05).sample(K1, repeats=REPEATS, random_seed=seed)
    probes[::20] = gallery[Y[::20]]
    probes, gallery = (
        (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(dtype)
        for rows in (probes, gallery)
    )
    wide = np.promote_types(dtype, np.float32)
    return probes.astype(wide) @ gallery.astype(wide).T


def check(scores, **options):
    task = cb.SourceTask.from_scores(scores, Y, **options)
    return next(check for check in task.checks if check.name == "scores")


OF_SCORES = ("scores", "self matches", "labels", "rounding", "columns", "counts", "floor")
SOUND = {
    "logits": lambda seed: (logits(seed), {}),
    "single precision": lambda seed: (logits(seed).astype("f4"), {}),
    "softmax": lambda seed: (softmax(logits(seed), axis=1), {}),
    "sharp softmax": lambda seed: (softmax(10 * logits(seed), axis=1), {}),
    "log softmax": lambda seed: (log_softmax(40 * logits(seed).astype("f4"), axis=1), {}),
    "ruled out": lambda seed: (np.where(logits(seed) < -1, -np.inf, logits(seed)), {}),
    "whole numbers": lambda seed: (np.rint(20 * logits(seed)).astype(int), {}),
    "distances": lambda seed: (np.exp(-logits(seed)), {"higher_is_better": False}),
    "energies": lambda seed: (-logits(seed), {"higher_is_better": False}),
    "single 1 - cosine": lambda seed: (1 - cosines("f4", seed), {"higher_is_better": False}),
    "votes": lambda seed: (
        np.random.default_rng(seed).multinomial(30, softmax(logits(seed), axis=1)) / 30,
        {},
    ),
    "decisions": lambda seed: (np.eye(K1)[logits(seed).argmax(axis=1)], {}),
}


@pytest.mark.parametrize("kind", SOUND)
def test_sound_scores_are_silent(kind):
    for seed in range(3):
        scores, options = SOUND[kind](seed)
        found = check(scores, **options)
        assert found.passed and not found.is_note


@pytest.mark.parametrize("dim", [2, 10, 40])
def test_sound_distances_are_silent(dim):
    law = GaussianNearestNeighbor(dim=dim, noise_variance=0.2)
    probes, gallery, y = law.sample(60, random_seed=1)
    squares = ((probes[:, None] - gallery) ** 2).sum(axis=2)
    for scores, higher in ((squares, False), (-squares, True), (np.sqrt(squares), False)):
        task = cb.SourceTask.from_scores(scores, y, higher_is_better=higher)
        assert not task.warnings
        assert not any(c.is_note for c in task.checks if c.name in OF_SCORES)


FAULTS = {
    "half precision": (lambda s: 1 - cosines("f2"), {"higher_is_better": False}, "np.maximum"),
    "not normalised": (
        lambda s: 1 - 1.1 * cosines(),
        {"higher_is_better": False},
        "np.maximum(scores, 0)",
    ),
    "small units": (
        lambda s: 1e-6 * (1 - 1.1 * cosines()),
        {"higher_is_better": False},
        "np.maximum(scores, 0)",
    ),
    "ranks": (lambda s: rankdata(-s, axis=1), {"higher_is_better": False}, "ranks"),
    "ranks from 0": (lambda s: s.argsort(axis=1).argsort(axis=1), {}, "ranks"),
    "shares of ranks": (lambda s: rankdata(s, axis=1) / K1, {}, "ranks"),
    "reciprocal ranks": (lambda s: 1 / (60 + rankdata(-s, axis=1)), {}, "ranks"),
    "softmax": (lambda s: softmax(60 * s.astype("f4"), axis=1), {}, "logits"),
    "sigmoid": (lambda s: expit(20 * s.astype("f4")), {}, "logits"),
    "sigmoid of few large logits": (lambda s: expit(8 * s.astype("f4")), {}, "logits"),
    "1 - softmax": (
        lambda s: 1 - softmax(s, axis=1),
        {"higher_is_better": False},
        "logits",
    ),
    "-log softmax": (lambda s: -log_softmax(s, 1), {"higher_is_better": False}, "logits"),
    "half softmax": (lambda s: softmax(8 * s, axis=1).astype("f2"), {}, "logits"),
}


@pytest.mark.parametrize("kind", FAULTS)
def test_faults_are_warnings(kind):
    make, options, remedy = FAULTS[kind]
    found = check(make(logits()), **options)
    assert found.passed is False and remedy in found.sentence


@pytest.mark.parametrize("law", ["one by one", "neighbours are similar"])
@pytest.mark.parametrize("lead", [0.5, 1, 3])
def test_labels_that_count_from_1(law, lead):
    """The last classes have no instance, so that no label is too large."""
    y, rng = Y[:-4], np.random.default_rng(1)
    if law == "one by one":
        scores = logits()[:-4] + lead * np.eye(K1)[y]
    else:
        places = np.sort(rng.normal(size=K1))
        scores = -np.abs(places[y][:, None] + 0.03 / lead * rng.normal(size=(y.size, 1)) - places)
    settings = {"untested": "competitors"}
    task = cb.SourceTask.from_scores(scores, y + 1, **settings)
    first = np.unique(y, return_index=True)[1]  # one instance of each class
    number = np.sum(scores[first].argmax(axis=1) == y[first])
    (warning,) = (text for text in task.warnings if "y - 1" in text)
    assert f"for {number}" in warning
    # Sound labels without class 0, of good and bad classifiers, are silent.
    later = y >= 1
    for part in (scores[later], -scores[later], rng.normal(size=scores[later].shape)):
        sound = cb.SourceTask.from_scores(part, y[later], **settings)
        assert verdict(sound, "labels") is True


def test_one_class_that_loses_to_the_first_is_no_shift():
    y = np.r_[np.ones(50, dtype=int), np.arange(2, 20)]
    scores = np.random.default_rng(0).normal(size=(y.size, 20)) + 5 * np.eye(20)[y]
    scores[:50, 0] += 9
    task = cb.SourceTask.from_scores(scores, y, untested="competitors")
    assert verdict(task, "labels") is True


def test_cosines_are_asked_about():
    for scores in (cosines(), cosines("f4"), cosines("f2")):
        found = check(scores)
        assert found.passed and found.is_note and "np.maximum(1 - scores, 0)" in found.sentence
    assert check(0.05 * logits()).is_note is False  # small scores of both signs


def test_scores_in_a_file_are_checked_by_the_diagnosis(tmp_path):
    with h5py.File(tmp_path / "ranks.h5", "w") as file:
        stored = file.create_dataset("scores", data=rankdata(-logits(), axis=1))
        task = cb.SourceTask.from_scores(stored, Y, higher_is_better=False)
        assert cb.diagnose(task)["scores"].passed is False


# Embeddings


def test_row_numbers_and_labels_among_coordinates():
    rng = np.random.default_rng(5)
    law = GaussianNearestNeighbor(dim=4, noise_variance=0.2)
    probes, gallery, y = law.sample(40, repeats=2, random_seed=1)
    accuracy = cb.SourceTask.from_embeddings(probes, gallery, y).accuracy(40)
    right = np.column_stack([gallery, np.arange(40)])
    for left in (np.arange(80), y, rng.choice(9999, 80)):
        with pytest.raises(cb.DataError):
            cb.SourceTask.from_embeddings(np.column_stack([probes, left]), right, y)
    noise = rng.normal(size=(80, 1)), rng.normal(size=(40, 1))
    wider = cb.SourceTask.from_embeddings(
        np.hstack([probes, noise[0]]), np.hstack([gallery, noise[1]]), y
    )
    assert wider.accuracy(40) < accuracy


def test_probes_that_are_templates_or_of_another_unit():
    law = GaussianNearestNeighbor(dim=4, noise_variance=0.5)
    probes, gallery, y = law.sample(40, repeats=2, random_seed=2)
    assert cb.SourceTask.from_embeddings(probes, gallery, y).warnings == ()
    copied = cb.SourceTask.from_embeddings(probes, probes, y, gallery_y=y)
    assert verdict(copied, "self matches") is False
    assert verdict(cb.SourceTask.from_embeddings(1000 * probes, gallery, y), "embeddings") is False
    cosine = cb.SourceTask.from_embeddings(1000 * probes, gallery, y, distance="cosine")
    assert cosine.warnings == ()


def test_warnings_outlive_the_file_and_the_scores(tmp_path):
    gallery = np.random.default_rng(7).normal(size=(30, 8))
    y = np.arange(60) % 25
    with h5py.File(tmp_path / "data.h5", "w") as file:
        task = cb.SourceTask.from_embeddings(
            file.create_dataset("probes", data=gallery[y]),
            file.create_dataset("gallery", data=gallery),
            y,
            untested="competitors",
        )
        light = task.without_scores()
    for each in (task, light, cb.SourceTask.merge([light])):
        assert verdict(each, "self matches") is False
