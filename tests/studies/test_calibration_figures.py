"""The tables of docs/calibration.md as checks: what makes them worse fails.

`pytest -m slow tests/studies/test_calibration_figures.py` takes a few minutes on two
processors. Figures may be worse than the tables by three Monte Carlo standard errors, of the tables
and of this run together.
"""

import numpy as np
import pytest

from classex_bayes.bayes.extrapolator import BayesianExtrapolator
from classex_bayes.evaluate.backtest import backtest
from classex_bayes.task.glyphs import load_glyphs
from studies.coverage.sbc import sbc
from studies.coverage.zoo import zoo_table, zoo_trials
from studies.pages import DOCS

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::UserWarning")]

PAGE = DOCS / "calibration.md"
N_PILOTS, N_TASKS = 30, 6


def rows_of(part):
    """Cells of the rows of a table of the page, in which * marks bold text."""
    table = PAGE.read_text(encoding="utf-8").split(f"<!-- {part} -->")[1].split("<!--")[0]
    return [line.replace("*", "").strip("| ").split(" | ") for line in table.split("\n")[3:-1]]


def characters():
    """Classes of the pilot and predicted for: RMSE of 100 pilots, its error, share held."""
    for pilot, k, _, held, _, _, rmse, *_ in rows_of("characters"):
        value, error = rmse.rstrip(")").split(" (")
        yield (int(pilot), int(k.replace(",", ""))), (float(value), float(error), float(held))


def zoo_means(k1):
    """Factor: share held and RMSE, means over the identifiable laws."""
    *_, (_, *cells) = rows_of(f"zoo {k1}")
    for factor, cell in zip((2, 4, 10, 20), cells, strict=True):
        held, rmse, _ = cell.split(" / ")
        yield factor, (float(held), float(rmse))


def least_held(share, n_before, n_now):
    """The table's share minus three standard errors, both of the table and of this run."""
    doubt = max(share * (1 - share), 0.02)
    return share - 3 * np.sqrt(doubt / n_before + doubt / n_now)


def test_characters():
    table = dict(characters())
    sizes, counts = (sorted(set(numbers)) for numbers in zip(*table, strict=True))
    everything = load_glyphs().task()
    found = backtest(
        [BayesianExtrapolator()], everything, sizes, counts, n_pilots=N_PILOTS, random_seed=77,
        n_jobs=2,
    )  # fmt: skip
    scores = found.scores.xs("BayesianExtrapolator", level="estimator")
    for (size, k), (rmse, error, held) in table.items():
        now = scores.loc[(size, k)]
        assert now["rmse"] <= rmse + 3 * np.hypot(error, now["rmse_se"]), (size, k)
        assert now["coverage90"] >= least_held(held, 100, N_PILOTS), (size, k)


@pytest.mark.parametrize("k1", [50, 200])
def test_zoo(k1):
    trials = zoo_trials(
        [BayesianExtrapolator()], k1, n_simulations=N_TASKS, random_seed=77, n_jobs=2
    )
    table = zoo_table(trials, k1)
    for factor, (held, rmse) in zoo_means(k1):
        rows = table.xs(factor, level="factor")
        rows = rows[rows["identifiable"]]
        n_laws = len(rows)
        assert rows["coverage90"].mean() >= least_held(held, 20 * n_laws, N_TASKS * n_laws)
        error = np.sqrt((rows["rmse_se"] ** 2).sum()) / n_laws
        assert rows["rmse"].mean() <= rmse + 3 * np.hypot(error, error * np.sqrt(N_TASKS / 20))


def test_ranks_of_the_truth_are_uniform():
    n = 200
    found = sbc(n_simulations=n, random_seed=77, n_jobs=2)["prior_sbc"].to_dataset()
    for name, values in found.items():
        shares = np.sort(values.values.reshape(n, -1), axis=0)
        expected = (np.arange(1, n + 1) - 0.5)[:, None] / n
        # Largest distance from the uniform, 99.9% point of Kolmogorov's law, for nine quantities.
        assert np.abs(shares - expected).max() < 1.95 / np.sqrt(n) + 1 / n, name
        inside = ((shares > 0.05) & (shares < 0.95)).mean(axis=0)
        assert np.all(np.abs(inside - 0.9) < 3.5 * np.sqrt(0.09 / n)), name
