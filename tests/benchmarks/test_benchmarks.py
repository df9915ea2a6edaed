"""The benchmarks run and are right; nothing is timed here."""

import json
import sys

import numpy as np
import pytest
import typer

import classex_bayes as cb
from studies.benchmarks.command import main
from studies.benchmarks.measurement import BENCHMARKS, Measurement, time_ratios
from studies.benchmarks.measurement_files import BenchmarkRun

ELSEWHERE = {"classex", "pydataless"}  # need an environment of their own


def test_small_version_prints_every_benchmark(tmp_path, capsys):
    main(small=True, markdown=tmp_path / "benchmarks.md", json=tmp_path / "benchmarks.json")
    assert "PASS" in capsys.readouterr().out
    lines = (tmp_path / "benchmarks.md").read_text().splitlines()
    for name in BENCHMARKS:
        assert any(f"--only {name} |" in line for line in lines)
        assert any(line.startswith(f"- `{name}`: ") for line in lines)
    assert any(
        "ranks from JAX arrays | 1 of the ranks equal NumPy's | >= 1 | PASS" in s for s in lines
    )
    run = json.loads((tmp_path / "benchmarks.json").read_text())
    assert {row["benchmark"] for row in run["measurements"]} == set(BENCHMARKS) - ELSEWHERE
    assert set(run["skipped"]) == ELSEWHERE
    assert run["machine"]["cores"] >= 1 and {"cpu", "numpy", "pymc"} <= set(run["machine"])
    for row in run["measurements"]:
        low, high = row["range"]
        assert low <= row["value"] <= high and row["repeats"] and row["unit"]


def test_a_ratio_below_its_reach_fails(monkeypatch, capsys):
    measured = [
        Measurement("slow", [0.5], 0.7, "rate"),
        Measurement("big", [2.0], 1.0, "size", True),
        Measurement("theirs", [3.0], None, "seconds"),
    ]
    monkeypatch.setitem(BENCHMARKS, "bad", lambda setup: measured)
    main(only=["bad"])
    out = capsys.readouterr().out
    assert out.count("FAIL") == 2 and "PASS" not in out


@pytest.mark.parametrize(
    ("name", "module", "reason"), [("devices", "jax", "jax"), ("cold", "typer", "typer")]
)
def test_what_needs_a_missing_package_is_skipped_and_the_rest_runs(
    monkeypatch, capsys, name, module, reason
):
    monkeypatch.setitem(sys.modules, module, None)
    fast = [Measurement("fast", [0.9], 0.7, "rate")]
    monkeypatch.setitem(BENCHMARKS, "fast", lambda setup: fast)
    main(only=[name, "fast"], small=True)
    out = capsys.readouterr().out
    assert out.count("SKIP") == 1 and out.count("PASS") == 1 and f"needs {reason}" in out


def test_other_packages_say_what_they_need(capsys):
    main(only=["classex", "pydataless"], small=True)
    out = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert out.count("SKIP") == 2 and "--r-library FOLDER" in out and "pydataless==1.1.0" in out


@pytest.fixture
def stand_in(tmp_path):
    """A program of some lines of shell in the place of another Python."""

    def write(lines):
        path = tmp_path / "python"
        path.write_text(f"#!/bin/sh\n{lines}\n")
        path.chmod(0o755)
        return path

    return write


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("echo 'No module named dataless' >&2; exit 1", "No module named dataless"),
        ("", "it printed no error"),
        (None, "cannot be started"),
    ],
)
def test_another_package_that_fails_is_skipped(lines, said, stand_in, tmp_path, capsys):
    program = tmp_path / "missing" if lines is None else stand_in(lines)
    main(only=["pydataless"], small=True, pydataless=program)
    out = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert "SKIP" in out and said in out


