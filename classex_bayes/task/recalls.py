"""Recalls of a printed table, such as a CMC: shares of instances whose true class is among m best.

All are measured on one number of classes. So they count the instances whose ranks lie between one m
and the next: a table of ranks within bounds, whose true classes are unknown.

If each class has several candidates, such as the captions of an image, wrong ones of one class win
together. In simulations with 5 candidates, from near copies to independent ones, l better ones, of
up to 10, were of l to l / 2.5 classes. With s candidates the ends lie between l and l / sqrt(s).
Their geometric middle is used, and the design effect is sqrt(s) times as large.
"""

from typing import Any

import numpy as np
import pandas as pd

from classex_bayes.arguments import class_total, how_many, shown, whole_number
from classex_bayes.core.metrics import SHARES_UP_TO_M, standard_name
from classex_bayes.exceptions import DataError
from classex_bayes.task.accuracy_curve import effect_without_labels, printed_shares
from classex_bayes.task.own_negatives import RANDOM_NEGATIVES, checked_negatives
from classex_bayes.task.provenance import CLASSES, ITEMS, RECALLS, Provenance
from classex_bayes.task.rank_table import RankTable
from classex_bayes.typing import FloatArray, IntArray

# Values with more decimals are not rounded. Tables usually have three, such as those of 50.0%.
_MOST_DECIMALS, _USUAL_DECIMALS = 8, 3
_DIVISION = 1e-12  # error of percentages that were divided by 100


def recalls_table(
    recalls: Any,
    n_test: Any,
    n_classes: Any,
    n_negatives: Any,
    per_unit: Any,
    decimals: Any,
    design_effect: Any,
) -> RankTable:
    """Table of the arguments of `SourceTask.from_recalls`."""
    if (n_classes is None) == (n_negatives is None):
        found = "neither" if n_classes is None else "both"
        raise DataError(
            f"n_classes, n_negatives: found {found}, expected one of them: n_classes if all "
            "instances were searched among the same classes, or n_negatives if each had negatives "
            "of its own"
        )
    is_shared = n_negatives is None
    k1 = class_total(n_classes) if is_shared else 1 + int(checked_negatives(n_negatives)[0])
    n, unit_size = whole_number(n_test, "n_test", 1), whole_number(per_unit, "per_unit", 1)
    m, recall = _in_order(recalls)
    digits = _decimals_of(recall) if decimals is None else how_many(decimals, "decimals", 0)
    half = 0.5 * 10.0**-digits
    _refuse_impossible(m, recall, n, k1 * unit_size, 2 * half)
    recall = np.maximum.accumulate(recall)
    clump, most_clumped = unit_size**0.25, unit_size**0.5
    effect = effect_without_labels(k1, n, design_effect, are_shared=is_shared) * most_clumped
    # The error of rounding is uniform, and adds to the variance of n independent instances.
    share = (n * recall + 0.5) / (n + 1)
    effect += float((half**2 / 3 / (share * (1 - share) / n)).max())
    ends = np.minimum(np.ceil(m / clump), k1 - 1)
    min_better, max_better, weight = _instances(ends, recall, n, k1)
    clumps = (
        f"a class has {unit_size} candidates, so l better ones count as l / {clump:.2g} classes; "
        f"they may be l / {most_clumped:.2g} to l, for which the design effect is "
        f"{most_clumped:.2g} times as large"
    ) * (unit_size > 1)
    words = Provenance(
        "recalls",
        unknown=RECALLS,
        nouns=CLASSES if is_shared else ITEMS,
        assumption="" if is_shared else RANDOM_NEGATIVES,
    )
    return RankTable(
        np.arange(min_better.size),
        k1,
        weight,
        min_better,
        max_better,
        competitors_shared=is_shared,
        design_effect=effect,
        provenance=words.with_facts(clumps),
    )


