"""Marks for readers of narrow pages and of screens, which a style sheet cannot find by itself.

Pictures of notebooks are described by their heading. Pictures with several panels have the class
"wide": they scroll on a phone. Cells with a short text, such as an interval, have the class
"short": they keep to one line. Outputs without columns have the class "sentences": they continue on
the next line. Options such as --k do not break after their dashes. In tables and headings, long
names break between their parts.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from PIL import Image
from sphinx.application import Sphinx

_WIDE = 900  # pixels
_SHORT = len("0.97 / 0.95 / 0.98")
_OPTION = '<span class="pre">-', '<span class="pre option">-'
_NARROW = re.compile(r"<(td|th|h[1-4])\b.*?</\1>", re.DOTALL)
_TEXT, _LONG = re.compile(r"(?<=>)[^<]+"), re.compile(r"\S{20,}")
_BREAK = re.compile(r"(?<=[a-z\d)][._/=(])(?=[a-zA-Z])|(?<=[a-z])(?=[A-Z])")


def _ancestors(node: nodes.Node) -> Iterator[nodes.Node]:
    while node := node.parent:
        yield node


def _mark(app: Sphinx, page: nodes.document, _: str) -> None:
    for picture in page.findall(nodes.image):
        with Image.open(Path(app.srcdir, picture["uri"])) as image:
            if image.width > _WIDE:
                picture["classes"].append("wide")
        if "alt" not in picture:
            section = next(part for part in _ancestors(picture) if isinstance(part, nodes.section))
            picture["alt"] = f"Plot: {section[0].astext()}"
    for cell in page.findall(nodes.entry):
        if len(cell.astext()) <= _SHORT:
            cell["classes"].append("short")
    for block in page.findall(nodes.literal_block):
        if block["language"] in ("text", "myst-ansi") and "  " not in block.astext():
            block["classes"].append("sentences")


def _with_breaks(text: re.Match[str]) -> str:
    return _LONG.sub(lambda name: _BREAK.sub("<wbr>", name[0]), text[0])


def _finish(_app: Sphinx, _page: str, _template: str, context: dict[str, Any], _: Any) -> None:
    if "body" in context:
        body = context["body"].replace(*_OPTION)
        context["body"] = _NARROW.sub(lambda part: _TEXT.sub(_with_breaks, part[0]), body)


def setup(app: Sphinx) -> dict[str, bool]:
    """Mark each page that is written."""
    app.connect("doctree-resolved", _mark)
    app.connect("html-page-context", _finish)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
