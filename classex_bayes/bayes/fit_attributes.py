"""Attributes of `idata`: the settings and the seed of a fit, and facts on its data."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from enum import IntEnum
from typing import Any, Self

import numpy as np

from classex_bayes._version import __version__
from classex_bayes.arguments import seed_sequence
from classex_bayes.bayes.model.likelihoods import coarsening
from classex_bayes.bayes.model.priors import PRIORS, checked_prior
from classex_bayes.bayes.sampling import SamplerSettings
from classex_bayes.bayes.tails.tail_model import TailPrior
from classex_bayes.core.dependence import AnswerDependence
from classex_bayes.exceptions import DataError
from classex_bayes.results.pilot_extrapolation import PilotExtrapolation
from classex_bayes.task.rules import ERRORS
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import RandomSeed

_LEAST_PROBABLE = 0.005  # form of the scores that is named
_PLAIN = str, int, float
_EMPTY: tuple[Any, ...] = None, "", (), {}
_NOT_STORED = "not stored"
# Classes of attributes and parameters, apart from priors.
_CLASSES: dict[str, Any] = {
    kind.__name__: kind
    for kind in (AnswerDependence, PilotExtrapolation, SamplerSettings, TailPrior)
}
_LAYOUT = 3  # of groups and attributes; other files are refused


class Stage(IntEnum):
    """Stages of a fit and of its predictions, each with a child of the seed of the fit."""

    PRIOR_PREDICTIVE = 1
    POSTERIOR_PREDICTIVE = 2
    TEST = 3
    POPULATION = 4
    CLASS_CHECKS = 5
    FIT_GAP = 6
    TAIL_CHECKS = 7
    SCORES = 8
    ALWAYS_LOST = 9
    RELEVANT_DOCUMENTS = 10

    def seeds(self, fit: np.random.SeedSequence) -> np.random.SeedSequence:
        """Seeds of the stage, from those of the fit."""
        return np.random.SeedSequence(fit.entropy, spawn_key=(*fit.spawn_key, int(self)))


@dataclass(frozen=True, kw_only=True)
class FitAttributes:
    """The attributes of `idata` with their types: all that is known of a fit but its arrays.

    A field is an attribute with the same name, unless it is empty. Fields of the types str, int and
    float are attributes as they are, and others are JSON. Only `stored` and `of` depend on this.
    """

    # The data
    made_from: str  # words for what the fitted tasks were made from, separated by commas
    ranked: str = "classes"  # noun of `classex_bayes.task.provenance`
    n_classes: int  # k1, of the task with the most classes
    n_test: int  # instances in all tasks
    design_effect: float  # number of instances with the information of one independent instance
    dependence: AnswerDependence  # of the answers of one test
    n_tasks: int = 1
    designed: bool = False  # whether instances met competitors of several numbers or weights
    competitors_unseen: bool = False  # whether the part of shared competitors is a typical one
    negated: bool = False  # whether scores are negated distances
    several_relevant: bool = False  # relevant documents of a query, or entries of a class
    # The model
    estimator: str = ""  # its class, with the module
    parameters: dict[str, Any] = field(default_factory=dict)  # but for arrays
    sampler: SamplerSettings | None = None  # None for draws that were made without a sampler
    random_seed: Any = None  # entropy of the seed
    random_seed_spawn_key: tuple[int, ...] = ()
    # The evidence
    evidence: str = ""  # "ranks", "ranks and scores", or "recalls" or "accuracies" alone
    # Probabilities of the forms of the scores, the most probable one first.
    forms: dict[str, float] = field(default_factory=dict)
    pilot_extrapolation: PilotExtrapolation | None = None  # from parts of the pilot, if checked
    pareto_k: float | None = None  # of the importance weights of the tails of scores
    notes: tuple[str, ...] = ()  # on data and fit, for readers of predictions
    notes_on_best: tuple[str, ...] = ()  # those of them on the ranks of the best documents alone
    modeling_interface: str = "classex_bayes"
    modeling_interface_version: str = __version__
    layout: int = _LAYOUT

    @classmethod
    def of_tasks(cls, tasks: Sequence[SourceTask], **fields: Any) -> Self:
        """Attributes of a fit to one or several tasks, with further fields.

        Correlations between answers are averages by the number of classes. The other fields of
        their dependence are those of the task with the most classes.
        """
        variances = [task.variance for task in tasks]
        dependences = [variance.dependence for variance in variances]
        sizes = np.array([task.n_classes for task in tasks])
        correlations = np.array([(of_task.within, of_task.between) for of_task in dependences])
        within, between = sizes / sizes.sum() @ correlations
        largest = dependences[int(sizes.argmax())]
        effects = np.array([task.design_effect() for task in tasks])
        n_test = np.array([task.n_test for task in tasks])
        ranked = {task.table.provenance.nouns.ranked for task in tasks}
        return cls(
            made_from=", ".join(sorted({task.table.made_from for task in tasks})),
            ranked=ranked.pop() if len(ranked) == 1 else "classes",
            n_classes=max(task.n_classes for task in tasks),
            n_test=int(n_test.sum()),
            design_effect=float(n_test.sum() / (n_test / effects).sum()),
            dependence=replace(largest, within=float(within), between=float(between)),
            n_tasks=len(tasks),
            designed=any(not task.table.has_one_size for task in tasks),
            competitors_unseen=any(variance.competitors_unseen for variance in variances),
            several_relevant=any(task.several_relevant for task in tasks),
            notes=_notes_on_several(tasks),
            notes_on_best=tuple(
                check.sentence
                for task in tasks
                for check in task.checks
                if task.several_relevant and check.name == ERRORS.name and check.is_note
            ),
            **fields,
        )

    @classmethod
    def of(cls, attributes: Mapping[Any, Any], argument: str = "idata") -> Self:
        """Inverse of `stored`. Raise DataError if those of an argument are of another version."""
        if attributes.get("layout") != _LAYOUT:
            raise DataError(
                f"{argument}: expected attributes with layout={_LAYOUT}, found "
                f"{attributes.get('layout')}: it is no fitted model, or one of another version; "
                "fit again"
            )
        values = {}
        for f in fields(cls):
            if f.name in attributes:
                value = attributes[f.name]
                if f.type not in _PLAIN:
                    value = _hashable(json.loads(value, object_hook=_from_json_types))
                # Files have numbers of NumPy.
                values[f.name] = value.item() if isinstance(value, np.generic) else value
        return cls(**values)

    def stored(self) -> dict[str, Any]:
        """Attributes of `idata`, which files can hold and people can read."""
        return {
            f.name: value if f.type in _PLAIN else json.dumps(value, default=_json_types)
            for f in fields(self)
            if (value := getattr(self, f.name)) not in _EMPTY
        }

    @property
    def n_effective(self) -> float:
        """Number of independent instances with the information of all instances."""
        return self.n_test / self.design_effect

    @property
    def counted(self) -> int:
        """Number of independent instances that all instances count as in the likelihood."""
        return round(self.n_effective * coarsening(self.n_effective))

    @property
    def seeds(self) -> np.random.SeedSequence:
        """Seed of the fit."""
        return np.random.SeedSequence(self.random_seed, spawn_key=self.random_seed_spawn_key)

    def rng(self, stage: Stage, random_seed: RandomSeed = None) -> np.random.Generator:
        """Generator of a stage after the fit, by default from the seed of the fit."""
        if random_seed is not None:
            return np.random.default_rng(seed_sequence(random_seed))
        return np.random.default_rng(stage.seeds(self.seeds))

    @property
    def forms_text(self) -> str:
        """Forms of the scores, with their probabilities if there are several."""
        likely = {name: prob for name, prob in self.forms.items() if prob > _LEAST_PROBABLE}
        return ", ".join(f"{n}{f' ({prob:.0%})' * (len(likely) > 1)}" for n, prob in likely.items())


def _notes_on_several(tasks: Sequence[SourceTask]) -> tuple[str, ...]:
    """Notes for readers of a prediction from several tasks."""
    if len(tasks) == 1:
        return ()
    sizes = ", ".join(str(task.n_classes) for task in tasks)
    notes = [f"pilots of {sizes} classes are assumed to be independent"]
    named = [set(task.classes) for task in tasks if task.classes is not None]
    repeated = sum(map(len, named)) - len(set().union(*named))
    if repeated:
        notes.append(
            f"{repeated} names of classes occur again in other pilots; if they are the same "
            "classes, fit the largest pilot alone"
        )
    return tuple(notes)


def _json_types(value: Any) -> Any:
    """A number of NumPy as one of Python, and a dataclass, such as a prior, by class and fields."""
    if isinstance(value, np.generic):
        return value.item()
    if is_dataclass(value) and not isinstance(value, type):
        return {"type": type(value).__name__} | {
            f.name: getattr(value, f.name) for f in fields(value)
        }
    return {_NOT_STORED: type(value).__name__}


def _from_json_types(values: dict[str, Any]) -> Any:
    """Inverse of `_json_types` for the classes of this package; others stay dicts."""
    kind = (PRIORS | _CLASSES).get(values.get("type", ""))
    if kind is None:
        return values
    return kind(**{name: _hashable(value) for name, value in values.items() if name != "type"})


def _hashable(value: Any) -> Any:
    """Lists as tuples: JSON has no tuples, and priors, which have a hash, no lists."""
    return tuple(map(_hashable, value)) if isinstance(value, list) else value


def refuse_what_files_lack(parameters: Mapping[str, Any]) -> None:
    """Raise DataError if attributes do not describe a parameter, such as an own prior."""
    for name, value in parameters.items():
        if _NOT_STORED in str(value):
            raise DataError(
                f"{name}: found {value!r}, which a file cannot describe; expected numbers, text, "
                "or a frozen dataclass whose fields are numbers, text, or tuples of these"
            )


def prior_of(stored: Any, prior: Any = None) -> Any:
    """The stored prior, or the given one, which is as the stored one.

    One whose class is not in `PRIORS` is stored as a dict, and must be given.
    """
    if prior is None and isinstance(stored, dict):
        fields = {name: _hashable(value) for name, value in stored.items() if name != "type"}
        values = ", ".join(f"{name}={value!r}" for name, value in fields.items())
        raise DataError(
            "prior: the model was fitted with your own prior; pass it, as in "
            f"load(path, prior={stored['type']}({values})), or add its class to PRIORS "
            "(docs/map.md)"
        )
    if prior is None:
        return stored
    found, expected = (json.loads(json.dumps(x, default=_json_types)) for x in (prior, stored))
    if found != expected:
        raise DataError(
            f"prior: found {found}, but the model was fitted with {expected}; pass that prior"
        )
    return checked_prior(prior)
