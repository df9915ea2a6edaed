"""Saved models: round trips, interrupted writes, and files that are refused."""

from pathlib import Path

import pytest
import xarray as xr
from numpy.testing import assert_allclose, assert_array_equal

from classex_bayes import load, save
from classex_bayes.exceptions import DataError

K = [10, 200, 5000]


@pytest.fixture(scope="module")
def complete(fit, pilot):
    """A model with every group that it can have."""
    model = fit(pilot.task, draws=50, tune=100)
    model.sample_prior_predictive(draws=20, random_seed=1)
    model.sample_posterior_predictive(random_seed=1)
    model.compute_log_likelihood()
    return model


@pytest.fixture(scope="module")
def plain(fit, pilot):
    """A model with few variables, which takes little time to write and read."""
    model = fit(pilot.task, draws=50, tune=100, evidence="ranks")
    for name, kept in (("posterior", ["accuracy", "mu"]), ("sample_stats", ["diverging"])):
        model.idata[name] = xr.DataTree(model.idata[name].to_dataset()[kept])
    return model


@pytest.fixture(scope="module")
def saved(plain, tmp_path_factory):
    return save(plain, tmp_path_factory.mktemp("saved") / "model.nc")


def test_round_trip(complete, tmp_path):
    model, path = complete, tmp_path / "deep" / "model.nc"
    assert save(model, str(path)) == path
    again = load(str(path))
    assert again.idata.attrs == model.idata.attrs
    assert set(again.idata.children) == set(model.idata.children)
    for name, group in model.idata.children.items():
        xr.testing.assert_equal(again.idata[name].to_dataset(), group.to_dataset())
    assert again.get_params() == model.get_params()
    assert again.diagnosis_ == model.diagnosis_ and again.task is None
    first, second = model.predict(K), again.predict(K)
    assert_array_equal(second.accuracy, first.accuracy)
    assert (second.notes, second.n_classes) == (first.notes, first.n_classes)
    assert_array_equal(again.classes_until(0.5).k, model.classes_until(0.5).k)
    assert_array_equal(again.discriminability([0.1, 0.9]), model.discriminability([0.1, 0.9]))


@pytest.mark.nightly
def test_a_loaded_model_goes_on(complete, pilot, tmp_path):
    again = load(save(complete, tmp_path / "model.nc"))
    assert_allclose(again.model["counts"].get_value(), complete.model["counts"].get_value())
    for model in (complete, again):
        model.sample_posterior_predictive(random_seed=2)
    assert_array_equal(
        again.idata["posterior_predictive"]["accuracy"],
        complete.idata["posterior_predictive"]["accuracy"],
    )
    xr.testing.assert_equal(
        again.compute_log_likelihood(pilot.task)["log_likelihood"].to_dataset(),
        complete.idata["log_likelihood"].to_dataset(),
    )
    # In place of a file that it was itself read from.
    assert load(save(again, tmp_path / "model.nc")).idata.attrs == complete.idata.attrs


def test_a_model_of_accuracies_comes_back_too(fitted_curve, tmp_path):
    fitted = fitted_curve
    again = load(save(fitted, tmp_path / "model.nc"))
    assert again.prior == fitted.prior
    assert_array_equal(again.predict(K).accuracy, fitted.predict(K).accuracy)
    assert again.predict(K).notes == fitted.predict(K).notes
    replicated, expected = (
        model.sample_posterior_predictive(random_seed=1)["posterior_predictive"]["accuracy"]
        for model in (again, fitted)
    )
    assert_array_equal(replicated, expected)


# Completely or not at all


def test_a_failure_leaves_the_old_file_or_none(plain, tmp_path, monkeypatch):
    path = save(plain, tmp_path / "model.nc")

    def fail_halfway(path, content):
        with path.open("wb") as file:
            file.write(content[: len(content) // 2])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", fail_halfway)
    for place in (path, tmp_path / "other.nc"):
        with pytest.raises(OSError, match="No space left"):
            save(plain, place)
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]
    assert_array_equal(load(path).predict(K).accuracy, plain.predict(K).accuracy)


@pytest.mark.nightly
def test_failure_of_the_last_step_leaves_the_old_file(plain, tmp_path, monkeypatch):
    path = save(plain, tmp_path / "model.nc")
    replace = Path.replace

    def fail(source, target):
        if Path(target) == path:
            raise OSError(5, "Input/output error")
        return replace(source, target)

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="Input/output error"):
        save(plain, path)
    monkeypatch.undo()
    assert load(path).idata.attrs == plain.idata.attrs


def test_old_files_are_replaced(plain, tmp_path):
    path = save(plain, tmp_path / "model.nc")
    plain.sample_posterior_predictive()
    save(plain, path)
    assert "posterior_predictive" in load(path).idata.children
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


# Files that are refused


def test_no_model_there(tmp_path):
    path = tmp_path / "model.nc"
    with pytest.raises(FileNotFoundError):
        load(path)
    path.mkdir()
    with pytest.raises(DataError):
        load(path)


@pytest.mark.parametrize("name", ["estimator", "layout"])
def test_files_of_another_version(saved, tmp_path, name):
    model = load(saved)
    del model.idata.attrs[name]
    with pytest.raises(DataError):
        load(save(model, tmp_path / "model.nc"))
