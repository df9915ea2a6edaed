"""All populations of the corpus, by name, and where they are kept once made."""

from importlib import import_module
from pathlib import Path

from classex_bayes.exceptions import DataError
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


def population(name: str, folder: Path) -> Population:
    """A population, from `folder` if it was made before, else made and kept there.

    Raises
    ------
    DataError
        An unknown name, or packages that cannot be fetched.
    """
    known = recipes()
    if name not in known:
        raise DataError(f"name: found {name!r}, expected one of {', '.join(known)}")
    file = folder / f"{name}.npz"
    if not file.exists():
        made = known[name].make(Packages(folder / "packages"))
        unfinished = file.with_suffix(".part.npz")
        made.save(unfinished)
        unfinished.replace(file)
    return Population.load(file)
