"""Bad arguments of SourceTask: one DataError that names the argument, never anything else."""

import numpy as np
import pandas as pd
import pytest

from classex_bayes.exceptions import DataError
from classex_bayes.task.source_task import SourceTask

SCORES = np.eye(4)[[0, 1, 2, 3, 0]] + np.arange(4) / 10
Y = [0, 1, 2, 3, 0]
RAGGED = [[1.0, 2, 3, 4], [1.0, 2, 3]]
NAN = float("nan")


def put(array, place, value):
    changed = np.array(array, dtype=float)
    changed[place] = value
    return changed


def from_scores(scores=SCORES, y=Y, **options):
    return SourceTask.from_scores(scores, y, **options)


def from_embeddings(probes=SCORES, gallery=SCORES[:4], y=Y, **options):
    return SourceTask.from_embeddings(probes, gallery, y, **options)


def from_ranks(ranks=(1, 2, 1, 3, 1), y=Y, n_classes=4, **options):
    return SourceTask.from_ranks(ranks, y, n_classes=n_classes, **options)


def from_accuracies(k=(2, 3, 4), accuracy=(0.9, 0.8, 0.7), n_test=50, n_classes=4, **options):
    return SourceTask.from_accuracies(k, accuracy, n_test=n_test, n_classes=n_classes, **options)


def masked(values):
    """An array whose first entry is missing, with a value below the mask that would do."""
    array = np.ma.array(values)
    array[(0,) * array.ndim] = np.ma.masked
    return array


def accuracy_at(k):
    return lambda: from_scores().accuracy(k)


