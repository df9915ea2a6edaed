"""Checks of a task: their values by brute force, silent on sound tasks, loud on built defects."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import binom

import classex_bayes as cb
from classex_bayes import SourceTask, diagnose
from classex_bayes.simulate import GaussianNearestNeighbor
from studies.laws import FavorabilityLaw, HierarchicalNormal, UniformSphere

LAW = GaussianNearestNeighbor(dim=10, noise_variance=0.2)
OF_RANKS = {
    "number of classes",
    "number of errors",
    "accuracy on few classes",
    "last ranks",
    "reach of the ranks",
}


def scores_of(n_classes, repeats=1, seed=0):
    probes, gallery, y = LAW.sample(n_classes, repeats=repeats, random_seed=seed)
    return -((probes[:, None] - gallery) ** 2).sum(axis=2), y


def table_of(task, seed=0):
    return diagnose(task, random_seed=seed).table


def check_of(name, scores, y, **options):
    return table_of(SourceTask.from_scores(scores, y, **options)).loc[name]


def failed(task, seed=0):
    """Names of the checks that fail."""
    table = table_of(task, seed)
    return set(table.index[table["passed"] == False])  # noqa: E712 (None is neither)


def test_same_seed_same_report():
    task = SourceTask.from_scores(*scores_of(60))
    assert table_of(task, 3).equals(table_of(task, 3))


# Values by brute force


def random_test(seed, n_classes=60, repeats=6, lead=2.0):
    """Normal scores of classes that are confused with those at hand in a random order."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(n_classes), repeats)
    place = rng.normal(size=n_classes)
    scores = rng.normal(size=(y.size, n_classes)) - np.abs(place[y][:, None] - place)
    scores[np.arange(y.size), y] += lead
    return scores, y


def confusions(scores, y, n_close):
    """Pairs of a true class and one that beats an instance, which few others do."""
    pairs = set()
    for row, own in zip(scores, y.tolist(), strict=True):
        better = np.flatnonzero(row > row[own]).tolist()
        if len(better) <= n_close:
            pairs |= {(own, other) for other in better}
    return pairs


def pieces(pairs):
    """Sets of classes that are linked by chains of confusions."""
    found = []
    for pair in pairs:
        met = [piece for piece in found if piece & set(pair)]
        found = [piece for piece in found if piece not in met] + [set(pair).union(*met)]
    return found


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.filterwarnings("ignore::classex_bayes.exceptions.DataWarning")
def test_links_are_counted(seed):
    scores, y = random_test(seed, lead=1.0 if seed == 2 else 2.0)
    if seed == 2:  # confused within thirds alone
        scores[(y % 3)[:, None] != np.arange(60) % 3] -= 50
    table, pairs = table_of(SourceTask.from_scores(scores, y)), confusions(scores, y, 6)
    linked = [len(piece) for piece in pieces(pairs)]
    share = sum(size**2 for size in linked) / sum(linked) ** 2
    groups = table.loc["groups of classes"]
    assert groups["value"] == pytest.approx(share) and groups["limit"] == 0.5
    assert groups["passed"] is (seed != 2) and (share < 0.4) is (seed == 2)


def test_of_many_confusions_those_among_some_classes_count():
    """Of more than 50,000 those of a random part of the classes, which has the same two groups."""
    rng, n_classes = np.random.default_rng(1), 1000
    y = np.arange(6 * n_classes) % n_classes
    scores = rng.normal(size=(y.size, n_classes))
    scores[y[:, None] % 2 != np.arange(n_classes) % 2] -= 50
    scores[np.arange(y.size), y] += 1.6
    pairs = confusions(scores, y, 100)
    assert len(pairs) > 60_000
    value = check_of("groups of classes", scores, y)["value"]
    assert value != 0.5 and value == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize(("rows", "columns"), [(0, 0), (2, 1), (9, 5)])
