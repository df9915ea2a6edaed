"""The command line, run in the process of the tests."""

import copy
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
from helpers import random_scores

import classex_bayes as cb
from classex_bayes import cli
from classex_bayes.bayes import sampling
from classex_bayes.simulate import GaussianNearestNeighbor


@pytest.fixture(scope="session")
def few():
    """Options of a short fit."""
    return ["--draws", "150", "--chains", "2", "--seed", "3"]


@pytest.fixture(scope="session")
def pilot():
    """60 classes with two probes each of a law whose accuracy is known at every k."""
    law = GaussianNearestNeighbor(dim=10, noise_variance=0.2)
    sample = law.sample(60, repeats=2, random_seed=1)
    task = cb.SourceTask.from_embeddings(*sample)
    return SimpleNamespace(law=law, sample=sample, task=task)


@pytest.fixture(scope="session")
def python():
    """The models of Python with the settings of a short fit."""

    def fitted(task, model=cb.BayesianExtrapolator, seed=3, **settings):
        sampler = {"draws": 150, "chains": 2}
        if model is cb.BayesianExtrapolator:
            settings["progressbar"] = False
        return model().fit(task, sampler=sampler, random_seed=seed, **settings)

    return fitted


_KEPT = {}


@pytest.fixture(autouse=True)
def computed_once(monkeypatch):
    """Sample with a short warm-up, and nothing twice."""
    draw, density = sampling.sample_by_nutpie, pm.stats.compute_log_prior

    def kept(key, compute):
        if key not in _KEPT:
            _KEPT[key] = compute()
        return copy.deepcopy(_KEPT[key])

    def drawn(prior, data, settings, seed):
        settings = replace(settings, tune=min(settings.tune, 200))
        arguments = prior, data, settings, seed
        return kept(joblib.hash(arguments), lambda: draw(*arguments))

    def log_prior(idata, **options):
        draws = {name: values.values for name, values in idata["posterior"].data_vars.items()}
        return kept(joblib.hash(draws), lambda: density(idata, **options))

    monkeypatch.setattr(sampling, "sample_by_nutpie", drawn)
    monkeypatch.setattr(pm.stats, "compute_log_prior", log_prior)
    return draw


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
def process(tmp_path):
    """Run code or a command in a process of its own, with variables of its environment."""

    def process(*arguments, before="", **variables):
        code = f"{before}\nimport sys; sys.argv[0] = 'classex-bayes'\n"
        code += "from classex_bayes.__main__ import main; main()"
        command = [sys.executable, "-W", "error", "-c", code, *map(str, arguments)]
        environment = {**os.environ, **variables}
        return subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, check=False, env=environment
        )

    return process


@pytest.fixture(autouse=True)
def left_as_it_was():
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


@pytest.fixture
def two(tmp_path):
    """The task of s.npz, beside which t.npz has another classifier; bad.npz has reversed scores."""
    values, y = random_scores(3, 60, 3, lead=2)
    np.savez(tmp_path / "s.npz", scores=values, y=y)
    np.savez(tmp_path / "t.npz", scores=values - 0.5 * values[::-1], y=y)
    np.savez(tmp_path / "bad.npz", scores=-values, y=y)
    return cb.SourceTask.from_scores(values, y)


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


@pytest.fixture(scope="module", autouse=True)
def few_parts(constants):
    """Extrapolations within pilots from three parts, since each is a fit."""
    from classex_bayes.evaluate import extrapolation_check

    with constants(extrapolation_check, _MOST_PARTS=3):
        yield
