"""Runs the code of docs/gallery.md and draws its pictures: each block makes the one above it."""

import re

import matplotlib as mpl
from matplotlib import pyplot as plt
from PIL import Image

from studies.pages import DOCS
from studies.shared import quiet

PAGE = DOCS / "gallery.md"
_COLOURS, _DPI = 48, 100  # pictures are small files


def parts():
    """Blocks of code in their order, each with the picture above it, or None."""
    text = PAGE.read_text(encoding="utf-8")
    for picture, code in re.findall(r"(?:!\[[^]]*\]\((\S+)\)\n\n)?```python\n(.*?)```", text, re.S):
        yield picture or None, code


def main() -> None:
    """Run the page from its top, with one set of names."""
    names: dict[str, object] = {}
    mpl.use("agg")
    with mpl.rc_context({"savefig.dpi": _DPI}), quiet():
        for picture, code in parts():
            exec(compile(code, PAGE.name, "exec"), names)
            if picture is None:
                continue
            path = PAGE.parent / picture
            plt.gcf().savefig(path, facecolor="white")
            Image.open(path).convert("RGB").quantize(_COLOURS).save(path, optimize=True)
            plt.close("all")
