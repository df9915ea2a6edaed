"""The pages by role: their code runs, and the numbers on them are those that it prints."""

import math
import re

import pytest

import classex_bayes as cb
from studies.figures.roles import PAGES, with_outputs

NUMBER = r"-?\d[\d,]*\.?\d*"


@pytest.fixture
def few_draws(monkeypatch):
    """Fits of a posterior take few draws, unless `plan` says how many."""

    def shorten(estimator, **few):
        fit = estimator.fit
        monkeypatch.setattr(
            estimator,
            "fit",
            lambda model, task, sampler=(), **given: fit(
                model, task, sampler={**few, **dict(sampler or ())}, **given
            ),
        )

    shorten(cb.BayesianExtrapolator, draws=250, tune=250, chains=2)
    shorten(cb.OpenSetExtrapolator, draws=250)


def outputs(text):
    """Words of the outputs of a page, and their numbers, without notes and tables' rules."""
    blocks = re.findall(r"^```text\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    printed = re.sub(r"^note: .*(\n  .*)*", "", "\n".join(blocks), flags=re.MULTILINE)
    numbers = [float(number.replace(",", "")) for number in re.findall(NUMBER, printed)]
    return re.sub(NUMBER, "", printed).split(), numbers


def tolerance(number):
    """Four Monte Carlo standard errors of a number, for an effective sample size of 500.

    No mean of values between 0 and 1, such as a probability, has a larger error. The largest error
    of other numbers is that of upper limits of a number of classes (8% over six seeds).
    """
    if abs(number) >= 1:
        return 0.25 * abs(number)
    return max(0.02, 4 * math.sqrt(abs(number) * (1 - abs(number)) / 500))


@pytest.mark.nightly
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_numbers_are_those_that_the_code_prints(page, few_draws):
    """Within four Monte Carlo standard errors of few draws."""
    text = page.read_text(encoding="utf-8")
    words, numbers = outputs(text)
    words_again, numbers_again = outputs(with_outputs(text))
    assert len(numbers) >= 10 and words_again == words
    for number, again in zip(numbers, numbers_again, strict=True):
        assert again == pytest.approx(number, abs=tolerance(number))


def test_another_number_is_seen():
    page = "```python\nprint('mean', 0.75)\n```\n\n```text\nmean 0.85\n```\n"
    assert outputs(page) == (["mean"], [0.85])
    assert outputs(with_outputs(page)) == (["mean"], [0.75])
