"""Populations of drawings, icons and words, on images made here; learnt projections."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from scipy.linalg import eigh

from studies.corpus.characters import (
    blurred,
    draw,
    is_ancient,
    is_letter,
    is_symbol,
)
from studies.corpus.drawings import fitted, kept_back
from studies.corpus.pictograms import (
    emoji_features,
    gradient_cells,
    icons_of_theme,
    on_white,
    same_icons,
)
from studies.corpus.printed_words import stretched
from studies.corpus.projections import (
    discriminant_axes,
    discriminants,
    hidden_layer,
    principal_components,
    whitened_components,
)


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


def test_links_lead_to_one_file(tmp_path):
    (tmp_path / "mail.png").touch()
    (tmp_path / "post.png").symlink_to("mail.png")
    (tmp_path / "broken.png").symlink_to("nothing.png")
    icons = icons_of_theme(tmp_path)
    assert set(icons) == {"mail", "post"} and icons["mail"] == icons["post"]


def test_same_icons_prefers_the_name_of_the_file():
    template = {"a": Path("mail.svg"), "mail": Path("mail.svg"), "b": Path("web.svg")}
    template["none"] = Path("none.svg")
    themes = [
        {"a": Path("1/a.png"), "mail": Path("1/mail.png"), "other": Path("1/other.png")},
        {"a": Path("2/a.png"), "b": Path("2/b.png")},
    ]
    assert same_icons(template, themes) == {
        Path("mail.svg"): [Path("1/mail.png"), Path("2/a.png")],
        Path("web.svg"): [Path("2/b.png")],
    }


def test_on_white_centres_and_fills_with_white():
    picture = on_white(Image.new("RGBA", (96, 48), (255, 0, 0, 255)))
    assert picture.shape == (48, 48, 3)
    assert (picture[0] == 255).all() and (picture[24] == [255, 0, 0]).all()
    assert (on_white(Image.new("RGBA", (9, 9), (0, 0, 0, 0))) == 255).all()


def test_gradient_cells_find_the_direction_of_edges():
    ramp = np.arange(48) * 5
    right = np.broadcast_to(ramp[None, :, None], (48, 48, 3))
    images = np.array([right, right.transpose(1, 0, 2)])
    shares = gradient_cells(images) ** 2
    assert shares.sum(axis=1) == pytest.approx([1, 1])
    # Of 8 directions the first is along the rows, the fifth along the columns.
    by_direction = shares.reshape(2, 8, 36).sum(axis=2)
    assert by_direction.argmax(axis=1).tolist() == [0, 4]
    assert by_direction.max(axis=1) == pytest.approx([1, 1], abs=0.01)


def test_emoji_features_hold_edges_and_colours():
    features = emoji_features(np.full((1, 48, 48, 3), [255, 0, 51]))
    colours = features[0, -192:].reshape(64, 3)
    assert colours / colours[0, 0] == pytest.approx(np.tile([1, 0, 0.2], (64, 1)))


def test_stretched_loses_size_and_shape_of_the_frame():
    # The left half is ink, at any size.
    small, wide = Image.new("L", (8, 8)), Image.new("L", (64, 16))
    small.paste(255, (0, 0, 4, 8))
    wide.paste(255, (0, 0, 32, 16))
    images = np.array([stretched(small), stretched(wide)]).reshape(2, 24, 96)
    assert np.all(images[:, :, :36] > 0.99) and np.all(images[:, :, 60:] < 0.01)


def test_principal_components_are_those_of_a_known_covariance():
    x = np.random.default_rng(0).normal(size=(4000, 3)) * [1, 5, 2]
    project = principal_components(x, 2)
    assert np.abs(project.axes) == pytest.approx(np.eye(3)[:, [1, 2]], abs=0.05)
    assert project(x).mean(axis=0) == pytest.approx([0, 0], abs=1e-9)


def test_discriminant_axis_is_that_of_fisher():
    rng = np.random.default_rng(0)
    covariance = np.array([[4.0, 1.9], [1.9, 1.0]])
    y = np.repeat([0, 1], 5000)
    x = rng.multivariate_normal([0, 0], covariance, size=y.size) + y[:, None] * [1.0, 0.0]
    shrunk = 0.9 * covariance + 0.1 * 2.5 * np.eye(2)
    fisher = np.linalg.solve(shrunk, [1.0, 0.0])
    axis = discriminant_axes(x, y, 1).axes[:, 0]
    cosine = abs(axis @ fisher) / np.linalg.norm(axis) / np.linalg.norm(fisher)
    assert cosine == pytest.approx(1, abs=1e-3)


def test_whitened_components_have_variance_one():
    x = np.random.default_rng(0).normal(size=(500, 4)) @ np.diag([1.0, 2, 3, 9])
    covariance = np.cov(whitened_components(x, 3)(x), rowvar=False, ddof=0)
    assert covariance == pytest.approx(np.eye(3), abs=1e-9)


def test_discriminants_are_generalized_eigenvectors():
    rng = np.random.default_rng(5)
    x = rng.normal(size=(50, 4)) @ rng.normal(size=(4, 4))
    mixed = rng.normal(size=(4, 4))
    within = mixed @ mixed.T
    axes = discriminants(x, within, 3)
    ratios, _ = eigh(np.cov(x.T), within)
    np.testing.assert_allclose(axes.T @ within @ axes, np.eye(3), atol=1e-9)
    np.testing.assert_allclose(axes.T @ np.cov(x.T) @ axes, np.diag(ratios[:0:-1]), atol=1e-6)


def test_hidden_layer_tells_new_examples_of_its_classes_apart():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(4), 50)
    x = np.eye(4)[y] + rng.normal(0, 0.1, (y.size, 4))
    layer = hidden_layer(x, y, n_units=16, epochs=60)
    units = layer(np.eye(4))
    assert units.shape == (4, 16) and np.all(units >= 0)
    nearest = np.argmin(((layer(x)[:, None] - units) ** 2).sum(axis=2), axis=1)
    assert np.mean(nearest == y) > 0.95
