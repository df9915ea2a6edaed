"""The part of the report on open-set identification."""

import numpy as np
import pytest
from page_reader import Page

import classex_bayes as cb
from classex_bayes.exceptions import DataError

K = [1000, 199]


@pytest.fixture(scope="module")
def model(fit, pilot):
    """Model fitted to some of the classes."""
    return fit(pilot.task.subsample(60, random_seed=1), draws=50, tune=100)


@pytest.fixture(scope="module")
def open_set(model):
    return cb.OpenSetExtrapolator().fit(
        model.task, sampler={"draws": 100, "chains": 2}, random_seed=1
    )


@pytest.fixture(scope="module")
def page(model, open_set, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "page.html"
    given = {"references": [], "open_set": open_set, "fpir": 0.05, "ci_prob": 0.8}
    return Page(cb.write_report(model, K, path, **given))


def test_numbers_are_those_of_the_model(page, open_set):
    rates = open_set.predict(K, fpir=0.05)
    stated = page.numbers["open_set"]
    assert [row["note"] for row in stated["notes"]] == list(rates.notes) != []
    rows = {(row["rate"], row["k"]): row for row in stated["predictions"]}
    for name, draws in rates.rates.items():
        lower, upper = rates.interval(name.lower(), 0.8, "eti").transpose("ci_bound", "k").values
        for place, k in enumerate(K):
            row = rows[name, k]
            assert row["mean"] == pytest.approx(draws.mean(["chain", "draw"])[place].item())
            assert (row["lower"], row["upper"]) == pytest.approx((lower[place], upper[place]))
            assert row["threshold"] == pytest.approx(rates.threshold.sel(k=k).item())
    columns = ("mean", "lower", "upper")
    expected = [
        value
        for k in sorted(K)
        for value in (
            k,
            rows["FNIR", k]["threshold"],
            *(rows[rate, k][column] for rate in ("FNIR", "FPIR") for column in columns),
        )
    ]
    assert page.cells["rates"] == pytest.approx(expected)
    assert "FPIR at most 0.05 with probability 0.95" in page.unfolded
    # The curve, the DET curves, the tail and replicates; the pilot may be too small for parts.
    assert page.tags["figure"] >= 4


@pytest.mark.filterwarnings("ignore::classex_bayes.exceptions.ExtrapolationWarning")
def test_a_number_of_classes_that_no_threshold_serves_leaves_the_others(model, open_set, tmp_path):
    k, limit = [60, 10**9], 1e-6
    missing = np.isnan(open_set.predict(k, fpir=limit).threshold.values)
    assert missing.tolist() == [False, True]
    given = {"references": [], "open_set": open_set, "fpir": limit}
    page = Page(cb.write_report(model, k, tmp_path / "page.html", **given))
    rows = page.numbers["open_set"]["predictions"]
    assert [row["threshold"] is None for row in rows if row["rate"] == "FPIR"] == [False, True]
    assert len(page.cells["rates"]) == 8 and "No threshold keeps" in page.text


def test_rates_of_too_few_draws_are_a_fault_of_the_page(model, tmp_path, page):
    few = cb.OpenSetExtrapolator().fit(
        model.task, sampler={"draws": 10, "chains": 2}, random_seed=1
    )
    (problem,) = few.diagnosis_.problems
    given = {"references": [], "open_set": few, "fpir": 0.05}
    faulty = Page(cb.write_report(model, K, tmp_path / "page.html", **given))
    assert problem in faulty.unfolded and problem not in page.text


def test_the_record_says_what_was_searched(page, open_set):
    n, rates = open_set.task.n_test, open_set.predict(K, fpir=0.05)
    for fact in (
        f"Mated searches {n:,}", f"Non-mated searches {n:,} (the mated probes against other",
        "Length of candidate lists 1", "squared distances: smaller is stricter",
    ):  # fmt: skip
        assert fact in page.text
    paragraph = page.ids["paragraph"]
    assert f"{n:,} mated and {n:,} non-mated searches" in paragraph
    for k in K:
        mean, threshold = 100 * rates.fnir.sel(k=k).mean().item(), rates.threshold.sel(k=k)
        assert f"{k:,} enrolled, at the threshold {threshold:.5g}: FNIR {mean:.1f}%" in paragraph


def test_a_model_of_another_task_is_refused(model, open_set, pilot, tmp_path):
    path = tmp_path / "page.html"
    other = cb.OpenSetExtrapolator().fit(
        pilot.task.subsample(30, random_seed=1), sampler={"draws": 20}
    )
    for wrong in ({"open_set": other}, {"open_set": open_set, "fpir": 2}):
        with pytest.raises(DataError):
            cb.write_report(model, K, path, **wrong)
    assert not path.exists()
