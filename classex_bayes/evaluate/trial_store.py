"""The file of a study of trials. It contains whole tasks even after an interruption."""

import io
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from classex_bayes.arguments import file_path
from classex_bayes.exceptions import DataError

COLUMNS = (
    "cell", "simulation", "estimator", "settings", "k", "truth", "mean", "lower", "upper", "crps",
    "pit", "seconds", "note",
)  # fmt: skip
_TASK = ["cell", "simulation", "estimator"]
_TEXTS = ["cell", "estimator", "settings", "note"]
_COUNTS = ["simulation", "k"]
_NUMBERS = [name for name in COLUMNS if name not in (*_TEXTS, *_COUNTS)]
_HEADER = ",".join(COLUMNS).encode() + b"\n"


def read_trials(path: str | Path) -> pd.DataFrame:
    """Rows of a file that `classex_bayes.evaluate.trials.run_trials` has written.

    The columns are those of `run_trials` and "settings", a digest of the study and the estimator's
    parameters. A last line that an interruption cut off is left out.
    """
    try:
        content = Path(path).read_bytes()
        if content[: len(_HEADER)] != _HEADER[: len(content)]:
            raise ValueError(f"found {content[: len(_HEADER)]!r}, expected the header {_HEADER!r}")
        lines = content[: content.rfind(b"\n") + 1] or _HEADER
        table = pd.read_csv(io.BytesIO(lines), dtype=str, keep_default_na=False)
        # From text, numbers come back to the last bit.
        table[_NUMBERS] = table[_NUMBERS].replace("", "nan").astype(float)
        table[_COUNTS] = table[_COUNTS].astype(np.int64)
    except (OSError, ValueError) as error:
        raise DataError(
            f"store: {path} is not a table of trials ({str(error).strip()}); expected a .csv "
            "file that a back-test wrote"
        ) from None
    return table


class TrialStore:
    """A .csv of finished tasks, or nothing if no path is given."""

    def __init__(self, path: str | Path | None) -> None:
        self.path = None if path is None else file_path(path, "store")

    def resume(self, settings: Mapping[str, str], n_k: int) -> pd.DataFrame:
        """Rows of whole tasks. Incomplete tasks are removed from the file.

        `settings` holds a digest of the study and the parameters of each estimator by name; a whole
        task has `n_k` rows for each.
        """
        if self.path is None or not self.path.exists():
            return pd.DataFrame({name: [] for name in COLUMNS})
        table = read_trials(self.path)
        requested = table["estimator"].isin(settings)
        other = table[requested & (table["settings"] != table["estimator"].map(settings))]
        if len(other):
            raise DataError(
                f"store: {self.path} has trials of {other['estimator'].iloc[0]} from another "
                "study, with other draws, k, metric, random_seed, ci_prob, sampler or "
                "parameters; pass another file"
            )
        whole = table[~requested | (table.groupby(_TASK)["k"].transform("size") == n_k)]
        if len(whole) < len(table) or not self.path.read_bytes().endswith(b"\n"):
            beside = self.path.with_name(f"{self.path.name}.part")
            whole.to_csv(beside, index=False)
            beside.replace(self.path)
        return whole

    def append(self, rows: pd.DataFrame) -> None:
        """Add the rows of a finished task."""
        if self.path is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            fresh = not self.path.exists() or self.path.stat().st_size == 0
            rows.to_csv(self.path, mode="a", header=fresh, index=False)
