"""Pages that the tests read as text and in a browser."""

import datetime
import re

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
    from classex_bayes.exceptions import DataWarning

    names = [f"{ATTACK}{j}" for j in range(60)]
    y = np.repeat(np.arange(60), 8)
    noise = np.random.default_rng(5).uniform(size=(480, 60))
    scores = noise + 9 * np.eye(60)[y]
    # Wrong: all instances of the classes 0 and 1, and one of each of 16 others.
    wrong = (y < 2) | ((y < 18) & (np.arange(480) % 8 == 0))
    scores[wrong] = noise[wrong] - 0.3 * np.eye(60)[y[wrong]]
    task = SourceTask.from_scores(scores, [names[j] for j in y], classes=names)
    path = tmp_path_factory.mktemp("hostile") / "page.html"
    with pytest.warns(DataWarning, match="cause .*% of the variance"):
        model = fit(task, draws=50, tune=100)
        return write_report(model, [100], path, source=f"{ATTACK}<!--<img src=x>.npz")


def _scale(place, ticks, scale):
    """Values at places of an axis, read off the line through its numbers."""
    places = [float(at) for at, _ in ticks]
    values = scale([_number(text) for _, text in ticks])
    slope, start = np.polyfit(places, values, 1)
    # The numbers stand where they belong.
    np.testing.assert_allclose(start + slope * np.array(places), values, atol=abs(slope) * 0.02)
    return start + slope * place


def _number(text):
    if text.startswith("10") and text[2:] and not text[2:].isascii():
        return 10.0 ** int("".join(str("⁰¹²³⁴⁵⁶⁷⁸⁹".index(letter)) for letter in text[2:]))
    return float(text.replace(",", "").removesuffix("%")) / (100 if text.endswith("%") else 1)


def _points(path):
    """Corners of a path, x from the left and y from the bottom."""
    x, y = np.array(re.findall(r"(-?[\d.]+) (-?[\d.]+)", path), dtype=float).T
    return x, 100 - y


@pytest.fixture(scope="session")
def read_chart():
    """Read the series of a chart off its drawing, as one who looks at it would.

    The result maps series to paths and these to (x, y); `x` and `y` are the scales of the axes on
    which places are linear, as of np.log10.
    """

    def read(text, key, x=np.log10, y=np.asarray):
        begin = text.index(f'id="{key}"')
        text = text[begin : text.index("</figure>", begin)]
        ticks = [
            re.findall(rf'class="{axis}-number" style="\w+: ([\d.]+)%">([^<]+)<', text)
            for axis in "xy"
        ]
        series = {}
        for name, drawn in re.findall(r'<g data-series="([^"]+)">(.*?)</g>', text, re.S):
            for kind, path in re.findall(r'class="(\w+)" style="[^"]*" d="([^"]+)"', drawn):
                across, up = _points(path)
                at = _scale(across, ticks[0], x), _scale(up, ticks[1], y)
                series.setdefault(name, {})[kind] = at
        return series

    return read
