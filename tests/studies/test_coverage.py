"""Studies of coverage: errors by cell against hand-made trials; each runs, as its page shows it."""

import argparse
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.special import digamma

from classex_bayes import KDE, ClassExReg, SourceTask
from classex_bayes.bayes.tails.calibration import random_halves
from classex_bayes.bayes.tails.depths import score_forms
from classex_bayes.simulate import GaussianNearestNeighbor
from studies import pages
from studies.coverage import command, failures, power
from studies.coverage.trials import mean_over_cells, summary
from studies.coverage.wrong_classes import wrong_slope
from studies.coverage.zoo import OTHER, OURS, page_table, zoo_table, zoo_trials
from studies.laws import zoo
from studies.pages import DOCS, markdown, write_parts
from studies.shared import read_options


def trials():
    """Two pilots in each of two cells: errors of .1 and -.3 in one, of .2 and .2 in the other."""
    rows = [
        (10, 0.6, 0.4, 0.7), (10, 0.2, 0.1, 0.3), (20, 0.7, 0.6, 0.8), (20, 0.7, 0.4, 0.9),
    ]  # fmt: skip
    table = pd.DataFrame(rows, columns=["k", "mean", "lower", "upper"])
    return table.assign(truth=0.5, population="p", pilot=5, rate="r")


def test_errors_by_cell():
    cells = summary(trials(), ["population", "pilot", "rate", "k"])
    assert cells["pilots"].tolist() == [2, 2] and cells["held"].tolist() == [0.5, 0.5]
    assert cells["bias"].tolist() == pytest.approx([-0.1, 0.2])
    assert cells["rmse"].tolist() == pytest.approx([np.sqrt((0.01 + 0.09) / 2), 0.2])
    assert cells["width"].tolist() == pytest.approx([0.25, 0.35])
    cells.loc[1, "held"] = 1
    assert "| p | 5 | r | 0.75 | 0.50 to 1.00 | +0.050 | 0.212 | 0.300 |" in mean_over_cells(
        cells, "rate"
    )


def test_the_zoo_from_pilots_of_few_and_many_classes():
    """KDE cannot be fitted to ranks; few classes hold no near-duplicates."""
    laws = "normal", "near-duplicates"
    trials = zoo_trials([ClassExReg(0.5), KDE("ucv")], 20, laws, n_simulations=2)
    table = zoo_table(trials, 20)
    ours = table.xs("ClassExReg(0.5)", level="estimator")
    assert "KDE(ucv)" not in table.index.unique("estimator")
    assert ours.loc["normal"].index.tolist() == [2, 4, 10, 20] and (ours["n"] == 2).all()
    np.testing.assert_allclose(
        ours.loc["normal", "truth"], zoo()["normal"].accuracy([40, 80, 200, 400])
    )
    assert ours.groupby("law")["identifiable"].all().to_dict() == {
        "normal": True, "near-duplicates": False,
    }  # fmt: skip
    assert zoo_table(trials.assign(k=trials["k"] * 50), 1000)["identifiable"].all()
    both = pd.concat(dict.fromkeys((OURS, OTHER), ours), names=["estimator"])
    lines = page_table({20: both.reorder_levels(["law", "estimator", "factor"])}).split("\n")
    normal, duplicates, mean, other = ([*line.split(" | ")][1:] for line in lines[2:])
    assert all(cell.rstrip(" |").endswith("(*)") for cell in duplicates)
    assert [cell.replace("*", "") for cell in mean] == normal  # the only law that is identifiable
    assert [cell.split(" / ")[1] for cell in normal] == other


def test_parts_of_a_page_are_replaced(tmp_path, monkeypatch):
    monkeypatch.setattr(pages, "DOCS", tmp_path)
    page = tmp_path / "page.md"
    page.write_text("a\n<!-- x -->\nold\n<!-- end of x -->\nb\n")
    write_parts("page.md", {"x": markdown(pd.DataFrame({"n": [1000]}), {"n": ",d"})})
    assert page.read_text() == "a\n<!-- x -->\n| n |\n|---|\n| 1,000 |\n<!-- end of x -->\nb\n"
    with pytest.raises(AssertionError, match=r"page\.md has no place for y"):
        write_parts("page.md", {"y": ""})


def test_trials_are_kept_and_few_ones_are_not(tmp_path):
    def options(*words):
        return read_options(command.argparse.ArgumentParser(), [*words, "--out", str(tmp_path)])

    made = []

    def make():
        made.append(1)
        return pd.DataFrame({"a": [0.1 + len(made)]})

    assert [options().kept("t", make)["a"].item() for _ in range(2)] == [1.1, 1.1]
    assert options("--small").kept("t", make)["a"].item() == 2.1
    assert options("--small").repeats(40) == 2 and options().repeats(40) == 40
    with pytest.raises(SystemExit):
        options("--small", "--write")


