"""No test leaves a figure open."""

import pytest


@pytest.fixture(autouse=True)
def closed():
    from matplotlib import pyplot as plt

    assert plt.get_fignums() == []
    yield
    plt.close("all")
