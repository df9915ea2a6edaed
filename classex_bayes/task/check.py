"""Check: one question about a task and its answer, a warning, a note or neither.

A *warning* means that the data are probably faulty. Every fit warns of it once. A *note* is a
sentence with every prediction: each warning, and facts about small samples that sound data may have
too.
"""

from dataclasses import dataclass

from classex_bayes.formatting import folded

_WORDS = {True: "ok", False: "WARNING", None: "not checked"}


@dataclass(frozen=True)
class Check:
    """One question about a task and its answer.

    Attributes
    ----------
    name : str
        Name of the check.
    passed : bool or None
        False if the data are probably faulty. None where it could not be checked.
    sentence : str
        The finding, its meaning and the remedy, or the reason why nothing was checked.
    value : float
        Number that decided the check; NaN if nothing was checked.
    limit : float
        Limit that `value` was compared with; NaN if there is none.
    is_note : bool
        Whether predictions show the sentence although the check passed. It is a fact about small
        samples, which sound data may have too.
    """

    name: str
    passed: bool | None
    sentence: str
    value: float = float("nan")
    limit: float = float("nan")
    is_note: bool = False

    @property
    def _word(self) -> str:
        return "note" if self.is_note else _WORDS[self.passed]

    def gravity(self) -> int:
        """2 for a fault, 1 for a note, 0 otherwise."""
        return 2 if self.passed is False else int(self.is_note)

    @property
    def verdict(self) -> str:
        """The answer and the sentence: "WARNING: ..."."""
        return f"{self._word}: {self.sentence}"

    def __repr__(self) -> str:
        """One line: the verdict, the name and the sentence."""
        return folded(f"{self._word:<11}  {self.name}: {self.sentence}", indent=13)


def noted(name: str, enough: bool, sentence: str, value: float, threshold: float) -> Check:
    """A check that always passes. It adds a note below the threshold."""
    return Check(name, True, sentence, value, threshold, is_note=not enough)
