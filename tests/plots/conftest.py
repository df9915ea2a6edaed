"""Plots are drawn without a window, and no test leaves a figure open."""

import matplotlib as mpl
import pytest


@pytest.fixture(autouse=True, scope="module")
def no_window():
    backend = mpl.get_backend()
    mpl.use("agg")
    yield
    mpl.use(backend)


@pytest.fixture(autouse=True)
def closed():
    from matplotlib import pyplot as plt

    assert plt.get_fignums() == []
    yield
    plt.close("all")
