"""The report in a real browser, without a window."""

import json
import re
import shutil

import pytest
from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
DRIVER = shutil.which("chromedriver")
pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(
        BROWSER is None or DRIVER is None,
        reason="no Chromium with chromedriver: apt-get install chromium chromium-driver",
    ),
]

# What a keyboard must reach, as far as it is shown.
REACHED = "a[href], button, input, summary, [tabindex='0']"


@pytest.fixture(scope="module")
def browser():
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options, webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


def prefer(browser, scheme):
    """Ask for a colour scheme, and for no motion, so that nothing is seen half way."""
    wanted = {"prefers-color-scheme": scheme, "prefers-reduced-motion": "reduce"}
    features = [{"name": name, "value": value} for name, value in wanted.items()]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


@pytest.fixture
def show(browser):
    """Open a page at a width and in a scheme."""

    def show(path, width=1200, scheme="light"):
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        prefer(browser, scheme)
        for kind in ("browser", "performance"):
            browser.get_log(kind)
        browser.get(path.as_uri())
        return browser

    return show


def requested(browser):
    """Addresses that were requested."""
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    sent = [e["params"] for e in events if e["method"] == "Network.requestWillBeSent"]
    return {one["request"]["url"] for one in sent}


def figures(browser):
    """Widths of the pictures of all figures, of which those in folded parts have none."""
    return browser.execute_script(
        "return [...document.querySelectorAll('figure')].map("
        "one => Math.max(0, ...[...one.querySelectorAll('svg, img')].map("
        "drawn => drawn.getBoundingClientRect().width)))"
    )


@pytest.mark.parametrize("name", ["written", "hostile"])
def test_it_loads_without_errors_and_network(show, request, name):
    path = request.getfixturevalue(name)
    browser = show(path)
    assert browser.get_log("browser") == []
    outside = {url for url in requested(browser) if not url.startswith("data:")}
    assert outside == {path.as_uri()}
    assert browser.title.startswith("On ")
    shown = figures(browser)
    assert len(shown) >= 3 and shown[0] > 500


def test_the_slider_reads_the_curve(show, written, fitted):
    browser = show(written)
    answer = browser.find_element("id", "answer")
    assert answer.text.startswith("5,000 classes: ")
    slider = browser.find_element("id", "at")
    for key, k in ((Keys.HOME, 2), (Keys.END, 5000)):
        slider.send_keys(key)
        predicted = fitted.predict(k)
        expected = predicted.mean[k], *predicted.interval(0.8, "eti").loc[k]
        named, numbers = answer.text.split(" classes: ")
        mean, lower, upper = re.fullmatch(
            r"([\d.]+)%, 80% .* ([\d.]+) to ([\d.]+)%", numbers
        ).groups()
        assert named == f"{k:,}" and slider.get_attribute("aria-valuetext") == answer.text
        assert [float(x) / 100 for x in (mean, lower, upper)] == pytest.approx(expected, abs=6e-4)


@pytest.mark.parametrize("width", [1200, 390])
def test_a_pointer_in_the_figure_moves_the_slider_and_a_line(show, written, width):
    browser = show(written, width=width)
    places = (
        "const one = [...document.querySelectorAll('#accuracy .chosen')]"
        ".find(mark => mark.getBoundingClientRect().height), {x} = one.getBoundingClientRect();"
        "one.parentElement.dispatchEvent(new PointerEvent('pointermove',"
        " {clientX: x - arguments[0], bubbles: true}));"
        "return [x, one.getBoundingClientRect().x, document.getElementById('answer').textContent]"
    )
    before, after, answer = browser.execute_script(places, 100)
    assert after == pytest.approx(before - 100, abs=4)
    assert 2 < int(answer.split(" classes")[0].replace(",", "")) < 5000
    assert browser.execute_script(places, 2000)[-1].startswith("2 classes: ")


@pytest.mark.parametrize("name", ["written", "hostile"])
def test_nothing_sticks_out_on_a_phone(show, request, name):
    browser = show(request.getfixturevalue(name), width=390)
    for opened in (False, True):
        browser.execute_script(
            "document.querySelectorAll('details').forEach(one => { one.open = arguments[0] })",
            opened,
        )
        width, body = browser.execute_script(
            "return [document.documentElement.scrollWidth, document.body.scrollWidth]"
        )
        assert width <= 390 and body <= 390
    assert 200 < max(figures(browser)) <= 390


