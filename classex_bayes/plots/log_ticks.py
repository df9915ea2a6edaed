"""Numbers on an axis: round ones, as many as have room beside one another, and as text."""

import re
from collections.abc import Callable, Iterator

import numpy as np

from classex_bayes.typing import FloatArray

_MOST_NUMBERS, _MOST_DECADES = 7, 12
_STEPS = (1, 2, 5, 10)
# First digits of numbers, and how far they may be apart on an axis that has all of these.
_DIGITS = (
    (10, range(1, 10)), (10, (1, 2, 3, 4, 6, 8)), (30, (1, 2, 3, 5)), (1000, (1, 2, 5)),
    (1000, (1, 3)),
)  # fmt: skip
# On an axis between them numbers are written out; on others they are powers of 10.
_SMALLEST, _LARGEST = 3e-5, 3e7
_LETTERS_OF_TEX = {
    r"\Phi": "Φ", r"\leq": "≤", r"\log": "log", r"\times": "×", "^*": "*", "_{10}": "₁₀", "$": "",
}  # fmt: skip
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def few(ticks: FloatArray) -> bool:
    """Whether numbers have room on an axis of any width."""
    return ticks.size <= _MOST_NUMBERS


def linear_ticks(low: float, high: float) -> FloatArray:
    """Return a few round numbers at even steps within a range."""
    ticks = _even(low, high, _MOST_NUMBERS)
    return ticks[(low <= ticks) & (ticks <= high)]


def log_ticks(low: float, high: float, fit: Callable[[FloatArray], bool] = few) -> FloatArray:
    """Return round numbers within a range above 0: the densest set whose numbers fit.

    It has two numbers or more, or a single one if no two of them fit.
    """
    single = np.array([])
    for ticks in _sets(low, high):
        within = ticks[(ticks >= low * (1 - 1e-9)) & (ticks <= high * (1 + 1e-9))]
        if within.size > 1 and fit(within):
            return within
        if within.size == 1:
            single = within
    return single


def _sets(low: float, high: float) -> Iterator[FloatArray]:
    """Sets of round numbers, from the densest to the sparsest."""
    first, last = int(np.floor(np.log10(low))), int(np.ceil(np.log10(high)))
    if high < 3 * low:
        for whole in (True, False):
            for number in (6, 5, 4, 3, 2):
                yield _even(low, high, number, whole)
    for reach, digits in _DIGITS:
        if high < reach * low:
            yield np.outer(10.0 ** np.arange(first, last + 1), digits).ravel()
    for step in range(1, _MOST_DECADES):
        yield 10.0 ** np.arange(step * np.ceil(first / step), last + 1, step)


def _even(low: float, high: float, number: int, whole: bool = False) -> FloatArray:
    """At most `number` steps of one round length, from below a range to above it."""
    # Here, since charts are filled without matplotlib for the report and the shell.
    from matplotlib.ticker import MaxNLocator

    locator = MaxNLocator(number, steps=_STEPS, integer=whole)
    return np.asarray(locator.tick_values(low, high))


def is_written_out(low: float, high: float) -> bool:
    """Whether the numbers of an axis between two ends are short: 1,000 or 0.01."""
    return _SMALLEST <= low <= high <= _LARGEST


def number_text(value: float, low: float, high: float) -> str:
    """Return a number of an axis between two ends: written out, or as a power of 10 in TeX."""
    if is_written_out(low, high):
        return f"{value:,.10g}"
    exponent = int(np.floor(np.log10(value) + 1e-9))
    digit = value / 10.0**exponent
    times = "" if np.isclose(digit, 1) else rf"{digit:.2g}\times"
    return f"${times}10^{{{exponent}}}$"


def plain(text: str) -> str:
    """Return a text of ours with mathtext in letters alone: "D(u)" for "$D(u)$"."""
    text = re.sub(r"\^\{([-\d]+)\}", lambda match: match[1].translate(_SUPERSCRIPTS), text)
    for tex, letters in _LETTERS_OF_TEX.items():
        text = text.replace(tex, letters)
    return text
