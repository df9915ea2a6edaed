"""Tables that studies write into the pages, between marks."""

import textwrap
from collections.abc import Mapping
from datetime import date
from pathlib import Path

import pandas as pd

import classex_bayes as cb

DOCS = Path(__file__).parents[1]
FIGURES = DOCS / "figures"


def version() -> str:
    """Version and month, for readers of numbers that a study computed."""
    return f"Version {cb.__version__}, {date.today():%B %Y}."


def paragraph(text: str) -> str:
    """Text in lines as long as those of the pages."""
    return textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False)


def markdown(table: pd.DataFrame, formats: Mapping[str, str] | None = None) -> str:
    r"""Return a table in Markdown; columns that `formats` does not name are text.

    >>> print(markdown(pd.DataFrame({"k": [2, 3], "a|b": [0.91, float("nan")]}), {"a|b": ".1f"}))
    | k | a\|b |
    |---|---|
    | 2 | 0.9 |
    | 3 |  |
    """
    formats = formats or {}
    rows = [
        [
            "" if pd.isna(value) else format(value, formats.get(name, ""))
            for name, value in zip(table.columns, row, strict=True)
        ]
        for row in table.itertuples(index=False)
    ]
    escaped = [[str(cell).replace("|", r"\|") for cell in row] for row in [table.columns, *rows]]
    lines = [f"| {' | '.join(row)} |" for row in escaped]
    return "\n".join([lines[0], "|---" * table.shape[1] + "|", *lines[1:]])


def write_parts(page: str, parts: Mapping[str, str]) -> None:
    """Replace the parts of a page that stand between `<!-- part -->` and `<!-- end of part -->`.

    `page` is a path from the folder docs.
    """
    path = DOCS / page
    text = path.read_text(encoding="utf-8")
    for part, content in parts.items():
        begin, end = f"<!-- {part} -->", f"<!-- end of {part} -->"
        before, found, rest = text.partition(begin)
        _, ends, after = rest.partition(end)
        assert found and ends, f"{page} has no place for {part}"
        text = f"{before}{begin}\n{content.strip()}\n{end}{after}"
    path.write_text(text, encoding="utf-8")


def publish(pages: Mapping[str, Mapping[str, str]], write: bool) -> None:
    """Print the parts of pages, or write them into the pages."""
    for page, parts in pages.items():
        if write:
            write_parts(page, parts)
        else:
            for part, content in parts.items():
                print(f"{page}: {part}\n\n{content.strip()}\n", flush=True)
