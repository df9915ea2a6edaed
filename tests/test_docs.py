"""The documentation: public names are in the reference, links within the project lead somewhere."""

import json
import re
from pathlib import Path
from types import ModuleType
from urllib.parse import unquote

import pytest

import classex_bayes as cb

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
PAGES = [
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *NOTEBOOKS,
]


def text_of(page):
    """Markdown of a page, or of a notebook's cells, without code blocks."""
    text = page.read_text(encoding="utf-8")
    if page.suffix == ".ipynb":
        cells = json.loads(text)["cells"]
        text = "\n\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")
    return re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)


def anchors(page):
    """Anchors of a page's headings, as code hosts and MyST make them."""
    titles = re.findall(r"^#+ +(.+)$", text_of(page), flags=re.MULTILINE)
    plain = (re.sub(r"[^\w\- ]", "", title.lower()) for title in titles)
    return {title.strip().replace(" ", "-") for title in plain}


def dead_links(page):
    """Targets within the project that do not exist."""
    for target in re.findall(r"\]\(([^)\s]+)\)", text_of(page)):
        path, _, anchor = unquote(target).partition("#")
        if "://" in path:
            continue
        file = (page.parent / path).resolve() if path else page
        pages = {".md", ".ipynb"}
        if not file.exists() or (anchor and file.suffix in pages and anchor not in anchors(file)):
            yield target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page):
    assert list(dead_links(page)) == []


def test_dead_links_are_seen(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# A title, long\n[a](#a-title-long) [b](#none) [c](none.md) ![d](none.png)\n")
    assert list(dead_links(page)) == ["#none", "none.md", "none.png"]


def test_every_public_name_is_in_the_reference():
    text = "\n".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs/api").glob("*.md"))
    documented = set(re.findall(r"^\.\. auto\w+:: classex_bayes\.([\w.]+)$", text, re.MULTILINE))
    wanted = {name for name in cb.__all__ if not isinstance(getattr(cb, name), str | ModuleType)}
    for module in ("identification", "information", "plots", "risk", "simulate"):
        names = getattr(cb, module).__all__
        wanted |= {f"{module}.{name}" for name in names if name not in cb.__all__}
    assert wanted - documented == set()