@pytest.mark.parametrize("width", [500, 360])
def test_predictions_are_seen_whole_on_a_phone(show, written, width):
    browser = show(written, width=width)
    cells, scrolled = browser.execute_script(
        "const table = document.getElementById('predictions'), around = table.parentElement;"
        "return [[...table.querySelectorAll('data')].map(one => {"
        "  const box = one.getBoundingClientRect(); return [box.left, box.right]; }),"
        " around.scrollWidth > around.clientWidth]"
    )
    assert not scrolled and len(cells) == 3 * (5 + 1)
    assert all(0 <= left < right <= width for left, right in cells)


def luminance(color):
    """Relative luminance (WCAG) of rgb(r, g, b)."""
    channels = [float(part) / 255 for part in color[color.index("(") + 1 : -1].split(",")[:3]]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(share * c for share, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_schemes_and_contrast(show, written, scheme):
    browser = show(written, scheme=scheme)
    paper, colors = browser.execute_script(
        "return [getComputedStyle(document.body).backgroundColor,"
        " [...document.querySelectorAll('h1, p, figcaption, th, td, dt, dd, li, summary')]"
        "   .map(one => getComputedStyle(one).color)]"
    )
    ground = luminance(paper)
    assert (ground > 0.9) if scheme == "light" else (ground < 0.02)
    for color in {*colors}:
        bright, dark = sorted((luminance(color), ground), reverse=True)
        assert (bright + 0.05) / (dark + 0.05) >= 4.5, color


def test_the_keyboard_reaches_everything(show, written):
    browser = show(written)
    mark = (
        "[...document.querySelectorAll(arguments[0])].filter(one => one.checkVisibility())"
        ".map((one, number) => one.dataset.stop = number)"
    )
    stops = browser.execute_script(f"return {mark}", REACHED)
    seen = []
    for _ in stops:
        ActionChains(browser).send_keys(Keys.TAB).perform()
        seen.append(
            browser.execute_script(
                "const on = document.activeElement, {top} = on.getBoundingClientRect();"
                " return [Number(on.dataset.stop), getComputedStyle(on).outlineStyle, top]"
            )
        )
    assert [number for number, _, _ in seen] == stops
    assert {outline for _, outline, _ in seen} == {"solid"}
    assert all(0 <= top < 900 for _, _, top in seen)


def test_structure_is_told(show, written):
    browser = show(written)
    problems = browser.execute_script(
        "const every = (what) => [...document.querySelectorAll(what)], bad = [];"
        "for (const name of ['header', 'main', 'footer', 'h1', 'html[lang]'])"
        "  if (every(name).length !== 1) bad.push(name);"
        "for (const one of every('th')) if (!one.scope) bad.push('th');"
        "for (const one of every('[role=img], img'))"
        "  if (!one.getAttribute('aria-label') && !one.alt) bad.push('picture');"
        "for (const one of every('input')) if (!one.labels.length) bad.push('input');"
        "for (const one of every('[aria-labelledby]'))"
        "  if (!document.getElementById(one.getAttribute('aria-labelledby'))) bad.push('label');"
        "const ids = every('[id]').map(one => one.id);"
        "if (new Set(ids).size < ids.length) bad.push('ids');"
        "let level = 1; for (const one of every('h1, h2, h3')) {"
        "  if (one.tagName[1] > level + 1) bad.push('heading'); level = +one.tagName[1]; }"
        "return bad"
    )
    assert problems == []


def test_print_is_light_and_has_no_controls(show, written):
    browser = show(written, scheme="dark")
    pdf = browser.execute_cdp_cmd("Page.printToPDF", {})["data"]
    assert pdf.startswith("JVBERi")
    # Paper shows what was folded.
    closed = "return document.querySelectorAll('details:not([open])').length"
    assert browser.execute_script(closed) == 0
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        color, controls = browser.execute_script(
            "return [getComputedStyle(document.querySelector('h1')).color,"
            " [...document.querySelectorAll('input')].filter(one => one.checkVisibility()).length]"
        )
        assert luminance(color) < 0.1 and controls == 0
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_charts_are_seen_without_a_script(show, written, tmp_path):
    path = tmp_path / "still.html"
    text = written.read_text(encoding="utf-8")
    path.write_text(text.replace("<script>", '<script type="text/plain">'), encoding="utf-8")
    browser = show(path)
    assert figures(browser)[0] > 500
    controls = browser.find_elements("css selector", "#at, .paste button")
    assert controls and not any(control.is_displayed() for control in controls)
