"""Icons and emoji: pure functions, on images and names made here."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from studies.corpus.pictograms import (
    emoji_features,
    gradient_cells,
    icons_of_theme,
    on_white,
    same_icons,
    without_joiners,
)


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


def test_joiners_are_no_part_of_an_emoji():
    assert without_joiners([0x2764, 0xFE0F, 0x200D, 0x1F525]) == (0x2764, 0x1F525)


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
