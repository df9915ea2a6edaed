"""The record of a fit: all that is known of it apart from its arrays, as attributes of `idata`."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence, Sized
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from typing import Any, Self

import numpy as np
import pandas as pd

from classex_bayes._version import __version__
from classex_bayes.arguments import seed_sequence
from classex_bayes.bayes.model.priors import PRIORS, Prior, checked_prior
from classex_bayes.bayes.sampling import SamplerSettings
from classex_bayes.bayes.tails.distance_scale import DistanceScale
from classex_bayes.bayes.tails.local_tails import N_NEAREST
from classex_bayes.core.dependence import AnswerDependence
from classex_bayes.exceptions import DataError
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import RandomSeed

_LEAST_PROBABLE = 0.005  # scale of the scores that is named


@dataclass(frozen=True, kw_only=True)
class FitRecord:
    """All that is known of a fit apart from its arrays.

    A field is an attribute of `idata` with the same name, unless it is empty. Numbers and text are
    attributes as they are, and other values are JSON. Only `attributes` and `of` depend on this.
    """

    # The data
    task_kind: str  # kinds of the fitted tasks, separated by commas
    n_classes: int  # k1, of the task with the most classes
    n_test: int  # instances in all tasks
    design_effect: float  # number of instances with the information of one independent instance
    dependence: AnswerDependence  # of the answers of one test
    n_tasks: int = 1
    shared: str = "nothing"  # what several tasks have in common
    designed: bool = False  # whether classes were drawn with unequal probabilities or in groups
    negated: bool = False  # whether scores are negated distances
    # If some competitors are always present: effective number of instances that none of them beats,
    # effective number of the others, and mean number of such competitors.
    permanent_losses: tuple[float, float, float] | None = None
    fingerprint: str = ""  # SHA-256 of the data
    # The model
    estimator: str = ""  # its class
    parameters: dict[str, Any] = field(default_factory=dict)  # JSON types, as from `described`
    sampler: SamplerSettings | None = None  # None for draws that were made without a sampler
    random_seed: Any = None  # entropy of the seed
    random_seed_spawn_key: tuple[int, ...] = ()
    interrupted: str = ""  # number of draws before an interruption
    # The evidence
    evidence: str = ""  # "ranks" or "ranks and scores"
    # Probabilities of the scales on which scores are distances, the most probable one first.
    scales: dict[DistanceScale, float] = field(default_factory=dict)
    pareto_k: float | None = None  # of the importance weights of the tails of scores
    notes: tuple[str, ...] = ()  # on data and fit, for readers of predictions
    modeling_interface: str = "classex_bayes"
    modeling_interface_version: str = __version__

    @classmethod
    def of_task(cls, task: SourceTask, **fields: Any) -> Self:
        """Record of a fit to one task, with further fields."""
        return cls(
            task_kind=task.table.kind,
            n_classes=task.n_classes,
            n_test=task.n_test,
            design_effect=task.design_effect(),
            dependence=task.table.variance.dependence,
            designed=not task.table.is_simple_random,
            permanent_losses=task.table.variance.permanent,
            **fields,
        )

    @classmethod
    def of(cls, attributes: Mapping[Any, Any]) -> Self:
        """Record from the attributes of `idata`: the inverse of `attributes`."""
        attributes["estimator"], attributes["parameters"]  # without them it is another version
        values = {f.name: attributes[f.name] for f in fields(cls) if f.name in attributes}
        # Files have numbers of NumPy.
        values = {n: v.item() if isinstance(v, np.generic) else v for n, v in values.items()}
        for name in _FROM_JSON.keys() & values.keys():
            values[name] = _FROM_JSON[name](json.loads(values[name]))
        return cls(**values)

    def attributes(self) -> dict[str, Any]:
        """Attributes of `idata`, which files can hold and people can read."""
        scales = [{**asdict(scale), "prob": prob} for scale, prob in self.scales.items()]
        values = {f.name: getattr(self, f.name) for f in fields(self)} | {"scales": scales}
        return {
            name: json.dumps(value, default=_as_json) if name in _FROM_JSON else value
            for name, value in values.items()
            if not (value is None or (isinstance(value, Sized) and not len(value)))
        }

    @property
    def seeds(self) -> np.random.SeedSequence:
        """Seed of the fit."""
        return np.random.SeedSequence(self.random_seed, spawn_key=self.random_seed_spawn_key)

    def rng(self, stage: int, random_seed: RandomSeed = None) -> np.random.Generator:
        """Generator of a stage after the fit, by default from the seed of the fit."""
        if random_seed is not None:
            return np.random.default_rng(seed_sequence(random_seed))
        return np.random.default_rng(stage_seeds(self.seeds, stage))

    @property
    def scale_probabilities(self) -> "pd.Series[float]":
        """Probabilities of the scales of scores, by names with enough digits to differ."""
        for digits in range(6, 18):
            names = [scale.name(digits) for scale in self.scales]
            if len(set(names)) == len(names):
                break
        index = pd.Index(names, name="distance", dtype=object)
        return pd.Series(list(self.scales.values()), index, float, name="probability")

    @property
    def scales_text(self) -> str:
        """Names of the scales of scores, with their probabilities if there are several."""
        table = self.scale_probabilities
        likely = table[table > _LEAST_PROBABLE]
        return ", ".join(f"{name}{f' ({prob:.0%})' * (prob < 1)}" for name, prob in likely.items())


# Fields that are JSON in the attributes, and how they are made of JSON types.
_FROM_JSON: dict[str, Callable[[Any], Any]] = {
    "designed": bool,
    "negated": bool,
    "dependence": lambda values: AnswerDependence(**values),
    "permanent_losses": tuple,
    "parameters": dict,
    "sampler": lambda values: SamplerSettings(**values),
    "random_seed": lambda entropy: entropy,
    "random_seed_spawn_key": tuple,
    "scales": lambda rows: {
        DistanceScale(row["kind"], row["origin"], row["unit"]): row["prob"] for row in rows
    },
    "notes": tuple,
}


def fingerprint(tasks: Sequence[SourceTask], with_scores: bool) -> str:
    """SHA-256 of the data of tasks, with the scores that tails use or without them."""
    digest = hashlib.sha256()
    for task in tasks:
        arrays, has_scores = [*task.table.data], task.table.has_scores
        if with_scores and has_scores:
            nearest = task.nearest_classes
            arrays += nearest.true, nearest.scores[:, :N_NEAREST]
        size = task.n_classes, task.n_test, f"{task.design_effect():.6g}", has_scores
        digest.update(repr(size).encode())
        for array in arrays:
            digest.update(b"" if array is None else np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def stage_seeds(fit: np.random.SeedSequence, stage: int) -> np.random.SeedSequence:
    """Seeds of a stage of a fit."""
    return np.random.SeedSequence(fit.entropy, spawn_key=(*fit.spawn_key, stage))


def described(parameters: Mapping[str, Any], *, strict: bool = False) -> dict[str, Any]:
    """Parameters as JSON types, a prior by the name and the fields of its class.

    A value that JSON cannot hold is described by the name of its class, or, if `strict`, is a
    DataError.
    """
    values: dict[str, Any] = {}
    for name, value in parameters.items():
        fields = asdict(value) if is_dataclass(value) and not isinstance(value, type) else None
        text: Any = value if fields is None else {"type": type(value).__name__, **fields}
        try:
            values[name] = json.loads(json.dumps(text, default=_as_json))
        except (TypeError, ValueError):
            if strict:
                raise DataError(
                    f"{name}: found {value!r}, which a file cannot describe; expected numbers, "
                    "text, or a frozen dataclass whose fields are numbers, text, or lists and "
                    "dictionaries of these"
                ) from None
            values[name] = {"type": type(value).__name__}
    return values


def _as_json(value: Any) -> Any:
    """A number of NumPy as one of Python, and a dataclass by its fields."""
    if isinstance(value, np.generic):
        return value.item()
    return asdict(value)  # raises TypeError for anything else


def prior_of(description: dict[str, Any], prior: Any = None) -> Prior:
    """Prior with this description. One that is not of this package must be given."""
    if prior is not None:
        passed = described({"prior": checked_prior(prior)})["prior"]
        if passed != description:
            raise DataError(
                f"prior: found {passed}, but the model was fitted with {description}; pass that "
                "prior"
            )
        return prior
    fields = {name: value for name, value in description.items() if name != "type"}
    name = description["type"]
    if name not in PRIORS:
        values = ", ".join(f"{field}={value!r}" for field, value in fields.items())
        raise DataError(
            f"prior: the model was fitted with your own prior; pass it, as in "
            f"load(path, prior={name}({values}))"
        )
    return PRIORS[name](**fields)
