"""Stacking: weigh models with different priors by how well they predict a class left out."""

import json
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

import numpy as np
import pandas as pd
import xarray as xr
from arviz_stats import compare, loo

from classex_bayes.arguments import seed_sequence
from classex_bayes.bayes.convergence import enough_draws
from classex_bayes.bayes.extrapolator import BayesianExtrapolator
from classex_bayes.bayes.fitted import FittedModel, part_of
from classex_bayes.bayes.idata import task_groups, task_size
from classex_bayes.bayes.model.priors import DirichletPrior, MixturePrior, Prior, checked_prior
from classex_bayes.bayes.provenance import provenance
from classex_bayes.bayes.sampling import SamplerSettings
from classex_bayes.estimators.base import takes_one_task
from classex_bayes.exceptions import DataError, interrupted_whole
from classex_bayes.formatting import Display, Shown
from classex_bayes.results import SAMPLE_DIMS, Extrapolation
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import ClassCounts, FloatArray, IntArray, RandomSeed

_COLUMNS = ["weight", "elpd", "se", "p", "elpd_diff", "dse"]


@dataclass(frozen=True, repr=False, eq=False)
class Stack(Shown):
    r"""Fitted models and their stacking weights; made by `stack`.

    Attributes
    ----------
    models : dict from str to BayesianExtrapolator
        The models by name.
    table : DataFrame
        One row for each model, best first: stacking "weight", "elpd" (expected log density of a
        class left out, summed over classes) with its error "se", "p" (effective number of
        parameters), difference to the best "elpd_diff" with its error "dse", and "high_k" (number
        of classes whose Pareto k is above what the number of draws allows).
    notes : tuple of str
        Cases in which the densities of left-out classes are unreliable.
    """

    models: dict[str, BayesianExtrapolator]
    table: pd.DataFrame
    notes: tuple[str, ...]

    @property
    def weights(self) -> pd.Series:
        """Stacking weights by model, in the order given; they sum to 1."""
        return self.table["weight"].loc[list(self.models)]

    def predict(self, k: ClassCounts) -> Extrapolation:
        r"""Mixture of the models' posteriors of :math:`AGA_k` by weight.

        Parameters
        ----------
        k : int or array-like of int
            Numbers of classes, 2..10^12.

        Returns
        -------
        Extrapolation
            One chain with as many draws as the model with the fewest has. The number of draws
            from each model is proportional to its weight, and they are evenly spaced.

        Warns
        -----
        ExtrapolationWarning
            k lies more than 100 times beyond the source classes.
        """
        sizes = [model.idata["posterior"].sizes for model in self.models.values()]
        total = min(size["chain"] * size["draw"] for size in sizes)
        shares = _shares(self.weights.to_numpy(), total)
        parts = [
            (model.predict(k), size)
            for model, size in zip(self.models.values(), shares, strict=True)
            if size
        ]
        draws = np.concatenate([_evenly(prediction.draws, size) for prediction, size in parts])
        first = parts[0][0]
        values = xr.DataArray(
            draws[None],
            dims=(*SAMPLE_DIMS, "k"),
            coords={"chain": [0], "draw": np.arange(total), "k": first.k},
            name=first.quantity,
        )
        weights = ", ".join(f"{name} {weight:.2f}" for name, weight in self.weights.items())
        notes = dict.fromkeys(note for prediction, _ in parts for note in prediction.notes)
        return replace(
            first,
            draws=values,
            estimator="Stack",
            notes=(f"stacking weights: {weights}", *notes, *self.notes),
        )

    def _display(self) -> Display:
        header = "Stacking weights, from the densities of classes left out"
        notes = tuple(f"note: {note}" for note in self.notes)
        return Display(header, self.table, notes, decimals=2)


