"""The documentation: names are in the reference and exist, links lead somewhere."""

import json
import pydoc
import re
from operator import attrgetter
from pathlib import Path
from urllib.parse import unquote

import pytest
from public_names import NAMES

import classex_bayes as cb

ROOT = Path(__file__).parents[1]
PAGES = [
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "notebooks").glob("*.ipynb")),
]
of_pages = pytest.mark.parametrize(
    "page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix()
)


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


@of_pages
def test_links_lead_somewhere(page):
    assert list(dead_links(page)) == []


def test_dead_links_are_seen(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# A title, long\n[a](#a-title-long) [b](#none) [c](none.md) ![d](none.png)\n")
    assert list(dead_links(page)) == ["#none", "none.md", "none.png"]


def test_the_reference_has_every_public_name():
    text = "\n".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs/api").glob("*.md"))
    documented = re.findall(r"^\.\. auto\w+:: classex_bayes\.([\w.]+)$", text, re.MULTILINE)
    values = [attrgetter(name)(cb) for name in documented]  # fails if a name does not exist
    assert [name for name, value in NAMES.items() if value not in values] == []


OF_TAILS = [name for name in vars(cb.TailPrior()) if name.endswith("_sd")]
# Fields of the default priors by the parameter whose row of the background has their numbers.
PRIORS = {
    **{sd.removesuffix("_sd"): (sd.removesuffix("_sd"), sd) for sd in OF_TAILS},
    "mu": ("location", "location_sd"),
    "tau": ("scale", "scale_log_sd"),
    "separation": ("separation",),
    "imbalance": (None, "imbalance"),
    "tail": ("tail", "tail_sd"),
    "sigma": ("deviation",),
}


@pytest.mark.parametrize("name", PRIORS)
def test_priors_of_the_background_are_the_defaults(name):
    text = (ROOT / "docs/background.md").read_text(encoding="utf-8")
    (law,) = re.findall(rf"^\|.*\| `{name}` \|.*?([^|]+)\|$", text, re.MULTILINE)
    numbers = re.findall(r"-?\d+\.?\d*", law.replace("^2", "").replace("t_3", ""))
    defaults = {**vars(cb.MixturePrior()), **vars(cb.TailPrior()), None: 0.0}
    assert [float(number) for number in numbers] == [defaults[field] for field in PRIORS[name]]


@of_pages
def test_names_on_pages_exist(page):
    names = set(re.findall(r"\bcb\.(\w+(?:\.[a-zA-Z]\w*)*)", page.read_text(encoding="utf-8")))
    assert [name for name in names if pydoc.locate(f"classex_bayes.{name}") is None] == []
