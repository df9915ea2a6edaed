"""The project around the package: one version, and a readme that needs no clone."""

import re
import runpy
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import yaml

import classex_bayes as cb

ROOT = Path(__file__).parents[1]


def read(place):
    return (ROOT / place).read_text(encoding="utf-8")


def test_the_version_is_one():
    newest = re.search(r"^## \[?([\d.]+)", read("CHANGELOG.md"), re.MULTILINE)
    assert yaml.safe_load(read("CITATION.cff"))["version"] == newest[1] == cb.__version__


def test_the_readme_of_an_index_needs_no_clone(monkeypatch):
    hatchling = ModuleType("hatchling.metadata.plugin.interface")
    hatchling.MetadataHookInterface = object
    monkeypatch.setitem(sys.modules, hatchling.__name__, hatchling)
    hook = runpy.run_path(str(ROOT / "docs/readme_links.py"))["ReadmeOfTheIndex"]()
    hook.root, metadata = str(ROOT), tomllib.loads(read("pyproject.toml"))["project"]
    hook.update(metadata)
    text = metadata["readme"]["text"]
    assert "pip install" in text and re.findall(r"\]\((?!https://|#)[^)]*", text) == []
    assert "clone" not in text and 'install ".[' not in text
