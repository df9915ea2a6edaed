"""What studies share: the options of their commands, their estimators, fits without warnings."""

import argparse
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd

import classex_bayes as cb
from classex_bayes.exceptions import ConvergenceWarning, DataWarning, ExtrapolationWarning

CI_PROB = 0.9  # of the intervals, as in the papers


class Options(argparse.Namespace):
    """Options of a study.

    Attributes
    ----------
    out : Path
        Folder that keeps data and trials.
    jobs : int
        Number of processes.
    small : bool
        Whether the study only has to run.
    write : bool
        Whether pages are written.
    """

    out: Path
    jobs: int
    small: bool
    write: bool

    def repeats(self, number: int) -> int:
        """Number of repetitions; two if the study only has to run."""
        return min(number, 2) if self.small else number

    def kept(self, name: str, make: Callable[[], pd.DataFrame]) -> pd.DataFrame:
        """Table that is computed once and kept as a .csv in the folder."""
        if self.small:
            return make()
        path = self.out / f"{name}.csv"
        if not path.exists():
            make().to_csv(path, index=False)
        return pd.read_csv(path)


def read_options(
    parser: argparse.ArgumentParser, arguments: Sequence[str] | None = None
) -> Options:
    """Read a command line, of this process by default, and make the folder."""
    parser.add_argument(
        "--out", type=Path, default=Path("build/studies"), metavar="FOLDER",
        help="folder that keeps data and trials (%(default)s); a study continues from there",
    )  # fmt: skip
    parser.add_argument(
        "--jobs", type=int, default=1, metavar="N", help="processes; -1 for one per processor"
    )
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--small", action="store_true", help="two trials each, to see that it runs")
    how.add_argument("--write", action="store_true", help="write the pages; otherwise print")
    options = parser.parse_args(arguments, Options())
    options.out.mkdir(parents=True, exist_ok=True)
    return options


def study_estimators() -> list[Any]:
    """Estimators that studies compare: ours with posteriors, and those of the literature."""
    ranks = cb.BayesianExtrapolator(evidence="ranks")
    return [cb.BayesianExtrapolator(), ranks, *cb.literature()]


@contextmanager
def quiet() -> Iterator[None]:
    """Leave out warnings of faulty data, far predictions and few draws."""
    with warnings.catch_warnings():
        for category in (DataWarning, ExtrapolationWarning, ConvergenceWarning):
            warnings.simplefilter("ignore", category)
        yield
