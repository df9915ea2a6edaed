"""Pages that the tests read as text and in a browser."""

import datetime

import numpy as np
import pytest

# Closes what may be open around it and would be seen in the title.
ATTACK = "</script><script>document.title='broken'</script>"


@pytest.fixture(scope="session")
def attack():
    return ATTACK


@pytest.fixture(scope="session")
def few_parts(constants):
    """A context in which pilots have three parts, each of which is a fit."""
    from classex_bayes.evaluate import extrapolation_check

    return lambda: constants(extrapolation_check, _MOST_PARTS=3)


@pytest.fixture(scope="session")
def written(fitted, few_parts, tmp_path_factory):
    """A page on up to 5,000 classes with everything on it."""
    from classex_bayes import write_report

    path = tmp_path_factory.mktemp("report") / "page.html"
    with few_parts():
        found = write_report(
            fitted, [1000, 5000, 200], path, target=0.6, ci_prob=0.8, source="pilot & co.npz",
            date=datetime.date(2026, 1, 2),
        )  # fmt: skip
    assert found == path
    return path


@pytest.fixture(scope="session")
def hostile(fit, tmp_path_factory):
    """A page whose data and classes have hostile names; two classes have half of the errors."""
    from classex_bayes import SourceTask, write_report

    names = [f"{ATTACK}{j}" for j in range(60)]
    y = np.repeat(np.arange(60), 8)
    noise = np.random.default_rng(5).uniform(size=(480, 60))
    scores = noise + 9 * np.eye(60)[y]
    # Wrong: all instances of the classes 0 and 1, and one of each of 16 others.
    wrong = (y < 2) | ((y < 18) & (np.arange(480) % 8 == 0))
    scores[wrong] = noise[wrong] - 0.3 * np.eye(60)[y[wrong]]
    task = SourceTask.from_scores(scores, [names[j] for j in y], classes=names)
    path = tmp_path_factory.mktemp("hostile") / "page.html"
    model = fit(task, draws=50, tune=100)
    return write_report(model, [100], path, source=f"{ATTACK}<!--<img src=x>.npz")
