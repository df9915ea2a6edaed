"""Dependence between the answers of one test, and the variance of its accuracy.

An answer is 1 if an instance is classified correctly and 0 otherwise. The accuracy TA_k on one set
of k classes is a mean of answers. Answers to instances of one class are correlated because they
share the class. All answers are correlated because they share the competitors.
"""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from classex_bayes.core.influence import (
    UNSEEN_COMPETITORS,
    clustered_covariance,
    equal_weights,
    weight_effect,
)
from classex_bayes.typing import FloatArray, IntArray

# Typical rho and c: they replace missing estimates of a pilot, and are averaged with the others.
# For Gaussian, hierarchical and spherical populations with 50 to 800 classes rho was 0.00 to 0.34
# and c -0.14 to 0.19. The standard deviations are wider, because real populations are less regular.
_TYPICAL_CLASS, _CLASS_SD = 0.20, 0.15
_TYPICAL_COMPETITOR, _COMPETITOR_SD = 0.08, 0.15


@dataclass(frozen=True)
class AnswerDependence:
    r"""Dependence between the answers of one test, taken as constant in the number of classes.

    If all k classes are tested with r instances each, and A = AGA_k,

    .. math:: Var(TA_k) = \frac{A (1 - A)}{k r} \bigl(s (1 + (r - 1) \rho) + r c\bigr).

    It is the sum of an instance part A (1 - A) s (1 - rho) / (k r), a class part
    A (1 - A) s rho / k and a competitor part A (1 - A) c / k. From 50 to 800 classes of ten
    populations, rho changed by up to 0.1 and c by up to 0.3, while the accuracy fell by half and
    more.

    References
    ----------
    Fafchamps and Gubert (2007), Aronow, Samii and Assenova (2015), dyadic-cluster-robust
    variance; Kish, Survey Sampling (1965), section 5.4 (1 + (r - 1) rho).

    Examples
    --------
    >>> pilot = AnswerDependence(
    ...     within=0.2, between=0.1, spread=1.0, repeats=5, n_classes=50
    ... )
    >>> round(pilot.design_effect(1), 3), round(pilot.design_effect(5), 3)
    (1.1, 2.3)
    >>> pilot.variance(np.array([0.9, 0.5]), np.array([50, 500]), 5).round(6).tolist()
    [0.000828, 0.00023]
    """

    within: float  # rho, the correlation of two answers of one class
    # c, k - 1 times the correlation of two answers of different classes. These share competitors.
    # c is negative if the errors of some classes exclude those of others.
    between: float
    # s = k_t sum_j w_j^2 with the weights w of the k_t tested classes. It is 1 for equal weights.
    # For classes drawn by a design it includes the further inflation that the design causes.
    spread: float
    repeats: float  # instances per class of the pilot: harmonic mean, weighted by squared weights
    n_classes: int  # k1
    tested_share: float = 1.0  # k_t / k1, the share of the pilot's classes with test instances

    def design_effect(self, repeats: float) -> float:
        r"""Factor :math:`s (1 + (r - 1) \rho) + r c` on the variance of k r independent answers.

        It is at least s. If r is below 1, k r of the k classes have one instance, and the factor is
        :math:`s + r c`.
        """
        of_classes = self.spread * (1 + max(repeats - 1, 0) * self.within)
        return max(of_classes + repeats * self.between, self.spread)

    def without_influence(self) -> Self:
        """Dependence that a fit assumes if defeats are unknown.

        Its design effect is that of the classes times
        `classex_bayes.core.influence.unseen_competitors`.
        """
        return replace(self, spread=self.spread + UNSEEN_COMPETITORS - 1, between=0.0)

    def variance(self, accuracy: FloatArray, k: IntArray, repeats: float) -> FloatArray:
        """Variance of TA_k about AGA_k (..., n_k) for independent sets of k (n_k,) classes."""
        return accuracy * (1 - accuracy) / (k * repeats) * self.design_effect(repeats)

    @property
    def n_tested(self) -> float:
        """Number k_t of classes of the pilot that have test instances."""
        return self.tested_share * self.n_classes

    @property
    def shared(self) -> float:
        r"""Variance from classes and competitors, :math:`s \rho + c`, in units of A (1 - A) / k."""
        return max(self.spread * self.within + self.between, 0.0)

    def share_of_population(self, population: int) -> float:
        r"""Share of the pilot's deviation expected in a population of K classes that contains it.

        The regression coefficient
        :math:`(k_t / s K) (s \rho + c) / (s (1 - \rho) / r_1 + s \rho + c t)`.
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
        """A note on the weights of new classes, if the pilot's classes have unequal weights."""
        if round(self.spread, 6) == 1:
            return ()
        return (
            "new classes are assumed to be drawn and weighted like those of the pilot, so k of "
            f"them count as k / {self.spread:.3g} classes of equal weight",
        )

    @property
    def notes_on_tests(self) -> tuple[str, ...]:
        """`notes`, and a note on the pilot's classes without test instances if there are any."""
        if self.tested_share == 1:
            return self.notes
        return (
            *self.notes,
            f"the pilot has test instances of {self.n_tested:,.0f} of its {self.n_classes:,} "
            "classes, but the new test is assumed to have instances of all its classes",
        )


