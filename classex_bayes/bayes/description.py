"""How models with draws show themselves: parameters, data, sampler and convergence."""

import json
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from classex_bayes.bayes.convergence import Diagnosis
from classex_bayes.bayes.model.priors import Prior
from classex_bayes.estimators.base import Parameters
from classex_bayes.formatting import folded, html_block, html_facts

if TYPE_CHECKING:
    import xarray as xr


class Described(Parameters, ABC):
    """A model that shows its parameters and, once fitted, its data and convergence."""

    prior: Prior
    _tree: "xr.DataTree"
    _fitted_prior: Prior
    _diagnosis: Diagnosis | None  # made when it is first asked for

    @property
    def is_fitted(self) -> bool:
        """Whether there are draws."""
        return getattr(self, "_tree", None) is not None

    @property
    @abstractmethod
    def diagnosis_(self) -> Diagnosis:
        """Convergence of the sampler."""

    @property
    @abstractmethod
    def _is_current(self) -> bool:
        """Whether the parameters are those of the fit."""

    def _title(self) -> str:
        changed = self.is_fitted and not self._is_current
        return self._call() + (" (changed since the fit)" if changed else "")

    def __repr__(self) -> str:
        """Parameters and, once fitted, data, number of draws and convergence."""
        if not self.is_fitted:
            return self._title()
        draws = f"{self._drawn()}: {self.diagnosis_}"
        return "\n".join(map(folded, (self._title(), f"fitted to {self._data_text()}", draws)))

    def _repr_html_(self) -> str:
        if not self.is_fitted:
            return html_block(self._title(), html_facts({"prior": repr(self.prior)}))
        sampler = json.loads(self._tree.attrs["sampler"])
        facts = {
            "fitted to": self._data_text(),
            "prior": repr(self._fitted_prior),
            "sampler": (
                f"{sampler['nuts_sampler']}, {self._drawn()} after {sampler['tune']} to adapt, "
                f"target_accept {sampler['target_accept']:g}"
            ),
            "convergence": repr(self.diagnosis_),
        }
        return html_block(self._title(), html_facts(facts))

    def _drawn(self) -> str:
        """Number of draws, and how many there should have been."""
        size = self._tree["posterior"].sizes
        interrupted = self._tree.attrs.get("interrupted")
        draws = f"{size['chain']} x {size['draw']} draws"
        return draws if interrupted is None else f"{interrupted} (interrupted)"

    def _data_text(self) -> str:
        data = self._tree.attrs
        pool = data.get("n_tasks", 1)
        return (
            f"{data['n_classes']} classes and {data['n_test']} instances"
            f"{f' in {pool} tasks' if pool > 1 else ''}, from {data['task_kind']}, design effect "
            f"{data['design_effect']:g}"
        )
