"""Pages with code that readers run: it runs, and pages with outputs have the numbers it prints."""

import functools
import math
import re
from pathlib import Path

import numpy as np
import pytest
from matplotlib import pyplot as plt

import classex_bayes as cb
from studies.figures.outputs import PAGES, with_outputs

pytestmark = pytest.mark.nightly
ROOT = Path(__file__).parents[1]
# Pages of `studies.figures.outputs`, of ArviZ and of recipes run with their numbers.
RUN = ["README.md"]
RUN += [f"docs/{name}.md" for name in ("checks", "from_r", "gallery", "open_set", "questions")]
NUMBER = r"-?\d[\d,]*\.?\d*"


@pytest.fixture
def few_draws(monkeypatch):
    """Fits of a posterior take few draws, unless `plan` says how many."""

    def shorten(estimator, **few):
        fit = estimator.fit

        @functools.wraps(fit)  # its signature says that a fit takes a seed
        def with_few(model, task, sampler=None, **given):
            return fit(model, task, sampler={**few, **dict(sampler or ())}, **given)

        monkeypatch.setattr(estimator, "fit", with_few)

    shorten(cb.BayesianExtrapolator, draws=250, tune=250, chains=2)
    shorten(cb.OpenSetExtrapolator, draws=250)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("page", RUN)
def test_blocks_run_one_after_the_other(page, few_draws, tmp_path, monkeypatch):
    """With scores of 50 classes, if the page has none of its own."""
    monkeypatch.chdir(tmp_path)
    y = np.arange(100) // 2
    scores = 2 * np.eye(50)[y] + np.random.default_rng(1).normal(size=(100, 50))
    known = {"scores": scores, "y": y, "names": np.array([f"class {j}" for j in range(100)])}
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    assert blocks
    for code in blocks:
        exec(compile(code, page, "exec"), known)
        plt.close("all")


def outputs(text):
    """Words of the outputs of a page, its numbers, and of how many draws or pilots these are.

    Notes and rules of tables are left out. Fits have an effective sample size of 500. Sensitivities
    err as shares of 100 draws: their jackknife errors are 0.006 to 0.031 over four seeds.
    """
    blocks = re.findall(r"^```text\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    words, numbers, sizes = [], [], []
    for block in blocks:
        printed = re.sub(r"^note: .*(\n  .*)*", "", block, flags=re.MULTILINE)
        found = [float(number.replace(",", "")) for number in re.findall(NUMBER, printed)]
        planned = re.search(r"(\d+) pilots of each design", printed)
        words += re.sub(NUMBER, "", printed).split()
        numbers += found
        draws = 100 if "tail_prior" in printed else 500
        sizes += [int(planned[1]) if planned else draws] * len(found)
    return words, numbers, sizes


def tolerance(number, size):
    """Four Monte Carlo standard errors of a number from so many draws or pilots.

    No mean of values between 0 and 1, such as a probability, has a larger error. The largest error
    of other numbers of fits is that of upper limits of a number of classes (8% over six seeds). A
    share of 20 pilots has one of 11%, in percent too.
    """
    if abs(number) >= 1:
        return (0.25 if size >= 500 else 0.5) * abs(number)
    share = (abs(number) * size + 2) / (size + 4)  # a share of 0 or 1 has an error, too
    return max(0.02, 4 * math.sqrt(share * (1 - share) / size))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_numbers_are_those_that_the_code_prints(page, few_draws):
    """Within four Monte Carlo standard errors of few draws."""
    text = page.read_text(encoding="utf-8")
    words, numbers, sizes = outputs(text)
    words_again, numbers_again, _ = outputs(with_outputs(text))
    assert len(numbers) >= 10 and words_again == words
    for number, again, size in zip(numbers, numbers_again, sizes, strict=True):
        assert again == pytest.approx(number, abs=tolerance(number, size))


def test_another_number_is_seen():
    page = "```python\nprint('mean', 0.75)\n```\n\n```text\nmean 0.85\n```\n"
    assert outputs(page)[:2] == (["mean"], [0.85])
    assert outputs(with_outputs(page))[:2] == (["mean"], [0.75])
    assert tolerance(0.85, 500) < 0.1
