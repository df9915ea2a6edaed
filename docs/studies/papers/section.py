"""One Markdown page with the tables and figures of the papers, computed again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import pandas as pd

from classex_bayes._version import __version__
from classex_bayes.io.whole_files import write_text

CAPTIONS = {
    "figure3": "Toy example: the joint density of label and instance, and a problem of 3 classes.",
    "figure4": "Distribution of the accuracy of random label sets for k = 2 to 10.",
    "figure5": "Level curves of the favorability, and D(u).",
    "figure6": "Accuracy and D(u) for correlations 0.3 to 0.9.",
    "figure7": "RMSE of every estimator against the true accuracy.",
    "figure8": "Bias of every estimator against the true accuracy.",
    "figure10": "Predicted curves from single pilots beside the accuracy of the whole test.",
}
NOT_DRAWN = (
    "Figures 1, 2 and 9 of jmlr2018 and the figures of draft2016 and thesis2017 are diagrams and "
    "photographs that show no numbers."
)


@dataclass(frozen=True)
class Section:
    """A table of a paper: name, title, a text on its computation, and its cells as text."""

    name: str
    title: str
    text: str
    table: pd.DataFrame

    @property
    def markdown(self) -> str:
        """Version, date, text and table."""
        made = f"Version {__version__}, {date.today():%B %Y}. {self.text}"
        return f"{made}\n\n{markdown_table(self.table.reset_index())}\n"

    def write(self, folder: Path) -> Path:
        """Write the Markdown, without the title, to a file in the folder."""
        path = folder / f"{self.name}.md"
        write_text(self.markdown, path)
        return path


def markdown_table(table: pd.DataFrame) -> str:
    r"""Return a table of text as Markdown.

    >>> print(markdown_table(pd.DataFrame({"k": ["2", "3"], "a|b": ["0.9", ""]})))
    | k | a\|b |
    |---|---|
    | 2 | 0.9 |
    | 3 |  |
    """
    rows = [table.columns, *table.itertuples(index=False)]
    escaped = [[str(cell).replace("|", "\\|") for cell in row] for row in rows]
    lines = [f"| {' | '.join(row)} |" for row in escaped]
    return "\n".join([lines[0], "|---" * table.shape[1] + "|", *lines[1:]])


def write_papers(
    sections: Sequence[Section],
    figures: Mapping[str, Path],
    missing: Mapping[str, str],
    folder: Path,
    command: str,
) -> Path:
    """Write the page: tables, figures with captions, and the parts that are left out.

    `missing` maps titles of left-out parts to their requirements. `command` makes the page again.
    """
    parts = [
        "# The papers' tables and figures, computed again",
        f"Written by `{command}`, version {__version__}, {date.today():%d %B %Y}.",
    ]
    for section in sections:
        parts += [f"## {section.title}", section.markdown.strip()]
    parts.append("## Figures")
    for name, path in figures.items():
        what, _, source = name.partition("-")
        number = f"Figure {what.removeprefix('figure')}{f' ({source})' if source else ''}"
        parts.append(f"![{number}]({path.name})\n\n{number}: {CAPTIONS[what]}")
    parts.append("## Left out")
    parts += [f"- {title}: {needs}" for title, needs in missing.items()]
    parts.append(NOT_DRAWN)
    page = folder / "papers.md"
    write_text("\n\n".join(parts) + "\n", page)
    return page
