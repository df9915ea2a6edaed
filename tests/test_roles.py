"""The pages by role: their code runs, and the numbers on them are those that it prints."""

import re
import runpy
from pathlib import Path

import pytest

import classex_bayes as cb

ROLES = Path(__file__).parents[1] / "docs/roles"
PAGES = sorted(ROLES.glob("*.md"))
with_outputs = runpy.run_path(str(ROLES / "print_outputs.py"))["with_outputs"]
NUMBER = r"-?\d[\d,]*\.?\d*"


@pytest.fixture
def few_draws(monkeypatch):
    """Fits of a posterior take few draws, unless `plan` says how many."""

    def shorten(estimator, **few):
        fit = estimator.fit
        monkeypatch.setattr(
            estimator, "fit", lambda model, task, **given: fit(model, task, **(few | given))
        )

    shorten(cb.BayesianExtrapolator, draws=250, tune=250, chains=2)
    shorten(cb.OpenSetExtrapolator, draws=250)


def outputs(text):
    """Words of the outputs of a page, and their numbers, without notes and tables' rules."""
    blocks = re.findall(r"^```text\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    printed = re.sub(r"^note: .*(\n  .*)*", "", "\n".join(blocks), flags=re.MULTILINE)
    numbers = [float(number.replace(",", "")) for number in re.findall(NUMBER, printed)]
    return re.sub(NUMBER, "", printed).split(), numbers


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_numbers_are_those_that_the_code_prints(page, few_draws):
    """Within the error of few draws, which is largest for upper limits of a number of classes."""
    text = page.read_text(encoding="utf-8")
    words, numbers = outputs(text)
    words_again, numbers_again = outputs(with_outputs(text))
    assert len(numbers) >= 10 and words_again == words
    assert numbers_again == pytest.approx(numbers, rel=0.2, abs=0.02)


def test_another_number_is_seen():
    page = "```python\nprint('mean', 0.75)\n```\n\n```text\nmean 0.85\n```\n"
    assert outputs(page) == (["mean"], [0.85])
    assert outputs(with_outputs(page)) == (["mean"], [0.75])
