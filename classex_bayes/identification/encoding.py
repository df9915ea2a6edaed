"""EncodingModel: predicts responses from stimuli and makes an identification task of them."""

from collections.abc import Iterator
from dataclasses import replace
from hashlib import blake2b
from typing import Any, Literal, Self

import numpy as np

from classex_bayes.arguments import (
    finite_matrix,
    numbers,
    one_of,
    seed_sequence,
    share,
    whole_number,
)
from classex_bayes.estimators.base import Parameters
from classex_bayes.exceptions import DataError, DataWarning, warn
from classex_bayes.identification.decoding import identification_task
from classex_bayes.identification.noise import shrinkage_intensity, shrunk_covariance
from classex_bayes.identification.regression import elastic_net, ridge, stimulus_folds
from classex_bayes.task.check import Check
from classex_bayes.task.class_labels import Untested, encode_labels
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import FloatArray, IntArray, RandomSeed

_FEW_PREDICTED = 0.25  # share of the responses


class EncodingModel(Parameters):
    r"""Linear encoding model with Gaussian noise, and the decoder that follows from it.

    The response y to a stimulus with features x (brain activity, say) is modelled as

    .. math:: y = b + B'x + \varepsilon, \qquad \varepsilon \sim N(0, \Sigma)

    A separate regularised regression is fitted to each response. The decoder is Bayes' rule with
    equal prior probabilities: it chooses the stimulus whose predicted response is nearest to the
    measured one in the Mahalanobis distance of :math:`\hat\Sigma`. `task` makes every test stimulus
    a class, so any estimator of the package can extrapolate the identification accuracy.

    Parameters
    ----------
    method : {"ridge", "elastic_net"}
        Penalty: ridge, or elastic net (needs scikit-learn).
    alphas : array-like of positive numbers, optional
        Candidates for the strength of the penalty on standardised features. Cross-validation
        chooses one for each response. For ridge, alpha is that of :math:`\|y - X\beta\|^2 +
        \alpha\|\beta\|^2`, with 15 candidates from 1e-4 N to 1e3 N by default. For the elastic net
        it is scikit-learn's alpha.
    l1_ratio : float or sequence of floats in (0, 1]
        Share of the L1 norm in the penalty of the elastic net. From several values,
        cross-validation chooses one for each response.
    shrinkage : "auto" or float in [0, 1]
        Lambda in :math:`\hat\Sigma = (1 - \lambda) S + \lambda\,\mathrm{Diag}(S)`. "auto" uses
        `shrinkage_intensity`.
    residuals : {"out_of_fold", "training"}
        Residuals that S is computed from: of out-of-fold predictions, or of the fit itself.
    cv : int
        Number of folds, at least 2. All presentations of one stimulus are in the same fold.
    random_seed : int, SeedSequence or None
        Seed of the folds.

    Attributes
    ----------
    coef_ : array of shape (p, q)
        Coefficients B for features that are not standardised.
    intercept_ : array of shape (q,)
        Intercepts b.
    covariance_ : array of shape (q, q)
        Covariance of the noise.
    shrinkage_ : float
        Lambda.
    alpha_, l1_ratio_ : array of shape (q,)
        Penalty of each response; the ratio is 0 for ridge.
    r2_ : array of shape (q,)
        R2 of each response's out-of-fold predictions.

    Notes
    -----
    The score of a stimulus depends on its own features alone, so the decoder is marginal. Test
    stimuli must be new, because the accuracy on training stimuli is too high. `task` warns if they
    are not.

    The thesis uses the residuals of the training fit. If the model is flexible, these are too
    small, by a factor that differs between responses. Out-of-fold residuals contain the noise of a
    new response and the error of its prediction. They are slightly too small, because the penalty
    is chosen on the same folds.

    References
    ----------
    Zheng, thesis (2017), section 2.6 and chapter 5; Kay, Naselaris, Prenger and Gallant, Nature
    452 (2008).

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> B = rng.normal(size=(5, 8))
    >>> stimuli = rng.normal(size=(150, 5))
    >>> responses = stimuli @ B + rng.normal(size=(150, 8))
    >>> encoding = EncodingModel(random_seed=1).fit(stimuli[:100], responses[:100])
    >>> task = encoding.task(stimuli[100:], responses[100:])
    >>> task.accuracy([2, 50]).round(2).tolist()
    [0.99, 0.72]
    """

    def __init__(
        self,
        method: Literal["ridge", "elastic_net"] = "ridge",
        *,
        alphas: Any = None,
        l1_ratio: Any = 0.5,
        shrinkage: float | Literal["auto"] = "auto",
        residuals: Literal["out_of_fold", "training"] = "out_of_fold",
        cv: int = 5,
        random_seed: RandomSeed = None,
    ) -> None:
        self.method = method
        self.alphas = alphas
        self.l1_ratio = l1_ratio
        self.shrinkage = shrinkage
        self.residuals = residuals
        self.cv = cv
        self.random_seed = random_seed

    def fit(self, stimuli: Any, responses: Any, y: Any = None) -> Self:
        """Estimate the coefficients and the covariance of the noise.

        Parameters
        ----------
        stimuli : array-like of shape (n_stimuli, p)
            Features of the training stimuli.
        responses : array-like of shape (n, q)
            Measured responses.
        y : array-like of int, shape (n,), optional
            For repeated presentations: row of `stimuli` that evoked each response. By default
            response i belongs to stimulus i. Equal rows count as one stimulus.

        Returns
        -------
        EncodingModel
            The fitted model itself.

        Raises
        ------
        DataError
            If arguments or parameters are invalid, if a response is constant, or if there are fewer
            distinct stimuli than folds.
        ImportError
            If scikit-learn is not installed and `method` is "elastic_net".

        Warns
        -----
        DataWarning
            If fewer than a quarter of the responses are predicted better than by their means.
        """
        one_of(self.method, ("ridge", "elastic_net"), "method")
        one_of(self.residuals, ("out_of_fold", "training"), "residuals")
        automatic = isinstance(self.shrinkage, str)
        if automatic:
            one_of(self.shrinkage, ("auto",), "shrinkage")
        shrinkage = 0.0 if automatic else share(self.shrinkage, "shrinkage")
        alphas = self.alphas
        if alphas is not None:
            alphas = numbers(alphas, "alphas", "positive finite numbers", lambda x: x > 0)
        l1_ratios = numbers(
            self.l1_ratio, "l1_ratio", "numbers in (0, 1]", lambda x: (x > 0) & (x <= 1)
        )
        n_folds = whole_number(self.cv, "cv", 2)
        rng = np.random.default_rng(seed_sequence(self.random_seed))
        features, observed, shown = _presentations(stimuli, responses, y)

        folds, rows = stimulus_folds(features, shown, n_folds, rng), features[shown]
        if self.method == "ridge":
            fit = ridge(rows, observed, folds, alphas)
        else:
            fit = elastic_net(rows, observed, folds, alphas, l1_ratios.tolist())
        left_out = observed - fit.out_of_fold
        training = observed - (rows @ fit.coef + fit.intercept)
        errors = left_out if self.residuals == "out_of_fold" else training
        shrinkage = shrinkage_intensity(errors) if automatic else shrinkage
        covariance = shrunk_covariance(errors, shrinkage)
        variation = np.sum((observed - observed.mean(axis=0)) ** 2, axis=0)
        self.r2_ = 1 - np.sum(left_out**2, axis=0) / variation
        n_predicted, n_responses = int((self.r2_ > 0).sum()), self.r2_.size
        if n_predicted < _FEW_PREDICTED * n_responses:
            warn(
                f"out of fold the model predicts {n_predicted} of {n_responses} responses better "
                f"than their means (r2_ > 0), from {np.unique(shown).size} stimuli; fit it to more "
                "stimuli, or keep responses that it predicts",
                DataWarning,
            )
        self.covariance_, self.shrinkage_ = covariance, shrinkage
        self.coef_, self.intercept_ = fit.coef, fit.intercept
        self.alpha_, self.l1_ratio_ = fit.alpha, fit.l1_ratio
        self._trained = frozenset(_digests(features[np.unique(shown)]))
        return self

    def predict(self, stimuli: Any) -> FloatArray:
        """Predicted responses b + B'x.

        Parameters
        ----------
        stimuli : array-like of shape (n_stimuli, p)
            Features, in the same columns as in `fit`.

        Returns
        -------
        array of shape (n_stimuli, q)

        Raises
        ------
        DataError
            If `stimuli` is not a finite matrix, or has another number of features than in `fit`.
        NotFittedError
            If `fit` was not called.
        """
        coef = self._require("coef_")
        features = finite_matrix(stimuli, "stimuli")
        if features.shape[1] != coef.shape[0]:
            raise DataError(
                f"stimuli: found {features.shape[1]} features, expected the {coef.shape[0]} that "
                "fit was given"
            )
        return features @ coef + self.intercept_

    def task(
        self,
        stimuli: Any,
        responses: Any,
        y: Any = None,
        *,
        classes: Any = None,
        untested: Untested = "error",
    ) -> SourceTask:
        """Task of identifying test stimuli from their responses; every stimulus is a class.

        Parameters
        ----------
        stimuli : array-like of shape (n_stimuli, p)
            Features of the test stimuli. Each stimulus must appear once, and none should be in the
            training set.
        responses : array-like of shape (n, q)
            Measured responses. For repeated presentations pass `y`, the row of the stimulus of each
            response.
        y, classes, untested
            As in `classex_bayes.identification.identification_task`.

        Returns
        -------
        SourceTask
            `task.accuracy(k)` is the identification accuracy curve.

        Raises
        ------
        DataError
            If arguments are invalid, if they have other numbers of columns than in `fit`, or if two
            stimuli have the same features.
        NotFittedError
            If `fit` was not called.

        Warns
        -----
        DataWarning
            If stimuli are in the training set. Every prediction repeats the warning as a note.
        """
        predictions = self.predict(stimuli)
        digests = list(_digests(finite_matrix(stimuli, "stimuli")))
        _refuse_repeats(digests)
        observed = finite_matrix(responses, "responses")
        if observed.shape[1] != predictions.shape[1]:
            raise DataError(
                f"responses: found {observed.shape[1]} columns, expected the "
                f"{predictions.shape[1]} that fit was given"
            )
        task = identification_task(
            observed, predictions, self.covariance_, y, classes=classes, untested=untested
        )
        n_trained = sum(digest in self._trained for digest in digests)
        if n_trained == 0:
            return task
        warning = (
            f"{n_trained} of {len(digests)} stimuli were in the training set, so the accuracy is "
            "too high; use stimuli that the model was not fitted to"
        )
        warn(warning, DataWarning)
        return _with_warning(task, warning)


