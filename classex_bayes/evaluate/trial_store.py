"""The file of a study of trials. It contains whole tasks even after an interruption."""

import io
import json
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from classex_bayes.arguments import file_path
from classex_bayes.exceptions import DataError

COLUMNS = (
    "cell", "simulation", "estimator", "settings", "k", "truth", "mean", "lower", "upper", "crps",
    "pit", "seconds", "note",
)  # fmt: skip
_TASK = ["cell", "simulation", "estimator"]
_TEXTS = "cell", "estimator", "settings", "note"
_COUNTS = "simulation", "k"
_CHECKSUM = "checksum"  # of the other fields of a row


def read_trials(path: str | Path) -> pd.DataFrame:
    """Rows of a file that `classex_bayes.evaluate.trials.run_trials` has written.

    The columns are those of `run_trials` and "settings", a digest of the study and the estimator's
    parameters. A last line that an interruption cut off is left out. A row that does not match its
    checksum raises `DataError`.
    """
    try:
        text = Path(path).read_bytes().decode()
        lines = text[: text.rfind("\n") + 1]
        if not lines:
            return pd.DataFrame({name: [] for name in COLUMNS})
        table = pd.read_csv(io.StringIO(lines, newline=""), dtype=str, keep_default_na=False)
    except (OSError, ValueError) as error:
        raise DataError(
            f"store: {path} is not a table of trials ({str(error).strip()}); expected a .csv "
            "file that a back-test wrote"
        ) from None
    if tuple(table.columns) != (*COLUMNS, _CHECKSUM):
        raise DataError(
            f"store: {path} has columns {list(table.columns)}, expected {(*COLUMNS, _CHECKSUM)}"
        )
    # Two studies that begin at once may both write a header.
    table = table[(table != table.columns).any(axis=1)].reset_index(drop=True)
    checksum = table.pop(_CHECKSUM)
    changed = checksum != [*map(_checksum, table.itertuples(index=False))]
    if changed.any():
        row = table[changed].iloc[0]
        raise DataError(
            f"store: {path} was changed or damaged after it was written, at the row of "
            f"{', '.join(f'{name} {row[name]}' for name in (*_TASK, 'k'))}; delete that line to "
            "compute its task again"
        )
    for name in _COUNTS:
        table[name] = table[name].astype(np.int64)
    for name in table.columns.difference([*_TEXTS, *_COUNTS]):
        table[name] = table[name].replace("", "nan").astype(float)
    return table


def _checksum(fields: Iterable[str]) -> str:
    return f"{zlib.crc32(json.dumps(list(fields)).encode()):08x}"


def _as_text(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows as the file has them: text from which all numbers come back, and its checksum."""
    text = pd.DataFrame(
        {
            name: [*map(_number_text, rows[name])] if name not in _TEXTS else rows[name]
            for name in COLUMNS
        },
        dtype=object,
    )
    return text.assign(**{_CHECKSUM: [*map(_checksum, text.itertuples(index=False))]})


def _number_text(value: Any) -> str:
    return "" if value != value else repr(value.item() if isinstance(value, np.generic) else value)


class TrialStore:
    """A .csv of finished tasks, or nothing if no path is given."""

    def __init__(self, path: str | Path | None) -> None:
        self.path = None if path is None else file_path(path, "store")

    def resume(self, settings: Mapping[str, str], n_k: int) -> pd.DataFrame:
        """Rows of whole tasks. Incomplete tasks are removed from the file.

        `settings` holds a digest of the study and the parameters of each estimator by name; a whole
        task has `n_k` rows for each.
        """
        if self.path is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        if self.path is None or not self.path.exists():
            return pd.DataFrame({name: [] for name in COLUMNS})
        table = read_trials(self.path)
        wanted = table["estimator"].isin(settings)
        other = table[wanted & (table["settings"] != table["estimator"].map(settings))]
        if len(other):
            raise DataError(
                f"store: {self.path} has trials of {other['estimator'].iloc[0]} from another "
                "study, with other draws, k, metric, random_seed, ci_prob, sampler or "
                "parameters; pass another file"
            )
        whole = table[~wanted | (table.groupby(_TASK)["k"].transform("size") == n_k)]
        ends_well = self.path.read_bytes()[-1:] == b"\n"
        if len(whole) < len(table) or not ends_well:
            beside = self.path.with_name(f"{self.path.name}.part")
            _as_text(whole).to_csv(beside, index=False)
            beside.replace(self.path)
        return whole

    def append(self, rows: pd.DataFrame) -> None:
        """Add the rows of a finished task."""
        if self.path is not None:
            fresh = not self.path.exists() or self.path.stat().st_size == 0
            _as_text(rows).to_csv(self.path, mode="a", header=fresh, index=False)
