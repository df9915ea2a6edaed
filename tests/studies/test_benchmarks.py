"""The benchmarks run and are right; nothing is timed here."""

import json
import sys

import numpy as np
import pytest

import classex_bayes as cb
from studies.benchmarks.command import main
from studies.benchmarks.measurement import BENCHMARKS, Measurement, time_ratios
from studies.benchmarks.measurement_files import BenchmarkRun, comparison

ELSEWHERE = {"classex", "pydataless"}  # need an environment of their own


@pytest.mark.slow
def test_small_version_prints_every_benchmark(tmp_path, capsys):
    page, file = tmp_path / "benchmarks.md", tmp_path / "benchmarks.json"
    main(["--small", "--markdown", str(page), "--json", str(file)])
    assert "PASS" in capsys.readouterr().out
    lines = page.read_text().splitlines()
    for name in BENCHMARKS:
        assert any(f"--only {name} |" in line for line in lines)
        assert any(line.startswith(f"- `{name}`: ") for line in lines)
    assert any(
        "ranks from JAX arrays | 1 of the ranks equal NumPy's | >= 1 | PASS" in s for s in lines
    )
    run = json.loads(file.read_text())
    assert {row["benchmark"] for row in run["measurements"]} == set(BENCHMARKS) - ELSEWHERE
    assert set(run["skipped"]) == ELSEWHERE
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
    main(["--only", "devices", "pydataless", "bad", "--small"])
    out = capsys.readouterr().out
    assert (out.count("FAIL"), out.count("PASS"), out.count("SKIP")) == (2, 1, 2)
    assert "needs jax" in out and "pydataless==1.1.0" in out


def test_another_package_stands_beside_ours(tmp_path):
    """One that answers as pydataless does, with numbers of its own."""
    program, file = tmp_path / "python", tmp_path / "run.json"
    program.write_text("#!/bin/sh\necho PitmanYor 0.5 0.9 0.8 0.7\necho PitmanYor 0.7 0.9 0.8 0.7")
    program.chmod(0o755)
    main(["--only", "pydataless", "--small", "--pydataless", str(program), "--json", str(file)])
    theirs, ours, difference = BenchmarkRun.read(file).measurements["pydataless"]
    assert theirs.repeats == [0.5, 0.7] and theirs.value == pytest.approx(0.6)
    assert theirs.passed is None and theirs.at_most and len(ours.repeats) == 2
    known = np.array([2, 3, 5, 10, 20, 50, 100])
    task = cb.load_glyphs().task().subsample(100, random_seed=3)
    curve = cb.SourceTask.from_accuracies(
        known, task.accuracy(known), n_test=task.n_test, n_classes=100
    )
    apart = cb.estimators.PitmanYor().fit(curve).predict([200, 1000, 3000]).mean - [0.9, 0.8, 0.7]
    assert difference.value == pytest.approx(apart.abs().max())


def run_of(**repeats):
    return BenchmarkRun(
        {
            name: [Measurement(name, values, 1.0, unit, at_most)]
            for name, (values, unit, at_most) in repeats.items()
        },
        {},
    )


def test_two_runs_are_compared():
    old = run_of(
        seconds=([4.0, 5.0, 6.0], "seconds", True),
        share=([0.4, 0.5, 0.6], "rate", False),
        steady=([1.0, 1.1], "rate", False),
        single=([1.0], "size", True),
        lost=([1.0], "size", True),
    )
    new = run_of(
        seconds=([1.0, 2.0, 3.0], "seconds", True),
        share=([0.1, 0.2, 0.3], "rate", False),
        steady=([1.05, 1.2], "rate", False),
        single=([2.0], "size", True),
        first=([1.0], "size", True),
    )
    table = comparison(old, new).set_index("benchmark")
    rows = {name: (row["new / old"], row[""]) for name, row in table.iterrows()}
    assert rows["seconds"] == ("0.400", "better") and rows["share"] == ("0.400", "worse")
    assert rows["steady"][1] == "within the ranges" and rows["single"] == ("2.000", "no range")
    assert rows["lost"] == ("", "gone") and rows["first"] == ("", "new")
    # Ratios stand before times, which say as much of the machine.
    assert list(rows).index("share") < list(rows).index("seconds")


def test_time_ratios_run_both_in_turn():
    calls = []
    ratios = time_ratios(lambda: calls.append("a"), lambda: calls.append("b"), repeats=3)
    assert len(ratios) == 3 and min(ratios) > 0
    assert "".join(calls) == "ab" * 4
