"""Libraries for devices that need not be installed, replaced by stand-ins."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from classex_bayes.core.ranks.device import matmul_roundoff

VALUES = np.arange(6.0).reshape(2, 3)


class Tensor:
    """An array of PyTorch's kind."""


class ndarray:
    """An array of CuPy's kind."""


@pytest.fixture
def torch(monkeypatch):
    backends = SimpleNamespace(cuda=SimpleNamespace(matmul=SimpleNamespace()))
    library = SimpleNamespace(Tensor=Tensor, backends=backends)
    monkeypatch.setitem(sys.modules, "torch", library)
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(ndarray=ndarray, generic=ndarray))
    return library


def test_the_bound_on_rounding_follows_the_precision_of_products(torch, monkeypatch):
    # float32, TF32 and bfloat16
    for setting, roundoff in (("highest", 2.0**-24), ("high", 2.0**-11), ("medium", 2.0**-8)):
        torch.get_float32_matmul_precision = lambda setting=setting: setting
        assert matmul_roundoff(Tensor()) == roundoff
    # Settings since PyTorch 2.9: of products, and of everything where those have none.
    products = torch.backends.cuda.matmul
    for of_products, of_all, roundoff in (
        ("none", "none", 2.0**-24),
        ("none", "tf32", 2.0**-11),
        ("ieee", "tf32", 2.0**-24),
        ("tf32", "none", 2.0**-11),
        ("bf16", "none", 2.0**-8),
    ):
        products.fp32_precision, torch.backends.fp32_precision = of_products, of_all
        assert matmul_roundoff(Tensor()) == roundoff
    monkeypatch.delenv("CUPY_TF32", raising=False)
    assert matmul_roundoff(ndarray()) == 2.0**-24
    monkeypatch.setenv("CUPY_TF32", "1")
    assert matmul_roundoff(ndarray()) == 2.0**-11
    assert matmul_roundoff(VALUES) == 2.0**-24
