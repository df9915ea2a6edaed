"""Populations of texts, code and records: the functions that read and change texts."""

import numpy as np

from studies.corpus.functions import (
    Function,
    canonical_directions,
    description,
    functions,
)
from studies.corpus.linkage import is_chemical_name, mistyped, neighbours, typed
from studies.corpus.manuals import halves, plain
from studies.corpus.spelling import corrections
from studies.corpus.text_features import (
    LatentSemantics,
    ascii_fold,
    character_ngrams,
    hashed,
    words,
)


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


def test_an_exchange_keeps_the_letters() -> None:
    rng = np.random.default_rng(1)
    results = {typed("ab", 0.5, rng) for _ in range(500)}
    assert {"ba", "a", "b", "aab", "abb", "sb", "av"} <= results


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


def test_halves_have_all_words_in_order() -> None:
    assert halves("a b c d e") == (["a", "b"], ["c", "d", "e"])


def test_corrections_that_are_not_unique_are_left_out() -> None:
    assert corrections("teh->the\nans->and, ants,\nalot->a lot\nhte->the,") == {
        "the": ["teh", "hte"],
        "a lot": ["alot"],
    }
