"""The command of pictures: each draws those of a page, or prints the numbers of its tables."""

import argparse
from collections.abc import Sequence
from importlib import import_module

PAGES = [
    "command_line", "gallery", "guide", "map", "open_set", "outputs", "questions", "readme",
    "report",
]  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> None:
    """Draw the pictures of some pages."""
    parser = argparse.ArgumentParser(description=__doc__)
    about = ", ".join(PAGES)
    parser.add_argument("names", nargs="+", choices=PAGES, metavar="NAME", help=about)
    for name in parser.parse_args(arguments).names:
        import_module(f"studies.figures.{name}").main()
