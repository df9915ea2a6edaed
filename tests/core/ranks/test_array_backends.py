"""Libraries for devices that need not be installed, replaced by stand-ins."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from classex_bayes.core.ranks.array_backends import matmul_roundoff, to_host

VALUES = np.arange(6.0).reshape(2, 3)


class Tensor:
    """An array of PyTorch's kind: `detach().cpu().numpy()` brings the values."""

    def detach(self):
        return self

    cpu, numpy = detach, lambda self: VALUES


class ndarray:
    """An array of CuPy's kind: `get()` brings the values."""

    def get(self):
        return VALUES


class Exported:
    """An array that hands its memory over and does nothing else."""

    __array_namespace__ = None

    def __dlpack__(self, **options):
        return VALUES.__dlpack__(**options)

    def __dlpack_device__(self):
        return VALUES.__dlpack_device__()


@pytest.fixture
def torch(monkeypatch):
    library = SimpleNamespace(Tensor=Tensor)
    monkeypatch.setitem(sys.modules, "torch", library)
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(ndarray=ndarray, generic=ndarray))
    return library


def test_the_bound_on_rounding_follows_the_precision_of_products(torch, monkeypatch):
    # float32, TF32 and bfloat16
    for setting, roundoff in (("highest", 2.0**-24), ("high", 2.0**-11), ("medium", 2.0**-8)):
        torch.get_float32_matmul_precision = lambda setting=setting: setting
        assert matmul_roundoff(Tensor()) == roundoff
    monkeypatch.delenv("CUPY_TF32", raising=False)
    assert matmul_roundoff(ndarray()) == 2.0**-24
    monkeypatch.setenv("CUPY_TF32", "1")
    assert matmul_roundoff(ndarray()) == 2.0**-11
    assert matmul_roundoff(VALUES) == 2.0**-24


def test_values_come_to_the_host_from_every_library(torch):
    for array in (Tensor(), ndarray(), Exported(), VALUES):
        assert to_host(array).tolist() == VALUES.tolist()
