"""Writes the tables of docs/sampling.md, from what two commands wrote into a folder.

From the root of the repository, after `design_coverage.py` and `known_templates.py`:
`python docs/figures/draw_sampling.py FOLDER`.
"""

import sys
from pathlib import Path

import pandas as pd
from studies.pages import markdown, version, write_parts


def designs(folder):
    """A row for each population and way of drawing, without the design and with it."""
    table = pd.read_csv(folder / "design_coverage.csv")
    rows = []
    for cell, part in table.groupby(["population", "drawn", "pilot"], sort=False):
        row = dict(zip(("population", "drawn", "k1"), cell, strict=True))
        for told, name in (("not told", "without"), ("told", "with")):
            near, far = (at for _, at in part[part["design"] == told].sort_values("k").iterrows())
            row |= {
                f"held {name}": f"{near['held']:.2f}, {far['held']:.2f}",
                f"error {name}": f"{far['rmse']:.3f}",
            }
        rows.append(row)
    held = table.groupby(["design"])["held"].mean()
    text = markdown(pd.DataFrame(rows), {})
    return (
        f"{text}\n\nAll cells together: intervals held {held['told']:.2f} with the design, "
        f"{held['not told']:.2f} without. {table['pilots'].max()} pilots in each cell. {version()}"
    )


def templates(folder):
    """A row for each number of templates."""
    table = pd.read_csv(folder / "known_templates.csv")
    names = {"rmse": "error", "held": "90% held"}
    text = markdown(
        table.drop(columns=["pilots", "bias"]).rename(columns=names),
        {"templates": ",d", "error": ".3f", "90% held": ".2f", "width": ".3f"},
    )
    return f"{text}\n\n{table['pilots'].max()} pilots. {version()}"


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    write_parts("sampling.md", {"designs": designs(folder), "templates": templates(folder)})
