"""The tables of docs/command_line.md, and whether a document has exactly their keys and types."""

import re
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs/command_line.md").read_text(encoding="utf-8")
_KINDS = {
    "text": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "null": lambda value: value is None,
    "object": lambda value: isinstance(value, dict),
    "list": lambda value: isinstance(value, list),
    "list of text": lambda value: (
        isinstance(value, list) and all(isinstance(item, str) for item in value)
    ),
}


def section(title):
    """Text below a heading, up to the next one."""
    return re.split(r"^#+ ", PAGE.split(f"# {title}\n")[1], flags=re.MULTILINE)[0]


def schemas():
    """Types of all keys by their paths, for each verb."""
    found = {}
    shared = _types(section("JSON of every verb"))
    for title in re.findall(r"^### (JSON of `.*)$", PAGE, re.MULTILINE):
        types = _types(section(title))
        found |= dict.fromkeys(re.findall("`(.+?)`", title), shared | types)
    return found


def _types(text):
    return dict(re.findall(r"^\| `([\w.\[\]]+)` \| ([a-z ]+) \|", text, re.MULTILINE))


def conform(document):
    """Assert that a document is what the page says of its verb."""
    _conform(document, "", schemas()[document["verb"]])


def _conform(value, path, types):
    if isinstance(value, dict):
        place = f"{path}." if path else ""
        below = {p.removeprefix(place) for p in types if p.startswith(place)}
        assert set(value) == {p for p in below if re.fullmatch(r"\w+", p)}, path
        for name, item in value.items():
            wanted = types[place + name].split(" or ")
            assert any(_KINDS[kind](item) for kind in wanted), (place + name, item)
            _conform(item, place + name, types)
    elif isinstance(value, list) and types[path] == "list":
        for item in value:
            _conform(item, f"{path}[]", types)
