"""Formulas as MathML, which browsers draw by themselves: no script, no font, no network."""

import re
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx

# A sign of a relation, and spaces around names such as log.
_RELATION = "<mi>&#x0007E;</mi>", "<mo>&#x0223C;</mo>"
_NAME = re.compile(
    r"<m[io]( movablelimits=.true.)?>((?:arg&#x02009;)?[A-Za-z]{2,})</m[io]>"
    r"(?=(<mo stretchy=.false.>&#x00028;)?)"
)


def _spaced(name: re.Match[str]) -> str:
    right = 0 if name[3] else 0.167
    return f'<mo{name[1] or ""} lspace="0.167em" rspace="{right}em">{name[2]}</mo>'


def _mathml(node: nodes.Element, display: str) -> str:
    """MathML of a formula. Lines with & are aligned there, as in other renderers of Sphinx."""
    text = node.astext().replace(r"\arg\m", r"\argm")  # \argmin and \argmax are known
    if "&" in text and r"\begin" not in text:
        text = rf"\begin{{split}}{text}\end{{split}}"
    formula = convert(text, display=display).replace(*_RELATION)
    return _NAME.sub(_spaced, formula)


def _inline(translator: Any, node: nodes.math) -> None:
    translator.body.append(_mathml(node, "inline"))
    raise nodes.SkipNode


def _block(translator: Any, node: nodes.math_block) -> None:
    translator.body.append(f'<div class="math">{_mathml(node, "block")}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the renderer under the name "mathml"."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
