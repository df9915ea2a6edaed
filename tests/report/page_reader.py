"""A page as its reader sees it: text, numbers of its tables, and the documented JSON."""

import json
from html.parser import HTMLParser


class Page(HTMLParser):
    """Text, that of elements with an id, numbers of the tables by id, and numbers of tags.

    `unfolded` is the text outside of details, which are closed when the page opens.
    """

    def __init__(self, path):
        super().__init__()
        self.tags, self.ids, self.cells = {}, {}, {}
        self._text, self._unfolded, self._open = [], [], []
        self.feed(path.read_text(encoding="utf-8"))
        self.numbers = json.loads(self.ids["numbers"])
        self.text, self.unfolded = (
            " ".join(" ".join(parts).split()) for parts in (self._text, self._unfolded)
        )

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.tags[tag] = self.tags.get(tag, 0) + 1
        self._open.append((tag, attributes.get("id")))
        if tag == "data":
            table = next((name for tag, name in reversed(self._open) if tag == "table"), None)
            self.cells.setdefault(table, []).append(float(attributes["value"]))

    def handle_endtag(self, tag):
        while self._open and self._open.pop()[0] != tag:
            pass

    def handle_data(self, data):
        around = {tag for tag, _ in self._open}
        if not around & {"script", "style"}:
            self._text.append(data)
            if not around & {"details", "head"}:
                self._unfolded.append(data)
        for _, name in self._open:
            if name:
                self.ids[name] = self.ids.get(name, "") + data