def stack(models: Mapping[str, BayesianExtrapolator]) -> Stack:
    r"""Weigh models of one task so that their mixture predicts classes left out best.

    .. math:: \max_w \sum_c \log \sum_m w_m \, p_m(\text{class } c \mid \text{the other classes}),
              \qquad w \text{ on the simplex}

    The densities are those of `BayesianExtrapolator.compute_log_likelihood`, left out by
    Pareto-smoothed importance sampling.

    Parameters
    ----------
    models : mapping from str to BayesianExtrapolator
        At least two models fitted to the same task with its ranks known.

    Returns
    -------
    Stack
        `.weights`, `.table` and `.predict(k)`.

    Raises
    ------
    DataError
        There are fewer than two models, fewer than 25 draws, different tasks, a loaded model, or a
        model with the power form.
    NotFittedError
        A model has no draws.

    Notes
    -----
    A left-out class is compared with the k1 - 1 other classes. So the weights show which prior fits
    the ranks among k1 classes. They contain no information on larger k, where priors with equal
    fits can differ. In a trial on 80 tasks (six laws of the zoo, kanji; k1 of 50 to 200)
    a stack was about as good as `MixturePrior` alone at 4 and 20 k1, with slightly lower coverage.
    It guards against a prior that cannot fit: a two-parameter family of two groups gets no weight.

    References
    ----------
    Yao, Vehtari, Simpson and Gelman, Bayesian Analysis 13, 2018 (stacking); Vehtari, Gelman and
    Gabry, Statistics and Computing 27, 2017 (leave-one-out densities).
    """
    if not isinstance(models, Mapping) or len(models) < 2:
        raise DataError(
            "models: expected a mapping from names to two or more fitted models, found "
            f"{_type_and_size(models)}"
        )
    for name, model in models.items():
        if not isinstance(model, BayesianExtrapolator):
            raise DataError(
                f"models: expected BayesianExtrapolators, found {type(model).__name__} as {name!r}"
            )
        if model.is_loaded:
            raise DataError(
                f"models: {name!r} was read from a file, which holds no task to compare; fit "
                "again, or save a StackedExtrapolator"
            )
    tasks = [tuple(map(id, model.tasks)) for model in models.values()]
    if len(set(tasks)) > 1:
        raise DataError("models: they were fitted to different tasks; fit all to the same task")
    for model in models.values():
        enough_draws(model)
    with warnings.catch_warnings():
        # ArviZ warns in general terms; a note of the stack counts the classes.
        warnings.simplefilter("ignore", UserWarning)
        left_out = {
            str(name): loo(model.compute_log_likelihood(), pointwise=True)
            for name, model in models.items()
        }
        table = compare(left_out, method="stacking", round_to="none")[_COLUMNS].copy()
    weight = table["weight"].clip(lower=0)
    table["weight"] = weight / weight.sum()
    high = {name: int((loo_.pareto_k > loo_.good_k).sum()) for name, loo_ in left_out.items()}
    table["high_k"] = pd.Series(high)
    notes = tuple(
        f"{name}: {count} of {left_out[name].n_data_points} classes have a Pareto k above "
        f"{left_out[name].good_k:.2f}, so its elpd is uncertain"
        for name, count in high.items()
        if count
    )
    return Stack({str(name): model for name, model in models.items()}, table, notes)


