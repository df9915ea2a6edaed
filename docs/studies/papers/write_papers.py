"""Writes the tables of docs/papers.md and copies the figures, from what the command wrote.

From the root of the repository, after `classex-bayes study --all ... --out FOLDER`, as the page
says: `python docs/figures/write_papers.py FOLDER`.
"""

import re
import sys
from pathlib import Path

from studies.pages import DOCS, write_parts
from PIL import Image

FIGURES = {
    "figure3": "figure3",
    "figure4": "figure4",
    "figure5": "figure5",
    "figure6": "figure6",
    "figure7": "figure7-k500-seed0",
    "figure8": "figure8-k500-seed0",
    "figure10": "figure10-characters-seed0",
}


def main(folder):
    """Put every table of the folder that the page has a place for there."""
    page = (DOCS / "papers.md").read_text(encoding="utf-8")
    names = re.findall(r"<!-- end of (.+?) -->", page)
    tables = {name: (folder / f"{name}.md").read_text(encoding="utf-8") for name in names}
    write_parts("papers.md", {name: f"{text.strip()}\n" for name, text in tables.items()})
    for ours, drawn in FIGURES.items():
        # Few colours make the files several times smaller, and look the same.
        picture = Image.open(folder / f"{drawn}.png").convert("RGB").quantize(64)
        picture.save(DOCS / "figures" / f"{ours}.png", optimize=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
