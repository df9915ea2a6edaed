"""What is asked of libraries for devices that need not be installed, told by stand-ins."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from classex_bayes.core.ranks.array_access import to_host
from classex_bayes.core.ranks.array_backends import matmul_roundoff

VALUES = np.arange(6.0).reshape(2, 3)


@pytest.fixture
def torch(monkeypatch):
    """A library whose arrays are of PyTorch's kind."""

    class Tensor:
        def detach(self):
            return self

        def cpu(self):
            return self

        def numpy(self):
            return VALUES

    library = SimpleNamespace(Tensor=Tensor, get_float32_matmul_precision=lambda: "highest")
    monkeypatch.setitem(sys.modules, "torch", library)
    return library


@pytest.fixture
def cupy(monkeypatch):
    """A library whose arrays are of CuPy's kind."""

    class ndarray:
        def get(self):
            return VALUES

    library = SimpleNamespace(ndarray=ndarray)
    monkeypatch.setitem(sys.modules, "cupy", library)
    return library


class Exported:
    """An array that hands its memory over and does nothing else."""

    __array_namespace__ = None

    def __dlpack__(self, **how):
        return VALUES.__dlpack__(**how)

    def __dlpack_device__(self):
        return VALUES.__dlpack_device__()


def test_the_bound_on_rounding_follows_the_precision_of_products(torch, cupy, monkeypatch):
    found = []
    for setting in ("highest", "high", "medium"):
        torch.get_float32_matmul_precision = lambda chosen=setting: chosen
        found.append(matmul_roundoff(torch.Tensor()))
    assert found == [2.0**-24, 2.0**-11, 2.0**-8]  # float32, TF32 and bfloat16
    monkeypatch.delenv("CUPY_TF32", raising=False)
    assert matmul_roundoff(cupy.ndarray()) == 2.0**-24
    monkeypatch.setenv("CUPY_TF32", "1")
    assert matmul_roundoff(cupy.ndarray()) == 2.0**-11
    assert matmul_roundoff(VALUES) == 2.0**-24


def test_values_come_to_the_host_from_every_library(torch, cupy):
    for array in (torch.Tensor(), cupy.ndarray(), Exported(), VALUES):
        assert to_host(array).tolist() == VALUES.tolist()
