"""Digits, text and HTML: how numbers, tables and results are shown."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from html import escape
from textwrap import fill
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

WIDTH = 100
ROUNDING = 1e-12  # errors below are those of the arithmetic, not of the data
_LONGEST_VALUE = 60
_MOST_DECIMALS = 2  # of percentages near 0% and 100%
_BOUNDS = "<", ">", "under ", "over "  # in place of numbers that would be rounded to an end
_SMALLEST_CHANCE = 0.001  # that some thousand draws can distinguish from 0
# Outside notebooks tables have no style, and old pages do not even pass on the text colour.
_CLASS = "classex-bayes"
_STYLE = (
    f"<style>.{_CLASS} table{{border-collapse:collapse;margin:.3em 0;color:inherit;font-size:1em}}"
    f".{_CLASS} :is(th,td){{text-align:right;padding:.1em .6em;vertical-align:top}}"
    f".{_CLASS} .text{{text-align:left}}</style>"
)


@dataclass(frozen=True)
class Display:
    """Parts of a displayed result: header, table and notes below it.

    Numbers in the table have `decimals` digits. Text is shown as it is. `index` shows the index.
    """

    header: str
    table: "pd.DataFrame | None" = None
    notes: tuple[str, ...] = ()
    decimals: int = 4
    index: bool = True

    def text(self) -> str:
        """Header, table and notes in lines of at most 100 columns, where no cell is longer."""
        parts = [folded(self.header)]
        if self.table is not None:
            parts.append(self._compact().to_string(**self._format(), line_width=WIDTH))
        return "\n".join([*parts, *map(folded, self.notes)])

    def html(self) -> str:
        """The same as HTML, without colours of its own."""
        table = "" if self.table is None else self._compact().to_html(**self._format(), border=0)
        return html_block(self.header, table, self.notes)

    def _compact(self) -> Any:
        """The table with counts as 1,000, and the name of its index in the corner, if it is one."""
        table = self.table
        if table is None or not self.index:
            return table
        table = table.rename(index=_written_out)
        if table.index.nlevels > 1:
            return table
        return table.rename_axis(index=None, columns=str(table.index.name or ""))

    def _format(self) -> dict[str, Any]:
        number = f"{{:.{self.decimals}f}}".format
        return {"float_format": number, "na_rep": "-", "index": self.index}


def _written_out(label: Any) -> Any:
    """A count as 1,000; any other label of a row as it is."""
    return f"{label:,}" if isinstance(label, int | np.integer) else label


class Shown(ABC):
    """A result that shows itself as a header, a table and notes."""

    @abstractmethod
    def _display(self) -> Display:
        """Return the parts that are shown."""

    def __repr__(self) -> str:
        """Header, table and notes as plain text."""
        return self._display().text()

    def _repr_html_(self) -> str:
        return self._display().html()


def folded(text: str, indent: int = 2) -> str:
    """Text in lines of at most 100 columns."""
    return fill(text, WIDTH, subsequent_indent=" " * indent, break_on_hyphens=False)


def html_block(header: str, table: str, notes: tuple[str, ...] = ()) -> str:
    """Header and notes, escaped, around a table that is HTML."""
    below = "".join(f"<div><small>{escape(note)}</small></div>" for note in notes)
    title = f"<div><b>{escape(header)}</b></div>"
    return f'<div class="{_CLASS}">{_STYLE}{title}{table}{below}</div>'


def html_facts(facts: Mapping[str, str]) -> str:
    """Table of names and facts about them."""
    rows = (
        f'<tr><th class="text">{escape(name)}</th><td class="text">{escape(fact)}</td></tr>'
        for name, fact in facts.items()
    )
    return f'<table class="dataframe">{"".join(rows)}</table>'


def brief(value: Any) -> str:
    """Value of a parameter; an array by its shape, anything long by its beginning."""
    if getattr(value, "shape", ()):
        return f"<{type(value).__name__} {' x '.join(map(str, value.shape))}>"
    text = " ".join(repr(value).split())
    return text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 3]}..."


def call(name: str, values: Mapping[str, Any], defaults: Mapping[str, Any]) -> str:
    """Call that makes an object: its class with those arguments that are not at their defaults."""
    changed = (
        f"{argument}={brief(value)}"
        for argument, value in values.items()
        if argument not in defaults or not same(value, defaults[argument])
    )
    return f"{name}({', '.join(changed)})"


def by_fields(record: Any) -> str:
    """Call that makes a dataclass or named tuple; arrays by their shapes."""
    names = [f.name for f in fields(record)] if is_dataclass(record) else record.__match_args__
    values = {name: getattr(record, name) for name in names}
    defaults = {name: getattr(type(record), name) for name in names if hasattr(type(record), name)}
    return call(type(record).__name__, values, defaults)


def same(value: Any, default: Any) -> bool:
    """Whether two parameter values are the same. Arrays are the same if they are one object."""
    if value is default:
        return True
    try:
        return bool(value == default)
    except (TypeError, ValueError):  # an array
        return False


def bounded(value: float, decimals: int, end: float = 1.0) -> str:
    """Return a number with some decimals, or as a bound if it would be rounded to 0 or to `end`.

    >>> bounded(0.12344, 4), bounded(6.3e-11, 6), bounded(0.9999994, 4), bounded(1.0, 2)
    ('0.1234', '<0.000001', '>0.9999', '1.00')
    """
    text, step = f"{value:,.{decimals}f}", 10.0**-decimals
    if value > 0 and not float(text.replace(",", "")):
        return f"<{step:.{decimals}f}"
    if step < end > value and text == f"{end:,.{decimals}f}":
        return f">{end - step:,.{decimals}f}"
    return text


def percent(share: float, digits: int = 0) -> str:
    """Return a share as text, with at least `digits` decimals and never rounded to 0% or 100%.

    >>> percent(0.712), percent(0.9996), percent(1.0), percent(0.9, 1), percent(1e-9)
    ('71%', '99.96%', '100%', '90.0%', 'under 0.01%')
    """
    return Numerals(True, digits, max(digits, _MOST_DECIMALS)).value(share)


def exact_percent(share: float) -> str:
    """Return a share that the user has chosen, with all its digits."""
    return f"{100 * share:.12g}%"


class EstimateText(NamedTuple):
    """A mean, its limits, and both limits as one range."""

    mean: str
    lower: str
    upper: str
    span: str


@dataclass(frozen=True)
class Numerals:
    """Format of the values of a metric, alone and with limits.

    A mean and its limits have the same decimals: as many as show two digits of the width of the
    interval, from `fewest` to `most`, and more if the mean would be rounded to an end of its scale.
    A value that is still rounded to an end is a bound, "under 0.01%".

    >>> PERCENTAGES.estimate(0.7123, 0.6312, 0.7799).span
    '63.1 to 78.0%'
    >>> PERCENTAGES.estimate(0.99996, 0.9991, 0.99999).span
    '99.91 to over 99.99%'
    >>> RATES.estimate(0.000005, 0.0, 0.0000001).span
    '0 to under 0.0001%'
    """

    in_percent: bool
    fewest: int
    most: int

    def decimals(self, width: float) -> int:
        """Return the decimals of a value next to an interval of this width."""
        digits = math.ceil(-math.log10(max(width, 1e-12))) + 1 - 2 * self.in_percent
        return min(max(digits, self.fewest), self.most)

    def value(self, value: float, decimals: int | None = None) -> str:
        """Return a value; by default a percentage with the fewest decimals, else two digits."""
        if decimals is None:
            decimals = self.inside(value, 1.0 if self.in_percent else abs(value))
        if not self.in_percent:
            return bounded(value, decimals)
        if value in (0, 1):
            return f"{100 * value:g}%"
        text = bounded(100 * value, decimals, 100.0)
        return f"{text.replace('<', 'under ').replace('>', 'over ')}%"

    def inside(self, value: float, width: float) -> int:
        """Return the decimals of `decimals`, or more if they would round to an end of the scale."""
        decimals = self.decimals(width)
        while decimals < self.most and self.value(value, decimals).startswith(_BOUNDS):
            decimals += 1
        return decimals

    def span(self, lower: float, upper: float, decimals: int | None = None) -> str:
        """Return the limits of an interval: "63.1 to 78.0%"."""
        decimals = self.decimals(upper - lower) if decimals is None else decimals
        first, last = (self.value(limit, decimals) for limit in (lower, upper))
        if not first.startswith(_BOUNDS):  # "under 0.1%" keeps its unit
            first = first.removesuffix("%")
        return last if first in (last, last.removesuffix("%")) else f"{first} to {last}"

    def estimate(self, mean: float, lower: float, upper: float) -> EstimateText:
        """Return a mean and its limits."""
        decimals = self.inside(mean, upper - lower)
        shown, first, last = (self.value(value, decimals) for value in (mean, lower, upper))
        return EstimateText(shown, first, last, self.span(lower, upper, decimals))


PERCENTAGES = Numerals(in_percent=True, fewest=1, most=2)
RATES = Numerals(in_percent=True, fewest=1, most=4)  # of errors, which may be rare
DECIMALS = Numerals(in_percent=False, fewest=1, most=6)


def chance(probability: float) -> str:
    """Return a probability from draws, which cannot distinguish values within 0.1% of 0 or 1.

    >>> chance(0.0), chance(0.004), chance(0.25), chance(1.0)
    ('below 0.1%', '0.4%', '25%', 'above 99.9%')
    """
    if probability < _SMALLEST_CHANCE:
        return f"below {percent(_SMALLEST_CHANCE, 1)}"
    if probability > 1 - _SMALLEST_CHANCE:
        return f"above {percent(1 - _SMALLEST_CHANCE, 1)}"
    return percent(probability, 0 if 0.01 <= probability <= 0.99 else 1)


def count(k: float, largest: float) -> str:
    """Return a number of classes, which may be infinite (beyond the largest searched) or below 2.

    >>> count(1234.5, 1e12), count(1.0, 1e12), count(math.inf, 1e12)
    ('1,234', 'fewer than 2', 'more than 10^12')
    >>> count(math.inf, 15_000)
    'more than 15,000'
    """
    if k < 2:
        return "fewer than 2"
    if math.isinf(k):
        digits = math.log10(largest)
        is_long = digits.is_integer() and digits > 6
        return f"more than 10^{digits:.0f}" if is_long else f"more than {largest:,.0f}"
    return f"{k:,.0f}"


def by_reason(reasons: Mapping[str, str]) -> list[str]:
    """Sentences with the names that share a reason, and the reason once.

    Examples
    --------
    >>> by_reason({"KDE(ucv)": "no scores", "ClassExReg": "one class", "KDE(bcv)": "no scores"})
    ['KDE(ucv), KDE(bcv): no scores', 'ClassExReg: one class']
    """
    names: dict[str, list[str]] = {}
    for name, reason in reasons.items():
        names.setdefault(reason, []).append(name)
    return [f"{', '.join(sharing)}: {reason}" for reason, sharing in names.items()]


def capitalized(text: str) -> str:
    """Return the text with a capital, unless it begins with a symbol or a name such as nDCG.

    >>> capitalized("no pair is tied"), capitalized("k = 9 is far"), capitalized("nDCG on both")
    ('No pair is tied', 'k = 9 is far', 'nDCG on both')
    """
    return text if text[1:2] == " " or text[1:2].isupper() else text[:1].upper() + text[1:]


def with_error(value: float, error: float) -> str:
    """A number with its standard error, which has two digits.

    >>> with_error(0.73123, 0.02149), with_error(0.5, 0.0)
    ('0.731 (se 0.021)', '0.5000')
    """
    if not error > ROUNDING:
        return f"{value:.4f}"
    decimals = max(1 - int(np.floor(np.log10(error))), 0)
    return f"{value:.{decimals}f} (se {error:.{decimals}f})"
