"""Bad calls of the whole package raise one error that names the argument; its remedy works.

A module of `bad_calls` has the rows of an area.
"""

import pkgutil
import re
import warnings
from importlib import import_module

import bad_calls
import pytest

import classex_bayes as cb

AREAS = [module.name for module in pkgutil.iter_modules(bad_calls.__path__)]
ROWS = [(area, row) for area in AREAS for row in import_module(f"bad_calls.{area}").ROWS]


def name(area, row):
    """Area, call, argument and words, for the list of tests."""
    call = getattr(row.call, "func", row.call)
    call = getattr(call, "__name__", type(call).__name__).replace("<lambda>", "")
    return f"{area} {call} {row.argument} {row.words}"[:80].encode("ascii", "replace").decode()


@pytest.mark.parametrize("row", [row for _, row in ROWS], ids=[name(*row) for row in ROWS])
def test_a_bad_call_is_one_error_that_names_it(row, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(cb.DataError) as caught:
            row.call(**row.values)
        message = str(caught.value)
        assert message.startswith(f"{row.argument}: " if row.argument else "")
        words = ".*".join(map(re.escape, row.words.split()))
        assert re.search(words, message.removeprefix(row.argument), re.DOTALL), message
        assert len(message) < 500
        if row.remedy is not None:
            row.remedy()
