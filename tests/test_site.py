"""Tools of the site: the list of versions, links to other projects, the check of the pages."""

import json
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
SPHINX = pytest.mark.notebooks  # needs the extra docs


@pytest.mark.parametrize(
    ("html", "n_faults"),
    [
        ("<p role=heading>Start</p>", 1),
        ("<pre>code</pre>", 1),
        ("<img src=a.png alt=a.png>", 1),
        (r"<math><mi>\arg</mi></math>", 1),
        ("<aside></aside><aside></aside>", 1),
        ("<a href=x><math>k</math></a>", 1),
        ("<p role=heading aria-level=2>Start</p><pre tabindex=0>code</pre>", 0),
        ("<img src=a alt=curve><a href=x><math>k</math> on</a>", 0),
    ],
)
def test_the_check_of_a_site_fails_on_faults_alone(tmp_path, html, n_faults):
    check = runpy.run_path(str(DOCS / "check_pages.py"))
    assert len(check["PageCheck"](html).faults) == n_faults
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/page.html").write_text(html, encoding="utf-8")
    words = dict.fromkeys(check["SEARCHED"], 1)
    (tmp_path / "searchindex.js").write_text(json.dumps(words, separators=(",", ":")))
    command = [sys.executable, str(DOCS / "check_pages.py"), str(tmp_path)]
    assert subprocess.run(command, capture_output=True, check=False).returncode == n_faults


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