def _in_order(recalls: Any) -> tuple[IntArray, FloatArray]:
    """Increasing m, and the recall at each."""
    if isinstance(recalls, pd.DataFrame) and {"m", "recall"} <= set(recalls):
        recalls = recalls.set_index("m")["recall"]
    if not hasattr(recalls, "items"):
        raise DataError(
            f"recalls: expected a mapping from m to recall, such as {{1: 0.52, 5: 0.84}}, found "
            f"{shown(recalls)}; that of an array cmc of ranks 1, 2, ... is dict(enumerate(cmc, 1))"
        )
    values = {_m(key): value for key, value in recalls.items()}
    if not values or len(values) < len(recalls):
        found = "none" if not values else "the same m twice"
        raise DataError(f"recalls: found {found}, expected one recall or more, of different m")
    m = np.array(sorted(values))
    return m, printed_shares([values[i] for i in m.tolist()], "recalls", m, "m")


def _m(key: Any) -> int:
    """Number of best classes of a key, such as 5 or "recall@5"."""
    if isinstance(key, str):
        name, _, m = standard_name(f"recall@{key}" if key.strip().isdigit() else key).partition("@")
        if name not in SHARES_UP_TO_M or not m:
            raise DataError(
                f"recalls: found {key!r}, which is no share of instances whose true class is among "
                "the m best; expected recall@m, hit rate@m or top-m accuracy by their m. Means of "
                "gains, such as nDCG, MRR and mAP, do not determine how many ranks lie where"
            )
        key = int(m)
    return whole_number(key, "recalls", 1)


def _decimals_of(recall: FloatArray) -> int:
    """Fewest decimals, of three or more, with which all values can be written."""
    possible = range(_USUAL_DECIMALS, _MOST_DECIMALS)
    written = (d for d in possible if np.allclose(recall, recall.round(d), rtol=0, atol=_DIVISION))
    return next(written, _MOST_DECIMALS)


def _refuse_impossible(
    m: IntArray, recall: FloatArray, n: int, n_candidates: int, rounding: float
) -> None:
    """Raise if recalls fall with m, are below those of guesses, or reach beyond the candidates."""
    if m[-1] >= n_candidates:
        raise DataError(
            f"recalls: found m = {m[-1]} of {n_candidates} candidates, expected an m below their "
            "number; leave it out, because its recall is 1"
        )
    falls = np.diff(recall) < -rounding
    if falls.any():
        i = int(np.argmax(falls))
        raise DataError(
            f"recalls: found {recall[i]:g} at m = {m[i]} and {recall[i + 1]:g} at m = {m[i + 1]}, "
            "expected recalls that do not fall; check that they are of one system, or pass the "
            "number of decimals that they are rounded to"
        )
    guess = m / n_candidates
    low = recall + rounding < guess - 2 * np.sqrt(guess * (1 - guess) / n)
    if low.any():
        i = int(np.argmax(low))
        raise DataError(
            f"recalls: found {recall[i]:g} at m = {m[i]}, less than guesses have, {m[i]} / "
            f"{n_candidates}; check n_classes or n_negatives, or the order of the lists"
        )


def _instances(
    ends: FloatArray, recall: FloatArray, n: int, n_classes: int
) -> tuple[IntArray, IntArray, FloatArray]:
    """Bounds of the number of better classes of n instances, and weights with the given recalls.

    `recall` (n_m,) are the shares of instances with fewer better classes than `ends` (n_m,).
    """
    n_up_to = np.round(n * np.append(recall, 1)).astype(np.int64)
    counts = np.append(n_up_to[:1], n_up_to[1:] - n_up_to[:-1])
    share = np.diff(recall, prepend=0, append=1)
    weight = np.divide(share, counts, out=np.zeros(counts.size), where=counts > 0)
    min_better = np.append(0, ends).astype(np.int64)
    max_better = np.maximum(np.append(ends, n_classes).astype(np.int64) - 1, min_better)
    weights = np.repeat(weight, counts)
    return np.repeat(min_better, counts), np.repeat(max_better, counts), weights / weights.sum()
