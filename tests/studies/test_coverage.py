"""Studies of coverage: errors by cell against hand-made trials; each runs, as its page shows it."""

import re

import numpy as np
import pandas as pd
import pytest

from studies.coverage import command, failures
from studies.coverage.trials import mean_over_cells, summary
from studies.pages import DOCS


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


def test_failures_have_rows_and_sound_data_a_sentence():
    """Twins miss at 10 and 30 times; Gaussian classes never."""
    rows = [
        (name, size, factor, evidence, 0.5, 0.5 + error, 0.4, 0.6 - miss)
        for name, size, error in (("Gaussian classes", 100, 0), ("pairs of twins", 200, 0.2))
        for evidence in (failures.DEFAULT, failures.RANKS)
        for factor in failures.FACTORS
        for miss in (0, 0.2 * (error > 0 and factor > 3 and evidence == failures.DEFAULT))
    ]
    kinds = failures.kinds_of_data(pd.DataFrame(rows, columns=failures.COLUMNS))
    part = failures.page_part(kinds)
    twins = "| pairs of twins, rare in the pilot | 200 | 1.00 0.50 0.50 | 1.00 1.00 1.00 | 0.500 |"
    assert f"{twins} +0.200 |" in part and part.count("\n|") == 2
    assert "All others (1 kinds of data" in part and "Gaussian" not in part
    assert "bias of +0.000 to +0.000." in " ".join(part.split())
    worst = " ".join(failures.worst_case(kinds).split())
    assert "Of 2 kinds of data" in worst and "the worst is pairs of twins" in worst
    assert "in 100% of the trials at 3 times" in worst and "in 50% at 30 times" in worst


NETWORK = {"neural_network", "open_set_corpus", "prior"}  # make populations of packages


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(command.STUDIES) - NETWORK))
def test_every_study_runs(name, tmp_path, capsys):
    """Two trials each; every part has a place on its page."""
    command.main([name, "--small", "--out", str(tmp_path)])
    out = capsys.readouterr().out
    parts = re.split(r"^(\S+\.md): (.+)$", out, flags=re.MULTILINE)[1:]
    assert parts and re.search(r"\d\.\d", out)
    for page, part in zip(parts[::3], parts[1::3], strict=True):
        assert f"<!-- {part} -->\n" in (DOCS / page).read_text(encoding="utf-8")
