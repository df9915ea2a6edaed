"""All populations of the corpus, by name, and where they are kept once made."""

import re
from importlib import import_module
from pathlib import Path
from uuid import uuid4

from classex_bayes.exceptions import DataError, DataWarning, require_extra, warn
from classex_bayes.studies.corpus.packages import Packages
from classex_bayes.studies.corpus.population import Population, Recipe

# One module for each group of kinds; each has a tuple RECIPES.
_MODULES: tuple[str, ...] = (
    "airports",
    "characters",
    "functions",
    "linkage",
    "manuals",
    "melodies",
    "molecules",
    "orbits",
    "pictograms",
    "printed_words",
    "pronunciations",
    "sequences",
    "speech",
    "spelling",
    "stars",
    "substances",
)


def recipes() -> dict[str, Recipe]:
    """Every recipe of the corpus, by the name of its population."""
    modules = [import_module(f"classex_bayes.studies.corpus.{name}") for name in _MODULES]
    return {recipe.name: recipe for module in modules for recipe in module.RECIPES}


def recipe(name: str, folder: Path) -> Recipe:
    """The recipe of a population that `folder` holds, or that can be made here.

    Raises
    ------
    DataError
        An unknown name.
    ImportError
        The population is to be made with scikit-learn, which is not installed.
    """
    by_name = recipes()
    if name not in by_name:
        raise DataError(f"populations: found {name!r}, expected names among {', '.join(by_name)}")
    made = (folder / f"{name}.npz").exists()
    if by_name[name].scikit_learn and not made:
        require_extra("corpus", name, "sklearn")
    return by_name[name]


def population(name: str, folder: Path) -> Population:
    """A population, from `folder` if it was made before, else made and kept there.

    Raises
    ------
    DataError
        An unknown name, or packages that cannot be fetched.
    ImportError
        The population is to be made with scikit-learn, which is not installed.

    Warns
    -----
    DataWarning
        It was made of other versions of Debian packages than its datasheet names.
    """
    chosen = recipe(name, folder)
    file = folder / f"{name}.npz"
    if not file.exists():
        packages = Packages(folder / "packages")
        made = chosen.make(packages)
        _compare_versions(chosen, packages)
        unfinished = folder / f"{name}.{uuid4().hex}.part.npz"  # another process may make it too
        made.save(unfinished)
        unfinished.replace(file)
    return Population.load(file)


def _compare_versions(made: Recipe, packages: Packages) -> None:
    """Warn of Debian packages that are not those of the datasheet; pip fetches exact versions."""
    others = []
    for entry in made.packages:
        debian = re.match(r"(\S+) (\S+) \(Debian,", entry)
        if debian:
            package, version = debian.groups()
            fetched = packages.debian_version(package)
            # The datasheet names upstream's version, which Debian's revision follows.
            if not re.match(rf"{re.escape(version)}(?![\d.])", fetched):
                others.append(f"{package} {fetched} instead of {version}")
    if others:
        warn(
            f"{made.name} was made of {', '.join(others)}; its figures may differ from those of "
            "docs/corpus.md",
            DataWarning,
        )
