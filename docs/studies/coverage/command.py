"""The command of the studies of coverage: each computes some tables of pages."""

import argparse
from collections.abc import Sequence
from importlib import import_module

from studies.pages import publish
from studies.shared import read_options

STUDIES = (
    "bootstrap", "bounds", "characters", "checks", "drift", "easy_laws", "failures", "hard_laws",
    "known_templates", "metrics", "neural_network", "open_set", "open_set_corpus",
    "own_negatives", "power", "printed_tables", "prior", "questions", "sampling_designs", "sbc",
    "scores", "ties", "weights", "zoo",
)  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> None:
    """Run studies by name, and print their tables or write the pages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "names", nargs="+", choices=STUDIES, metavar="NAME", help=", ".join(STUDIES)
    )
    options = read_options(parser, arguments)
    for name in options.names:
        publish(import_module(f"studies.coverage.{name}").tables(options), options.write)
