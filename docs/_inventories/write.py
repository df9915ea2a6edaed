"""Find the listed names in the projects' own documentation again: needs the network.

`python docs/_inventories/write.py` reads the inventory of each project, keeps the names that its
file lists, and writes where they stand now. To link to another name, add a line `NAME class -`.
"""

import runpy
import sys
from pathlib import Path
from urllib.request import urlopen

from sphinx.util.inventory import InventoryFile

HERE = Path(__file__).parent


def refreshed(text: str, inventory: bytes) -> str:
    """Lines of a text inventory with the locations that a project's own inventory gives."""
    where = InventoryFile.loads(inventory, uri="").data
    *header, last = text.splitlines()[:3]
    lines = [*header, last]
    for line in text.splitlines()[3:]:
        name, kind, _ = line.split()
        location = where[f"py:{kind}"][name].uri.partition("#")[0].lstrip("/")
        lines.append(f"{name} {kind} {location}")
    return "\n".join(lines) + "\n"


def write() -> None:
    """Write every file anew."""
    projects = runpy.run_path(str(HERE.parent / "conf.py"))["intersphinx_mapping"]
    for project, (address, _) in projects.items():
        path = HERE / f"{project}.txt"
        with urlopen(f"{address}objects.inv") as answer:
            path.write_text(refreshed(path.read_text("utf-8"), answer.read()), "utf-8")


if __name__ == "__main__":
    sys.exit(write())
