"""Estimand: which accuracy a prediction is of, beside the numbers of classes."""

from dataclasses import dataclass
from typing import Literal

Quantity = Literal["accuracy", "risk"]
Kind = Literal["expected", "observed"]


@dataclass(frozen=True, kw_only=True)
class Estimand:
    """Which accuracy a prediction is of; as the arguments of `BayesianExtrapolator.predict`.

    Attributes
    ----------
    top : int
        m: an answer counts as correct if the true class is among the m best.
    kind : {"expected", "observed"}
        The average over class sets, or the result of a single test.
    repeats : int
        Test instances of each class in that test.
    nested : bool
        Whether the source classes are among those of that test.
    population : int or None
        Number of classes in the population, where it is finite.

    Examples
    --------
    >>> Estimand(top=5).describe()
    'expected top-5 accuracy'
    >>> Estimand(kind="observed", repeats=2).describe()
    'measured accuracy (2 instances a class)'
    """

    top: int = 1
    kind: Kind = "expected"
    repeats: int = 1
    nested: bool = False
    population: int | None = None

    def describe(self, quantity: Quantity = "accuracy") -> str:
        """Return the estimand in words, for headers and legends."""
        name, details = self.label(quantity), []
        if self.kind == "observed":
            details.append(f"{self.repeats} instance{'s' if self.repeats > 1 else ''} a class")
        else:
            name = f"expected {name}"
        if self.nested:
            details.append("source classes included")
        if self.population is not None:
            details.append(f"{self.population:,} classes in all")
        return f"{name} ({', '.join(details)})" if details else name

    def label(self, quantity: Quantity = "accuracy") -> str:
        """Return the name of the quantity alone, for axes."""
        if self.kind == "observed":
            return f"measured {quantity}"
        return quantity if self.top == 1 else f"top-{self.top} {quantity}"
