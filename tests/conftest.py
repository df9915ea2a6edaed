"""One fitted model for all tests: compiling is what costs, so it is done once and shared."""

import gc
import os
import socket
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from hypothesis import settings
from threadpoolctl import threadpool_limits

# Few examples by day, many by night.
settings.register_profile("day", max_examples=20, deadline=None)
settings.register_profile("night", max_examples=400, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "day"))

LOCAL = {"localhost", "127.0.0.1", "::1", "0.0.0.0", ""}
os.environ["MPLBACKEND"] = "agg"  # plots are drawn without a window
# Each core has a process of tests, in which more threads of linear algebra only wait.
threadpool_limits(1, "blas")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # of libraries that are not loaded yet
# Fixtures have no doctests, and folders may each have a file of them.
collect_ignore_glob = ["*conftest.py", "*/conftest.py"]


# Doctests that compile a posterior by PyTensor.
DOCTESTS_BY_NIGHT = {
    "classex_bayes.bayes.model.priors.Prior",
    "classex_bayes.risk.bayesian_risk.BayesianRisk",
}


# The collection makes many objects that stay, among which garbage is searched in vain.
gc.disable()


def pytest_collection_finish():
    gc.freeze()
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    for item in items:
        if item.name in DOCTESTS_BY_NIGHT:
            item.add_marker("nightly")


@pytest.fixture(scope="session", autouse=True)
def no_network():
    """Refuse every connection that leaves this machine: nothing in the package may need one."""
    connect, lookup = socket.socket.connect, socket.getaddrinfo

    def is_local(address):
        host = address[0] if isinstance(address, tuple) else address
        return not isinstance(host, str) or host in LOCAL or host.startswith("/")

    def connect_here(self, address):
        if self.family != socket.AF_UNIX and not is_local(address):
            raise AssertionError(f"a connection to {address} was tried")
        return connect(self, address)

    def look_up_here(host, *rest, **options):
        name = host.decode() if isinstance(host, bytes) else host
        if name is not None and name not in {*LOCAL, socket.gethostname()}:
            raise AssertionError(f"the address of {host} was asked for")
        return lookup(host, *rest, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", connect_here)
        patch.setattr(socket, "getaddrinfo", look_up_here)
        yield


@pytest.fixture(autouse=True)
def closed():
    """No test leaves a figure open."""
    from matplotlib import pyplot as plt

    yield
    plt.close("all")


@pytest.fixture(scope="session")
def fit():
    """Fit a task with few draws."""
    from classex_bayes import BayesianExtrapolator, MixturePrior

    def fit(task, prior=None, random_seed=1, evidence="all", **sampler):
        model = BayesianExtrapolator(prior or MixturePrior(), evidence)
        sampler = {"draws": 500, "tune": 500, "chains": 2, **sampler}
        return model.fit(task, sampler=sampler, random_seed=random_seed, progressbar=False)

    return fit


@pytest.fixture(scope="session")
def pilot():
    """200 classes with two probes each of a law whose accuracy is known at every k."""
    from classex_bayes import SourceTask
    from classex_bayes.simulate import GaussianNearestNeighbor

    law = GaussianNearestNeighbor(dim=10, noise_variance=0.2)
    sample = law.sample(200, repeats=2, random_seed=1)
    return SimpleNamespace(law=law, sample=sample, task=SourceTask.from_embeddings(*sample))


@pytest.fixture(scope="session")
def fitted(fit, pilot):
    """Model fitted to the pilot. Tests may add groups to its `idata`; the draws stay."""
    return fit(pilot.task)


@pytest.fixture(scope="session")
def fitted_to_ranks(fit, pilot):
    """Model fitted to the ranks of the pilot alone."""
    return fit(pilot.task, evidence="ranks")


@pytest.fixture(scope="session")
def fitted_curve(fit, pilot):
    """Model fitted to exact accuracies of the pilot's law at a few k."""
    from classex_bayes import SourceTask

    k = [2, 5, 20, 60, 200]
    return fit(SourceTask.from_accuracies(k, pilot.law.accuracy(k), n_test=400, n_classes=200))


@pytest.fixture(scope="session")
def small_task():
    """Task of independent instances, of any size."""
    from classex_bayes import SourceTask
    from studies.laws import FavorabilityLaw

    def small_task(k1=40, n_test=60, seed=0):
        law = FavorabilityLaw(means=(2.0,), sds=(1.0,))
        ranks, y, _ = law.sample(k1, n_test=n_test, random_seed=seed)
        return SourceTask.from_ranks(ranks, y, n_classes=k1)

    return small_task


@pytest.fixture(scope="session")
def constants():
    """Change private constants of a module, such as the size of its blocks, for a few lines."""

    @contextmanager
    def changed(module, **values):
        with pytest.MonkeyPatch.context() as patch:
            for name, value in values.items():
                patch.setattr(module, name, value)
            yield

    return changed


@pytest.fixture
def short_pages(monkeypatch):
    """Pages with few points and no extrapolation within the pilot, each part of which is a fit."""
    from classex_bayes.evaluate import extrapolation_check
    from classex_bayes.report import page

    monkeypatch.setattr(page, "_N_POINTS", 15)
    monkeypatch.setattr(extrapolation_check, "_FEWEST_PARTS", float("inf"))


@pytest.fixture
def stopped(monkeypatch):
    """Let the sampler return what it returns after an interruption: chains of these lengths."""
    from classex_bayes.bayes import sampling

    def stop(*lengths):
        draw = sampling.sample_by_nutpie

        def interrupted(*arguments):
            tree = draw(*arguments)
            for group in ("posterior", "sample_stats"):
                data = tree[group].to_dataset().isel(draw=slice(max(lengths)))
                for values in data.data_vars.values():
                    if values.dtype.kind == "f":
                        for chain, length in enumerate(lengths):
                            values.values[chain, length:] = float("nan")
                tree[group] = sampling.xr.DataTree(data)
            return tree

        monkeypatch.setattr(sampling, "sample_by_nutpie", interrupted)

    return stop
