"""Populations of sounds, tunes, texts, code and records, against truths worked out by hand."""

from fractions import Fraction

import numpy as np
import pytest

from studies.corpus.abc_notation import tunes
from studies.corpus.cepstra import cepstra, mel_filters, stretched, voiced
from studies.corpus.functions import (
    Function,
    canonical_directions,
    description,
    functions,
)
from studies.corpus.linkage import is_chemical_name, mistyped, neighbours, typed
from studies.corpus.manuals import plain
from studies.corpus.melodies import hummed, motifs, steps
from studies.corpus.pronunciations import arpabet, dictionary, phone_ngrams
from studies.corpus.shared_data import lower_case
from studies.corpus.speech import german
from studies.corpus.spelling import corrections
from studies.corpus.text_features import (
    LatentSemantics,
    ascii_fold,
    character_ngrams,
    hashed,
    words,
)


def notes(music, key="C"):
    (tune,) = tunes(f"X:1\nT:t\nK:{key}\n{music}\n")
    return list(tune.pitches), [str(duration) for duration in tune.durations]


def test_keys_and_accidentals():
    assert notes("CDEF GABc", "C")[0] == [60, 62, 64, 65, 67, 69, 71, 72]
    assert notes("FCB", "D")[0] == [66, 61, 71]
    assert notes("FCB", "Gm") == notes("F=C_B", "F")
    assert notes("FC", "Ador") == notes("FC", "G")
    assert notes("^F F | F =F | F,f'", "C")[0] == [66, 66, 65, 65, 53, 89]


@pytest.mark.parametrize(
    ("music", "lengths"),
    [
        ("A A2 A/ A/2 A3/2 A//", ["1", "2", "1/2", "1/2", "3/2", "1/4"]),
        ("A>B A<B A>>B", ["3/2", "1/2", "1/2", "3/2", "7/4", "1/4"]),
        ("(3ABc d", ["2/3", "2/3", "2/3", "1"]),
        ("A2-|A z2 B", ["5", "1"]),
        ('"Am"A {fe}!trill!B [1 c [ce]2 % d', ["1", "1", "1", "1"]),
    ],
)
def test_lengths(music, lengths):
    assert notes(music)[1] == lengths


def test_tunes_of_a_file():
    text = "X:1\nT:A\nM:3/4\nK:C\nCDE\n\nX:2\nT:B\nK:G\nw: la la\nFG\n"
    first, second = tunes(text)
    assert (first.title, first.pitches) == ("A", (60, 62, 64))
    assert (second.title, second.pitches) == ("B", (66, 67))


def test_steps_ignore_key_and_tempo():
    slow, fast = [2, 4, 1, 1], [Fraction(1, 2), Fraction(1), Fraction(1, 4), Fraction(1, 4)]
    assert steps([60, 62, 59, 59], slow) == steps([65, 67, 64, 64], fast)
    assert steps([60, 62, 59, 59], slow) == [(2, 1), (-3, -2), (0, 0)]
    assert motifs([(2, 1), (-3, -2)]) == ["2 -3", "(2, 1) (-3, -2)"]


def test_hummed_intervals_are_mostly_right():
    (tune,) = tunes("X:1\nT:t\nK:C\n" + "CDEF GABc " * 20)
    rng = np.random.default_rng(3)
    phrases = [hummed(tune, rng) for _ in range(200)]
    assert 21 < np.mean([len(phrase) for phrase in phrases]) < 22.6  # 23 steps less a twentieth
    intervals = np.array([up for phrase in phrases for up, _ in phrase])
    # Steps of 1, 2 and -12; half a semitone of error leaves 68% of them whole, and one in twenty
    # skips a note.
    assert 0.5 < np.isin(intervals, [1, 2, -12]).mean() < 0.95


def test_pronunciations():
    assert dictionary("be B IY1\nbe(2) B IY0\na.b EY1") == {"be": ["B", "IY"]}
    assert arpabet("ˈɑːɹ b ɪ t ɹ ɪ dʒ ɚ") == ["AA", "R", "B", "IH", "T", "R", "IH", "JH", "ER"]
    assert len(phone_ngrams(["B", "IY", "T"])) == 3 + 4 + 3


def test_word_lists():
    text = "zebra it's Paris an caf\u00e9 form\nform ants"
    assert lower_case(text) == ["ants", "form", "zebra"]
    assert german("Katze EU z.B. über CDUler ab Katze") == ["Katze", "über"]


def test_mel_filters_cover_the_band():
    filters = mel_filters(16_000)
    peaks = filters.argmax(1)
    assert (np.diff(peaks) > 0).all()
    inside = filters.sum(0)[peaks[0] + 1 : peaks[-1]]
    np.testing.assert_allclose(inside, 1, atol=1e-12)  # neighbouring triangles add up to one


def test_silence_is_cut():
    time = np.arange(16_000) / 16_000
    tone = np.where((time > 0.25) & (time < 0.75), np.sin(2 * np.pi * 440 * time), 0)
    assert abs(voiced(tone).size - 8000) <= 320


def test_loudness_moves_the_first_cepstrum_alone():
    noise = np.random.default_rng(1).normal(size=4000)
    quiet, loud = cepstra(noise, 16_000), cepstra(10 * noise, 16_000)
    np.testing.assert_allclose(loud[:, 1:], quiet[:, 1:], atol=1e-3)
    np.testing.assert_allclose(loud[:, 0] - quiet[:, 0], 26**0.5 * np.log(100), atol=1e-3)


