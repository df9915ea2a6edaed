"""All populations of the corpus by name, and the folder in which they are kept."""

import re
import warnings
from importlib import import_module
from pathlib import Path

from studies.corpus.packages import Packages
from studies.corpus.population import Population, Recipe, ScoredPopulation, load

# Each module has a tuple RECIPES.
_MODULES: tuple[str, ...] = (
    "airports",
    "characters",
    "functions",
    "likelihoods",
    "linkage",
    "manuals",
    "melodies",
    "molecules",
    "network_logits",
    "network_vectors",
    "orbits",
    "pictograms",
    "printed_words",
    "pronunciations",
    "sentence_vectors",
    "sequences",
    "speech",
    "spelling",
    "stars",
    "substances",
    "trained_heads",
    "retrieval_scores",
    "string_scores",
    "vector_scores",
)


def recipes() -> dict[str, Recipe]:
    """Return every recipe of the corpus, by the name of its population."""
    modules = [import_module(f"studies.corpus.{name}") for name in _MODULES]
    return {recipe.name: recipe for module in modules for recipe in module.RECIPES}


def population(name: str, folder: Path) -> Population | ScoredPopulation:
    """Return a population from `folder`. If it is not there, it is made and kept.

    Raises
    ------
    DataError
        If a package cannot be fetched.

    Warns
    -----
    UserWarning
        The versions of Debian packages differ from those in the datasheet.
    """
    file = folder / f"{name}.npz"
    if not file.exists():
        packages = Packages(folder / "packages")
        recipe = recipes()[name]
        made = recipe.make(packages)
        _compare_versions(recipe, packages)
        unfinished = folder / f"{name}.part.npz"
        made.save(unfinished)
        unfinished.replace(file)
    return load(file)


def _compare_versions(made: Recipe, packages: Packages) -> None:
    """Warn if Debian packages differ from the datasheet. Packages of PyPI have exact versions."""
    others = []
    for entry in made.packages:
        debian = re.match(r"(\S+) (\S+) \(Debian,", entry)
        if debian:
            package, version = debian.groups()
            fetched = packages.debian_version(package)
            # The datasheet has upstream's version, without Debian's revision.
            if not re.match(rf"{re.escape(version)}(?![\d.])", fetched):
                others.append(f"{package} {fetched} instead of {version}")
    if others:
        warnings.warn(
            f"{made.name} was made of {', '.join(others)}; its figures may differ from those of "
            "docs/corpus.md",
            stacklevel=3,
        )