CASES = {
    # The matrix of scores
    "nan score": (
        lambda: from_scores(put(SCORES, (2, 1), NAN)),
        "scores: .*NaN at row 2, column 1",
    ),
    "inf score": (lambda: from_scores(put(SCORES, (0, 3), np.inf)), "scores: .*inf at row 0, col"),
    "infinitely near": (
        lambda: from_scores(put(SCORES, (4, 2), -np.inf), higher_is_better=False),
        "scores: .*-inf at row 4, column 2",
    ),
    "scores for one class": (lambda: from_scores(SCORES[:, 0]), "scores: .*two axes"),
    "scores in three axes": (lambda: from_scores(SCORES[None]), "scores: .*two axes"),
    "scores swapped with y": (lambda: from_scores(Y, SCORES), "scores, y: .*swapped"),
    "no rows": (lambda: from_scores(SCORES[:0], []), "scores: .*at least one row"),
    "no columns": (lambda: from_scores(SCORES[:, :0]), "scores: .*at least one row and one col"),
    "empty list of scores": (lambda: from_scores([], []), "scores: .*two axes"),
    "one class": (lambda: from_scores(SCORES[:, :1], [0] * 5), "scores: found 1 class,"),
    "two classes": (
        lambda: from_scores(SCORES[:, :2], [0, 1] * 2 + [0]),
        "scores: found 2 classes, expected at least 3, because .* how it falls",
    ),
    "object scores": (lambda: from_scores(SCORES.astype(object)), "scores: .*object"),
    "scores with None": (lambda: from_scores([[1, 2, None]] * 5), "scores: .*object"),
    "text scores": (lambda: from_scores(SCORES.astype(str)), "scores: .*real numbers"),
    "score is a word": (lambda: from_scores("scores.csv"), "scores: .*real numbers"),
    "no scores": (lambda: from_scores(None), "scores: "),
    "complex scores": (lambda: from_scores(SCORES + 0j), "scores: .*complex"),
    "boolean scores": (lambda: from_scores(SCORES > 0), "scores: .*True and False"),
    "extended scores": (lambda: from_scores(SCORES.astype(np.longdouble)), "scores: .*precision"),
    "dates": (lambda: from_scores(np.zeros((5, 4), "M8[s]")), "scores: .*real numbers"),
    "ragged scores": (lambda: from_scores(RAGGED, [0, 1]), "scores: .*different lengths"),
    "text column": (
        lambda: from_scores(pd.DataFrame(SCORES).assign(name="a")),
        "scores: .*real numbers",
    ),
    "columns named twice": (
        lambda: from_scores(pd.DataFrame(SCORES, columns=list("abca")), list("abcba")),
        "classes: .*'a' at positions 0 and 3",
    ),
    # Labels
    "label outside": (lambda: from_scores(y=[0, 1, 4, 3, 2]), "y: found 4 at row 2"),
    "negative label": (lambda: from_scores(y=[0, 1, 2, -1, 3]), "y: found -1 at row 3"),
    "fractional label": (lambda: from_scores(y=[0, 1, 2, 2.5, 3]), "y: found 2.5 at row 3"),
    "nan label": (lambda: from_scores(y=[0, 1, 2, NAN, 3]), "y: found nan at row 3"),
    "too few labels": (lambda: from_scores(y=Y[:4]), "y: found 4 labels for 5 rows"),
    "labels in two axes": (lambda: from_scores(y=np.eye(5)), "y: .*shape"),
    "one label": (lambda: from_scores(y=3), "y: .*shape"),
    "no labels": (lambda: from_scores(y=None), "y: "),
    "empty labels": (lambda: from_scores(y=[]), "y: .*at least one label"),
    "ragged labels": (lambda: from_scores(y=[[0], [1, 2], [3], [0], [1]]), "y: "),
    "text without names": (lambda: from_scores(y=list("abcda")), "y: .* found text; to use names"),
    "labels from 1": (lambda: from_scores(y=[1, 2, 3, 4, 1]), "y: found 4.* pass y - 1"),
    "other distance": (
        lambda: from_embeddings(distance="mahalanobis"),
        r"distance: .*from_scores\(D, y, higher_is_better=False\)",
    ),
    "an index among the scores": (
        lambda: from_scores(np.column_stack([np.arange(5), SCORES]), np.add(Y, 1)),
        "y: class 0 .* like 1 of 5 classes; pass scores without an index column",
    ),
    "two images of each class": (
        lambda: from_scores(np.column_stack([SCORES, SCORES])),
        "y: class 4 .* like 4 of 8 classes; pass untested=.* one column for each class",
    ),
    "boolean labels": (lambda: from_scores(y=[True, False] * 2 + [True]), "y: .*True and False"),
    "complex labels": (lambda: from_scores(y=np.array(Y) + 0j), "y: .*complex"),
    "names without classes": (lambda: from_scores(y=list("abcda")), "y: .*pass classes="),
    "unknown name": (
        lambda: from_scores(y=list("abxda"), classes=list("abcd")),
        "y: label 'x' at row 2",
    ),
    "label that is a list": (
        lambda: from_scores(y=np.array([[0], [1], [2], [3], None], object), classes=list("abcd")),
        "y: ",
    ),
    "class without instances": (lambda: from_scores(y=[0, 1, 3, 3, 0]), "y: class 2 .*no test"),
    "named class without instances": (
        lambda: from_scores(y=list("abdda"), classes=list("abcd")),
        "y: class 'c'",
    ),
    "one class tested": (lambda: from_scores(y=[2] * 5, untested="competitors"), "y: .*2 classes"),
    # Names
    "too few names": (lambda: from_scores(classes=list("abc")), "classes: found 3 names for 4"),
    "duplicate names": (
        lambda: from_scores(y=list("abcba"), classes=list("abcb")),
        "classes: .*'b' at positions 1 and 3",
    ),
    "number of names": (lambda: from_scores(classes=4), "classes: "),
    "names in two axes": (lambda: from_scores(classes=np.array([["a"], ["b"]] * 2)), "classes: "),
    "names that are lists": (lambda: from_scores(classes=[[0], [1], [2], [3]]), "classes: "),
    # Weights
    "too few weights": (lambda: from_scores(class_weight=[1, 1, 1]), "class_weight: .*shape"),
    "one weight": (lambda: from_scores(class_weight=2.0), "class_weight: .*shape"),
    "negative weight": (lambda: from_scores(class_weight=[1, -1, 1, 1]), "class_weight: .*-1"),
    "nan weight": (lambda: from_scores(class_weight=[1, NAN, 1, 1]), "class_weight: .*nan"),
    "infinite weight": (lambda: from_scores(class_weight=[1, np.inf, 1, 1]), "class_weight: .*inf"),
    "no weight": (lambda: from_scores(class_weight=[0] * 4), "class_weight: at least 2"),
    "all the weight": (lambda: from_scores(class_weight=[0, 0, 3, 0]), "class_weight: at least 2"),
    "class weighted twice": (
        lambda: from_scores(class_weight=pd.Series([1, 1, 1, 1], [0, 1, 2, 2])),
        "class_weight: .*twice",
    ),
    "columns in another order": (
        lambda: from_scores(
            pd.DataFrame(SCORES, columns=list("abcd")), list("abcda"), classes=list("acbd")
        ),
        "classes: .*column 1 is 'b', found 'c'",
    ),
    "text weight": (lambda: from_scores(class_weight="balanced"), "class_weight: "),
    "ragged weight": (lambda: from_scores(class_weight=[[1], [1, 2]]), "class_weight: "),
    "class without weight": (
        lambda: from_scores(class_weight={0: 1, 1: 1, 3: 1}),
        "class_weight: no weight for class 2",
    ),
    "weight is a word": (
        lambda: from_scores(class_weight={0: 1, 1: 1, 2: "a", 3: 1}),
        "class_weight: ",
    ),
    # Options
    "ties": (lambda: from_scores(ties="half"), "ties: found 'half'"),
    "untested": (lambda: from_scores(untested="drop"), "untested: found 'drop'"),
    "direction": (lambda: from_scores(higher_is_better="False"), "higher_is_better: "),
    "no direction": (lambda: from_scores(higher_is_better=None), "higher_is_better: "),
    "distance": (lambda: from_embeddings(distance="euclidean"), "distance: found 'euclidean'"),
    "distance list": (lambda: from_embeddings(distance=np.array(["dot", "dot"])), "distance: "),
    "reduce": (lambda: from_embeddings(reduce="min"), "reduce: found 'min'"),
    "negative seed": (lambda: from_scores(random_seed=-1), "random_seed: .*-1"),
    "fractional seed": (lambda: from_scores(random_seed=1.0), "random_seed: .*1.0"),
    "seed is a word": (lambda: from_scores(random_seed="1"), "random_seed: "),
    "seed is a generator": (
        lambda: from_scores(random_seed=np.random.default_rng(0)),
        "random_seed: ",
    ),
    "boolean seed": (lambda: from_scores(random_seed=True), "random_seed: .*True"),
    # Embeddings
    "nan probe": (
        lambda: from_embeddings(put(SCORES, (3, 0), NAN)),
        "probes: found nan at row 3, ",
    ),
    "inf gallery": (
        lambda: from_embeddings(gallery=put(SCORES[:4], (1, 2), -np.inf)),
        "gallery: found -inf at row 1, column 2",
    ),
    "probe out of range": (lambda: from_embeddings(1e200 * SCORES), "probes: found .* at row 0"),
    "zero probe": (
        lambda: from_embeddings(put(SCORES, 2, 0), distance="cosine"),
        "probes: row 2 is the zero vector",
    ),
    "zero template": (
        lambda: from_embeddings(gallery=put(SCORES[:4], 1, 0), distance="cosine"),
        "gallery: row 1 is the zero vector",
    ),
    "dimensions differ": (
        lambda: from_embeddings(gallery=SCORES[:4, :3]),
        "probes, gallery: found 4 and 3",
    ),
    "probe is a vector": (lambda: from_embeddings(SCORES[0]), "probes: .*two axes"),
    "text gallery": (lambda: from_embeddings(gallery=SCORES[:4].astype(str)), "gallery: "),
    "ragged probes": (lambda: from_embeddings(RAGGED), "probes: .*different lengths"),
    "empty gallery": (lambda: from_embeddings(gallery=SCORES[:0]), "gallery: .*at least one row"),
    "two templates": (
        lambda: from_embeddings(gallery=SCORES[:2], y=[0, 1, 0, 1, 0]),
        "gallery: found 2 classes",
    ),
    "y outside gallery": (lambda: from_embeddings(y=[0, 1, 2, 3, 4]), "y: found 4 at row 4"),
    "too few template labels": (
        lambda: from_embeddings(gallery_y=[0, 1, 2]),
        "gallery_y: found 3 labels for 4 rows",
    ),
    "class without template": (
        lambda: from_embeddings(gallery_y=list("abca"), classes=list("abcd"), y=list("abcda")),
        "gallery_y: class 'd' has no template",
    ),
    "template of an unknown class": (
        lambda: from_embeddings(gallery_y=list("abcx"), classes=list("abcd"), y=list("abcda")),
        "gallery_y: label 'x' at row 3",
    ),
    "ragged template labels": (
        lambda: from_embeddings(gallery_y=[[0], [1, 2], [3]]),
        "gallery_y: ",
    ),
    "no template labels": (lambda: from_embeddings(gallery_y=[]), "gallery_y: "),
    "mixed template labels": (
        lambda: from_embeddings(gallery_y=np.array([0, "a", None, 1], object)),
        "gallery_y: ",
    ),
    "one template label": (lambda: from_embeddings(gallery_y=0), "gallery_y: "),
    "number of template names": (
        lambda: from_embeddings(gallery_y=[0, 1, 2, 3], classes=4),
        "classes: ",
    ),
    # Ranks
    "rank zero": (lambda: from_ranks([1, 0, 1, 3, 1]), "ranks: found 0 at row 1; .*1 is best"),
    "rank too large": (lambda: from_ranks([1, 2, 1, 3, 5]), "ranks: found 5 at row 4"),
    "fractional rank": (lambda: from_ranks([1, 1.5, 1, 3, 1]), "ranks: found 1.5 at row 1"),
    "nan rank": (lambda: from_ranks([NAN, 2, 1, 3, 1]), "ranks: found nan at row 0"),
    "ranks in two axes": (lambda: from_ranks(SCORES), "ranks: .*shape"),
    "text ranks": (lambda: from_ranks(list("12131")), "ranks: .*real numbers"),
    "ragged ranks": (lambda: from_ranks([[1], [1, 2]]), "ranks: "),
    "no ranks": (lambda: from_ranks([], []), "(ranks|y): "),
    "ranks and labels differ": (lambda: from_ranks(y=[0, 1, 2, 3]), "y: found 4 labels for 5"),
    "two source classes": (lambda: from_ranks([1, 2], [0, 1], 2), "n_classes: found 2 classes"),
    "fractional n_classes": (lambda: from_ranks(n_classes=4.5), "n_classes: .*4.5"),
    "negative n_classes": (lambda: from_ranks(n_classes=-4), "n_classes: .*-4"),
    "several n_classes": (lambda: from_ranks(n_classes=[4, 5]), "n_classes: "),
    "no n_classes": (lambda: from_ranks(n_classes=None), "n_classes: "),
    # Curves
    "accuracy above 1": (lambda: from_accuracies(accuracy=[1.1, 0.8, 0.7]), "accuracy: found 1.1"),
    "percentages": (lambda: from_accuracies(accuracy=[90, 80, 70]), "accuracy: found 90"),
    "negative accuracy": (lambda: from_accuracies(accuracy=[0.9, 0.8, -0.1]), "accuracy: .*k = 4"),
    "nan accuracy": (lambda: from_accuracies(accuracy=[0.9, NAN, 0.7]), "accuracy: found nan at k"),
    "rising accuracy": (
        lambda: from_accuracies(accuracy=[0.1, 0.8, 0.9], n_test=1000),
        "accuracy: increases from 0.1 at k = 2",
    ),
    "text accuracy": (lambda: from_accuracies(accuracy=list("abc")), "accuracy: .*real numbers"),
    "ragged accuracy": (lambda: from_accuracies(accuracy=[[0.9], [0.8, 0.7]]), "accuracy: "),
    "too few accuracies": (lambda: from_accuracies(accuracy=[0.9, 0.8]), "accuracy: .*3 values"),
    "k beyond n_classes": (lambda: from_accuracies(n_classes=3), r"k: .*2\.\.3, found 4"),
    "k = 1": (lambda: from_accuracies(k=[1, 2, 3]), "k: .*found 1"),
    "k twice": (lambda: from_accuracies(k=[2, 3, 3]), "k: found 3 more than once"),
    "k and accuracy swapped": (lambda: from_accuracies((0.9, 0.8, 0.7), (2, 3, 4)), "k: .*0.9"),
    "n_test zero": (lambda: from_accuracies(n_test=0), "n_test: .*0"),
    "n_test fractional": (lambda: from_accuracies(n_test=2.5), "n_test: .*2.5"),
    "n_test is a word": (lambda: from_accuracies(n_test="many"), "n_test: "),
    "no n_test": (lambda: from_accuracies(n_test=None), "n_test: "),
    "n_test nan": (lambda: from_accuracies(n_test=NAN), "n_test: "),
    "n_test infinite": (lambda: from_accuracies(n_test=np.inf), "n_test: "),
    "several n_test": (lambda: from_accuracies(n_test=[50, 50, 50]), "n_test: "),
    "design effect below 1": (lambda: from_accuracies(design_effect=0.5), "design_effect: .*0.5"),
    "design effect nan": (lambda: from_accuracies(design_effect=NAN), "design_effect: .*nan"),
    "design effect is a word": (lambda: from_accuracies(design_effect="2"), "design_effect: "),
    "several design effects": (lambda: from_accuracies(design_effect=[2, 2]), "design_effect: "),
    # Masked arrays
    "masked scores": (lambda: from_scores(masked(SCORES)), r"scores: .*masked value at \(0, 0\)"),
    "masked labels": (lambda: from_scores(y=masked(Y)), "y: .*masked"),
    "masked weights": (lambda: from_scores(class_weight=masked([1, 1, 1, 1])), "class_w.*masked"),
    "masked ranks": (lambda: from_ranks(masked([1, 2, 1, 3, 1])), "ranks: .*masked"),
    "masked probes": (lambda: from_embeddings(masked(SCORES)), "probes: .*masked"),
    "masked accuracies": (lambda: from_accuracies(accuracy=masked([0.9, 0.8, 0.7])), "acc.*masked"),
    "accuracy at masked k": (accuracy_at(masked([2, 3])), "k: .*masked"),
    # Numbers of classes
    "accuracy at 1": (accuracy_at(1), "k: .*found 1"),
    "accuracy beyond k1": (accuracy_at([2, 5]), "k: .*found 5"),
    "accuracy at 2.5": (accuracy_at(2.5), "k: .*whole numbers.*2.5"),
    "accuracy at nan": (accuracy_at([2, NAN]), "k: .*nan"),
    "accuracy at inf": (accuracy_at(np.inf), "k: .*inf"),
    "accuracy at a word": (accuracy_at("2"), "k: .*'2'"),
    "accuracy at True": (accuracy_at(True), "k: .*True"),
    "accuracy at nothing": (accuracy_at([]), "k: .*one or more"),
    "accuracy at a matrix": (accuracy_at([[2, 3]]), "k: "),
    "accuracy at ragged k": (accuracy_at([[2], [3, 4]]), "k: "),
    "covariance at None": (lambda: from_scores().accuracy_cov(None), "k: .*None"),
    "covariance twice": (lambda: from_scores().accuracy_cov([3, 3]), "k: found 3 more than once"),
    "subsample of two": (lambda: from_scores().subsample(2), "n_classes: .*found 2"),
    "subsample beyond k1": (lambda: from_scores().subsample(5), "n_classes: .*found 5"),
    "subsample twice": (lambda: from_scores().subsample([3, 4]), "n_classes: "),
    "subsample seed": (lambda: from_scores().subsample(3, random_seed=-1), "random_seed: .*-1"),
}


