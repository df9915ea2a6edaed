"""Sizes of text in matplotlib, in points."""

from textwrap import wrap

from matplotlib import rcParams
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path


def font_points(parameter: str) -> float:
    """Height that a parameter of matplotlib gives to letters."""
    return float(FontProperties(size=rcParams[parameter]).get_size_in_points())


def text_width(text: str, size: float, *, math: bool = False) -> float:
    """Width of one line in letters of a size; `math` reads what is between dollars as TeX."""
    font = FontProperties(size=size)
    return float(text_to_path.get_text_width_height_descent(text, font, ismath=math)[0])


def narrowed(text: str, room: float, size: float) -> str:
    """Text in lines that are no wider than `room`."""
    lines, letters = [text], min(int(room), len(text))  # longer lines would hold it all
    while letters > 1 and max(text_width(line, size) for line in lines) > room:
        lines, letters = wrap(text, letters), letters - 1
    return "\n".join(lines)