def test_stretching_is_linear_interpolation():
    rows = np.random.default_rng(2).normal(size=(7, 3))
    places = np.linspace(0, 6, 20)
    expected = np.stack([np.interp(places, range(7), column) for column in rows.T], 1)
    np.testing.assert_allclose(stretched(rows, 20), expected)
    assert stretched(rows[:1], 4).tolist() == [rows[0].tolist()] * 4


def test_keyboard_neighbours_are_mutual_along_a_row_and_never_the_letter_itself() -> None:
    assert set(neighbours("q")) == set("wa")
    assert set(neighbours("g")) == set("fhtvb")
    for letter in "abcdefghijklmnopqrstuvwxyz":
        assert letter not in neighbours(letter)


def test_typing_errors_have_their_rate_and_change_length_by_one_at_most() -> None:
    rng = np.random.default_rng(1)
    assert typed("amsterdam", 0.0, rng) == "amsterdam"
    lengths = np.array([len(typed("x", 0.4, rng)) for _ in range(4000)])
    # A quarter of the errors drop the letter, a quarter double it.
    assert abs(np.mean(lengths == 0) - 0.1) < 4 * np.sqrt(0.09 / 4000)
    assert abs(np.mean(lengths == 2) - 0.1) < 4 * np.sqrt(0.09 / 4000)
    assert all(mistyped("ulm", 0.1, rng) != "ulm" for _ in range(50))


def test_codes_and_translations_are_no_chemical_names() -> None:
    assert is_chemical_name("ethylene glycol") and is_chemical_name("1,4-dioxane")
    for text in ("107-07-3", "mfcd00004", "chloraethanol [german]", "c8h17o", "agn-pc-00qii0"):
        assert not is_chemical_name(text)


def test_words_and_ngrams() -> None:
    assert words("readHTTPResponse2_of x_i") == ["read", "http", "response", "2", "of", "x", "i"]
    assert character_ngrams("abc", (3,)) == [" ab", "abc", "bc "]
    assert ascii_fold("Čeřov-Łódź") == "cerov-odz"


def test_hashed_counts_keep_their_sums_of_absolute_values_and_empty_rows() -> None:
    counts = hashed([["a", "a", "a"], ["b"], []], 1000).toarray()
    assert np.abs(counts).sum(axis=1).tolist() == [3, 1, 0]


def test_latent_semantics_are_the_singular_vectors_of_weighted_counts() -> None:
    texts = [["a", "b"], ["a", "c", "c"], ["b", "c"], ["d", "a"], ["d", "e", "b"]]
    vectors = LatentSemantics(texts, 2)
    # By hand: columns a, b, c, d; e occurs in one text only.
    idf = np.log(5 / np.array([3, 3, 2, 2]))
    tf = np.array(
        [[1, 1, 0, 0], [1, 0, 1 + np.log(2), 0], [0, 1, 1, 0], [1, 0, 0, 1], [0, 1, 0, 1]]
    )
    weights = tf * idf
    weights /= np.linalg.norm(weights, axis=1, keepdims=True)
    _, _, directions = np.linalg.svd(weights)
    want = weights @ directions[:2].T
    got = vectors(texts)
    np.testing.assert_allclose(got @ got.T, want @ want.T, atol=1e-5)
    assert not vectors([["e"]]).any()


def test_functions_have_their_names_docstrings_and_identifiers_in_order() -> None:
    source = """
class A:
    def f(self, x: int = 3):
        'Sum.'
        def inner(y): pass
        return self.g(x, key=B.c) + 1

def h(): return 'no name'
"""
    assert functions(source, "m") == [
        Function("m", "A.f", "Sum.", ("y", "g", "self", "x", "key", "c", "B")),
        Function("m", "h", "", ()),
    ]


def test_description_ends_at_a_section_or_an_example() -> None:
    assert description("Find it.\n\nSlowly.\n\nParameters\n----------\nx : int") == [
        *["find", "it", "slowly"]
    ]
    assert description("Find it.\n\n    >>> find(it)\n\nMore.") == ["find", "it"]
    assert description("") == []


def test_canonical_directions_find_the_shared_coordinate() -> None:
    rng = np.random.default_rng(1)
    shared = rng.normal(size=5000)
    first = np.column_stack([9 * rng.normal(size=5000), shared])
    second = np.column_stack([shared + rng.normal(size=5000), 5 * rng.normal(size=5000)])
    of_first, of_second = canonical_directions(first, second, 1e-6)
    scores = np.corrcoef(first @ of_first[:, 0], second @ of_second[:, 0])[0, 1]
    # The correlation of x and x + noise of the same variance.
    assert abs(scores - np.sqrt(0.5)) < 0.03
    np.testing.assert_allclose(np.var(first @ of_first, axis=0), 1, atol=0.05)


def test_manual_pages_lose_their_preamble_macros_and_fonts() -> None:
    page = """.\\" Licence
.de XX
.TH LS 1
.SH NAME
ls \\- list \\fIfiles\\fP
.B \\-a
all
"""
    assert plain(page).split() == ["NAME", "ls", "-", "list", "files", "-a", "all"]


def test_corrections_that_are_not_unique_are_left_out() -> None:
    assert corrections("teh->the\nans->and, ants,\nalot->a lot\nhte->the,") == {
        "the": ["teh", "hte"],
        "a lot": ["alot"],
    }
