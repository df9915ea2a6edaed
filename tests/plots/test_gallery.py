"""The gallery shows every plot, and its pictures are small."""

import re
from pathlib import Path

import classex_bayes as cb

PAGE = Path(__file__).parents[2] / "docs" / "gallery.md"
PICTURES = re.findall(r"!\[[^]]+\]\((\S+)\)\n\n```python\n", PAGE.read_text(encoding="utf-8"))


def test_every_plot_is_shown():
    shown = {Path(picture).stem for picture in PICTURES}
    assert {name.removeprefix("plot_") for name in cb.plots.__all__} <= shown


def test_pictures_have_their_code_below_and_are_small():
    files = {PAGE.parent / picture for picture in PICTURES}
    assert len(files) == len(PICTURES)
    assert files == set((PAGE.parent / "figures" / "gallery").iterdir())
    assert sum(file.stat().st_size for file in files) < 1e6
