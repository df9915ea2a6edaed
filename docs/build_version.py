"""Build this version of the site into a folder of its own: `python docs/build_version.py SITE`.

SITE/0.1.0/ gets the pages, SITE/versions.json the list that the side bar offers, newest first, and
SITE/index.html leads to the newest. Run it at each release with the same SITE; any static host
serves the folder.
"""

import json
import re
import shutil
import sys
from pathlib import Path

from sphinx.cmd.build import main

import classex_bayes

ROOT = Path(__file__).parents[1]


def newest_first(site: Path) -> list[str]:
    """Names of the versions' folders."""
    names = [path.parent.name for path in site.glob("*/objects.inv")]
    return sorted(names, key=lambda name: [int(n) for n in re.findall(r"\d+", name)], reverse=True)


def index(site: Path) -> None:
    """Write the list of versions, and the page that leads to the newest."""
    versions = newest_first(site)
    (site / "versions.json").write_text(json.dumps(versions) + "\n", encoding="utf-8")
    page = (ROOT / "docs/_root/index.html").read_text(encoding="utf-8")
    page = page.replace("docs/index.html", f"{versions[0]}/docs/index.html")
    (site / "index.html").write_text(page, encoding="utf-8")


def build(site: Path) -> int:
    """Build the pages, with warnings as errors."""
    folder = site / classex_bayes.__version__
    failed = main(["-W", "-n", "-q", "-c", str(ROOT / "docs"), str(ROOT), str(folder)])
    shutil.rmtree(site / "jupyter_execute", ignore_errors=True)  # notebooks, which were not run
    if not failed:
        index(site)
    return failed


if __name__ == "__main__":
    sys.exit(build(Path(sys.argv[1])))
