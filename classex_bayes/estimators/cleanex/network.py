"""A small dense network, its gradient, and Adam."""

from collections.abc import Sequence
from itertools import pairwise
from math import prod

import numpy as np

from classex_bayes.typing import FloatArray

# Adam's constants: decay of the mean and of the mean square of the gradient, guard of the division.
_MEAN_DECAY, _SQUARE_DECAY, _GUARD = 0.9, 0.999, 1e-8
# The mean gradient of inactive units would decay into subnormal numbers, which processors handle
# slowly.
_FLUSH_EVERY, _FLUSH_BELOW = 100, 1e-30


class Network:
    """Dense layers with rectified linear units between them and one output, on fixed inputs.

    All parameters are in one vector with the precision of the inputs. A layer is a matrix in this
    vector, with a row for each input and a last row for the constants.
    """

    def __init__(self, inputs: FloatArray, hidden: Sequence[int], rng: np.random.Generator) -> None:
        widths = [inputs.shape[1], *hidden, 1]
        shapes = [(before + 1, after) for before, after in pairwise(widths)]
        self.parameters = np.zeros(sum(map(prod, shapes)), inputs.dtype)
        self._gradient = np.zeros_like(self.parameters)
        self._layers = _matrices(self.parameters, shapes)
        self._slopes = _matrices(self._gradient, shapes)
        for layer in self._layers:
            limit = np.sqrt(6 / (layer.shape[0] - 1))
            layer[:-1] = rng.uniform(-limit, limit, layer[:-1].shape)
        # Values of the units, inputs first, and the derivatives of the loss by these values.
        self.inputs = inputs
        self._values = [inputs, *(np.empty((len(inputs), w), inputs.dtype) for w in widths[1:])]
        self._back = [np.empty_like(values) for values in self._values[1:]]

    def transform_output(self, sign: int, shift: float) -> None:
        """Multiply the outputs by a sign and add a constant to them."""
        self._layers[-1] *= sign
        self._layers[-1][-1] += shift

    def outputs(self) -> FloatArray:
        """Output of each row of inputs, shape (n,), in double precision."""
        for layer, values, after in zip(self._layers, self._values, self._values[1:], strict=False):
            np.matmul(values, layer[:-1], out=after)
            after += layer[-1]
            if layer is not self._layers[-1]:
                np.maximum(after, 0, out=after)
        return self._values[-1][:, 0].astype(float)

    def gradient(self, slope: FloatArray) -> FloatArray:
        """Gradient of the loss by the parameters, from its derivatives (n,) by the outputs.

        The next call overwrites the result.
        """
        self._back[-1][:, 0] = slope
        for place in reversed(range(len(self._layers))):
            values, back = self._values[place], self._back[place]
            np.matmul(values.T, back, out=self._slopes[place][:-1])
            np.sum(back, axis=0, out=self._slopes[place][-1])
            if place > 0:
                np.matmul(back, self._layers[place][:-1].T, out=self._back[place - 1])
                self._back[place - 1] *= values > 0
        return self._gradient


def _matrices(vector: FloatArray, shapes: Sequence[tuple[int, int]]) -> list[FloatArray]:
    """Consecutive parts of a vector as matrices that share its memory."""
    parts = np.split(vector, np.cumsum([prod(shape) for shape in shapes])[:-1])
    return [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]


class Adam:
    """Adam on one vector of parameters, in place."""

    def __init__(self, parameters: FloatArray, learning_rate: float) -> None:
        self._parameters, self._learning_rate = parameters, learning_rate
        self._mean, self._square = np.zeros_like(parameters), np.zeros_like(parameters)
        self._work = np.empty_like(parameters)
        self._n_steps = 0

    def step(self, gradient: FloatArray) -> None:
        """Move the parameters against the gradient."""
        self._n_steps += 1
        work = self._work
        np.subtract(gradient, self._mean, out=work)
        work *= 1 - _MEAN_DECAY
        self._mean += work
        np.multiply(gradient, gradient, out=work)
        work -= self._square
        work *= 1 - _SQUARE_DECAY
        self._square += work
        np.sqrt(self._square, out=work)
        work *= 1 / np.sqrt(1 - _SQUARE_DECAY**self._n_steps)
        work += _GUARD
        np.divide(self._mean, work, out=work)
        work *= self._learning_rate / (1 - _MEAN_DECAY**self._n_steps)
        self._parameters -= work
        if self._n_steps % _FLUSH_EVERY == 0:
            for moment in (self._mean, self._square):
                moment[np.abs(moment) < _FLUSH_BELOW] = 0
