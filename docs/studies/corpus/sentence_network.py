"""A small network for sentences, MiniLM, in NumPy.

It is the model all-MiniLM-L6-v2 of Sentence Transformers: six layers of BERT, the mean over pieces
of words, scaled to length 1. Source: Wang et al. (2020), "MiniLM: Deep self-attention distillation
for task-agnostic compression of pre-trained transformers".
"""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from scipy.special import erf

from classex_bayes.typing import BoolArray, FloatArray, IntArray
from studies.corpus.heads import unit

_HEADS, _LAYERS = 12, 6
_BATCH = 64


def tensors(path: Path) -> dict[str, FloatArray]:
    """Read the arrays of a .safetensors file in single precision."""
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    arrays = {}
    for name, entry in json.loads(data[8 : 8 + size]).items():
        if entry.get("dtype") == "F32":
            first, last = (8 + size + offset for offset in entry["data_offsets"])
            arrays[name] = np.frombuffer(data[first:last], "<f4").reshape(entry["shape"])
    return arrays


def pieces(word: str, vocabulary: dict[str, int]) -> list[int]:
    """Return the longest pieces that make up a word, from its beginning (WordPiece)."""
    numbers, start = [], 0
    while start < len(word):
        prefix = "##" if start else ""
        for end in range(len(word), start, -1):
            number = vocabulary.get(prefix + word[start:end])
            if number is not None:
                break
        else:
            return [vocabulary["[UNK]"]]
        numbers.append(number)
        start = end
    return numbers


class SentenceNetwork:
    """The network, from the folder with its weights and its vocabulary.

    Parameters
    ----------
    folder : Path
        Folder with model.safetensors and vocab.txt.
    """

    def __init__(self, folder: Path) -> None:
        self._weights = tensors(folder / "model.safetensors")
        self._width = self._weights["embeddings.LayerNorm.weight"].size
        lines = (folder / "vocab.txt").read_text("utf8").splitlines()
        self._vocabulary = {piece: number for number, piece in enumerate(lines)}

    def __call__(self, texts: Sequence[Sequence[str]], n_pieces: int) -> FloatArray:
        """Return unit vectors (n, d) of texts, each a sequence of lower-case words.

        Pieces of words after the first `n_pieces` are ignored.
        """
        first, last = (self._vocabulary[mark] for mark in ("[CLS]", "[SEP]"))
        numbers = []
        for text in texts:
            split = [number for word in text for number in pieces(word, self._vocabulary)]
            numbers.append([first, *split[:n_pieces], last])
        vectors = np.empty((len(texts), self._width), np.float32)
        order = np.argsort([len(row) for row in numbers], kind="stable")
        for at in range(0, len(order), _BATCH):
            batch = order[at : at + _BATCH]
            longest = len(numbers[batch[-1]])
            padded = np.zeros((len(batch), longest), int)
            for row, place in zip(padded, batch, strict=True):
                row[: len(numbers[place])] = numbers[place]
            lengths = np.array([len(numbers[place]) for place in batch])
            vectors[batch] = self._encoded(padded, np.arange(longest) < lengths[:, None])
        return vectors

    def _encoded(self, numbers: IntArray, present: BoolArray) -> FloatArray:
        """Return the unit vectors of padded rows of numbers of pieces."""
        weights, name = self._weights, "embeddings.{}_embeddings.weight".format
        placed = weights[name("word")][numbers] + weights[name("position")][: numbers.shape[1]]
        x = self._normalised(placed + weights[name("token_type")][0], "embeddings.LayerNorm")
        hidden = np.where(present, np.float32(0), np.float32(-1e9))[:, None, None]
        for layer in range(_LAYERS):
            x = self._layer(x, hidden, f"encoder.layer.{layer}.")
        means = (x * present[..., None]).sum(1) / present.sum(1)[:, None]
        return unit(means)

    def _layer(self, x: FloatArray, hidden: FloatArray, name: str) -> FloatArray:
        """Return the result of attention and of two dense layers, each added to its input."""
        query, key, value = (
            self._dense(x, f"{name}attention.self.{part}")
            .reshape(*x.shape[:2], _HEADS, -1)
            .transpose(0, 2, 1, 3)
            for part in ("query", "key", "value")
        )
        weights = query @ key.transpose(0, 1, 3, 2) / np.float32(np.sqrt(query.shape[-1])) + hidden
        weights = np.exp(weights - weights.max(axis=-1, keepdims=True))
        weights /= weights.sum(axis=-1, keepdims=True)
        mixed = (weights @ value).transpose(0, 2, 1, 3).reshape(x.shape)
        added = x + self._dense(mixed, f"{name}attention.output.dense")
        x = self._normalised(added, f"{name}attention.output.LayerNorm")
        inner = self._dense(x, f"{name}intermediate.dense")
        inner *= (1 + erf(inner / np.float32(np.sqrt(2)))) / 2
        added = x + self._dense(inner, f"{name}output.dense")
        return self._normalised(added, f"{name}output.LayerNorm")

    def _dense(self, x: FloatArray, name: str) -> FloatArray:
        flat = x.reshape(-1, x.shape[-1]) @ self._weights[f"{name}.weight"].T
        return (flat + self._weights[f"{name}.bias"]).reshape(*x.shape[:-1], -1)

    def _normalised(self, x: FloatArray, name: str) -> FloatArray:
        x = x - x.mean(axis=-1, keepdims=True)
        x /= np.sqrt((x**2).mean(axis=-1, keepdims=True) + np.float32(1e-12))
        return x * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]
