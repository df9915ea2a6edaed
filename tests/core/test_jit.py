"""Compiled functions work with and without a place to keep them."""

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
