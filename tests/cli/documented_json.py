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
    for title in re.findall(r"^### (JSON of `.*)$", PAGE, re.MULTILINE):
        for verb in re.findall("`(.+?)`", title):
            found[verb] = _types(section("JSON of every verb"), verb) | _types(section(title))
    return found


def _types(text, verb=""):
    """Types of the keys of a table, without those that it says a verb lacks."""
    types, lacking = {}, set()
    row = r"^\| (`.+?`) \| ([a-z ]+) \| .*? \|(.*)$"
    for keys, kind, without in re.findall(row, text, re.MULTILINE):
        paths = [path for key in re.findall("`(.+?)`", keys) for path in _expanded(key)]
        types |= dict.fromkeys(paths, kind)
        if f"`{verb}`" in without:
            lacking |= set(paths)
    return {path: kind for path, kind in types.items() if re.split(r"\W", path)[0] not in lacking}


def _expanded(key):
    """The keys `a.b` and `a.c` of `a.{b, c}`."""
    place, brace, names = key.partition("{")
    return [place + name for name in names.removesuffix("}").split(", ")] if brace else [key]


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
