"""The project around the package: versions agree, workflows run what the pages say."""

import re
import runpy
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest
import yaml

import classex_bayes as cb

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def read(place):
    return (ROOT / place).read_text(encoding="utf-8")


def test_the_version_is_one():
    cited = yaml.safe_load(read("CITATION.cff"))
    newest = re.search(r"^## \[?([\d.]+)", read("CHANGELOG.md"), re.MULTILINE)
    assert cited["version"] == newest[1] == cb.__version__
    assert [author["name"] for author in PROJECT["authors"]] == [
        author["name"] for author in cited["authors"]
    ]


def test_the_address_of_the_repository_stands_once():
    address = PROJECT["urls"]["Repository"]
    assert all(link.startswith(address) for link in PROJECT["urls"].values())
    places = [
        "README.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        "CITATION.cff",
        "docs/readme_links.py",
    ]
    assert [place for place in places if address in read(place)] == []


def test_the_readme_of_an_index_needs_no_clone(monkeypatch):
    hatchling = ModuleType("hatchling.metadata.plugin.interface")
    hatchling.MetadataHookInterface = object
    monkeypatch.setitem(sys.modules, hatchling.__name__, hatchling)
    hook = runpy.run_path(str(ROOT / "docs/readme_links.py"))["ReadmeOfTheIndex"]()
    hook.root, metadata = str(ROOT), dict(PROJECT)
    hook.update(metadata)
    text = metadata["readme"]["text"]
    assert 'pip install "classex-bayes[cli]" && classex-bayes demo' in text
    assert "clone" not in text.split("## Develop")[0]
    assert re.findall(r"\]\((?!https://|#)[^)]*", text) == []


def test_the_paper_quotes_the_table_of_the_corpus():
    rows = re.findall(r"^\| \w[^|]* \| 0\.\d.*$", read("docs/paper/paper.md"), re.MULTILINE)
    assert len(rows) == 5 and set(rows) <= set(read("docs/corpus.md").splitlines())


def test_the_paper_has_every_reference_that_it_cites():
    cited = re.findall(r"@([a-z]+\d{4})\b", read("docs/paper/paper.md"))
    listed = re.findall(r"^@\w+\{(\w+),", read("docs/paper/paper.bib"), re.MULTILINE)
    assert set(cited) == set(listed) and len(listed) == len(set(listed))


# Source archives have the tests, but not the workflows.
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
in_a_clone = pytest.mark.skipif(not WORKFLOWS, reason="no clone: a source archive")


def jobs():
    for file in WORKFLOWS:
        yield from yaml.safe_load(read(file))["jobs"].values()


@in_a_clone
def test_workflows_run_blocks_of_pages():
    commands = [step["run"] for job in jobs() for step in job["steps"] if "run" in step]
    blocks = re.findall(r'\.ci/block "?([\w ]+)"?', "\n".join([*commands, read(".ci/run")]))
    marks = re.findall(r"^<!-- ci: (.+) -->$", read("README.md") + read("CONTRIBUTING.md"), re.M)
    assert sorted(marks) == sorted(set(blocks))
    # The package is imported within blocks alone, which install it first.
    assert not re.search(r"import classex_bayes|from classex_bayes", "\n".join(commands))


@in_a_clone
def test_workflows_try_every_python_that_is_claimed():
    named = re.findall(r'"(3\.\d+)"', read(".github/workflows/tests.yml"))
    prefix = "Programming Language :: Python :: 3."
    claimed = [text[len(prefix) - 2 :] for text in PROJECT["classifiers"] if prefix in text]
    assert sorted(set(named)) == sorted(claimed)
    assert PROJECT["requires-python"] == f">={claimed[0]}"
