"""Words and reads of sequences against Python's own counts."""

from collections import Counter

import numpy as np
import pytest

from studies.corpus import sequences

GENE = np.random.default_rng(2).integers(0, 4, 1500)


def test_words_are_counted_with_overlaps():
    letters = "".join("ACGT"[letter] for letter in GENE)
    expected = Counter(
        letters[i : i + sequences.LENGTH] for i in range(len(letters) - sequences.LENGTH + 1)
    )
    counts = sequences.words(GENE)
    assert sorted(counts[counts > 0]) == sorted(expected.values())
    assert len(counts) == 4**sequences.LENGTH


def test_records_leave_out_letters_that_stand_for_several_bases():
    ((title, letters),) = sequences.records(">a > b\nACN\nGT")
    assert title == "a > b"
    assert letters.tolist() == [0, 1, 2, 3]


def test_reads_keep_most_words_of_their_gene():
    rng = np.random.default_rng(3)
    own = sequences.words(GENE) > 0
    reads = [sequences.read(GENE, rng) for _ in range(100)]
    kept = [np.average(own, weights=sequences.words(letters)) for letters in reads]
    # A word of six letters survives an error rate of 4% with probability .78.
    assert np.median(kept) == pytest.approx(0.96**6 + 0.22 * own.mean(), abs=0.08)
    assert 600 < np.median([len(letters) for letters in reads]) < 1000
    assert all(letters.min() >= 0 and letters.max() <= 3 for letters in reads)
