"""The discriminability function D(u) on the scale where its tails can be seen."""

from collections.abc import Sequence
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri

from classex_bayes.bayes.law_model import LawModel, checked_model
from classex_bayes.exceptions import DataError
from classex_bayes.plots.chart import MUTED, Chart
from classex_bayes.plots.drawing import Drawing, plot_function

RESOLVED = "resolved by the source classes"
_Z = np.linspace(-3.0, 6.0, 181)


@plot_function("ci_band", "mean", "ref_line")
def plot_discriminability(
    model: LawModel | Sequence[LawModel],
    *,
    z: ArrayLike | None = None,
    ci_prob: float | None = None,
    ci_kind: str | None = None,
    **drawing: Unpack[Drawing],
) -> Chart:
    r"""Draw the posterior of :math:`D(u) = P(U^* \le u)` against :math:`z = \Phi^{-1}(u)`.

    Accuracy on many classes rests on u close to 1, which the normal scale spreads out: z = 3 is a
    competitor in 740 scoring above the true class, z = 5 one in 3.5 million. The dotted line marks
    :math:`z = \Phi^{-1}(1 - 1/k_1)`, beyond which k1 classes say little.

    Parameters
    ----------
    model : LawModel or sequence of them
        Fitted models, such as a `BayesianExtrapolator`.
    z : array-like of float, optional
        Places at which D is drawn, rising; from -3 to 6 by default.
    ci_prob, ci_kind : optional
        Level and kind of the ribbon; ArviZ's rcParams by default.
    """
    z = _Z if z is None else np.asarray(z, dtype=float)
    models = [checked_model(one) for one in (model if isinstance(model, Sequence) else [model])]
    if not models or len({one.name for one in models}) < len(models):
        raise DataError("model: expected one or more fitted models of different names")
    chart = Chart(ci_prob, ci_kind, log_x=False)
    for one in models:
        chart.draws(one.name, z, one.discriminability(ndtr(z)))
    for size in sorted({one.fit_.record.n_classes for one in models}):
        chart.vertical(RESOLVED, -ndtri(1 / size), 0, 1, visual="ref_line", color=MUTED)
    title, x_label = "Discriminability function", r"$z = \Phi^{-1}(u)$"
    return chart.labelled(title, x_label, r"$D(u) = P(U^* \leq u)$")
