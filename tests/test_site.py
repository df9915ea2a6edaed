"""Tools of the site: the list of versions, links to other projects, the check of the pages."""

import json
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
SPHINX = pytest.mark.notebooks  # needs the extra docs


@pytest.fixture
def check():
    return runpy.run_path(str(DOCS / "check_pages.py"))


@pytest.mark.parametrize(
    ("html", "fault"),
    [
        ("<p role=heading>Start</p>", "a heading without a level"),
        ("<pre>code</pre>", "cannot be reached"),
        ("<div class='table-wrapper x'></div>", "cannot be reached"),
        ("<img src=a.png>", "no description"),
        ("<img src=a.png alt=a.png>", "no description"),
        (r"<math><mi>\arg</mi></math>", "shows TeX"),
        ("<math><mi>&amp;</mi></math>", "shows TeX"),
        ("<aside></aside><aside></aside>", "2 regions are named ''"),
        ("<a href=x><math>k</math></a>", "a link has no text"),
    ],
)
def test_faults_of_pages_are_seen(check, html, fault):
    (found,) = check["PageCheck"](html).faults
    assert fault in found


def test_a_page_without_faults(check):
    html = """<p role=heading aria-level=2>Start</p><pre tabindex=0>code</pre><img src=a alt=curve>
    <aside aria-label=Site></aside><aside aria-label=Page></aside><a href=x><math>k</math> on</a>"""
    assert check["PageCheck"](html).faults == []


@pytest.mark.parametrize(("html", "code"), [("<p>text</p>", 0), ("<pre>code</pre>", 1)])
def test_the_check_of_a_site_fails_on_faults_alone(check, tmp_path, html, code):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/page.html").write_text(html, encoding="utf-8")
    known = ",".join(f'"{word}":1' for word in check["SEARCHED"])
    (tmp_path / "searchindex.js").write_text(f"{{{known}}}", encoding="utf-8")
    command = [sys.executable, str(DOCS / "check_pages.py"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, "cannot be reached" in done.stderr) == (code, bool(code))


def test_words_of_other_fields_are_in_the_glossary():
    text = (DOCS / "glossary.md").read_text(encoding="utf-8")
    wanted = (
        "KNN, k-NN, nearest neighbour, nearest neighbor, precision, top-5 accuracy, recall@10, "
        "FAISS, confidence interval, few-shot, PyTorch, FNIR, FPIR, ATA, AGA, knot, design effect, "
        "moment likelihood, pilot, favorability, discriminability, marginal, credible interval"
    )
    assert set(wanted.split(", ")) - set(text.splitlines()) == set()


@SPHINX
def test_versions_newest_first(tmp_path):
    tool = runpy.run_path(str(DOCS / "build_version.py"))
    for name in ("0.9.0", "0.10.0", "0.2.1"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "objects.inv").touch()
    (tmp_path / "notes").mkdir()
    tool["index"](tmp_path)
    versions = json.loads((tmp_path / "versions.json").read_text(encoding="utf-8"))
    assert versions == ["0.10.0", "0.9.0", "0.2.1"]
    assert 'url=0.10.0/docs/index.html"' in (tmp_path / "index.html").read_text(encoding="utf-8")


@SPHINX
def test_inventories_are_refreshed():
    refreshed = runpy.run_path(str(DOCS / "_inventories/write.py"))["refreshed"]
    head = "# Sphinx inventory version 1\n# Project: A\n# Version: 1\n"
    theirs = head + "a.B class new/b.html\na.C class c.html\n"
    assert (
        refreshed(head + "a.B class old.html\n", theirs.encode()) == head + "a.B class new/b.html\n"
    )
