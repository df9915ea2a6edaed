"""Runs the code of docs/gallery.md and draws its pictures: each block makes the one above it."""

import ast
import re

import matplotlib as mpl
from matplotlib import pyplot as plt
from PIL import Image

from studies.pages import DOCS
from studies.shared import quiet

PAGE = DOCS / "gallery.md"
_COLOURS, _DPI = 48, 75  # pictures are small files


def parts():
    """Blocks of code in their order, each with the picture above it, or None."""
    text = PAGE.read_text(encoding="utf-8")
    for picture, code in re.findall(r"(?:!\[[^]]*\]\((\S+)\)\n\n)?```python\n(.*?)```", text, re.S):
        yield picture or None, code


def last_value(code, names):
    """Run a block and return the value of its last line, if it is an expression."""
    tree = ast.parse(code)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, PAGE.name, "exec"), names)
    if last is None:
        return None
    return eval(compile(ast.Expression(last.value), PAGE.name, "eval"), names)


def main() -> None:
    """Run the page from its top, with one set of names."""
    names: dict[str, object] = {}
    mpl.use("agg")
    with mpl.rc_context({"savefig.dpi": _DPI}), quiet():
        for picture, code in parts():
            shown = last_value(code, names)
            if picture is None:
                continue
            figure = shown.get_viz("figure") if hasattr(shown, "get_viz") else shown
            path = PAGE.parent / picture
            figure.savefig(path, facecolor="white")
            Image.open(path).convert("RGB").quantize(_COLOURS).save(path, optimize=True)
            plt.close("all")