@pytest.mark.parametrize("case", CASES)
def test_bad_input_is_a_data_error_that_names_the_argument(case):
    use, message = CASES[case]
    with pytest.raises(DataError, match=f"^{message}") as caught:
        use()
    assert type(caught.value) is DataError
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 300


def test_the_arguments_used_here_are_fine():
    for make in (from_scores, from_embeddings, from_ranks, from_accuracies):
        assert make().n_classes == 4


def test_odd_but_valid_arguments():
    seeds = [0, np.int64(3), 2**70, np.random.SeedSequence(5), None]
    for seed in seeds:
        from_scores(random_seed=seed)
    from_scores(np.ones((5, 4)))
    from_scores(np.ma.array(SCORES), np.ma.array(Y))
    from_scores(put(SCORES, (0, 1), -np.inf))
    from_scores(pd.DataFrame(SCORES), pd.Series(Y, index=list("vwxyz")))
    from_scores(y=np.array(Y, dtype=float), higher_is_better=np.True_)
    from_scores(y=list("abcda"), classes=iter(list("abcd")))
    from_scores(y=list("abcda"), classes=pd.Index(list("abcd")))
    from_embeddings(put(SCORES, 2, 0), distance="dot")
    from_ranks(np.array([1.0, 2, 1, 3, 1]), n_classes=np.float64(4))
    from_accuracies(n_test=50.0, n_classes=np.int32(4), design_effect=1)
    assert from_scores(class_weight=[1e308] * 4).table.class_weight.tolist() == [0.25] * 4
    assert from_scores().accuracy(range(2, 5)).shape == (3,)
    assert from_scores().accuracy(np.float64(3)).shape == (1,)
