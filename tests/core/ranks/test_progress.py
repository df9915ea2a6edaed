"""Listeners hear of the passes inside their block, and of no others."""

import pytest

from classex_bayes.core.ranks.progress import tell, watching


def test_listeners_hear_only_what_happens_inside_their_block():
    outer, inner = [], []
    with watching(lambda *told: outer.append(told)):
        tell(1, 3)
        with (
            pytest.raises(KeyboardInterrupt),
            watching(lambda *told: inner.append(told)),
        ):
            tell(2, 3)
            raise KeyboardInterrupt
        tell(3, 3)
    tell(4, 3)
    assert outer == [(1, 3), (3, 3)] and inner == [(2, 3)]
