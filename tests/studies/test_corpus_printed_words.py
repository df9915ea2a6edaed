"""Images of words: pure functions."""

import numpy as np
from PIL import Image

from studies.corpus.printed_words import stretched


def test_stretched_loses_size_and_shape_of_the_frame():
    # The left half is ink, at any size.
    small, wide = Image.new("L", (8, 8)), Image.new("L", (64, 16))
    small.paste(255, (0, 0, 4, 8))
    wide.paste(255, (0, 0, 32, 16))
    images = np.array([stretched(small), stretched(wide)]).reshape(2, 24, 96)
    assert np.all(images[:, :, :36] > 0.99) and np.all(images[:, :, 60:] < 0.01)
