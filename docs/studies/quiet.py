"""Fits to many pilots without the warnings that each of them may have."""

import warnings
from contextlib import contextmanager

from classex_bayes.exceptions import ConvergenceWarning, DataWarning, ExtrapolationWarning


@contextmanager
def quiet():
    """Leave out warnings of doubtful data, far predictions and few draws."""
    with warnings.catch_warnings():
        for category in (DataWarning, ExtrapolationWarning, ConvergenceWarning):
            warnings.simplefilter("ignore", category)
        yield
