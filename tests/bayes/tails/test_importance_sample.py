"""The search for the mode, from which proposals are drawn."""

import numpy as np
import pytest

from classex_bayes.bayes.tails.importance_sample import mode_of


@pytest.mark.parametrize("mean", [30.0, 300.0])
@pytest.mark.parametrize("scale", [10.0, 1000.0])
def test_the_mode_is_found_although_a_step_overflows(mean, scale):
    """The density of a Gumbel law has its mode at 0 and overflows below -709."""

    def log_density(points):
        return (-points - np.exp(-points))[:, 0]

    found = mode_of(log_density, np.array([mean]), np.array([scale]))
    np.testing.assert_allclose(found, 0, atol=0.01)
