"""Dependence between the answers of one test, and the variance of its accuracy.

The accuracy TA_k measured on one concrete set of classes is a mean of answers, right or wrong.
Answers to instances of one class are alike because they share the class; all answers are alike
because they share the competitors.
"""

from dataclasses import dataclass

import numpy as np

from classex_bayes.core.influence import clustered_covariance, equal_weights, weight_effect
from classex_bayes.typing import FloatArray, IntArray

# What stands in for the estimates of a pilot, and is averaged with them. Over Gaussian,
# hierarchical and spherical laws with 50 to 800 classes rho was 0.00 to 0.34 and c -0.14 to 0.19;
# the standard deviations are wider, for populations less regular than these.
_TYPICAL_CLASS, _CLASS_SD = 0.20, 0.15
_TYPICAL_COMPETITOR, _COMPETITOR_SD = 0.08, 0.15


@dataclass(frozen=True)
class AnswerDependence:
    r"""Dependence between the answers of one test, the same at every number of classes.

    For k classes, all of them tested with r instances each,

    .. math:: Var(TA_k) = \frac{A (1 - A)}{k r} \bigl(s (1 + (r - 1) \rho) + r c\bigr),

    A = AGA_k: an instance part A (1 - A) s (1 - rho) / (k r), a class part A (1 - A) s rho / k and
    a competitor part A (1 - A) c / k. Over ten laws rho moved by up to 0.1 and c by up to 0.3 from
    50 to 800 classes, while the accuracy fell by half and more.

    References
    ----------
    Fafchamps and Gubert (2007), Aronow, Samii and Assenova (2015), dyadic-cluster-robust
    variance; Kish, Survey Sampling (1965), section 5.4 (1 + (r - 1) rho).

    Examples
    --------
    >>> pilot = AnswerDependence(
    ...     within=0.2, between=0.1, spread=1.0, repeats=5, accuracy=0.9, n_classes=50
    ... )
    >>> round(pilot.design_effect(1), 3), round(pilot.design_effect(5), 3)
    (1.1, 2.3)
    >>> pilot.variance(np.array([0.9, 0.5]), np.array([50, 500]), 5).round(6).tolist()
    [0.000828, 0.00023]
    """

    within: float  # rho, the correlation of two answers of one class
    # c, k - 1 times the correlation of two answers of different classes, which share competitors;
    # negative if the errors of some classes exclude those of others
    between: float
    # s = k_t sum_j w_j^2 of the weights of the k_t tested classes, 1 if they weigh the same; of
    # classes drawn by a design, times the inflation that the design causes beside them
    spread: float
    repeats: float  # instances per class of the pilot; the harmonic mean over squared weights
    accuracy: float | None  # TA_k1 of the pilot, if it is known
    n_classes: int  # k1
    tested_share: float = 1.0  # k_t / k1, classes of the pilot that have test instances

    def design_effect(self, repeats: float) -> float:
        r"""Factor by which dependence inflates the variance of a mean of k r answers.

        :math:`s (1 + (r - 1) \rho) + r c`, at least s (no better than independent answers).
        """
        of_classes = self.spread * (1 + (repeats - 1) * self.within)
        return max(of_classes + repeats * self.between, self.spread)

    def variance(self, accuracy: FloatArray, k: IntArray, repeats: float) -> FloatArray:
        """Variance of TA_k about AGA_k (..., n_k) for independent sets of k (n_k,) classes."""
        return accuracy * (1 - accuracy) / (k * repeats) * self.design_effect(repeats)

    @property
    def n_tested(self) -> float:
        """Number k_t of classes of the pilot that have test instances."""
        return self.tested_share * self.n_classes

    @property
    def carried_over(self) -> float:
        r"""Share of the pilot's deviation from AGA_k1 that new instances of its classes inherit.

        The regression of one on the other,
        :math:`(s \rho + c t) / (s (1 - \rho) / r_1 + s \rho + c t)`, t the share of tested classes.
        """
        shared = max(self.spread * self.within + self.between * self.tested_share, 0.0)
        return shared / (shared + self._of_instances) if shared else 0.0

    @property
    def shared(self) -> float:
        r"""Variance that classes and competitors cause, :math:`s \rho + c`, in A (1 - A) / k."""
        return max(self.spread * self.within + self.between, 0.0)

    def share_of_population(self, population: int) -> float:
        r"""Share of the pilot's deviation that a population of K classes has, its own among them.

        The regression :math:`(k_t / s K) (s \rho + c) / (s (1 - \rho) / r_1 + s \rho + c t)`.
        """
        competitors = self.between * self.tested_share
        of_pilot = max(self.spread * self.within + competitors, 0.0) + self._of_instances
        tested = self.n_tested / self.spread / population
        return tested * self.shared / of_pilot if self.shared else 0.0

    @property
    def _of_instances(self) -> float:
        return self.spread * (1 - self.within) / self.repeats

    @property
    def notes(self) -> tuple[str, ...]:
        """A note on the weights of new classes, if those of the pilot are unequal."""
        if round(self.spread, 6) == 1:
            return ()
        return (
            "new classes are taken to be drawn and weighed as those of the pilot: k of them count "
            f"as k / {self.spread:.3g} equal ones",
        )

    @property
    def notes_on_tests(self) -> tuple[str, ...]:
        """Notes on a new test; one more if classes of the pilot have no test instances."""
        if self.tested_share == 1:
            return self.notes
        return (
            *self.notes,
            f"the given pilot has instances of {self.n_tested:,.0f} of its {self.n_classes:,} "
            "classes; the new test is taken to have instances of all its classes",
        )


