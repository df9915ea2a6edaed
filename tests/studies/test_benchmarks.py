"""The benchmarks run and are right; nothing is timed here."""

import json
import re
import sys

import numpy as np
import pytest

import classex_bayes as cb
from studies.benchmarks import searches
from studies.benchmarks.command import BENCHMARKS, main
from studies.benchmarks.measurement import Measurement, Setup

ELSEWHERE = {"classex", "pydataless", "searches"}  # need packages that tests do not


@pytest.mark.slow
def test_small_version_prints_every_benchmark(tmp_path, capsys):
    page, file = tmp_path / "benchmarks.md", tmp_path / "benchmarks.json"
    main(["--small", "--markdown", str(page), "--json", str(file)])
    assert "PASS" in capsys.readouterr().out
    lines = page.read_text().splitlines()
    headings = [line for line in lines if line.startswith("## ")]
    assert lines[0] == "# Benchmarks"
    assert [re.search(r"\((\w+)\)$", line)[1] for line in headings] == list(BENCHMARKS)
    run = json.loads(file.read_text())
    assert set(run["measurements"]) | set(run["skipped"]) == set(BENCHMARKS)
    assert set(run["skipped"]) <= ELSEWHERE
    assert run["machine"]["cores"] >= 1 and {"cpu", "numpy", "pymc"} <= set(run["machine"])


def test_a_value_beyond_its_target_fails_and_what_lacks_a_package_is_skipped(monkeypatch, capsys):
    measured = [
        Measurement("slow", [0.5], 0.7, "rate"),
        Measurement("big", [2.0], 1.0, "size", True),
        Measurement("fast", [0.9], 0.7, "rate"),
        Measurement("theirs", [3.0], None, "seconds"),
    ]
    monkeypatch.setitem(BENCHMARKS, "bad", lambda setup: measured)
    monkeypatch.setitem(sys.modules, "jax", None)
    main(["--only", "gpu", "pydataless", "bad", "--small"])
    out = capsys.readouterr().out
    assert (out.count("FAIL"), out.count("PASS"), out.count("SKIP")) == (2, 1, 2)
    assert "needs jax" in out and "pydataless==1.1.0" in out


def test_another_package_stands_beside_ours(tmp_path):
    """One that answers as pydataless does, with numbers of its own."""
    program, file = tmp_path / "python", tmp_path / "run.json"
    program.write_text("#!/bin/sh\necho PitmanYor 0.5 0.9 0.8 0.7\necho PitmanYor 0.7 0.9 0.8 0.7")
    program.chmod(0o755)
    main(["--only", "pydataless", "--small", "--pydataless", str(program), "--json", str(file)])
    theirs, ours, difference = json.loads(file.read_text())["measurements"]["pydataless"]
    assert theirs["repeats"] == [0.5, 0.7] and len(ours["repeats"]) == 2
    assert theirs["reach"] is None and theirs["at_most"]
    known = np.array([2, 3, 5, 10, 20, 50, 100])
    task = cb.load_glyphs().task().subsample(100, random_seed=3)
    curve = cb.SourceTask.from_accuracies(
        known, task.accuracy(known), n_test=task.n_test, n_classes=100
    )
    apart = cb.estimators.PitmanYor().fit(curve).predict([200, 1000, 3000]).mean - [0.9, 0.8, 0.7]
    assert difference["repeats"] == [pytest.approx(apart.abs().max())]


def test_versions_answer_in_turn_and_are_compared_pair_by_pair(tmp_path):
    """A clone and a Python; each notes that it was called."""
    log, clone, python, file = (tmp_path / name for name in ("log", "clone", "python", "run.json"))
    (clone / "classex_bayes").mkdir(parents=True)
    (clone / "classex_bayes/__init__.py").touch()
    (clone / "classex_bayes/__main__.py").write_text(
        f"open({str(log)!r}, 'a').write('a'); memory = b'x' * 50_000_000"
    )
    python.write_text(f"#!/bin/sh\n[ -z $PYTHONPATH ] && [ $3 = --help ] && printf b >> {log}")
    python.chmod(0o755)
    main(["--waits", "help", "--versions", str(clone), str(python), "--json", str(file)])
    assert log.read_text() == "ab" * 4  # one round warms up
    old, new, ratio = json.loads(file.read_text())["measurements"]["waits"]
    assert str(clone) in old["name"] and str(python) in new["name"]
    pairs = zip(old["repeats"], new["repeats"], strict=True)
    assert ratio["repeats"] == [after / before for before, after in pairs]
    assert len(ratio["repeats"]) == 3
    assert 50 < old["megabytes"] < 100 and 0 < new["megabytes"] < 50
    python.write_text("#!/bin/sh\necho broken >&2\nexit 1")
    with pytest.raises(AssertionError, match="broken"):
        main(["--waits", "help", "--versions", str(python)])


FAISS = """
import numpy as np
class IndexFlatL2:
    def __init__(self, n_coordinates): pass
    def add(self, gallery): self.gallery = gallery.astype(float)
    def search(self, probes, k):
        distances = ((probes.astype(float)[:, None] - self.gallery) ** 2).sum(axis=2)
        return None, distances.argsort(axis=1)[:, :k]
"""


@pytest.mark.nightly
def test_other_libraries_search_as_we_do(tmp_path, monkeypatch):
    """A module that answers as FAISS does, if FAISS itself is not installed."""
    (tmp_path / "faiss.py").write_text(FAISS)
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    ours, *peers, equal = searches.searches(Setup(small=True))
    assert "from_embeddings" in ours.name and equal.value == 1
    assert len(peers) == 5 and all(peer.value > 0 for peer in peers)