@pytest.mark.filterwarnings("ignore::classex_bayes.exceptions.DataWarning")
def test_copies_are_counted(rows, columns):
    scores, y = random_test(1, 100)
    scores[:, :columns] = scores[:, 50 : 50 + columns]
    scores, y = np.vstack([scores, scores[:rows]]), np.append(y, y[:rows])
    table = table_of(SourceTask.from_scores(scores, y))
    for name, matrix, limit in (("instances", scores, 0.01), ("classes", scores.T, 0.005)):
        check = table.loc[f"copies of {name}"]
        copies = 1 - len({row.tobytes() for row in matrix}) / len(matrix)
        assert check["value"] == pytest.approx(copies) and check["limit"] == limit
        assert check["passed"] is bool(copies <= limit)


@pytest.mark.parametrize("class_weight", [None, 1 + np.arange(80) % 4])
def test_counts_of_ranks(class_weight):
    scores, y = random_test(3, 80, 2, lead=1.0)
    task = SourceTask.from_scores(scores, y, class_weight=class_weight)
    table, ranks = table_of(task), 1 + (scores > scores[np.arange(160), y][:, None]).sum(axis=1)
    weight = np.full(80, 1.0) if class_weight is None else class_weight
    expected = {
        "number of classes": (weight.sum() ** 2 / (weight**2).sum(), 20),
        "number of errors": ((ranks > 1).sum(), 10),
    }
    for name, both in expected.items():
        assert_allclose(table.loc[name, ["value", "limit"]].astype(float), both)
    # Among two classes an instance is right against the share of competitors that it beats.
    accuracy = (weight[y] / weight.sum() / 2) @ ((80 - ranks) / 79)
    few = table.loc["accuracy on few classes"]
    assert few["value"] == pytest.approx(accuracy) and 0.5 < few["limit"] <= 0.65


@pytest.mark.parametrize("share", [0.0, 0.1])
def test_instances_that_lose_to_all_competitors_are_counted(share):
    """Failed searches are an atom, and the last of those that lose to most are none."""
    rng = np.random.default_rng(1)
    ranks = 1 + rng.binomial(79, rng.beta(1, 9, size=400))
    ranks[rng.random(400) < share] = 80
    check = table_of(SourceTask.from_ranks(ranks, np.arange(400) % 80, n_classes=80))
    check = check.loc["last ranks"]
    assert check["value"] == pytest.approx((ranks == 80).mean()) and check["limit"] == 0.02
    assert check["passed"] is (share == 0)


@pytest.mark.parametrize("lead", [0.0, 16.0])
@pytest.mark.filterwarnings("ignore::classex_bayes.exceptions.DataWarning")
def test_wins_of_wrong_classes_are_counted(lead):
    scores, y = scores_of(100, 3, seed=4)
    scores[:, 5] += lead
    best = scores.argmax(axis=1)
    most = np.bincount(best[best != y]).max() / y.size
    check = table_of(SourceTask.from_scores(scores, y)).loc["dominant class"]
    assert check["value"] == pytest.approx(most)
    assert check["limit"] == 0.2 and check["passed"] is (lead == 0)
    assert ("column 5 of scores" in check["sentence"]) is (lead > 0)


@pytest.mark.parametrize("repeats", [1, 3])
def test_influences_are_those_of_deletion(repeats):
    y = np.repeat(np.arange(12), repeats)
    scores = np.random.default_rng(5).normal(size=(y.size, 12)) + 2 * np.eye(12)[y]
    task = SourceTask.from_scores(scores, y)
    without = [task.select(np.delete(np.arange(12), j)).accuracy(11) for j in range(12)]
    squares = (np.mean(without) - without) ** 2
    errors = diagnose(task, random_seed=0).class_errors
    assert_allclose(errors.influence, squares / squares.sum(), atol=1e-12)
    # Every instance that a class beats counts for the class.
    defeats = (scores > scores[np.arange(y.size), y][:, None]).mean(axis=0)
    assert_allclose(errors.beaten, defeats, atol=1e-12)


@pytest.mark.parametrize(("n_classes", "is_enough"), [(30, False), (400, True)])
def test_reach_is_that_of_the_bounds(n_classes, is_enough):
    """The largest number of classes on which the limits are at most 0.2 apart."""
    ranks = np.where(np.arange(n_classes) % 3, 1, np.arange(n_classes) % 5 + 1)
    task = SourceTask.from_ranks(ranks, np.arange(n_classes), n_classes=n_classes)
    check, bounds = table_of(task).loc["reach of the ranks"], cb.MomentBounds().fit(task)
    reach = int(check["value"])
    limits = bounds.predict([max(reach, 2), max(reach, 2) + 1]).interval()
    width = limits["upper"].to_numpy() - limits["lower"].to_numpy()
    assert width[1] > 0.2 and (width[0] <= 0.2 or reach < 2)
    assert check["passed"] and check["limit"] == n_classes
    assert (reach >= n_classes) is is_enough


