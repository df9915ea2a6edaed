"""Attributes of a fitted model: version, prior, sampler and seed, as text for files."""

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
    estimator: str, settings: SamplerSettings | None, seeds: np.random.SeedSequence
) -> dict[str, Any]:
    """Attributes with the version, the estimator, the sampler and the seed of a fit.

    `settings` is None for draws without a sampler.
    """
    return {
        "modeling_interface": "classex_bayes",
        "modeling_interface_version": __version__,
        "estimator": estimator,
        **({} if settings is None else {"sampler": json.dumps(asdict(settings))}),
        # As text, because the entropy of a fit without a seed has 128 bits.
        "random_seed": json.dumps(_plain(seeds.entropy)),
        "random_seed_spawn_key": json.dumps(list(seeds.spawn_key)),
    }


def _plain(entropy: Any) -> Any:
    return int(entropy) if np.ndim(entropy) == 0 else [int(word) for word in entropy]


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
    fit = seeds_of(attributes)
    child = np.random.SeedSequence(fit.entropy, spawn_key=(*fit.spawn_key, stage))
    return np.random.default_rng(child)


def describe_prior(prior: Prior) -> str:
    """Class and fields of a prior as JSON. Raises DataError if JSON cannot hold them."""
    name = type(prior).__name__
    if PRIORS.get(name, type(prior)) is not type(prior):
        raise DataError(
            f"prior: found a class {name}, which is the name of a prior of this package; give your "
            "class another name"
        )
    try:
        if not is_dataclass(prior) or hasattr(prior, "type"):
            raise TypeError
        return json.dumps({"type": name, **asdict(prior)})
    except (TypeError, ValueError):
        raise DataError(
            f"prior: found {prior!r}, which a file cannot describe; make its class a frozen "
            "dataclass whose fields are numbers, text, or lists and dictionaries of these, and no "
            "field is named 'type'"
        ) from None


def prior_of(description: str, given: Any = None) -> Prior:
    """Inverse of `describe_prior`. A prior that is not of this package must be `given`."""
    fields = json.loads(description)
    name = fields.pop("type")
    if given is not None:
        described = json.loads(describe_prior(checked_prior(given)))
        if described != {"type": name, **fields}:
            raise DataError(
                f"prior: found {described}, but the model was fitted with {description}; pass that "
                "prior"
            )
        return given
    if name not in PRIORS:
        values = ", ".join(f"{field}={value!r}" for field, value in fields.items())
        raise DataError(
            f"prior: the model was fitted with your own prior; pass it, as in "
            f"load(path, prior={name}({values}))"
        )
    return PRIORS[name](**fields)