def typical_dependence(
    n_classes: int, n_test: int, accuracy: float | None = None
) -> AnswerDependence:
    """Dependence of a pilot of which no losses are known: rho = 0.20, c = 0.08."""
    return AnswerDependence(
        _TYPICAL_CLASS, _TYPICAL_COMPETITOR, 1.0, n_test / n_classes, accuracy, n_classes
    )


def answer_dependence(
    losses: IntArray, y: IntArray, class_weight: FloatArray, variance: float | None = None
) -> AnswerDependence:
    r"""Estimate the dependence between the answers of a pilot at k1 from losses and y (n,).

    With e_i the deviation of answer i (right or wrong among all k1 classes) from TA_k1 and
    :math:`V = TA_{k_1} (1 - TA_{k_1}) + \widehat{Var}(TA_{k_1})`,

    .. math::

        \hat\rho = \frac{1}{V} \Bigl(\widehat{Var}(TA_{k_1})
            + \frac{\sum_j w_j \overline{e_i e_{i'}}}{\sum_j w_j}\Bigr), \qquad
        \hat c = k_1 \Bigl(\frac{\widehat{Var}(TA_{k_1})}{V}
            - \hat\rho \sum_j w_j^2 - (1 - \hat\rho) \sum_j \frac{w_j^2}{r_j}\Bigr),

    the mean over pairs of instances of class j, the first two sums over classes with several. The
    variance raises V and the pairs because the deviations are from the observed mean. Each estimate
    is averaged by precision with a typical value; the variances of the estimates are
    :math:`2 (1-\rho)^2 (1 + (r-1)\rho)^2 / (r (r-1) m)` and
    :math:`2 ((1 + (r-1)\rho) / t + r c)^2 / (r^2 m)` for m informative classes and the share t of
    tested ones (Fisher, Statistical Methods for Research Workers, 1925, section 40). With one
    instance a class, or without errors, rho is the typical one.

    `class_weight` (k1,) sums to 1. `variance` is the dyadic variance of ATA_k1
    (`classex_bayes.core.influence`); without it c is the typical one. If the weights are unequal,
    c is the typical one as well, and w in :math:`\hat\rho` and V are equal weights: all classes
    tell how alike the answers of one class are.
    """
    n_classes = class_weight.size
    tested = np.flatnonzero(class_weight)
    weight = class_weight[tested]
    repeats = np.bincount(y, minlength=n_classes)[tested].astype(float)
    right = np.bincount(y, weights=losses == 0, minlength=n_classes)[tested]
    squared, by_instance = float(weight @ weight), float(weight**2 @ (1 / repeats))
    average, observed = squared / by_instance, float(weight @ (right / repeats))
    if weight_effect(weight) > 1:
        weight, variance = equal_weights(weight), None
    accuracy = float(weight @ (right / repeats))

    within, between = _TYPICAL_CLASS, _TYPICAL_COMPETITOR
    informative = _informative(right, repeats)
    if informative:
        clustered = clustered_covariance((right / repeats)[:, None], weight)
        noise = float(clustered[0, 0]) if variance is None else variance
        # Deviations from the observed mean are too small by its own variance.
        total = accuracy * (1 - accuracy) + noise
        several = repeats > 1
        if _informative(right[several], repeats[several]):
            within = _within_class(
                weight[several], right[several], repeats[several], noise, accuracy
            )
        if variance is not None:
            of_classes = within * squared + (1 - within) * by_instance
            of_tested = (1 + (average - 1) * within) / average
            inflation = of_tested * n_classes / tested.size + _TYPICAL_COMPETITOR
            error = 2 * inflation**2 / informative
            estimate = n_classes * (variance / total - of_classes)
            between = _averaged(estimate, error, _TYPICAL_COMPETITOR, _COMPETITOR_SD)
    spread, share = tested.size * squared, tested.size / n_classes
    return AnswerDependence(within, between, spread, average, min(observed, 1.0), n_classes, share)


def _informative(right: FloatArray, repeats: FloatArray) -> int:
    """Number of classes with wrong answers or with right ones, whichever are fewer."""
    return min(int(np.count_nonzero(right < repeats)), int(np.count_nonzero(right)))


def _within_class(
    weight: FloatArray, right: FloatArray, repeats: FloatArray, noise: float, accuracy: float
) -> float:
    """Intraclass correlation of classes with several instances, averaged with the typical one."""
    deviation = right - repeats * accuracy
    squares = right * (1 - accuracy) ** 2 + (repeats - right) * accuracy**2
    pairs = (deviation**2 - squares) / (repeats * (repeats - 1))
    total = accuracy * (1 - accuracy) + noise
    estimate = float(weight @ pairs / weight.sum() + noise) / total
    r = float(repeats.mean())
    inflation = (1 - _TYPICAL_CLASS) * (1 + (r - 1) * _TYPICAL_CLASS)
    error = 2 * inflation**2 / (r * (r - 1) * _informative(right, repeats))
    return min(max(_averaged(estimate, error, _TYPICAL_CLASS, _CLASS_SD), 0.0), 1.0)


def _averaged(estimate: float, error: float, typical: float, sd: float) -> float:
    """Average of an estimate with variance `error` and a typical value, by precision."""
    trust = sd**2 / (sd**2 + error)
    return float(trust * estimate + (1 - trust) * typical)