def test_ties():
    scores, y = scores_of(30)
    rounded = np.round(scores / 6)
    task = SourceTask.from_scores(rounded, y, random_seed=1)
    check, true = table_of(task).loc["ties"], rounded[np.arange(y.size), y]
    above = (rounded > true[:, None]).sum(axis=1)
    tied = (rounded == true[:, None]).sum(axis=1) - 1
    moved = np.mean(above == 0) - np.mean(above + tied == 0)
    standard_error = max(task.accuracy_cov(task.grid())[-1, -1] ** 0.5, 2 / y.size)
    assert check["passed"] is False
    assert check["value"] >= moved / standard_error * (1 - 1e-9) > check["limit"]


# Probabilities


def softmax(log):
    scores, y = scores_of(30)
    share = np.exp(scores - scores.max(axis=1, keepdims=True))
    share /= share.sum(axis=1, keepdims=True)
    return np.log(share) if log else share, y


@pytest.mark.parametrize("log", [False, True])
def test_probabilities_are_as_sound_as_logits(log):
    logits, shares = diagnose(SourceTask.from_scores(*scores_of(30))), softmax(log)
    probabilities = diagnose(SourceTask.from_scores(*shares))
    assert logits.warnings == probabilities.warnings == ()
    assert logits.verdict == probabilities.verdict


# Built defects that single data sets show


def with_few_classes(scale, decimals):
    # Real numbers of 5 classes are no less distinctive, whole ones are.
    y = np.arange(60) % 5
    scores = np.random.default_rng(1).normal(size=(60, 5)) + 2 * np.eye(5)[y]
    scores[:12] = scores[20:32]
    return (scale * scores).round(decimals), y


def with_ruled_out_class():
    scores, y = scores_of(60, 2)
    scores[5, (y[5] + 1) % 60] = -np.inf
    return scores, y


@pytest.mark.parametrize(
    ("name", "data", "passed"),
    [
        ("copies of instances", with_few_classes(1, 12), False),
        ("copies of instances", with_few_classes(9, 0), None),
        ("copies of instances", (np.eye(20)[np.arange(40) % 20], np.arange(40) % 20), None),
        ("copies of instances", with_ruled_out_class(), True),
        ("copies of classes", with_ruled_out_class(), True),
    ],
)
@pytest.mark.filterwarnings("ignore::classex_bayes.exceptions.DataWarning")
def test_rows_with_few_values_are_no_copies(name, data, passed):
    check = check_of(name, *data)
    assert check["passed"] is passed and np.isnan(check["value"]) == (passed is None)


def test_copies_among_embeddings_are_named():
    probes, gallery, y = LAW.sample(100, repeats=2, random_seed=2)
    gallery[70] = gallery[30]
    probes, y = np.vstack([probes, probes[:3]]), np.append(y, y[:3])
    names = [f"class <{j}>" for j in range(100)]
    task = SourceTask.from_embeddings(probes, gallery, [names[j] for j in y], classes=names)
    report = diagnose(task)
    copies = report.table.loc["copies of classes", "sentence"]
    assert "class <30>" in copies and "class <70>" in copies
    assert "class <30>" not in report._repr_html_() and "class &lt;30&gt;" in report._repr_html_()
    assert report.table.loc["copies of instances", "value"] == pytest.approx(3 / 203)
    assert {"copies of classes", "copies of instances"} <= failed(task)


def test_ties_of_copies_are_no_matter_of_digits_first():
    probes, gallery, y = LAW.sample(60, repeats=3, random_seed=2)
    gallery[:12] = gallery[12:24]
    task = SourceTask.from_embeddings(probes, gallery, y)
    (warning,) = task.warnings
    assert warning.index("copies") < warning.index("digits")
    assert "copies of classes" in failed(task)