def test_wrong_classes_show_the_slope_of_tails():
    """For a power law the estimated exponent is inverse gamma; without near classes it is larger.

    So the mean of e^(-q) is that of a gamma variable.
    """
    rng = np.random.default_rng(1)
    power_law = rng.random((600, 200)) ** (1 / 6)
    expected = 11 / 4 * np.log1p(4 / np.exp(digamma(11)))
    halves, found = random_halves(200, rng), []
    for distance in (power_law, 0.3 + 0.7 * power_law):
        task = SourceTask.from_scores(distance, np.arange(600) // 3, higher_is_better=False)
        lists = task.nearest_classes
        (form,) = score_forms(lists)
        found.append(wrong_slope(lists, halves, form, task.table.weight))
    assert found[0] == pytest.approx(expected, abs=0.03) and found[1] > expected + 0.04
    short = replace(lists, classes=lists.classes[:, :15], scores=lists.scores[:, :15])
    assert np.isnan(wrong_slope(short, halves, form, task.table.weight))


def test_alarms_of_pilots_that_miss(tmp_path):
    """With no alarm in n pilots, the power has the upper limit 1 - 0.05^(1/n)."""
    held = [1.0, 0.5, 0.0, 1.0, 1.0]
    kept = pd.DataFrame(
        {
            "scores": ["logit", "logit", "logit", "tied", "tied"], "population": list("abcde"),
            "pilot": 100, "inner": range(5), "outer": range(5), "held": held,
            "extrapolation_check": [True, False, False, True, False],
            "tail_checks": False, "moved": [False, True, False, False, False],
        }
    )  # fmt: skip
    kept.to_csv(tmp_path / "power.csv", index=False)
    options = read_options(argparse.ArgumentParser(), ["--out", str(tmp_path)])
    text = power.tables(options)["calibration.md"]["power of checks"]
    for row in (
        "| all | 3 | 2 / 0 / 0 | 2 | 0 / 0 / 1 |",
        "| logit | 1 | 1 / 0 / 0 | 2 | 0 / 0 / 1 |",
        "| tied | 2 | 1 / 0 / 0 | 0 | 0 / 0 / 0 |",
    ):
        assert row in text
    assert f"flagged 0 of 2 pilots that miss, so its power is at most {1 - 0.05**0.5:.2f}" in text
    assert "and 2 of 3 that contain" in text and "of 5 populations within" in text


def test_decisions_of_a_pilot_keep_its_errors_alone():
    """The confusion matrix says which class won, and nothing on the ranks of losers."""
    source = failures.of_law(GaussianNearestNeighbor(4, 0.3), repeats=2)
    full, confused = (kind.pilot(30, 1) for kind in (source, failures.decisions(source)))
    assert confused.accuracy(30) == pytest.approx(full.accuracy(30)) and 0.1 < full.accuracy(30) < 1
    lower, upper = confused.accuracy_bounds([2])
    assert lower < full.accuracy(2) < upper and full.accuracy_bounds([2])[0] == full.accuracy(2)


def test_data_on_which_intervals_fail_come_first():
    """Coverage at 3, 10 and 30 times as many classes, and the rest at 30 times."""
    rows = [
        (name, 1000, factor, evidence, 0.5, 0.5 + miss, 0.4 + miss, 0.6 + miss)
        for name, misses in {"sound": (0, 0, 0.05), "hard": (0, 0.2, -0.2)}.items()
        for factor, miss in zip(failures.FACTORS, misses, strict=True)
        for evidence in (failures.DEFAULT, failures.RANKS)
    ]
    text = failures.page_table(pd.DataFrame(rows, columns=failures.COLUMNS))
    hard, sound = text.split("\n")[2:4]
    shares = "1.00 0.00 0.00"
    assert hard == f"| hard | 1,000 | {shares} | {shares} | 0.500 | -0.200 | 0.200 |"
    assert sound.startswith("| sound |")
    assert "1 pilots in each row." in text


def test_the_readme_has_rows_of_the_page():
    rows = [
        (name, 200, factor, evidence, 0.5, 0.5 + miss, 0.4, 0.6)
        for name, miss in {"noisy logits, 2 dimensions": 0.2, "the distances d": 0.0}.items()
        for factor in failures.FACTORS
        for evidence in (failures.DEFAULT, failures.RANKS)
    ]
    lines = failures.front_table(pd.DataFrame(rows, columns=failures.COLUMNS)).split("\n")[2:]
    assert set(failures.REMEDIES) <= set(failures.DATA)
    assert "2 dimensions | 1.00 / 1.00 / 1.00 | 0.500 | +0.200 |" in lines[0] and len(lines) == 2


NETWORK = {
    "neural_network",
    "open_set_corpus",
    "prior",
    "wrong_classes",
}  # make populations of packages


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(command.STUDIES) - NETWORK))
def test_every_study_runs(name, tmp_path, capsys):
    """Two trials each; every part has a place on its page, whose tables have the same columns."""
    command.main([name, "--small", "--out", str(tmp_path)])
    out = capsys.readouterr().out
    parts = re.split(r"^(\S+\.md): (.+)$", out, flags=re.MULTILINE)[1:]
    assert parts
    for page, part, found in zip(*[iter(parts)] * 3, strict=True):
        text = (DOCS / page).read_text(encoding="utf-8").partition(f"<!-- {part} -->\n")[2]
        shown = text.partition(f"<!-- end of {part} -->")[0]
        assert shown
        for header in re.findall(r"^(\|.+\|)\n\|---", found, re.MULTILINE):
            assert header in shown, (page, part)
