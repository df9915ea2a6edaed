"""Drawings of characters: pure functions, on fonts and images made here."""

import numpy as np
import pytest
from PIL import Image

from studies.corpus.characters import (
    blurred,
    draw,
    is_ancient,
    is_letter,
    is_symbol,
)
from studies.corpus.drawings import fitted, kept_back


class Stamps:
    """A family whose characters are rectangles of ink: width and height in pixels."""

    def __init__(self, **sizes):
        self.sizes = sizes

    def __contains__(self, character):
        return character in self.sizes

    def ink(self, character):
        size = self.sizes[character]
        return None if size is None else Image.new("L", size, 255)


def test_fitted_keeps_the_shape_and_centres_it():
    image = fitted(Image.new("L", (20, 10), 255), 10, 10).reshape(10, 10)
    rows, columns = np.nonzero(image)
    assert set(rows) == {3, 4, 5, 6} and set(columns) == set(range(1, 9))
    assert image.max() == 1


@pytest.mark.parametrize("character", ["\u4e00", "\uac00", "\u3260", "\u3280", "\uf900", "\u1100"])
def test_han_and_hangul_are_kept_back(character):
    assert kept_back(character) and not is_letter(character) and not is_symbol(character)


def test_kinds_of_characters():
    assert is_letter("a") and is_letter("\ua000") and is_letter("7") and not is_letter("+")
    assert is_symbol("+") and is_symbol("!") and not is_symbol("a")
    assert is_ancient("\U00013000") and is_ancient("\U00012000") and not is_letter("\U00013000")
    # The ohm sign is the letter omega to Unicode; an accent that combines is no letter.
    assert not is_letter("\u2126") and is_letter("\u03a9") and not is_letter("\u0301")


def test_draw_leaves_out_what_cannot_be_tested():
    template = Stamps(a=(8, 4), b=(8, 4), c=(4, 8), d=None, e=(9, 9))
    other = Stamps(a=(4, 4), b=(6, 4), c=None, d=(4, 4), f=(4, 4))
    third = Stamps(b=(3, 4))
    drawings = draw(["a", "b", "c", "d", "e", "f"], template, [other, third], 10)
    # c has no ink to test, d no template, e and f one family; a and b have equal templates.
    assert drawings.y.tolist() == [0, 1, 1]
    stamp = fitted(Image.new("L", (8, 4), 255), 10, 10)
    assert np.array_equal(drawings.gallery, [stamp, stamp])
    assert np.array_equal(drawings.probes[0], fitted(Image.new("L", (4, 4), 255), 10, 10))


def test_draw_merges_equal_templates_of_equal_meaning():
    # Arabic beh and its isolated form share a compatibility decomposition.
    both = {"\u0628": (8, 4), "\ufe8f": (8, 4)}
    drawings = draw(["\u0628", "\ufe8f"], Stamps(**both), [Stamps(**both)], 10)
    assert len(drawings.gallery) == 1


def test_blur_conserves_ink():
    image = np.zeros((1, 81))
    image[0, 40] = 1
    smooth = blurred(image, 9).reshape(9, 9)
    assert smooth.sum() == pytest.approx(1) and smooth[4, 4] == smooth.max() < 0.2
