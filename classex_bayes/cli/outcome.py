"""Outcome of a verb: files that it wrote, failures, and its exit code."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import typer

import classex_bayes as cb
from classex_bayes.cli.terminal import ExitCode, Terminal, ready_folder
from classex_bayes.exceptions import Interrupted, require_extra


@dataclass
class Outcome:
    """Files by name, failures to write others, and an interruption. None takes away an answer."""

    terminal: Terminal
    files: dict[str, str] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    interruption: str = ""

    def place(self, folder: Path | None, name: str) -> Path | None:
        """Path of a figure, if files are wanted; the posterior goes next to it."""
        if folder is None:
            return None
        require_extra("files,plots", "--out", "h5netcdf", "h5py", "matplotlib")
        ready_folder(folder)
        return folder / name

    def write(self, name: str, path: Path | None, write: Callable[[Path], object]) -> None:
        """Write a file, if it is wanted."""
        try:
            if path is not None:
                write(path)
                self.files[name] = str(path)
        except KeyboardInterrupt:
            self.interruption = self.interruption or f"interrupted while the {name} was written"
        except Exception as error:
            self.failures.append(f"the {name} could not be written ({error})")

    def save(self, model: Any, path: Path | None) -> None:
        """Save the posterior next to a file, if one is wanted."""
        if path is not None:
            self.write("posterior", path.with_suffix(".nc"), lambda place: cb.save(model, place))

    @property
    def lines(self) -> list[str]:
        """Sentences that say where files are."""
        return [f"{name} written to {path}" for name, path in self.files.items()]

    def notes(self, notes: Sequence[str], *tasks: Any) -> None:
        """Show notes of predictions, without those that were shown when the files were read."""
        shown = tuple(warning for task in tasks for warning in task.warnings)
        for note in notes:
            if not note.endswith(shown):
                self.terminal.message(note)

    def end(self, models: Sequence[Any], is_met: bool = True, names_faults: bool = False) -> None:
        """Show what could not be written, and end with the exit code of what happened.

        `is_met` is False if a requirement is not met, which may be one on data and fit. The result
        may name the faults of data and fits; else warnings and notes did.
        """
        if not names_faults and not self.interruption:
            self.terminal.faults(fault for model in models for fault in faults_of(model))
        for failure in self.failures:
            self.terminal.error(failure)
        if self.interruption:
            raise Interrupted(f"{self.interruption}; the finished part is above")
        if self.failures:
            raise typer.Exit(ExitCode.NOT_WRITTEN)
        # The notes name them.
        if any(model.diagnosis_.problems or model.contradiction_ for model in models):
            raise typer.Exit(ExitCode.NOT_CONVERGED)
        if not is_met or any(task.warnings for model in models for task in model.tasks):
            raise typer.Exit(ExitCode.NOT_MET)


def faults_of(model: Any) -> list[str]:
    """Reasons not to rely on a fit, from the checks that every fit makes."""
    from classex_bayes.report.assessment import faults_of_fit

    of_data = [f"data: {warning}" for task in model.tasks for warning in task.warnings]
    return of_data + [str(fault) for fault in faults_of_fit(model)]
