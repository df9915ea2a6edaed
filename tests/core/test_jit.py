"""Compiled functions work with and without a place to keep them."""

import os
import subprocess
import sys

import numba
import pytest
from numba.core.caching import IndexDataCacheFile

from classex_bayes.core import jit
from classex_bayes.core.jit import compiled


def twice(x):
    return 2 * x


def without_a_file():
    """Numba has no place for what it compiles of such a function, as on a read-only disk."""
    names = {}
    exec("def twice(x):\n    return 2 * x", names)
    return names["twice"]


@pytest.mark.parametrize("function", [twice, without_a_file()])
def test_functions_compile_wherever_they_are(function):
    assert compiled(nogil=True)(function)(2.5) == 5.0


@pytest.mark.parametrize("damage", ["nothing", "flip", "cut", "empty", "full"])
def test_a_damaged_or_full_cache_is_done_without(damage, tmp_path, monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(tmp_path)
    name = f"halved_{damage}"
    (tmp_path / f"{name}.py").write_text("def halved(x):\n    return x / 2\n")
    function = __import__(name).halved
    if damage == "full":

        def fail(*arguments):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(IndexDataCacheFile, "save", fail)
    assert compiled()(function)(5.0) == 2.5
    files = sorted((tmp_path / "cache").rglob("*.nb?"))
    assert len(files) == (0 if damage == "full" else 2)
    for file in files:
        content = file.read_bytes()
        if damage == "flip":
            content = bytes([content[0] ^ 255]) + content[1:]
        elif damage != "nothing":
            content = content[: len(content) // 2 if damage == "cut" else 0]
        file.write_bytes(content)
    again = compiled()(function)
    assert again(5.0) == 2.5
    assert sum(again.stats.cache_hits.values()) == (damage == "nothing")
    third = compiled()(function)
    assert third(5.0) == 2.5
    assert sum(third.stats.cache_hits.values()) == (damage != "full")  # kept anew


@pytest.mark.nightly
def test_the_wait_for_the_compiler_is_told_once_and_only_then(tmp_path):
    (tmp_path / "work.py").write_text(
        "from classex_bayes.core.jit import compiled\n"
        "@compiled()\ndef half(x):\n    return x / 2\n"
        "@compiled()\ndef twice(x):\n    return x * 2\n"
        "print(twice(half(3.0)), twice(4))\n"
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    first, later = (
        subprocess.run(
            [sys.executable, "-c", "import work"],
            cwd=tmp_path, env=environment, capture_output=True, text=True, check=True,
        )
        for _ in range(2)
    )  # fmt: skip
    assert first.stdout == later.stdout == "3.0 8\n"
    assert first.stderr.splitlines() == ["compiling for some seconds, once per installation"]
    assert later.stderr == ""


def test_another_numba_keeps_functions_in_its_own_cache(tmp_path, monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(jit, "FunctionCache", object)
    function = compiled()(twice)
    assert function(2.5) == 5.0
    assert not isinstance(function._cache, jit.SpareCache)
    assert len(list((tmp_path / "cache").rglob("*.nb?"))) == 2
    assert compiled()(without_a_file())(2.5) == 5.0


def test_other_errors_are_not_hidden(monkeypatch):
    def broken(**options):
        raise RuntimeError("broken installation")

    monkeypatch.setattr(numba, "njit", broken)
    with pytest.raises(RuntimeError, match="broken installation"):
        compiled()(twice)
