"""Compiled log densities of this package's priors. With them a fit need not compile a PyMC model.

Other modules use `accelerated_model` alone. If it returns None, a fit compiles its PyMC model.
"""

import logging
from typing import Any, TypeGuard

from classex_bayes.bayes.model.likelihoods import Likelihood, LikelihoodData
from classex_bayes.bayes.model.priors import DirichletPrior, MixturePrior, Prior


def accelerated_model(prior: Prior, data: Likelihood) -> Any | None:
    """Posterior in the form that `nutpie.sample` takes, or None.

    It is None if this folder does not have the density of the prior and likelihood. It is also
    None if numba or the installed nutpie fails; the reason is logged.
    """
    if not (_is_written_out(prior) and isinstance(data, LikelihoodData)):
        return None
    try:
        from classex_bayes.bayes.model.accelerated.nutpie_model import compiled_model

        return compiled_model(prior, data)
    except Exception as error:  # numba, nutpie's private class and the disk fail in many ways
        logging.getLogger("classex_bayes").warning(
            "the compiled density cannot be used; the fit compiles its PyMC model: %r", error
        )
        return None


def _is_written_out(prior: Prior) -> TypeGuard[MixturePrior | DirichletPrior]:
    """Whether this folder has the density of the prior. A subclass may have changed it."""
    return type(prior) in (MixturePrior, DirichletPrior)
