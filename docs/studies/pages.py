"""Tables that commands write into the pages, between marks."""

import re
from datetime import date
from pathlib import Path

import pandas as pd

import classex_bayes as cb

DOCS = Path("docs")


def version():
    """Version and month, for readers of figures that a command made."""
    return f"Version {cb.__version__}, {date.today():%B %Y}."


def markdown(table, formats):
    """A table in Markdown; columns that `formats` does not name are text."""
    lines = ["| " + " | ".join(table.columns) + " |", "|---" * table.shape[1] + "|"]
    for row in table.itertuples(index=False):
        cells = [
            "" if pd.isna(value) else format(value, formats.get(name, ""))
            for name, value in zip(table.columns, row, strict=True)
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def write_parts(name, parts):
    """Replace the parts of a page that stand between `<!-- part -->` and `<!-- end of part -->`."""
    page = DOCS / name
    text = page.read_text(encoding="utf-8")
    for part, content in parts.items():
        begin, end = f"<!-- {part} -->", f"<!-- end of {part} -->"
        text, times = re.subn(
            re.escape(begin) + ".*?" + re.escape(end),
            lambda _, content=content, begin=begin, end=end: f"{begin}\n{content}\n{end}",
            text,
            flags=re.DOTALL,
        )
        assert times == 1, part
    page.write_text(text, encoding="utf-8")