def test_another_package_stands_beside_ours(stand_in, tmp_path):
    """One that answers as pydataless does, with numbers of its own."""
    program = stand_in("echo PitmanYor 0.5 0.9 0.8 0.7\necho PitmanYor 0.7 0.9 0.8 0.7")
    file = tmp_path / "run.json"
    main(only=["pydataless"], small=True, pydataless=program, json=file)
    theirs, ours, difference = BenchmarkRun.read(file).measurements["pydataless"]
    assert theirs.repeats == [0.5, 0.7] and theirs.value == pytest.approx(0.6)
    assert theirs.passed is None and theirs.at_most and len(ours.repeats) == 2
    known = np.array([2, 3, 5, 10, 20, 50, 100])
    task = cb.load_glyphs().task().subsample(100, random_seed=3)
    curve = cb.SourceTask.from_accuracies(
        known, task.accuracy(known), n_test=task.n_test, n_classes=100
    )
    apart = cb.PitmanYor().fit(curve).predict([200, 1000, 3000]).mean - [0.9, 0.8, 0.7]
    assert difference.value == pytest.approx(apart.abs().max())


def run_of(path, **repeats):
    measurements = {
        name: [Measurement(name, values, 1.0, unit, at_most)]
        for name, (values, unit, at_most) in repeats.items()
    }
    BenchmarkRun(measurements, {}).write(path)
    return path


def test_two_runs_are_compared(tmp_path, capsys):
    old = run_of(
        tmp_path / "old.json",
        seconds=([4.0, 5.0, 6.0], "seconds", True),
        share=([0.4, 0.5, 0.6], "rate", False),
        steady=([1.0, 1.1], "rate", False),
        single=([1.0], "size", True),
        lost=([1.0], "size", True),
    )
    new = run_of(
        tmp_path / "new.json",
        seconds=([1.0, 2.0, 3.0], "seconds", True),
        share=([0.1, 0.2, 0.3], "rate", False),
        steady=([1.05, 1.2], "rate", False),
        single=([2.0], "size", True),
        first=([1.0], "size", True),
    )
    main(compare=(old, new))
    out = capsys.readouterr().out
    rows = {}
    for line in out.splitlines():
        cells = [cell.strip() for cell in line.strip("│").split("│")]
        if cells[0] in {"seconds", "share", "steady", "single", "lost", "first"}:
            rows[cells[0]] = cells[1], cells[-1]
    assert rows["seconds"] == ("0.400", "better") and rows["share"] == ("0.400", "worse")
    assert rows["steady"][1].startswith("within") and rows["single"] == ("2.000", "no range")
    assert rows["lost"] == ("", "gone") and rows["first"] == ("", "new")
    # Ratios stand before times, which say as much of the machine.
    assert list(rows).index("share") < list(rows).index("seconds")


RUN = {
    "version": "1",
    "date": "today",
    "skipped": {},
    "small": True,
    "machine": {"cores": 1, "cpu": "a"},
}
RUN["machine"]["python"] = "3"
ROW = {"benchmark": "a", "name": "b", "repeats": [1.0], "reach": 1, "unit": "s", "at_most": True}


@pytest.mark.parametrize(
    "content",
    [
        "{}",
        "[1]",
        "[" * 100_000,
        json.dumps({**RUN, "machine": {}, "measurements": []}),
        json.dumps({**RUN, "machine": [], "measurements": []}),
        *(
            json.dumps({**RUN, "measurements": [{**ROW, "repeats": repeats}]})
            for repeats in ([], None, ["a"], 3, [float("nan")])
        ),
    ],
)
def test_a_file_of_something_else_is_refused(content, tmp_path, capsys):
    (tmp_path / "sound.json").write_text(json.dumps({**RUN, "measurements": [ROW]}))
    main(compare=(tmp_path / "sound.json", tmp_path / "sound.json"))
    told = capsys.readouterr().out
    assert told.count("run with --small") == 2 and "no range" not in told
    (tmp_path / "other.json").write_text(content)
    for other in ("other.json", "missing.json", "."):
        with pytest.raises(typer.BadParameter, match="not a file of benchmarks"):
            main(compare=(tmp_path / "sound.json", tmp_path / other))


def test_a_folder_that_is_missing_is_told_before_the_work(tmp_path):
    with pytest.raises(typer.BadParameter, match="there is no folder"):
        main(only=["density"], small=True, json=tmp_path / "nowhere" / "a.json")


def test_unknown_benchmark():
    with pytest.raises(typer.BadParameter, match="found x, expected names among"):
        main(only=["x"])


def test_time_ratios_run_both_in_turn():
    calls = []
    ratios = time_ratios(lambda: calls.append("a"), lambda: calls.append("b"), repeats=3)
    assert len(ratios) == 3 and min(ratios) > 0
    assert "".join(calls) == "ab" * 4
