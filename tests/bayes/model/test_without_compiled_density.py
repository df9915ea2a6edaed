"""The compiled density is an option: a fit that cannot use it goes through PyMC, and says so."""

import importlib.util
import logging
import sys

import numpy as np
import nutpie
import pytest
from numba import types
from numba.core.caching import IndexDataCacheFile

from classex_bayes import BayesianExtrapolator, MixturePrior, SourceTask
from classex_bayes.bayes.model import density, nutpie_model

PRIOR = MixturePrior(deviation=0)
TASK = SourceTask.from_ranks([1] * 45 + [2, 3, 6, 10, 31], range(50), n_classes=50)


class OfTheUser(MixturePrior):
    """A prior whose density the folder does not know, though it is the same.

    It equals that of the package, so that one compiled PyMC model serves both.
    """

    def __eq__(self, other):
        return isinstance(other, MixturePrior) and self.deviation == other.deviation

    __hash__ = MixturePrior.__hash__


class AnotherNutpie:
    """The private class of a nutpie whose constructor takes other arguments."""

    def __init__(self, log_density, size):
        raise AssertionError("reached")


def fit(prior):
    settings = {"sampler": {"draws": 2000, "chains": 2}, "random_seed": 1, "progressbar": False}
    return BayesianExtrapolator(prior).fit(TASK, **settings)


@pytest.fixture(scope="module")
def fast():
    return fit(PRIOR)


@pytest.mark.nightly
@pytest.mark.parametrize("reason", ["prior of the user", "another nutpie"])
def test_without_it_the_posterior_is_the_same(reason, fast, monkeypatch, caplog):
    prior = PRIOR
    if reason == "prior of the user":
        prior = OfTheUser(deviation=0)
    else:
        monkeypatch.setattr(nutpie_model, "CompiledPyMCModel", AnotherNutpie)
    with caplog.at_level(logging.WARNING, "classex_bayes"):
        slow = fit(prior)
    assert ("compiles its PyMC model" in caplog.text) == (reason == "another nutpie")
    k = [50, 500, 5000]
    first, second = slow.predict(k), fast.predict(k)
    assert not np.array_equal(first.accuracy, second.accuracy)
    sd = [prediction.accuracy.std(("chain", "draw")).values for prediction in (first, second)]
    ess = [model.diagnosis_.ess_bulk for model in (slow, fast)]
    error = np.sqrt(sd[0] ** 2 / ess[0] + sd[1] ** 2 / ess[1])
    assert np.all(np.abs(first.mean - second.mean) < 4 * error)
    np.testing.assert_allclose(sd[0], sd[1], rtol=0.2)


class PyMCIsCompiledError(Exception):
    """A fit compiles its PyMC model."""


@pytest.fixture
def compiles_pymc(monkeypatch):
    """A context in which a fit must compile its PyMC model."""

    def compile_anew(model):
        raise PyMCIsCompiledError

    monkeypatch.setattr(nutpie, "compile_pymc_model", compile_anew)
    return pytest.raises(PyMCIsCompiledError)


def test_priors_that_are_not_written_out_are_compiled(compiles_pymc, caplog):
    with compiles_pymc:
        fit(OfTheUser(deviation=0, scale=0.7))
    assert not caplog.text


@pytest.mark.parametrize("model_class", [AnotherNutpie, None])
def test_a_nutpie_of_another_version_is_noticed_before_the_fit(
    model_class, compiles_pymc, monkeypatch, caplog
):
    monkeypatch.setattr(nutpie_model, "CompiledPyMCModel", model_class)
    with compiles_pymc:
        fit(MixturePrior(deviation=0, scale=0.9))
    assert "compiled density" in caplog.text


def test_a_numba_that_fails_is_noticed_before_the_fit(compiles_pymc, monkeypatch, caplog):
    monkeypatch.setitem(sys.modules, nutpie_model.__name__, None)
    with compiles_pymc:
        fit(MixturePrior(deviation=0, scale=0.8))
    assert "compiled density" in caplog.text


# Where numba keeps what it compiles


@pytest.fixture
def function(tmp_path):
    """A function with a file of its own, beside which numba keeps what it compiles."""
    (tmp_path / "counting.py").write_text("def double(n):\n    return 2 * n\n")
    spec = importlib.util.spec_from_file_location("counting", tmp_path / "counting.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.double


def no_space(*arguments):
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize("disk", ["sound", "damaged", "full", "no folder"])
def test_the_cache_may_fail(disk, function, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr("numba.core.config.CACHE_DIR", "")
    compile_anew = density.c_function(types.int64)
    if disk == "damaged":
        compile_anew(function)
        kept = list(tmp_path.rglob("*.nb?"))
        assert kept
        for file in kept:
            file.write_bytes(b"damaged")
    elif disk == "full":
        monkeypatch.setattr(IndexDataCacheFile, "save", no_space)
    elif disk == "no folder":
        names = {}
        exec("def double(n):\n    return 2 * n", names)
        function = names["double"]
    with caplog.at_level(logging.INFO, "classex_bayes"):
        assert compile_anew(function).ctypes(4) == 8
    assert ("cache" in caplog.text) == (disk != "sound")
