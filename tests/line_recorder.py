"""pytest plugin that notes which lines of the package every test executes, for `mutation.py`.

PYTHONPATH=tests pytest -n 2 --dist loadfile -p line_recorder
"""

import json
import os
import shutil
import sys
import time
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
RECORDS = ROOT / "build" / "lines"
PACKAGE = f"{ROOT / 'classex_bayes'}{os.sep}"
EXECUTED: set[tuple[str, int]] = set()
OF_FIXTURE: dict[object, set[tuple[str, int]]] = {}


def on_line(code, line):
    """Note a line once in a test; what modules execute when they are imported does not count."""
    if code.co_filename.startswith(PACKAGE) and code.co_name != "<module>":
        EXECUTED.add((code.co_filename.removeprefix(PACKAGE), line))
    return sys.monitoring.DISABLE


def pytest_configure(config):
    """Begin a file of records; every process has its own."""
    events = sys.monitoring.events.LINE
    sys.monitoring.use_tool_id(sys.monitoring.COVERAGE_ID, "line_recorder")
    sys.monitoring.register_callback(sys.monitoring.COVERAGE_ID, events, on_line)
    sys.monitoring.set_events(sys.monitoring.COVERAGE_ID, events)
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker is None:
        shutil.rmtree(RECORDS, ignore_errors=True)
        RECORDS.mkdir(parents=True)
    config.line_records = (RECORDS / f"{worker or 'main'}.jsonl").open("w", encoding="utf-8")


def pytest_unconfigure(config):
    """Stop before the interpreter does."""
    sys.monitoring.set_events(sys.monitoring.COVERAGE_ID, sys.monitoring.events.NO_EVENTS)
    config.line_records.close()


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef):
    """Keep the lines of a shared fixture for all tests that use it."""
    before = set(EXECUTED)
    EXECUTED.clear()
    sys.monitoring.restart_events()
    try:
        return (yield)
    finally:
        OF_FIXTURE[fixturedef] = set(EXECUTED)
        EXECUTED.update(before)
        sys.monitoring.restart_events()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """Write a line of JSON: the test, its seconds, and the lines of every file."""
    EXECUTED.clear()
    sys.monitoring.restart_events()
    start = time.perf_counter()
    result = yield
    seconds = time.perf_counter() - start
    for definitions in item._fixtureinfo.name2fixturedefs.values():
        for definition in definitions:
            EXECUTED.update(OF_FIXTURE.get(definition, ()))
    lines = defaultdict(list)
    for file, line in EXECUTED:
        lines[file].append(line)
    item.config.line_records.write(json.dumps([item.nodeid, seconds, lines]) + "\n")
    item.config.line_records.flush()
    return result
