"""Check that everyone can use the built pages: `python docs/check_pages.py build/docs`.

It needs no browser and no network. Headings have a level, regions of a page have different names,
pictures have a description, links have a text, formulas show no TeX, parts that scroll sideways can
be reached with the keyboard, and the search knows the words of other fields.
"""

import re
import sys
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

SCROLLS = re.compile(r"(^|\s)(math|table-wrapper|output text_html)(\s|$)")
SEARCHED = ("knn", "nn", "neighbor", "neighbour", "faiss", "pytorch", "shot", "confid", "fpir")


class PageCheck(HTMLParser):
    """Faults of one page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.faults: list[str] = []
        self._asides: Counter[str] = Counter()
        self._link: list[str] | None = None  # texts of the link that is open
        self._in_formula = False
        self.feed(html)
        self.faults += [
            f"{n} regions are named {name!r}" for name, n in self._asides.items() if n > 1
        ]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Look at one element."""
        given = {name: value or "" for name, value in attrs}
        kind = f"<{tag} class={given.get('class', '')!r}>"
        if given.get("role") == "heading" and "aria-level" not in given:
            self.faults.append(f"{kind} is a heading without a level")
        if (tag == "pre" or SCROLLS.search(given.get("class", ""))) and "tabindex" not in given:
            self.faults.append(f"{kind} scrolls and cannot be reached with the keyboard")
        if tag == "img":
            if given.get("alt", "") in ("", given.get("src")):
                self.faults.append(f"{given.get('src')} has no description")
            self._text(given.get("alt", ""))
        if tag == "aside":
            self._asides[given.get("aria-label", "")] += 1
        if tag == "math":
            self._in_formula = True
        if tag == "a" and "href" in given:
            self._link = [given.get("aria-label", ""), given.get("title", "")]

    def handle_endtag(self, tag: str) -> None:
        """A link that ends has had a text. Formulas have no name, so they are none."""
        if tag == "math":
            self._in_formula = False
        if tag == "a" and self._link is not None:
            if not "".join(self._link).strip():
                self.faults.append("a link has no text")
            self._link = None

    def handle_data(self, data: str) -> None:
        """Text of the page."""
        if self._in_formula and re.search(r"[\\&]", data):
            self.faults.append(f"a formula shows TeX: {data.strip()}")
        self._text(data)

    def _text(self, text: str) -> None:
        if self._link is not None and not self._in_formula:
            self._link.append(text)


def faults(site: Path) -> list[str]:
    """Faults of all pages of a site, and words that its search does not find."""
    found = [
        f"{page.relative_to(site)}: {fault}"
        for page in sorted(site.rglob("*.html"))
        if page.parent != site or page.name != "index.html"  # leads to the start page
        for fault in PageCheck(page.read_text("utf-8")).faults
    ]
    index = (site / "searchindex.js").read_text("utf-8")
    unknown = [word for word in SEARCHED if not re.search(rf'["{{,]{word}"?:', index)]
    return found + [f"the search does not find {word!r}" for word in unknown]


if __name__ == "__main__":
    # An empty text would be a failure, too.
    sys.exit("\n".join(faults(Path(sys.argv[1]))) or None)
