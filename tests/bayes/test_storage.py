"""Saved models: round trips, interrupted writes, and files that are refused."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from numpy.testing import assert_allclose, assert_array_equal

from classex_bayes.bayes.extrapolator import BayesianExtrapolator
from classex_bayes.bayes.stacking import stack
from classex_bayes.bayes.storage import load, save
from classex_bayes.exceptions import DataError, NotFittedError

ENDINGS = [".nc", ".zarr"]
WRITERS = {".nc": "to_netcdf", ".zarr": "to_zarr"}
K = [10, 200, 5000]


@pytest.fixture(scope="module")
def complete(fit, pilot):
    """A model with every group that it can have."""
    model = fit(pilot.task, draws=50)
    model.sample_prior_predictive(draws=20, random_seed=1)
    model.sample_posterior_predictive(random_seed=1)
    model.compute_log_likelihood()
    model.compute_log_prior()
    model.predict(K)
    return model


@pytest.fixture(scope="module")
def plain(fit, pilot):
    return fit(pilot.task, draws=50)


@pytest.fixture(scope="module")
def saved(plain, tmp_path_factory):
    """File of a model with few variables, which takes half the time to write and read."""
    path = save(plain, tmp_path_factory.mktemp("saved") / "model.nc")
    model = load(path)
    del model.idata["ranks_by_class"]
    model.idata["sample_stats"] = xr.DataTree(
        model.idata["sample_stats"].to_dataset()[["diverging"]]
    )
    return save(model, path)


def resaved(saved, folder, edit):
    """File of a model whose groups and attributes were edited before it was saved."""
    model = load(saved)
    edit(model.idata)
    return save(model, folder / "model.nc")


def edited(saved, folder, edit):
    """File whose groups and attributes were edited after it was saved."""
    with xr.open_datatree(saved, engine="h5netcdf") as tree:
        edit(tree.load())
        tree.to_netcdf(folder / "edited.nc", engine="h5netcdf")
    return folder / "edited.nc"


@pytest.mark.parametrize("ending", ENDINGS)
def test_round_trip(complete, tmp_path, ending):
    path = tmp_path / "deep" / f"model{ending}"
    assert save(complete, str(path)) == path
    again = load(str(path))
    assert again.idata.attrs == complete.idata.attrs
    assert set(again.idata.children) == set(complete.idata.children)
    for name, group in complete.idata.children.items():
        xr.testing.assert_equal(again.idata[name].to_dataset(), group.to_dataset())
    assert again.get_params() == complete.get_params()
    assert again.diagnosis_ == complete.diagnosis_ and again.task is None
    assert repr(again) == repr(complete)
    first, second = complete.predict(K), again.predict(K)
    assert_array_equal(second.accuracy, first.accuracy)
    assert (second.notes, second.n_classes) == (first.notes, first.n_classes)
    assert_array_equal(again.classes_until(0.5).k, complete.classes_until(0.5).k)
    assert_array_equal(again.discriminability([0.1, 0.9]), complete.discriminability([0.1, 0.9]))


def test_a_loaded_model_goes_on(complete, fit, small_task, tmp_path):
    again = load(save(complete, tmp_path / "model.nc"))
    assert_allclose(again.model["counts"].get_value(), complete.model["counts"].get_value())
    for model in (complete, again):
        model.sample_posterior_predictive(random_seed=2)
    assert_array_equal(
        again.idata["posterior_predictive"]["accuracy"],
        complete.idata["posterior_predictive"]["accuracy"],
    )
    again.compute_log_prior()
    xr.testing.assert_equal(
        again.compute_log_likelihood()["log_likelihood"].to_dataset(),
        complete.idata["log_likelihood"].to_dataset(),
    )
    with pytest.raises(DataError, match="models: 'b' was read from a file"):
        stack({"a": complete, "b": again})
    # In place of a file that it was itself read from.
    assert load(save(again, tmp_path / "model.nc")).idata.attrs == complete.idata.attrs


@pytest.mark.parametrize("kind", ["fitted_curve", "fitted_dirichlet"])
def test_other_models_come_back_too(request, tmp_path, kind):
    fitted = request.getfixturevalue(kind)
    again = load(save(fitted, tmp_path / "model.nc"))
    assert again.prior == fitted.prior and repr(again) == repr(fitted)
    assert_array_equal(again.predict(K).accuracy, fitted.predict(K).accuracy)
    assert again.predict(K).notes == fitted.predict(K).notes
    for name, value in vars(fitted.data_).items():
        assert_array_equal(again.model[name].get_value(), value)
    found, expected = (
        model.sample_posterior_predictive(random_seed=1)["posterior_predictive"]["accuracy"]
        for model in (again, fitted)
    )
    assert_array_equal(found, expected)


# Whole or not at all


def interrupted(monkeypatch, ending):
    """Let the writer fail half-way, as on a full disk."""

    def fail(tree, path, **options):
        path.mkdir()
        (path / "zarr.json").write_text("half")
        raise OSError(28, "No space left on device")

    def fail_halfway(path, content):
        with path.open("wb") as file:
            file.write(content[: len(content) // 2])
        raise OSError(28, "No space left on device")

    if ending == ".zarr":
        monkeypatch.setattr(xr.DataTree, "to_zarr", fail)
    else:
        monkeypatch.setattr(Path, "write_bytes", fail_halfway)


@pytest.mark.parametrize("ending", ENDINGS)
def test_failure_leaves_the_old_file(plain, tmp_path, monkeypatch, ending):
    path = save(plain, tmp_path / f"model{ending}")
    before = load(path)
    interrupted(monkeypatch, ending)
    with pytest.raises(OSError, match="No space left"):
        save(plain, path)
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]
    assert_array_equal(load(path).predict(K).accuracy, before.predict(K).accuracy)


@pytest.mark.parametrize("ending", ENDINGS)
def test_failure_leaves_no_file(plain, tmp_path, monkeypatch, ending):
    interrupted(monkeypatch, ending)
    with pytest.raises(OSError, match="No space left"):
        save(plain, tmp_path / f"model{ending}")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("ending", ENDINGS)
def test_failure_of_the_last_step_leaves_the_old_file(plain, tmp_path, monkeypatch, ending):
    path = save(plain, tmp_path / f"model{ending}")
    replace = Path.replace

    def fail(source, target):
        if Path(target) == path and "replaced" not in source.name:
            raise OSError(5, "Input/output error")
        return replace(source, target)

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="Input/output error"):
        save(plain, path)
    monkeypatch.undo()
    assert load(path).idata.attrs == plain.idata.attrs


@pytest.mark.parametrize("ending", ENDINGS)
def test_old_files_are_replaced(plain, tmp_path, ending):
    path = save(plain, tmp_path / f"model{ending}")
    plain.predict([77])
    save(plain, path)
    assert load(path).idata["predictions"]["k"].values.tolist() == [77]
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


def test_unwritable_place(plain, tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OSError):
        save(plain, tmp_path / "file" / "model.nc")
    assert plain.predict(K).mean.notna().all()


# Wrong files


def test_wrong_models(plain, tmp_path):
    with pytest.raises(NotFittedError):
        save(BayesianExtrapolator(), tmp_path / "model.nc")
    with pytest.raises(DataError, match=r"model: expected an estimator .* found Dataset"):
        save(xr.Dataset(), tmp_path / "model.nc")
    for ending in ("", ".txt", ".npz"):
        with pytest.raises(DataError, match=r"expected a name ending in .nc or .zarr"):
            save(plain, tmp_path / f"model{ending}")
    assert list(tmp_path.iterdir()) == []


def test_no_file(tmp_path):
    for ending in ENDINGS:
        with pytest.raises(FileNotFoundError, match="there is no file"):
            load(tmp_path / f"model{ending}")


@pytest.mark.parametrize("content", [b"", b"not a model", b"\x89HDF\r\n\x1a\n" + b"\0" * 100])
@pytest.mark.parametrize("ending", [*ENDINGS, ".txt"])
def test_other_contents(tmp_path, content, ending):
    path = tmp_path / f"model{ending}"
    path.write_bytes(content)
    with pytest.raises(DataError, match="path: "):
        load(path)


@pytest.mark.parametrize("ending", ENDINGS)
def test_directories(tmp_path, ending):
    path = tmp_path / f"model{ending}"
    path.mkdir()
    with pytest.raises(DataError, match="path: "):
        load(path)


def test_truncated(plain, tmp_path):
    path = save(plain, tmp_path / "model.nc")
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(DataError, match="is not a readable"):
        load(path)


LOST = ["mixture/weights", "observed_data/k", "constant_data/bin"]


@pytest.mark.parametrize("lost", LOST)
def test_a_lost_part_of_zarr(plain, tmp_path, lost):
    path = save(plain, tmp_path / "model.zarr")
    (chunk,) = (file for file in (path / lost).rglob("[0-9]*") if file.is_file())
    chunk.unlink()
    with pytest.raises(DataError, match=r"^path"):  # by its checksum
        load(path)


@pytest.mark.parametrize("ending", ENDINGS)
def test_data_of_others(tmp_path, ending):
    tree = xr.DataTree.from_dict({"posterior": xr.Dataset({"mu": ("draw", np.zeros(3))})})
    path = tmp_path / f"model{ending}"
    whole = {"zarr_format": 2, "write_empty_chunks": True}
    options = {"engine": "h5netcdf"} if ending == ".nc" else whole
    getattr(tree, WRITERS[ending])(path, **options)
    with pytest.raises(DataError, match="was not written by"):
        load(path)


GROUPS = ["posterior", "sample_stats", "observed_data", "constant_data"]


@pytest.mark.parametrize("missing", [*GROUPS, "prior", "likelihood", "n_classes", "n_test"])
def test_parts_missing(saved, tmp_path, missing):
    def edit(tree):
        if missing in tree.children:
            del tree[missing]
        else:
            del tree.attrs[missing]

    path = resaved(saved, tmp_path, edit)
    with pytest.raises(DataError, match="path: "):
        load(path)


@pytest.mark.parametrize(
    "prior", ["{oops", "[]", '{"type": "NormalPrior"}', '{"type": "DirichletPrior", "size": 1}']
)
def test_unknown_priors(saved, tmp_path, prior):
    path = resaved(saved, tmp_path, lambda tree: tree.attrs.update(prior=prior))
    with pytest.raises(DataError):
        load(path)


# Damaged and edited files


@pytest.mark.parametrize("seed", range(2))
def test_flipped_bits_give_an_error_or_the_same_numbers(saved, tmp_path, seed):
    whole, draws = saved.read_bytes(), load(saved).predict(K).accuracy
    rng = np.random.default_rng(seed)
    refused = 0
    for _ in range(10):
        content = bytearray(whole)
        for bit in rng.integers(0, 8 * len(whole), rng.integers(1, 4)):
            content[bit // 8] ^= 1 << (bit % 8)
        (tmp_path / "bad.nc").write_bytes(content)
        try:
            again = load(tmp_path / "bad.nc")
        except DataError:
            refused += 1
        else:
            assert_array_equal(again.predict(K).accuracy, draws)
    # Draws fill most of the file, and none of them may change.
    assert refused >= 5


def change(tree, what):
    """Change the weights, an attribute, a coordinate, a type or a name."""
    group = tree["mixture"].to_dataset()
    match what:
        case "attribute":
            tree.attrs["n_test"] += 1
        case "missing format":
            del tree.attrs["file_format"]
        case "new group":
            tree["more"] = xr.DataTree(xr.Dataset({"x": 1.0}))
        case "name":
            tree["posterior"] = xr.DataTree(tree["posterior"].to_dataset().rename(mu="nu"))
        case "coordinate":
            tree["mixture"] = xr.DataTree(group.assign_coords(draw=group["draw"] + 1))
        case "type":
            tree["mixture"] = xr.DataTree(group.astype(np.float32))
        case _:
            tree["mixture"] = xr.DataTree(group.roll(knot=1))


CHANGES = ["weights", "attribute", "coordinate", "name", "type"]
CHANGES += ["new group", "missing format"]


@pytest.mark.parametrize("what", CHANGES)
def test_a_changed_file_is_refused(saved, tmp_path, what):
    path = edited(saved, tmp_path, lambda tree: change(tree, what))
    with pytest.raises(DataError, match=r"edited.nc .*the file was changed or damaged after"):
        load(path)


@pytest.mark.parametrize("lost", [["checksum"], ["checksum", "file_format", "estimator"]])
def test_a_file_without_a_checksum_is_refused(saved, tmp_path, lost):
    def edit(tree):
        for name in lost:
            del tree.attrs[name]

    path = edited(saved, tmp_path, edit)
    with pytest.raises(DataError, match=r"edited.nc .* checksum is missing; .* fit again"):
        load(path)


def test_the_checksum_is_of_the_content_and_not_of_the_format(saved, tmp_path):
    model = load(saved)
    odd = xr.Dataset({"day": np.array(["2026-11-22"], "datetime64[ns]"), "name": ("x", ["a"])})
    model.idata["mine"] = xr.DataTree(odd.assign_attrs(one=["a"], two=[1, 2.5], none="", yes=1))
    path = save(model, tmp_path / "model.nc")
    with xr.open_datatree(path, engine="h5netcdf") as tree:
        tree.load()
        packed = {
            node.path: {name: {"zlib": True} for name in node.data_vars if node[name].ndim}
            for node in tree.subtree
        }
        for node in tree.subtree:
            for variable in node.variables.values():
                variable.encoding = {}
        tree.to_netcdf(tmp_path / "packed.nc", engine="h5netcdf", encoding=packed)
        whole = {"zarr_format": 2, "write_empty_chunks": True}
        tree.to_zarr(tmp_path / "other.zarr", **whole)
    for name in ("packed.nc", "other.zarr"):
        again = load(tmp_path / name)
        assert again.idata.attrs == model.idata.attrs
        assert_array_equal(again.predict(K).accuracy, model.predict(K).accuracy)


@pytest.mark.parametrize(
    ("number", "shown"),
    [(99, "99"), (0, "0"), ("new", "'new'"), (np.array([1, 2]), r"\[1, 2\]")],
)
def test_other_formats_are_refused(saved, tmp_path, number, shown):
    path = edited(saved, tmp_path, lambda tree: tree.attrs.update(file_format=number))
    with pytest.raises(
        DataError, match=f"format is {shown}, .* reads format 1; update classex_bayes"
    ):
        load(path)


DEEP = "[" * 100_000
ATTRIBUTES = [
    ("modeling_interface", np.array([1, 2]), "was not written by"),
    ("sampler", DEEP, "attribute sampler"),
    ("sampler", '{"nuts_sampler": "zzz"}', "attribute sampler"),
    ("prior", DEEP, "attribute prior"),
    ("prior", np.array([1, 2]), "attribute prior"),
    ("random_seed", DEEP, "random_seed"),
    ("random_seed", "[1e999]", "random_seed"),
    ("random_seed", "-1", "random_seed"),
    ("n_classes", 2**62 * 1.0, "attribute n_classes"),
    ("n_classes", -5, "attribute n_classes"),
    ("n_test", np.array([3, 4]), "attribute n_test"),
    ("design_effect", float("nan"), "attribute design_effect"),
    ("design_effect", "large", "attribute design_effect"),
    ("task_kind", 7, "attribute task_kind"),
    ("dependence", "{}", "attribute dependence"),
    ("dependence", '{"within": 1e999}', "attribute dependence"),
]


@pytest.mark.parametrize(("name", "value", "message"), ATTRIBUTES)
def test_attributes_that_no_fit_produces(saved, tmp_path, name, value, message):
    path = resaved(saved, tmp_path, lambda tree: tree.attrs.update({name: value}))
    with pytest.raises(DataError, match=f"path: .*{message}"):
        load(path)


NUMBERS = {
    "doubled": ("mixture/weights", lambda w: 2 * w, "with the sum 1"),
    "negative": ("mixture/weights", lambda w: -w, "with the sum 1"),
    "zero": ("mixture/weights", lambda w: 0 * w, "with the sum 1"),
    "nan": ("mixture/weights", lambda w: w * np.nan, "NaN or infinity"),
    "parameters": ("posterior/mu", lambda x: x / 0.0, "NaN or infinity"),
    "counts": ("observed_data/loss_histogram", lambda n: n * 1e300, "add up to n_test"),
    "accuracy": ("observed_data/accuracy", lambda a: a + 1, r"numbers in \[0, 1\]"),
    "sizes": ("observed_data/k", lambda k: -k, r"2\.\.n_classes"),
    "design": ("constant_data/design_effect", lambda d: 0 * d, "positive"),
    "matrix": ("constant_data/matrix", lambda m: 0 * m, "with the sum 1"),
    "negative matrix": ("constant_data/matrix", lambda m: -m, ">= 0"),
    "twice": ("posterior/draw", lambda d: 0 * d, "has an entry twice"),
}


@pytest.mark.filterwarnings("ignore:divide by zero")
@pytest.mark.parametrize("how", NUMBERS)
def test_numbers_that_no_fit_produces(saved, tmp_path, how):
    place, change_values, message = NUMBERS[how]

    def edit(tree):
        group, name = place.split("/")
        data = tree[group].to_dataset()
        tree[group] = xr.DataTree(data.assign({name: change_values(data[name])}))

    path = resaved(saved, tmp_path, edit)
    with pytest.raises(DataError, match=f"path: .*{place}.*{message}"):
        load(path)


def test_a_file_without_classes_cannot_leave_them_out(saved):
    with pytest.raises(DataError, match=r"ranks_by_class is missing, .* leave classes out"):
        load(saved).compute_log_likelihood()


def renamed(group, **names):
    def edit(tree):
        tree[group] = xr.DataTree(tree[group].to_dataset().rename(names))

    return edit


@pytest.mark.parametrize("lost", ["accuracy", "k"])
def test_accuracies_without_their_names(saved, tmp_path, lost):
    path = resaved(saved, tmp_path, renamed("observed_data", **{lost: "x"}))
    with pytest.raises(DataError, match=r"path: .* is incomplete"):
        load(path)


def test_parameters_without_their_names(saved, tmp_path):
    model = load(resaved(saved, tmp_path, renamed("posterior", tau="tux")))
    with pytest.raises(DataError, match="posterior lacks tau of the prior MixturePrior"):
        model.compute_log_prior()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (np.array([1, 2]), "attribute estimator"),
        ("KDE", "model of the class KDE, which .* does not have; update classex_bayes"),
    ],
)
def test_unknown_estimators(saved, tmp_path, name, message):
    path = resaved(saved, tmp_path, lambda tree: tree.attrs.update(estimator=name))
    with pytest.raises(DataError, match=f"path: .*{message}"):
        load(path)


def test_text_that_is_no_unicode(saved, tmp_path):
    model = load(saved)
    model.idata["mine"] = xr.DataTree(xr.Dataset(coords={"name": ["abcdef", "ghijkl"]}))
    path = save(model, tmp_path / "model.zarr")
    (chunk,) = (path / "mine" / "name").glob("[0-9]*")
    content = chunk.read_bytes()
    assert content.count(b"a\0\0\0") == 1
    chunk.write_bytes(content.replace(b"a\0\0\0", b"a\0\0\x80"))  # no letter of Unicode
    with pytest.raises(DataError, match="path: "):
        load(path)


def test_odd_names_of_files(saved, tmp_path):
    model = load(saved)
    for name in ("model.nc.", "model.nc ", ".nc", "x" * 300, "x" * 5000 + ".nc"):
        with pytest.raises((DataError, FileNotFoundError, OSError)) as error:
            load(tmp_path / name)
        assert "path: " in str(error.value)
    with pytest.raises(DataError, match="path: expected a path"):
        load("model\0.nc")
    odd = save(model, tmp_path / "m\udcff\n*'é.nc")
    assert_array_equal(load(odd).predict(K).accuracy, model.predict(K).accuracy)


def test_the_file_is_plain_netcdf(plain, tmp_path):
    # Readable without this package, and none of it is code.
    path = save(plain, tmp_path / "model.nc")
    with xr.open_datatree(path, engine="h5netcdf") as tree:
        assert tree["mixture"]["weights"].dims == ("chain", "draw", "knot")
        assert json.loads(tree.attrs["prior"])["type"] == "MixturePrior"


FULL = """
import resource
from pathlib import Path

from classex_bayes.bayes.stacking import stack
from classex_bayes.bayes.storage import load, save

model = load({source!r})
resource.setrlimit(resource.RLIMIT_FSIZE, (5_000, 5_000))
try:
    save(model, Path({folder!r}) / "model{ending}")
except OSError as error:
    print("errno:", error.errno)
print(len(list(Path({folder!r}).iterdir())), model.predict(1000).mean[1000] > 0.5)
"""


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_full_disk_is_an_error_and_the_model_keeps_its_draws(saved, tmp_path, ending):
    pytest.importorskip("resource", reason="limits on files are of Unix")
    code = FULL.format(source=str(saved), folder=str(tmp_path), ending=ending)
    command = [sys.executable, "-W", "ignore", "-c", code]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    assert found.stdout.splitlines() in (["errno: 27", "0 True"], ["errno: 28", "0 True"])
