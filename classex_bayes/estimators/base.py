"""What all estimators share: parameters that scikit-learn's `clone` can read, and the verbs."""

import inspect
from typing import Any, Protocol, Self

import numpy as np

from classex_bayes.data.task import SourceTask
from classex_bayes.exceptions import NotFittedError
from classex_bayes.results import Extrapolation
from classex_bayes.typing import ClassCounts


class Estimator(Protocol):
    """The two verbs of every estimator."""

    @property
    def name(self) -> str:
        """Name in tables and legends."""

    def fit(self, task: SourceTask) -> Any:
        """Learn from a source task; returns self."""

    def predict(self, k: ClassCounts) -> Extrapolation:
        """Expected accuracy on k classes."""


class Parameters:
    """Constructor arguments as parameters: stored unchanged, read and set by name."""

    @classmethod
    def _parameter_names(cls) -> list[str]:
        return [name for name in inspect.signature(cls.__init__).parameters if name != "self"]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the constructor's arguments by name."""
        return {name: getattr(self, name) for name in self._parameter_names()}

    def set_params(self, **params: Any) -> Self:
        """Set constructor arguments by name; returns self."""
        known = self._parameter_names()
        for name, value in params.items():
            if name not in known:
                raise TypeError(
                    f"{type(self).__name__} has no parameter {name!r}; it has {', '.join(known)}"
                )
            setattr(self, name, value)
        return self

    @property
    def name(self) -> str:
        """Name in tables and legends."""
        return type(self).__name__

    def _require(self, attribute: str) -> Any:
        """Fitted attribute, or an error that says what to call."""
        value = getattr(self, attribute, None)
        if value is None:
            arguments = inspect.signature(self.fit).parameters.values()  # type: ignore[attr-defined]
            needed = ", ".join(a.name for a in arguments if a.default is a.empty)
            raise NotFittedError(f"{type(self).__name__}: call fit({needed}) first")
        return value

    def __repr__(self) -> str:
        """Return the class with its arguments."""
        arguments = ", ".join(f"{name}={value!r}" for name, value in self.get_params().items())
        return f"{type(self).__name__}({arguments})"


def sizes_text(k: ClassCounts | str) -> str:
    """Numbers of classes as part of a name; long lists by their ends and length."""
    if isinstance(k, str):
        return f"k={k}"
    sizes = np.atleast_1d(k)
    if sizes.size > 6:
        return f"k={sizes[0]}..{sizes[-1]}, {sizes.size} of them"
    return f"k={', '.join(map(str, sizes))}"
