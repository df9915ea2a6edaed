"""What a prediction was asked for beside the numbers of classes."""

from dataclasses import dataclass
from typing import Literal

Quantity = Literal["accuracy", "risk"]
Kind = Literal["expected", "observed"]


@dataclass(frozen=True, kw_only=True)
class Asked:
    """Which accuracy a prediction is of; as the arguments of `BayesianExtrapolator.predict`.

    Attributes
    ----------
    top : int
        m: an answer counts as correct if the true class is among the m best.
    kind : {"expected", "observed"}
        The average over class sets, or what one test will show.
    repeats : int
        Test instances of each class in that test.
    nested : bool
        Whether the source classes are among those of that test.
    population : int or None
        Number of classes that there are, where it is finite.

    Examples
    --------
    >>> Asked(top=5).words()
    'expected top-5 accuracy'
    >>> Asked(kind="observed", repeats=2).words()
    'measured accuracy (2 instances a class)'
    """

    top: int = 1
    kind: Kind = "expected"
    repeats: int = 1
    nested: bool = False
    population: int | None = None

    def words(self, quantity: Quantity = "accuracy") -> str:
        """In words, for headers and legends."""
        found, details = self.label(quantity), []
        if self.kind == "observed":
            details.append(f"{self.repeats} instance{'s' if self.repeats > 1 else ''} a class")
        else:
            found = f"expected {found}"
        if self.nested:
            details.append("source classes included")
        if self.population is not None:
            details.append(f"{self.population:,} classes in all")
        return f"{found} ({', '.join(details)})" if details else found

    def label(self, quantity: Quantity = "accuracy") -> str:
        """The quantity alone, for axes."""
        if self.kind == "observed":
            return f"measured {quantity}"
        return quantity if self.top == 1 else f"top-{self.top} {quantity}"
