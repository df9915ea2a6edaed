"""The benchmarks run and are right; nothing is timed here."""

import sys

import pytest
import typer

from classex_bayes.benchmarks.__main__ import main
from classex_bayes.benchmarks.measurement import BENCHMARKS, Measurement, time_ratio


def test_small_version_prints_every_benchmark(tmp_path, capsys):
    main(small=True, markdown=tmp_path / "benchmarks.md")
    assert "PASS" in capsys.readouterr().out
    lines = (tmp_path / "benchmarks.md").read_text().splitlines()
    for name in BENCHMARKS:
        assert any(f"--only {name} |" in line for line in lines)
        assert any(line.startswith(f"- `{name}`: ") for line in lines)
    assert any("ranks from JAX arrays | 1 equal to NumPy's | >= 1 | PASS" in s for s in lines)


def test_a_ratio_below_its_reach_fails(monkeypatch, capsys):
    measured = [Measurement("slow", 0.5, 0.7, "rate"), Measurement("big", 2.0, 1.0, "size", True)]
    monkeypatch.setitem(BENCHMARKS, "bad", lambda small: measured)
    main(only=["bad"])
    out = capsys.readouterr().out
    assert out.count("FAIL") == 2 and "PASS" not in out


def test_what_needs_a_missing_package_is_skipped_and_the_rest_runs(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "jax", None)
    monkeypatch.setitem(BENCHMARKS, "fast", lambda small: [Measurement("fast", 0.9, 0.7, "rate")])
    main(only=["devices", "fast"], small=True)
    out = capsys.readouterr().out
    assert out.count("SKIP") == 1 and out.count("PASS") == 1 and "needs jax" in out


def test_unknown_benchmark():
    with pytest.raises(typer.BadParameter, match="found x; there are"):
        main(only=["x"])


def test_time_ratio_runs_both_in_turn():
    calls = []
    assert time_ratio(lambda: calls.append("a"), lambda: calls.append("b"), repeats=3) > 0
    assert "".join(calls) == "ab" * 4
