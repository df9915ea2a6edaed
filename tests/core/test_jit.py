"""Compiled functions work with and without a place to keep them."""

import numba
import pytest

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


def test_other_errors_are_not_hidden(monkeypatch):
    def broken(**options):
        raise RuntimeError("broken installation")

    monkeypatch.setattr(numba, "njit", broken)
    with pytest.raises(RuntimeError, match="broken installation"):
        compiled()(twice)