def test_tasks_without_scores_or_ranks():
    def known(task):
        table = table_of(task)
        return set(table.index[table["passed"].notna()])

    task = SourceTask.from_scores(*scores_of(50, 2))
    ranks = SourceTask.from_ranks(task.ranks, task.y, n_classes=50)
    assert known(ranks) == OF_RANKS
    values = [table_of(one).loc["number of errors", "value"] for one in (ranks, task)]
    assert values[0] == values[1]
    curve = SourceTask.from_accuracies([2, 10, 50], [0.99, 0.95, 0.85], n_test=100, n_classes=50)
    of_curve = {"number of classes", "accuracy on few classes", "numbers that show the decline"}
    assert known(curve) == of_curve
    assert diagnose(curve).class_errors is None
    low = SourceTask.from_accuracies([50], [0.01], n_test=100, n_classes=50)
    assert failed(low) == {"accuracy on few classes"}


def test_few_classes_and_few_errors():
    task = SourceTask.from_ranks([1, 2, 1, 3] * 5, np.arange(20) % 4, n_classes=4)
    table = table_of(task)
    below = table["value"] < table["limit"]
    assert {"number of classes", "reach of the ranks"} <= set(below.index[below])
    assert diagnose(task).passed and not task.warnings, "small pilots have no fault"
    assert table.loc["number of errors", "sentence"] in task.notes


# False alarms on sound data and alarms on faulty ones


def embedded(law, n_classes, repeats, seed, **options):
    return SourceTask.from_embeddings(
        *law.sample(n_classes, repeats=repeats, random_seed=seed), **options
    )


def of_ranks(law, n_classes, seed):
    ranks, y, _ = law.sample(n_classes, n_test=2 * n_classes, random_seed=seed)
    return SourceTask.from_ranks(ranks, y, n_classes=n_classes)


SPHERE, MIXED = UniformSphere(16, 0.01), FavorabilityLaw((1.0, 3.0), (1.0, 0.7))
SOUND = {
    "neighbours": lambda seed: embedded(LAW, 20 + 20 * (seed % 10), 1 + 2 * (seed % 2), seed),
    "cosines": lambda seed: embedded(SPHERE, 100, 1 + seed % 3, seed, distance="cosine"),
    "one by one from groups": lambda seed: embedded(HierarchicalNormal(20), 150, 2, seed),
    "ranks": lambda seed: of_ranks(MIXED, 60 + 10 * (seed % 10), seed),
}


NIGHTLY = [False, pytest.param(True, marks=pytest.mark.nightly)]


@pytest.mark.parametrize("many", NIGHTLY)
def test_false_alarms_are_rare(many):
    """At a rate of 1%, whose Monte Carlo error is 3% of 12 data sets and 0.8% of 160."""
    tasks = [(make, seed) for seed in range(40 if many else 3) for make in SOUND.values()]
    alarms = [(seed, name) for make, seed in tasks for name in failed(make(seed), seed)]
    assert len(alarms) <= binom.ppf(0.99, len(tasks), 0.01), alarms


def scored(change):
    """A task of 100 classes whose scores and labels were changed."""
    return lambda seed: SourceTask.from_scores(*change(*scores_of(100, 2, seed)))


FAULTY = {
    "copies of instances": scored(lambda s, y: (np.vstack([s, s[:4]]), np.append(y, y[:4]))),
    "copies of classes": scored(lambda s, y: (s[:, np.r_[:97, :3]], y)),
    "groups of classes": lambda seed: embedded(
        HierarchicalNormal(5, class_variance=0.1, noise_variance=0.05), 200, 2, seed
    ),
}


@pytest.mark.parametrize("many", NIGHTLY)
@pytest.mark.filterwarnings("ignore::classex_bayes.exceptions.DataWarning")
def test_faults_are_found(many):
    """At a rate of 98%, whose Monte Carlo error is 6% of 6 data sets and 2% of 60."""
    tasks = [(*fault, seed) for seed in range(20 if many else 2) for fault in FAULTY.items()]
    missed = [(fault, seed) for fault, make, seed in tasks if fault not in failed(make(seed), seed)]
    assert len(missed) <= binom.ppf(0.99, len(tasks), 0.02), missed
