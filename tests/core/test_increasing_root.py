"""Roots of increasing functions: inverses, ends of the bracket, and shapes."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from classex_bayes.core.normal_law import increasing_root


@given(st.lists(st.floats(-20, 20), min_size=1, max_size=6))
def test_inverse_and_ends(goals):
    goal = np.array(goals)
    root = increasing_root(lambda x, goal: np.sinh(x) - goal, (-2.0, 3.0), goal, xrtol=1e-14)
    low, high = np.sinh([-2.0, 3.0])
    inside = (goal > low) & (goal < high)
    np.testing.assert_allclose(root[inside], np.arcsinh(goal[inside]), rtol=1e-12, atol=1e-14)
    assert np.all(root[goal <= low] == -np.inf) and np.all(root[goal >= high] == np.inf)


def test_brackets_and_shapes():
    goal = np.array([[1.0, 4.0, 9.0]])
    lower = np.array([0.5, 1.5, 4.0])
    root = increasing_root(lambda x, goal: x**2 - goal, (lower, lower + 1), goal)
    np.testing.assert_allclose(root, [[1.0, 2.0, -np.inf]])
    assert increasing_root(lambda x, goal: x - goal, (0.0, 1.0), np.empty(0)).shape == (0,)
