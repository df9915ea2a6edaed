"""Files of TREC: runs of retrieval systems and relevance judgements (qrels)."""

import csv
from pathlib import Path
from typing import Literal

import pandas as pd

from classex_bayes.exceptions import DataError, no_such_file
from classex_bayes.io.arrays import readable
from classex_bayes.task.retrieval_runs import ENTRY_COLUMNS

_COLUMNS = {
    "qrels": ("query_id", "iteration", "doc_id", "relevance"),
    "run": ("query_id", "iteration", "doc_id", "rank", "score", "tag"),
}


def read_trec(path: Path, kind: Literal["qrels", "run"]) -> pd.DataFrame:
    """The used columns of a TREC file; a file ending in .gz is decompressed.

    The columns are separated by blanks or tabs. Ranks of a run are ignored, as by trec_eval.
    """
    names, wanted = _COLUMNS[kind], ENTRY_COLUMNS[kind]
    if not path.is_file():
        raise no_such_file(path)
    with readable(path):
        table = pd.read_csv(
            path, sep=r"\s+", header=None, dtype=str, quoting=csv.QUOTE_NONE, na_filter=False
        )
        short = (table == "").any(axis=1)
        if table.shape[1] != len(names) or short.any():
            row = int(short.argmax())
            found = " ".join(table.iloc[row]).strip()
            raise DataError(f"{kind}: found {found!r} in row {row}, expected {' '.join(names)}")
        table.columns = names
        table[wanted[2]] = table[wanted[2]].astype(float)
    return table[list(wanted)]