def _digests(features: FloatArray) -> Iterator[bytes]:
    """Hash values of rows. Equal rows have equal values."""
    for row in features + 0.0:  # no negative zeros
        yield blake2b(row.tobytes(), digest_size=16).digest()


def _refuse_repeats(digests: list[bytes]) -> None:
    """Raise if two stimuli are equal, because their scores would always tie."""
    first: dict[bytes, int] = {}
    for row, digest in enumerate(digests):
        if first.setdefault(digest, row) != row:
            raise DataError(
                f"stimuli: found the same features at rows {first[digest]} and {row}, expected "
                "different stimuli; pass each stimulus once and y=, the row of the stimulus of "
                "each response"
            )


def _with_warning(task: SourceTask, warning: str) -> SourceTask:
    """The task with one more warning about its data."""
    evidence = task.require("plain ranks")
    checks = (*evidence.reading.checks, Check("classifier", False, warning))
    reading = replace(evidence.reading, checks=checks)
    return SourceTask(replace(evidence, reading=reading), task.classes)


def _presentations(stimuli: Any, responses: Any, y: Any) -> tuple[FloatArray, FloatArray, IntArray]:
    """Features, measured responses, and the row of the stimulus of each response."""
    features, observed = finite_matrix(stimuli, "stimuli"), finite_matrix(responses, "responses")
    if y is None:
        if len(features) != len(observed):
            raise DataError(
                f"stimuli, responses: found {len(features)} and {len(observed)} rows, expected "
                "equal numbers; for repeated presentations pass y=, the row of the stimulus of "
                "each response"
            )
        y = np.arange(len(features))
    constant = np.ptp(observed, axis=0) == 0
    if constant.any():
        raise DataError(f"responses: column {np.argmax(constant)} is constant; drop it")
    return features, observed, encode_labels(y, len(observed), len(features), None)