def typical_dependence(n_classes: int, n_test: int) -> AnswerDependence:
    """Dependence assumed for a pilot whose scores are unknown: rho = 0.20, c = 0.08."""
    repeats = n_test / n_classes
    return AnswerDependence(_TYPICAL_CLASS, _TYPICAL_COMPETITOR, 1.0, repeats, n_classes)


def answer_dependence(
    n_better: IntArray, y: IntArray, class_weight: FloatArray, variance: float | None = None
) -> AnswerDependence:
    r"""Estimate the dependence between the answers of a pilot at k1 from n_better and y (n,).

    Let e_i be the deviation of answer i among all k1 classes from TA_k1, and
    :math:`V = TA_{k_1} (1 - TA_{k_1}) + \widehat{Var}(TA_{k_1})`. Then

    .. math::

        \hat\rho = \frac{1}{V} \Bigl(\widehat{Var}(TA_{k_1})
            + \frac{\sum_j w_j \overline{e_i e_{i'}}}{\sum_j w_j}\Bigr), \qquad
        \hat c = k_1 \Bigl(\frac{\widehat{Var}(TA_{k_1})}{V}
            - \hat\rho \sum_j w_j^2 - (1 - \hat\rho) \sum_j \frac{w_j^2}{r_j}\Bigr),

    where :math:`\overline{e_i e_{i'}}` is the mean over pairs of instances of class j, and the
    first two sums run over classes with several instances. The variance is added to V and to the
    products, because the deviations are from the observed mean.

    Each estimate is averaged with a typical value, weighted by precision. The variances of the
    estimates are :math:`2 (1-\rho)^2 (1 + (r-1)\rho)^2 / (r (r-1) m)` and
    :math:`2 ((1 + (r-1)\rho) / t + r c)^2 / (r^2 m)` for m informative classes and the share t of
    tested ones (Fisher, Statistical Methods for Research Workers, 1925, section 40). With one
    instance per class, or without errors, rho is the typical value.

    `class_weight` (k1,) sums to 1. `variance` is the dyadic variance of ATA_k1
    (`classex_bayes.core.influence`). Without it c is the typical value. If the weights are unequal,
    c is the typical value as well, and w in :math:`\hat\rho` and V are equal weights, because all
    classes are informative about the correlation within a class.
    """
    n_classes = class_weight.size
    tested = np.flatnonzero(class_weight)
    weight = class_weight[tested]
    repeats = np.bincount(y, minlength=n_classes)[tested].astype(float)
    right = np.bincount(y, weights=n_better == 0, minlength=n_classes)[tested]
    squared, by_instance = float(weight @ weight), float(weight**2 @ (1 / repeats))
    average = squared / by_instance
    if weight_effect(weight) > 1:
        weight, variance = equal_weights(weight), None
    accuracy = float(weight @ (right / repeats))

    within, between = _TYPICAL_CLASS, _TYPICAL_COMPETITOR
    informative = _informative(right, repeats)
    if informative:
        clustered = clustered_covariance((right / repeats)[:, None], weight)
        noise = float(clustered[0, 0]) if variance is None else variance
        # Deviations from the observed mean are too small by the variance of that mean.
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
    return AnswerDependence(within, between, spread, average, n_classes, share)


def _informative(right: FloatArray, repeats: FloatArray) -> int:
    """Number of classes with wrong answers or number with correct answers, whichever is smaller."""
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
    """Average, weighted by precision, of an estimate with variance `error` and a typical value."""
    trust = sd**2 / (sd**2 + error)
    return float(trust * estimate + (1 - trust) * typical)
