"""The tables of docs/command_line.md, and whether a document has exactly their keys."""

import re
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs/command_line.md").read_text(encoding="utf-8")


def section(title):
    """Text below a heading, up to the next one."""
    return re.split(r"^#+ ", PAGE.split(f"# {title}\n")[1], flags=re.MULTILINE)[0]


def _rows(text):
    """First column of a table, and the keys in the second: name, "[]" of lists, "?" of null."""
    for first, keys in re.findall(r"^\| (.*?) \| (`.+?) \|", text, re.MULTILINE):
        yield first, {name: marks for name, *marks in re.findall(r"`(\w+)(\[\])?(\?)?`", keys)}


_VERBS, _OBJECTS = section("JSON").split("| Object |")
_COMMON = dict(_rows(_VERBS))["every verb"]
VERBS = {
    verb: _COMMON | keys for verbs, keys in _rows(_VERBS) for verb in re.findall("`(.+?)`", verbs)
}
OBJECTS = {
    (name, owner): keys
    for names, keys in _rows(_OBJECTS)
    for name, owner in re.findall(r"`(\w+)(?:\[\])?`(?: of `([\w-]+)`)?", names)
}


def conform(document):
    """Assert that a document has the keys that the page lists for its verb."""
    _conform(document, VERBS[document["verb"]], document["verb"])


def _conform(document, keys, owner):
    assert set(document) == set(keys), owner
    for name, (is_list, may_be_null) in keys.items():
        value = document[name]
        if value is None:
            assert may_be_null, (owner, name)
            continue
        assert isinstance(value, list) is bool(is_list), (owner, name)
        below = OBJECTS.get((name, owner), OBJECTS.get((name, "")))
        for item in value if is_list else [value]:
            assert isinstance(item, dict) is bool(below), (owner, name)
            if below:
                _conform(item, below, name)
