"""Report of checks of a task or a model: findings as text, as a table and by name."""

from collections.abc import Iterator
from dataclasses import dataclass

import pandas as pd

from classex_bayes.exceptions import DataError
from classex_bayes.formatting import folded, html_block, html_facts
from classex_bayes.task.rules import Finding


@dataclass(frozen=True, repr=False, eq=False)
class CheckReport:
    """Findings in a fixed order, with a title.

    Examples
    --------
    >>> report = CheckReport((Finding("ties", True, "no pair is tied", 0.0, 0.05),), "3 classes")
    >>> report
    3 classes: nothing found
    ok           ties: no pair is tied
    >>> report.passed, report["ties"].value
    (True, 0.0)
    """

    checks: tuple[Finding, ...]
    title: str

    @property
    def passed(self) -> bool:
        """Whether no check failed. Checks that could not be made count as passed."""
        return not self.warnings

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """The checks that failed."""
        return tuple(check for check in self.checks if check.passed is False)

    @property
    def table(self) -> pd.DataFrame:
        """All checks by their names, with the attributes of `Finding` as columns."""
        return pd.DataFrame(list(self.checks)).set_index("name").astype({"passed": object})

    def __getitem__(self, name: str) -> Finding:
        """Check of the given name; raises `DataError` if there is none."""
        for check in self.checks:
            if check.name == name:
                return check
        some = ", ".join(repr(check.name) for check in self.checks[:3])
        raise DataError(f"name: found {name!r}, expected one of {some}, ... in table.index")

    def __iter__(self) -> Iterator[Finding]:
        """Walk through the checks."""
        return iter(self.checks)

    @property
    def verdict(self) -> str:
        """Number of warnings and of notes: "nothing found, 1 note"."""
        n_warnings, n_notes = len(self.warnings), sum(check.is_note for check in self.checks)
        verdict = "nothing found"
        if n_warnings:
            verdict = f"{n_warnings} warning{'s' if n_warnings > 1 else ''}"
        elif not any(check.passed for check in self.checks):
            verdict = "no check could be made"
        return verdict + (f", {n_notes} note{'s' if n_notes > 1 else ''}" if n_notes else "")

    @property
    def _header(self) -> str:
        return f"{self.title}: {self.verdict}"

    def __repr__(self) -> str:
        """Header, one line a check, and the names of those that could not be made."""
        made = [repr(check) for check in self.checks if check.passed is not None or check.is_note]
        silent = [check.name for check in self.checks if check.passed is None and not check.is_note]
        unmade = [folded(f"not checked: {', '.join(silent)}")] * bool(silent)
        return "\n".join([self._header, *made, *unmade])

    def _repr_html_(self) -> str:
        facts = {check.name: check.verdict for check in self.checks}
        return html_block(self._header, html_facts(facts))
