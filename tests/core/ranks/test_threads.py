"""Threads that share the parts of a block of work."""

import subprocess
import sys

import pytest

from classex_bayes.core.ranks import threads
from classex_bayes.core.ranks.threads import for_each, ranges

FORKING = """
import os, sys
import numpy as np
from classex_bayes.core.ranks.threads import available_threads, for_each
np.zeros(1) @ np.zeros(1)
seen = []
for_each(seen.append, range(8))
child = os.fork()
if child == 0:
    seen.clear()
    for_each(seen.append, range(8))
    os._exit(0 if sorted(seen) == list(range(8)) else 1)
sys.exit(os.waitpid(child, 0)[1])
"""


@pytest.mark.parametrize("n_threads", [1, 2, 3])
def test_every_part_is_done_once(n_threads, monkeypatch):
    monkeypatch.setattr(threads, "available_threads", lambda: n_threads)
    seen = []
    for_each(seen.append, range(100))
    assert sorted(seen) == list(range(100))


def test_an_error_comes_through():
    def fail(part):
        raise ValueError(f"part {part}")

    with pytest.raises(ValueError, match="part"):
        for_each(fail, range(10))


def test_a_forked_process_has_threads_of_its_own():
    run = subprocess.run([sys.executable, "-W", "ignore", "-c", FORKING], timeout=60)
    assert run.returncode == 0


def test_ranges():
    assert ranges(7, 3) == [slice(0, 3), slice(3, 6), slice(6, 7)]
