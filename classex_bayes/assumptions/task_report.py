"""Report of a diagnosis: checks, each with a sentence."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import pandas as pd

from classex_bayes.exceptions import DataError
from classex_bayes.formatting import html_block, html_facts
from classex_bayes.plot_method import PlotMethod
from classex_bayes.task.check import Check
from classex_bayes.typing import FloatArray


@dataclass(frozen=True, eq=False)
class ClassErrors:
    """Contribution of every class to the errors, for plots; arrays of shape (n_classes,)."""

    missed: FloatArray  # share of the class's instances that are wrong at k1; 0 without instances
    beaten: FloatArray  # share of the other classes' instances that it beats as a competitor
    influence: FloatArray  # share of the sum of squared influences on ATA_k; sums to 1
    n_classes_effective: float  # participation number of the influences


@dataclass(frozen=True, repr=False, eq=False)
class TaskReport:
    """Checks of a task.

    Attributes
    ----------
    checks : tuple of Check
        Checks in a fixed order. ``report["ties"]`` is the check of that name.
    title : str
        Title of the report.
    class_errors : ClassErrors or None
        Contribution of each class to the errors; None if scores are unknown.

    Examples
    --------
    >>> report = TaskReport((Check("ties", True, "no pair is tied", 0.0, 0.05),), "3 classes")
    >>> report
    3 classes: nothing found
    ok           ties: no pair is tied
    >>> report.passed, report["ties"].value
    (True, 0.0)
    """

    plot = PlotMethod("plot_diagnosis")

    checks: tuple[Check, ...]
    title: str
    class_errors: ClassErrors | None = field(default=None)

    @property
    def passed(self) -> bool:
        """Whether no check failed. Checks that could not be made count as passed."""
        return not self.warnings

    @property
    def warnings(self) -> tuple[Check, ...]:
        """The checks that failed."""
        return tuple(check for check in self.checks if check.passed is False)

    @property
    def table(self) -> pd.DataFrame:
        """All checks: index "check", columns "passed", "value", "limit" and "sentence"."""
        columns = {
            name: [getattr(check, name) for check in self.checks]
            for name in ("passed", "value", "limit", "sentence")
        }
        index = pd.Index([check.name for check in self.checks], name="check")
        return pd.DataFrame(columns, index=index).astype({"passed": object})

    def __getitem__(self, name: str) -> Check:
        """Check of the given name; raises `DataError` if there is none."""
        for check in self.checks:
            if check.name == name:
                return check
        names = ", ".join(repr(check.name) for check in self.checks)
        raise DataError(f"name: found {name!r}, expected one of {names}")

    def __iter__(self) -> Iterator[Check]:
        """Walk through the checks."""
        return iter(self.checks)

    @property
    def verdict(self) -> str:
        """Number of warnings and of notes: "nothing found, 1 note"."""
        number = len(self.warnings)
        if number:
            verdict = f"{number} warning{'s' if number > 1 else ''}"
        elif any(check.passed for check in self.checks):
            verdict = "nothing found"
        else:
            verdict = "no check could be made"
        notes = sum(check.is_note for check in self.checks)
        if notes:
            verdict += f", {notes} note{'s' if notes > 1 else ''}"
        return verdict

    @property
    def _header(self) -> str:
        return f"{self.title}: {self.verdict}"

    def __repr__(self) -> str:
        """Header, then one line a check."""
        return "\n".join([self._header, *map(repr, self.checks)])

    def _repr_html_(self) -> str:
        facts = {check.name: check.verdict for check in self.checks}
        return html_block(self._header, html_facts(facts))
