"""The command line, run in the process of the tests."""

import json
import logging
import os
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import joblib
import numpy as np
import pymc as pm
import pytest
from documented_json import conform

from classex_bayes import cli
from classex_bayes.bayes import sampling
from classex_bayes.simulate import GaussianNearestNeighbor
from classex_bayes.task.source_task import SourceTask


@pytest.fixture(scope="session")
def few():
    """Options of a short fit."""
    return ["--draws", "150", "--chains", "2", "--seed", "3"]


@pytest.fixture(scope="session")
def pilot():
    """60 classes with two probes each of a law whose accuracy is known at every k."""
    law = GaussianNearestNeighbor(dim=10, noise_variance=0.2)
    sample = law.sample(60, repeats=2, random_seed=1)
    return SimpleNamespace(law=law, sample=sample, task=SourceTask.from_embeddings(*sample))


_DRAWS = {}


@pytest.fixture(autouse=True)
def drawn_once(monkeypatch):
    """Sample with a short warm-up, and nothing twice: the same seed gives the same draws."""
    draw = sampling.sample_by_nutpie

    def remembered(prior, data, settings, seed):
        settings = replace(settings, tune=min(settings.tune, 200))
        key = joblib.hash((prior, data, settings, seed))
        if key not in _DRAWS:
            _DRAWS[key] = draw(prior, data, settings, seed)
        return _DRAWS[key].copy(deep=True)

    monkeypatch.setattr(sampling, "sample_by_nutpie", remembered)
    return draw


_DENSITIES = {}


@pytest.fixture(autouse=True)
def compiled_once(monkeypatch):
    """Compile the prior density, which is that of one prior, for every set of draws once."""
    compute = pm.stats.compute_log_prior

    def remembered(idata, **options):
        draws = {name: values.values for name, values in idata["posterior"].data_vars.items()}
        key = joblib.hash(draws)
        if key not in _DENSITIES:
            _DENSITIES[key] = compute(idata, **options)
        return _DENSITIES[key].copy(deep=True)

    monkeypatch.setattr(pm.stats, "compute_log_prior", remembered)


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    """Run a command in this process, so that the model is compiled once for all tests."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["classex-bayes", *map(str, arguments)])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
            sys.exit(0)
        streams = capsys.readouterr()
        return stopped.value.code or 0, streams.out, streams.err

    return run


@pytest.fixture
def process():
    """Run a command in a process of its own, with variables of its environment."""

    def process(*arguments, **variables):
        code = (
            "import sys; sys.argv[0] = 'classex-bayes'; from classex_bayes.cli import main; main()"
        )
        command = [sys.executable, "-W", "error", "-c", code, *map(str, arguments)]
        return subprocess.run(
            command, capture_output=True, text=True, check=False, env={**os.environ, **variables}
        )

    return process


@pytest.fixture(autouse=True)
def closed():
    from matplotlib import pyplot as plt

    yield
    plt.close("all")


@pytest.fixture(autouse=True)
def log_of_other_tests():
    """A run with --quiet leaves its level of the log; a process of its own would end with it."""
    log = logging.getLogger("classex_bayes")
    level = log.level
    yield
    log.setLevel(level)


@pytest.fixture
def scores(tmp_path, pilot):
    probes, gallery, y = pilot.sample
    distances = ((probes[:, None] - gallery) ** 2).sum(axis=-1)
    np.savez(tmp_path / "scores.npz", scores=-distances, y=y)
    return "scores.npz"


@pytest.fixture
def embeddings(tmp_path, pilot):
    probes, gallery, y = pilot.sample
    np.savez(tmp_path / "pilot.npz", probes=probes, gallery=gallery, y=y)
    return "pilot.npz"


@pytest.fixture(scope="session")
def strict():
    """Read JSON as the standard has it, which knows no NaN; a verb's is as documented."""

    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    def read(text):
        document = json.loads(text, parse_constant=refuse)
        if "verb" in document:
            conform(document)
        return document

    return read
