"""Attributes of a fitted model: version, parameters, sampler and seed, as text for files."""

import json
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from typing import Any

import numpy as np

from classex_bayes._version import __version__
from classex_bayes.arguments import seed_sequence
from classex_bayes.bayes.model.priors import PRIORS, Prior, checked_prior
from classex_bayes.bayes.sampling import SamplerSettings
from classex_bayes.exceptions import DataError
from classex_bayes.typing import RandomSeed


def provenance(
    estimator: str,
    parameters: str,
    settings: SamplerSettings | None,
    seeds: np.random.SeedSequence,
) -> dict[str, Any]:
    """Attributes with the version, the estimator, the sampler and the seed of a fit.

    `parameters` come from `described`. `settings` is None for draws without a sampler.
    """
    return {
        "modeling_interface": "classex_bayes",
        "modeling_interface_version": __version__,
        "estimator": estimator,
        "parameters": parameters,
        **({} if settings is None else {"sampler": json.dumps(asdict(settings))}),
        # As text, because the entropy of a fit without a seed has 128 bits.
        "random_seed": json.dumps(np.asarray(seeds.entropy, dtype=object).tolist(), default=int),
        "random_seed_spawn_key": json.dumps(list(seeds.spawn_key)),
    }


def seeds_of(attributes: Mapping[Any, Any]) -> np.random.SeedSequence:
    """Seed of the fit, from the attributes of `provenance`."""
    entropy = json.loads(attributes["random_seed"])
    key = json.loads(attributes["random_seed_spawn_key"])
    return np.random.SeedSequence(entropy, spawn_key=tuple(key))


def stage_rng(
    attributes: Mapping[Any, Any], stage: int, random_seed: RandomSeed
) -> np.random.Generator:
    """Generator of a stage after the fit, by default from the seed of the fit."""
    if random_seed is not None:
        return np.random.default_rng(seed_sequence(random_seed))
    return np.random.default_rng(stage_seeds(seeds_of(attributes), stage))


def stage_seeds(fit: np.random.SeedSequence, stage: int) -> np.random.SeedSequence:
    """Seeds of a stage of a fit."""
    return np.random.SeedSequence(fit.entropy, spawn_key=(*fit.spawn_key, stage))


def described(parameters: Mapping[str, Any], *, strict: bool = False) -> str:
    """Parameters as JSON, a prior by the name and the fields of its class.

    What JSON cannot hold is described by the name of its class, or, if `strict`, is a DataError.
    """
    values = {}
    for name, value in parameters.items():
        fields = asdict(value) if is_dataclass(value) and not isinstance(value, type) else None
        text: Any = value if fields is None else {"type": type(value).__name__, **fields}
        try:
            values[name] = json.loads(json.dumps(text, default=_plain))
        except (TypeError, ValueError):
            if strict:
                raise DataError(
                    f"{name}: found {value!r}, which a file cannot describe; expected numbers, "
                    "text, or a frozen dataclass whose fields are numbers, text, or lists and "
                    "dictionaries of these"
                ) from None
            values[name] = {"type": type(value).__name__}
    return json.dumps(values)


def _plain(value: Any) -> Any:
    """A number of NumPy as one of Python."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError


def parameters_of(description: str, prior: Any = None) -> dict[str, Any]:
    """Inverse of `described`. A `prior` that is not of this package must be given."""
    parameters = json.loads(description)
    if "prior" in parameters:
        parameters["prior"] = _prior_of(parameters["prior"], prior)
    return parameters


def _prior_of(description: dict[str, Any], prior: Any) -> Prior:
    if prior is not None:
        passed = json.loads(described({"prior": checked_prior(prior)}))["prior"]
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
