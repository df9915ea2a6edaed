"""A callback is called by the passes inside its block, and by no others."""

import pytest

from classex_bayes.core.rank_pass import progress_callback, report_progress


def test_callbacks_are_called_only_inside_their_block():
    outer, inner = [], []
    with progress_callback(lambda *counts: outer.append(counts)):
        report_progress(1, 3)
        with (
            pytest.raises(KeyboardInterrupt),
            progress_callback(lambda *counts: inner.append(counts)),
        ):
            report_progress(2, 3)
            raise KeyboardInterrupt
        report_progress(3, 3)
    report_progress(4, 3)
    assert outer == [(1, 3), (3, 3)] and inner == [(2, 3)]
