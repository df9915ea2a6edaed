"""Point masses of U*: every law on [0, 1] is a mixture of them."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import betainc, expit, ndtr, ndtri

from classex_bayes.core.basis import bin_shares
from classex_bayes.typing import FloatArray, IntArray

# Log odds of U*. 1 - U* reaches below 1e-15, so the grid serves k up to 1e12. A finer step moves
# limits of a mean by less than 0.001.
_LOWEST, _HIGHEST, _STEP = -16.0, 36.0, 0.1


@dataclass(frozen=True)
class PointBasis:
    """Point masses of U* at Phi(`knots`) (m,), which rise from 0 to 1."""

    knots: FloatArray

    @classmethod
    def regular(cls) -> Self:
        """Points in equal steps of the log odds of U*, with 0 and 1."""
        log_odds = np.arange(_LOWEST, _HIGHEST + _STEP / 2, _STEP)
        # From the smaller of U* and 1 - U*, which keeps its relative precision.
        z = -np.sign(log_odds) * ndtri(expit(-np.abs(log_odds)))
        return cls(np.concatenate([[-np.inf], z, [np.inf]]))

    def bin_probabilities(self, bin_ends: IntArray, n_classes: int) -> FloatArray:
        """Probability (n_bins, m) of each bin of losses, which are Binomial(k1 - 1, 1 - u)."""
        lost = np.asarray(bin_ends[:-1], dtype=float)[:, None] + 1
        won = n_classes - lost
        return bin_shares(
            betainc(won, lost, ndtr(self.knots)), betainc(lost, won, ndtr(-self.knots))
        )
