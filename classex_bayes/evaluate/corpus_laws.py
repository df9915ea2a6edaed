"""Distributions of the favorability in real populations, for plans without a pilot."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import cycle, islice
from typing import Any

import numpy as np

from classex_bayes.core.basis import RadialBasis
from classex_bayes.core.law import MixtureLaw
from classex_bayes.typing import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class CorpusLaw:
    """Law of U* in a real population.

    Attributes
    ----------
    name, kind : str
        Name of the population, and the kind of its classes.
    n_classes : int
        Number of classes of the population. Beyond it the law is an extrapolation.
    k : int array of shape (n_k,)
        Some numbers of classes up to `n_classes`.
    accuracy : array of shape (n_k,)
        Exact accuracies of the population at `k`.
    law : MixtureLaw
        Law that was fitted to the ranks of all classes.
    """

    name: str
    kind: str
    n_classes: int
    k: IntArray
    accuracy: FloatArray
    law: MixtureLaw


def read_laws(path: Any) -> list[CorpusLaw]:
    """Read the file of laws that the study of the corpus writes, or the packaged one."""
    return [_law(**row) for row in json.loads(path.read_text(encoding="utf-8"))]


def _law(
    name: str,
    kind: str,
    n_classes: int,
    k: list[int],
    accuracy: list[float],
    lower: float,
    upper: float,
    bandwidth: float,
    weights: list[float],
) -> CorpusLaw:
    # Rounded weights sum to nearly one.
    share = np.array(weights) / np.sum(weights)
    basis = RadialBasis(np.linspace(lower, upper, share.size), bandwidth)
    law = MixtureLaw(basis, share)
    return CorpusLaw(name, kind, n_classes, np.array(k), np.array(accuracy), law)


@cache
def corpus_laws() -> tuple[CorpusLaw, ...]:
    """Packaged laws of the corpus; `python docs/studies/corpus` of a clone writes them anew."""
    packaged = files("classex_bayes") / "evaluate" / "packaged" / "corpus_laws.json"
    return tuple(read_laws(packaged))


def kinds_in_turn(
    laws: Iterable[CorpusLaw], number: int, rng: np.random.Generator
) -> list[CorpusLaw]:
    """The given number of laws. Kinds alternate, and so do the populations of a kind, randomly."""
    by_kind: dict[str, list[CorpusLaw]] = {}
    for population in laws:
        by_kind.setdefault(population.kind, []).append(population)
    kinds = [list(by_kind.values())[place] for place in rng.permutation(len(by_kind))]
    turns = cycle(
        [cycle([of_kind[place] for place in rng.permutation(len(of_kind))]) for of_kind in kinds]
    )
    return [next(turn) for turn in islice(turns, number)]
