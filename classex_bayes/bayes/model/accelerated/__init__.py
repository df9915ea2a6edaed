"""The log density, compiled: an option that spares a fit the compilation of its PyMC model.

`accelerated_model` is the only way in. Without this folder every fit goes through PyMC.
"""

import logging
from typing import Any, TypeGuard

from classex_bayes.bayes.model.likelihoods import LikelihoodData
from classex_bayes.bayes.model.priors import DirichletPrior, MixturePrior, Prior


def accelerated_model(prior: Prior, data: LikelihoodData) -> Any | None:
    """Posterior in the form that `nutpie.sample` takes, or None.

    It is None for a prior or a likelihood whose density is not written out here, and if numba or
    the installed nutpie fails, for a reason that is logged.
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
    """Whether the density is known; a subclass may have changed it."""
    return type(prior) in (MixturePrior, DirichletPrior)
