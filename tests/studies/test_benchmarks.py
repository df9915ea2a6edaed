"""The benchmarks run; nothing is timed here."""

import json
import math
import re

import pytest

from studies.benchmarks.command import BENCHMARKS, main

ELSEWHERE = {"classex", "pydataless", "searches"}  # need packages that tests do not


@pytest.mark.slow
def test_small_version_writes_every_benchmark(tmp_path):
    page, file = tmp_path / "benchmarks.md", tmp_path / "benchmarks.json"
    main(["--small", "--markdown", str(page), "--json", str(file)])
    run, text = json.loads(file.read_text()), page.read_text()
    assert set(run["measurements"]) | set(run["skipped"]) == set(BENCHMARKS)
    assert set(run["skipped"]) <= ELSEWHERE
    headings = " ".join(re.findall(r"^## .* \((.+)\)$", text, re.MULTILINE))
    assert set(run["measurements"]) <= set(headings.replace(",", "").split())
    values = [r["repeats"] for rows in run["measurements"].values() for r in rows]
    assert all(math.isfinite(value) for repeats in values for value in repeats)


def test_versions_are_compared_pair_by_pair(tmp_path):
    """A clone and a Python that answer at once."""
    clone, python, file = (tmp_path / name for name in ("clone", "python", "run.json"))
    (clone / "classex_bayes").mkdir(parents=True)
    for name in ("__init__.py", "__main__.py"):
        (clone / "classex_bayes" / name).touch()
    python.write_text("#!/bin/sh\n")
    python.chmod(0o755)
    main(["--waits", "help", "--versions", str(clone), str(python), "--json", str(file)])
    old, new, ratio = json.loads(file.read_text())["measurements"]["waits"]
    pairs = zip(old["repeats"], new["repeats"], strict=True)
    assert ratio["repeats"] == [after / before for before, after in pairs]