class StackedExtrapolator(FittedModel):
    """Fit the model under several priors and mix their posteriors by stacking weights.

    Parameters
    ----------
    priors : mapping from str to Prior, optional
        At least two priors by name; by default the two-parameter family, the mixture, the mixture
        with a monotone density, and the Dirichlet.

    Attributes
    ----------
    stack_ : Stack
        Fitted models and weights.
    idata : DataTree
        Groups posterior (accuracy of the mixture at 1, 10 and 100 times k1), observed_data,
        stacking (the table of weights) and models, with the `idata` of each by its name.
    task : SourceTask or None
        The fitted task; None after `classex_bayes.load`.

    See Also
    --------
    stack : The weights and their limits.

    Examples
    --------
    >>> task = SourceTask.from_ranks([1] * 45 + [2, 3, 6, 10, 31], range(50), n_classes=50)
    >>> priors = {"two": MixturePrior(deviation=0), "mixture": MixturePrior()}
    >>> stacked = StackedExtrapolator(priors).fit(
    ...     task, draws=500, tune=500, chains=2, random_seed=1, progressbar=False
    ... )
    >>> stacked.stack_.weights.index.tolist(), stacked.predict([50, 500]).accuracy.shape
    (['two', 'mixture'], (1, 1000, 2))
    """

    def __init__(self, priors: Mapping[str, Prior] | None = None) -> None:
        self.priors = priors

    @property
    def name(self) -> str:
        """Name in tables and legends."""
        if self.priors is None:
            return type(self).__name__
        return f"{type(self).__name__}({', '.join(self.priors)})"

    @takes_one_task
    def fit(
        self,
        task: SourceTask,
        *,
        draws: int = SamplerSettings.draws,
        tune: int = SamplerSettings.tune,
        chains: int = SamplerSettings.chains,
        target_accept: float = SamplerSettings.target_accept,
        random_seed: RandomSeed = None,
        cores: int | None = None,
        progressbar: bool = True,
    ) -> Self:
        """Fit a `BayesianExtrapolator` under each prior and weigh them.

        Parameters
        ----------
        task : SourceTask
            The tested classes, with ranks.
        draws, tune, chains, target_accept, random_seed, cores, progressbar
            As for `BayesianExtrapolator.fit`.

        Returns
        -------
        self

        Raises
        ------
        DataError
            Fewer than two priors, or a task without ranks.

        Warns
        -----
        DataWarning, ConvergenceWarning
            As for `BayesianExtrapolator.fit`.
        """
        settings = SamplerSettings(
            draws, tune, chains, cores, target_accept, progressbar=progressbar
        )
        priors = _checked_priors(_default_priors() if self.priors is None else self.priors)
        models = {name: BayesianExtrapolator(prior) for name, prior in priors.items()}
        seeds = seed_sequence(random_seed)
        with interrupted_whole("the stack"):
            for model, seed in zip(models.values(), seeds.spawn(len(models)), strict=True):
                model.fit(task, random_seed=seed, **asdict(settings))
        stacked = stack(models)
        first = next(iter(models.values()))
        tree = xr.DataTree.from_dict(
            {
                "posterior": xr.Dataset(),  # no parameters of its own
                "observed_data": first.idata["observed_data"].to_dataset(),
                "stacking": xr.Dataset.from_dataframe(stacked.table.rename_axis("model")),
            }
        )
        tree.attrs.update(
            provenance(type(self).__name__, settings, seeds),
            **task_size(task),
            names=json.dumps(list(models)),
            default_priors=json.dumps(self.priors is None),
            stacking_notes=json.dumps(stacked.notes),
        )
        self._stack = stacked
        self._keep(tree, (task,))
        return self

    @classmethod
    def from_idata(cls, idata: xr.DataTree, prior: Any = None) -> Self:
        """Make the fitted model that groups describe: the inverse of `idata`.

        Parameters
        ----------
        idata : DataTree
            Groups and attributes of a fitted model of this class.
        prior : mapping from str to Prior, optional
            Priors of the fit that this package does not define, by name.

        Returns
        -------
        StackedExtrapolator
            Without a task.

        Raises
        ------
        DataError
            A prior is missing or differs from that of the fit.
        """
        attributes: dict[Any, Any] = idata.attrs
        names = json.loads(attributes["names"])
        given = {} if prior is None else prior
        if not isinstance(given, Mapping) or not set(given) <= set(names):
            raise DataError(
                f"prior: found {prior!r}, expected a mapping to priors from some of the names "
                f"{', '.join(names)}"
            )
        models = {
            name: BayesianExtrapolator.from_idata(part_of(idata, f"models/{name}"), given.get(name))
            for name in names
        }
        table = idata["stacking"].to_dataset().to_dataframe()[[*_COLUMNS, "high_k"]]
        priors = {name: model.prior for name, model in models.items()}
        is_default = json.loads(attributes["default_priors"]) and priors == _default_priors()
        model = cls(None if is_default else priors)
        notes = tuple(json.loads(attributes["stacking_notes"]))
        model._stack = Stack(models, table.rename_axis(None), notes)
        tree = idata.copy()
        del tree["models"]
        model._keep(tree, ())
        return model

    def _parts(self) -> dict[str, FittedModel]:
        return {f"models/{name}": model for name, model in self.stack_.models.items()}

    def _observed(self, tasks: tuple[SourceTask, ...]) -> xr.Dataset:
        first = next(iter(self.stack_.models.values()))
        _, tree = task_groups(tasks[0], first.prior_.basis, first.likelihood)
        return tree["observed_data"].to_dataset()

    def _draws_at(self, k: IntArray) -> xr.DataArray:
        return self.stack_.predict(k).draws

    def _convergence(self) -> str:
        models = self.stack_.models.items()
        return "; ".join(f"{name} {model.diagnosis_!r}" for name, model in models)

    @property
    def stack_(self) -> Stack:
        """Fitted models and weights."""
        return self._require("_stack")

    def __repr__(self) -> str:
        """Parameters and, once fitted, data, convergence and the weights."""
        return super().__repr__() + (f"\n{self.stack_!r}" if self.is_fitted else "")

    def predict(self, k: ClassCounts) -> Extrapolation:
        """Mixture of the posteriors of the accuracy on k classes, as of `Stack.predict`.

        Parameters
        ----------
        k : int or array-like of int
            Numbers of classes, 2..10^12.

        Returns
        -------
        Extrapolation
        """
        return replace(self.stack_.predict(k), estimator=self.name)


def _checked_priors(priors: Any) -> dict[str, Prior]:
    if not isinstance(priors, Mapping) or len(priors) < 2:
        raise DataError(
            "priors: expected a mapping from names to two or more priors, found "
            f"{_type_and_size(priors)}"
        )
    for name in priors:
        if not isinstance(name, str) or "/" in name or not name.strip("."):
            raise DataError(
                f"priors: found the name {name!r}, expected text without a slash that is not only "
                "dots"
            )
    return {name: checked_prior(prior) for name, prior in priors.items()}


def _type_and_size(value: Any) -> str:
    """Type and, if it is a mapping, size of an argument."""
    name = type(value).__name__
    return f"{name} of {len(value)}" if isinstance(value, Mapping) else name


def _default_priors() -> dict[str, Prior]:
    return {
        "two-parameter": MixturePrior(deviation=0),
        "mixture": MixturePrior(),
        "monotone": MixturePrior(monotone=True),
        "Dirichlet": DirichletPrior(),
    }


def _shares(weights: FloatArray, total: int) -> IntArray:
    """Whole numbers with the sum `total`, in proportion to the weights (largest remainders)."""
    wanted = weights * total
    shares = np.floor(wanted).astype(np.int64)
    missing = total - shares.sum()
    shares[np.argsort(shares - wanted, kind="stable")[:missing]] += 1
    return shares


def _evenly(values: xr.DataArray, size: int) -> FloatArray:
    """Evenly spaced draws over all chains: shape (size, n_k)."""
    flat = values.transpose(*SAMPLE_DIMS, "k").values.reshape(-1, values.sizes["k"])
    return flat[np.floor((np.arange(size) + 0.5) * (len(flat) / size)).astype(np.int64)]
