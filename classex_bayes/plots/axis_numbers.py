"""Numbers of logarithmic axes, in figures of matplotlib and in the drawings of the report."""

import numpy as np
from matplotlib.ticker import LogLocator

# First digits of numbers, and how many numbers as far apart as the two nearest fill a decade.
_DIGITS = {(1, 2, 3, 4, 5, 7): 10, (1, 2, 5): 3, (1,): 0}
# On an axis between them numbers are written out; on others they are powers of 10.
_SMALLEST, _LARGEST = 3e-5, 3e6
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def log_locator(low: float, high: float, most: int) -> LogLocator:
    """Return matplotlib's ticks at powers of 10, and at as many multiples of them as have room."""
    decades = np.log10(high / low)
    digits = next(digits for digits, n in _DIGITS.items() if n * decades <= most)
    return LogLocator(subs=digits, numticks=most)


def number_text(value: float, low: float, high: float) -> str:
    """Return a number of an axis between two ends: 1,000 or 0.01, or a power of 10."""
    if _SMALLEST <= low <= high <= _LARGEST:
        return f"{value:,.10g}"
    exponent = int(np.floor(np.log10(value) + 1e-9))
    digit = value / 10.0**exponent
    times = "" if np.isclose(digit, 1) else f"{digit:.2g} × "
    return f"{times}10{str(exponent).translate(_SUPERSCRIPTS)}"
