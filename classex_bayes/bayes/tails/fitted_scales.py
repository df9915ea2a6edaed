"""Scales of the scores of a fit and their probabilities, as an attribute of its `idata`."""

import json
from collections.abc import Mapping
from typing import Any

import pandas as pd

from classex_bayes.bayes.tails.distance_scale import DistanceScale

_SCALES = "scales"
_LEAST_PROBABLE = 0.005  # scale that is named


def scale_attributes(scales: Mapping[DistanceScale, float]) -> dict[str, str]:
    """Attributes of a fit with these probabilities of scales."""
    stored = [{**scale.attributes, "prob": prob} for scale, prob in scales.items()]
    return {_SCALES: json.dumps(stored)}


def scales_of(attributes: Mapping[Any, Any]) -> dict[DistanceScale, float]:
    """Scales of the scores of a fit with their probabilities, the most probable one first."""
    stored = json.loads(attributes.get(_SCALES, "[]"))
    return {DistanceScale.of_attributes(scale): scale["prob"] for scale in stored}


def scale_table(attributes: Mapping[Any, Any]) -> "pd.Series[float]":
    """Probabilities of the scales of a fit by names with digits enough to differ."""
    scales = scales_of(attributes)
    for digits in range(6, 18):
        names = [scale.name(digits) for scale in scales]
        if len(set(names)) == len(names):
            break
    index = pd.Index(names, name="distance", dtype=object)
    return pd.Series(list(scales.values()), index, float, name="probability")


def scales_text(attributes: Mapping[Any, Any]) -> str:
    """Names of the scales of a fit, with their probabilities if there are several."""
    table = scale_table(attributes)
    likely = table[table > _LEAST_PROBABLE]
    return ", ".join(f"{name}{f' ({prob:.0%})' * (prob < 1)}" for name, prob in likely.items())
