"""The file that a study of trials grows in: whole tasks of one study, whatever interrupted it."""

import io
from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from classex_bayes.arguments import file_path
from classex_bayes.exceptions import DataError

COLUMNS = (
    "cell", "simulation", "estimator", "settings", "k", "truth", "mean", "lower", "upper", "crps",
    "pit", "seconds", "note",
)  # fmt: skip
_TASK = ["cell", "simulation", "estimator"]


def read_trials(path: str | Path) -> pd.DataFrame:
    """Rows of a file that `classex_bayes.evaluate.trials.run_trials` has written.

    The columns are those of `run_trials` and "settings", a digest of the study and the estimator's
    parameters. A last line that an interruption cut off is left out.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
        lines = text[: text.rfind("\n") + 1]
        if not lines:
            return pd.DataFrame({name: [] for name in COLUMNS})
        text_columns = {"cell": str, "estimator": str, "settings": str, "note": str}
        table = pd.read_csv(io.StringIO(lines), dtype=text_columns)
        # Two studies that begin at once may both write a header.
        table = table[table.iloc[:, 0] != COLUMNS[0]].reset_index(drop=True)
        for name in table.columns.difference(list(text_columns)):
            table[name] = pd.to_numeric(table[name])
    except (OSError, ValueError) as error:
        raise DataError(f"store: {path} is no table of trials ({str(error).strip()})") from None
    if tuple(table.columns) != COLUMNS:
        raise DataError(f"store: {path} has columns {list(table.columns)}, expected {COLUMNS}")
    return table.fillna({"note": ""})


class TrialStore:
    """A .csv of finished tasks, or nothing if no path is given."""

    def __init__(self, path: str | Path | None) -> None:
        self.path = None if path is None else file_path(path, "store")

    def resume(self, settings: Mapping[str, str], n_k: int) -> pd.DataFrame:
        """Rows of whole tasks; what an interruption left of others is taken out of the file.

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
                "study, with other draws, k, random_seed, ci_prob, sampler or parameters; give "
                "another file"
            )
        whole = table[~wanted | (table.groupby(_TASK)["k"].transform("size") == n_k)]
        ends_well = self.path.read_bytes()[-1:] == b"\n"
        if len(whole) < len(table) or not ends_well:
            beside = self.path.with_name(f"{self.path.name}.part")
            whole.to_csv(beside, index=False)
            beside.replace(self.path)
        return whole

    def append(self, rows: pd.DataFrame) -> None:
        """Add the rows of a finished task."""
        if self.path is not None:
            fresh = not self.path.exists() or self.path.stat().st_size == 0
            rows.to_csv(self.path, mode="a", header=fresh, index=False)
