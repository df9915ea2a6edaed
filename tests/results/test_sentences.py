"""Sentences about pilots, against counts by hand."""

from hypothesis import given
from hypothesis import strategies as st

from classex_bayes import SourceTask
from classex_bayes.results.sentences import errors_sentence, pilot_sentence


@given(
    st.lists(st.tuples(st.integers(0, 7), st.integers(1, 4)), max_size=40),
)
def test_the_classes_that_carry_the_errors_are_fewest(instances):
    # Two right answers, since a task has two tested classes.
    y, ranks = ([pair[place] for pair in [(0, 1), (1, 1), *instances]] for place in (0, 1))
    task = SourceTask.from_ranks(ranks, y, n_classes=8, untested="competitors")
    errors = sorted(
        (sum(c == j and rank > 1 for c, rank in zip(y, ranks, strict=True)) for j in range(8)),
        reverse=True,
    )
    total = sum(errors)
    sentence = errors_sentence(task)
    if total == 0:
        assert sentence.startswith("None of the")
        return
    few = next(n for n in range(1, 9) if sum(errors[:n]) >= 0.4 * total)
    if errors[few - 1] == errors[few]:
        spread = sum(number > 0 for number in errors)
        assert sentence == f"The {total} errors are spread over {spread} classes."
        return
    assert f"{round(100 * sum(errors[:few]) / total)}% of the {total} errors" in sentence
    numerals = [
        f"{n} account{s} for"
        for n, s in (("One class", "s"), ("Two classes", ""), ("Three classes", ""))
    ]
    assert sentence.startswith(numerals[few - 1] if few <= 3 else ("Four", "Five"))


def test_size_and_accuracy_of_the_pilot():
    tested = {"n_classes": 4, "untested": "competitors"}
    equal = SourceTask.from_ranks([1, 1, 2, 3], [0, 1, 0, 1], **tested)
    assert pilot_sentence(equal) == (
        "The pilot tested 4 classes with 4 instances and got 50.0% of them right."
    )
    # Three of four right in one class, one of one in the other: 4 of 5, but 7/8 over classes.
    classes = {"n_classes": 3, "untested": "competitors"}
    unequal = SourceTask.from_ranks([1, 1, 1, 2, 1], [0, 0, 0, 0, 1], **classes)
    assert pilot_sentence(unequal).endswith("got 87.5% right, with equal class weights.")
    weighed = SourceTask.from_ranks([1, 2], [0, 1], **classes, class_weight=[3, 1, 1])
    assert pilot_sentence(weighed).endswith("75.0% right, with the given class weights.")
    negatives = SourceTask.from_ranks([1, 4, 2, 1], list("abca"), n_negatives=[9, 12, 9, 9])
    assert pilot_sentence(negatives) == (
        "In the pilot 4 true items of 3 users were each ranked among 9 or more others, and 33.5% "
        "were first, with equal user weights."
    )
    curve = SourceTask.from_accuracies([2, 20], [0.9, 0.8], n_test=100, n_classes=50)
    assert pilot_sentence(curve).endswith("got 80.0% right among 20.")
