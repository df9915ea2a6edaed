"""Rates at a threshold: results of open-set identification and of selective classification."""

from dataclasses import dataclass
from typing import ClassVar

import pandas as pd
import xarray as xr

from classex_bayes.exceptions import DataError
from classex_bayes.formatting import Display
from classex_bayes.results.draws import DrawsTable, Tabulated, interval_of
from classex_bayes.typing import IntArray


@dataclass(frozen=True, repr=False, eq=False)
class ThresholdPrediction(Tabulated):
    """Draws of two rates at one threshold for each k, or at several thresholds.

    If there are several probabilities of keeping a limit, each k has a threshold for each of them.

    Attributes
    ----------
    threshold : DataArray with dimensions k and perhaps prob_kept, or threshold
        Thresholds. Scores at or above a threshold are accepted, or distances at or below it.
    estimator : str
        Name of the estimator.
    n_classes : int
        k1, the number of classes of the pilot.
    promise : str
        Requirement that determined the thresholds. It is empty if thresholds were given.
    notes : tuple of str
        Notes for readers of the numbers.
    """

    threshold: xr.DataArray
    estimator: str
    n_classes: int
    promise: str = ""
    notes: tuple[str, ...] = ()

    labels: ClassVar[dict[str, str]]  # of the rates, by their attributes
    classes: ClassVar[str]  # name of the classes of the pilot
    question: ClassVar[str]

    @property
    def description(self) -> str:
        """Name of the quantity."""
        return f"{self.question}{self.promise}"

    @property
    def pilot(self) -> str:
        """Number and name of the classes of the pilot."""
        return f"{self.n_classes:,} {self.classes}"

    @property
    def rates(self) -> dict[str, xr.DataArray]:
        """Draws of the rates by their labels."""
        return {label: getattr(self, name) for name, label in self.labels.items()}

    @property
    def k(self) -> IntArray:
        """Numbers of classes of the prediction, shape (n_k,)."""
        return next(iter(self.rates.values()))["k"].values

    def interval(
        self, rate: str, ci_prob: float | None = None, ci_kind: str | None = None
    ) -> xr.DataArray:
        """Interval of a rate.

        Parameters
        ----------
        rate : str
            Name of the attribute, such as "fnir".
        ci_prob : float, optional
            Level; 0.9 by default, or ArviZ's changed ``rcParams["stats.ci_prob"]``.
        ci_kind : {"eti", "hdi"}, optional
            Equal-tailed or highest density; ``rcParams["stats.ci_kind"]`` by default.

        Returns
        -------
        DataArray
            Dimensions ci_bound ("lower", "upper") and those of the rate without chain and draw.

        Raises
        ------
        DataError
            If the rate is not one of the two, or level or kind are wrong.
        """
        names = tuple(self.labels)
        if not isinstance(rate, str) or rate not in names:
            raise DataError(
                f"rate: found {rate!r}, expected one of {', '.join(map(repr, names))}, and the "
                f'level after it: interval("{names[0]}", 0.95)'
            )
        return interval_of(getattr(self, rate), ci_prob, ci_kind)

    def to_dataframe(self) -> pd.DataFrame:
        """All draws as a table with columns chain, draw, k, threshold and the rates."""
        draws = xr.Dataset({name: getattr(self, name) for name in self.labels})
        if "threshold" not in self.threshold.dims:
            draws = draws.assign(threshold=self.threshold)
        return draws.to_dataframe().reset_index()

    def _table(self, ci_prob: float | None = None, ci_kind: str | None = None) -> DrawsTable:
        rates = xr.concat(self.rates.values(), pd.Index(list(self.rates), name="rate"))
        # Thresholds are the same for all k, those of several probabilities are next to each other.
        dims = self.threshold.dims
        rows = ["threshold"] * ("threshold" in dims) + ["rate", "k"]
        rows += ["prob_kept"] * ("prob_kept" in dims)
        rates = rates.transpose(*rows, ...)
        table = DrawsTable.of_draws(rates, ci_prob, ci_kind)
        others = [name for name in rows if name not in ("rate", "k")]
        numbers, errors = (part.droplevel(others) for part in (table.numbers, table.errors))
        table, row = DrawsTable(numbers, errors), rates.isel(chain=0, draw=0)
        columns = {"prob_kept": rates["prob_kept"]} if "prob_kept" in dims else {}
        for name, column in (columns | {"threshold": self.threshold}).items():
            values = column.broadcast_like(row).transpose(*rows).values
            table = table.with_constants(name, values.ravel())
        return table

    def _display(self) -> Display:
        header = f"{self.estimator}: {self.description}, from {self.pilot}"
        notes = tuple(f"note: {note}" for note in self.notes)
        table = self._table()
        # With all digits, because a system is configured with them.
        chosen = table.numbers.columns.intersection(["threshold", "prob_kept"])
        exact = {name: [f"{number:.15g}" for number in table.numbers[name]] for name in chosen}
        return Display(header, table.text().assign(**exact), notes)


@dataclass(frozen=True, repr=False, eq=False, kw_only=True)
class OpenSetPrediction(ThresholdPrediction):
    """False negative and false positive identification rates with k enrolled classes.

    Attributes
    ----------
    fnir, fpir : DataArrays with dimensions (chain, draw, k), and threshold if there are several
        FNIR is the share of the mated probes whose class is not among the best `rank` or does not
        reach the threshold. FPIR is the share of the non-mated probes for which some class reaches
        the threshold.
    rank : int
        Length of the lists of candidates.
    """

    fnir: xr.DataArray
    fpir: xr.DataArray
    rank: int = 1

    labels: ClassVar[dict[str, str]] = {"fnir": "FNIR", "fpir": "FPIR"}
    classes: ClassVar[str] = "enrolled classes"
    question: ClassVar[str] = "open-set identification"

    @property
    def description(self) -> str:
        """Name of the quantity."""
        rank = "" if self.rank == 1 else f" at rank {self.rank}"
        return f"{self.question}{rank}{self.promise}"


@dataclass(frozen=True, repr=False, eq=False, kw_only=True)
class SelectivePrediction(ThresholdPrediction):
    """Accuracy of a classifier with k classes that abstains below a threshold.

    Attributes
    ----------
    accuracy : DataArray with dimensions (chain, draw, k), and threshold if there are several
        Accuracy among the answered instances; 1 if none is answered.
    answered : DataArray with the same dimensions
        Share of the instances for which some class reaches the threshold.
    """

    accuracy: xr.DataArray
    answered: xr.DataArray

    labels: ClassVar[dict[str, str]] = {"accuracy": "accuracy", "answered": "answered"}
    classes: ClassVar[str] = "source classes"
    question: ClassVar[str] = "selective classification"
