"""Vectors, heads and likelihoods of the corpus that neural networks and language models make."""

import json
from collections import Counter

import numpy as np
import pytest

from studies.corpus.heads import unit
from studies.corpus.likelihoods import cut, trigram_log_likelihoods, word_log_likelihoods
from studies.corpus.network_logits import noisy_instances
from studies.corpus.network_vectors import Persons
from studies.corpus.sentence_network import SentenceNetwork, pieces


def test_variances_of_persons_and_images_decay():
    persons = Persons(d=64, decay=1.0, noise=0.5, quality=0.3)
    own, noise = persons.scales()
    assert own[0] ** 2 / own[15] ** 2 == pytest.approx(16)
    assert noise[0] ** 2 / noise[15] ** 2 == pytest.approx(4)
    assert [own @ own, noise @ noise] == pytest.approx([1, 0.5])
    drawn = persons.draw(20_000, np.random.default_rng(1))
    np.testing.assert_allclose(drawn.std(0), own, rtol=0.05)


def test_templates_of_two_images_are_nearer():
    few, more = (
        Persons(64, 0.5, 1.5, 0.3).population(300, n_images, 2, 7).task() for n_images in (1, 2)
    )
    assert more.n_classes == 300 and len(more.ranks) == 600
    assert 0.3 < few.accuracy(300) < more.accuracy(300) - 0.05


def test_noise_of_instances_is_log_normal():
    drawn = noisy_instances(np.ones(50), -1.2, 0.8, np.random.default_rng(3))
    np.testing.assert_allclose(np.linalg.norm(drawn.gallery, axis=1), 1)
    size = np.log((drawn.probes - drawn.gallery).std(1))
    assert [size.mean(), size.std()] == pytest.approx([-1.2, 0.8], abs=0.05)


def test_good_images_have_long_features():
    persons = Persons(64, 1.0, 0.3, 0.8)
    rng = np.random.default_rng(4)
    drawn = persons.draw(500, rng)
    features = persons.features(drawn, rng)
    cosine = (unit(features) * unit(drawn)).sum(1)
    assert np.corrcoef(np.linalg.norm(features, axis=1), cosine)[0, 1] > 0.5


def test_texts_are_cut_to_runs():
    rng = np.random.default_rng(5)
    runs = [cut(list(range(500)), rng) for _ in range(300)]
    assert all(run == list(range(run[0], run[-1] + 1)) for run in runs)
    lengths = [len(run) for run in runs]
    assert 4 <= min(lengths) < 6 and 180 < max(lengths) <= 200
    assert cut([1, 2], rng) == [1, 2]


def test_words_are_as_likely_as_frequent():
    documents = [["a", "b", "b"], ["b", "c"]]
    scores = word_log_likelihoods(documents, [["a", "b", "new"]], share=0.4)
    common = {"a": 0.4 * 1 / 5, "b": 0.4 * 3 / 5}
    expected = [(common["a"] + 0.6 / 3) * (common["b"] + 0.4), common["a"] * (common["b"] + 0.3)]
    assert np.exp(scores[0]) == pytest.approx(expected)


def test_characters_are_as_likely_as_frequent_after_two_others():
    documents = ["abcabdabc", "xbcdabda", "ababab"]
    scores = trigram_log_likelihoods(documents, ["abcd", "bdabd"], share=0.3)

    def frequencies(texts):
        runs = Counter(text[i : i + 3] for text in texts for i in range(len(text) - 2))
        contexts = Counter({})
        for run, count in runs.items():
            contexts[run[:2]] += count
        return runs, contexts

    common, before = frequencies(documents)
    for query, row in zip(["abcd", "bdabd"], scores, strict=True):
        for document, score in zip(documents, row, strict=True):
            own, seen = frequencies([document])
            expected = 0.0
            for i in range(len(query) - 2):
                run = query[i : i + 3]
                share = 0.3 if seen[run[:2]] else 1.0
                prob = share * common[run] / before[run[:2]]
                expected += np.log(prob + (1 - share) * own[run] / max(seen[run[:2]], 1))
            assert score == pytest.approx(expected, rel=1e-5)


VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "un", "##believ", "##able", "a", "##b", "b"]


def test_words_are_split_into_the_longest_pieces():
    numbers = {piece: number for number, piece in enumerate(VOCABULARY)}
    assert pieces("unbelievable", numbers) == [4, 5, 6]
    assert pieces("abb", numbers) == [7, 8, 8]
    assert pieces("unclear", numbers) == [1]


def small_network(folder):
    """A network of 24 dimensions with random weights, in a file as the package has it."""
    d, rng = 24, np.random.default_rng(6)
    shapes = {f"embeddings.{part}_embeddings.weight": (10, d) for part in ("word", "position")}
    shapes["embeddings.token_type_embeddings.weight"] = (2, d)
    sizes = {"intermediate": (2 * d, d), "output": (d, 2 * d), "attention.output": (d, d)}
    sizes |= {f"attention.self.{part}": (d, d) for part in ("query", "key", "value")}
    norms = ["embeddings"]
    for layer in range(6):
        name = f"encoder.layer.{layer}."
        for part, shape in sizes.items():
            dense = name + part + ("" if ".self" in part else ".dense")
            shapes |= {f"{dense}.weight": shape, f"{dense}.bias": shape[:1]}
        norms += [f"{name}output", f"{name}attention.output"]
    for name in norms:
        shapes |= {f"{name}.LayerNorm.weight": (d,), f"{name}.LayerNorm.bias": (d,)}
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, shape in shapes.items():
        mean = float(name.endswith("LayerNorm.weight"))
        values = rng.normal(mean, 0.2, shape).astype("<f4").tobytes()
        ends = [len(data), len(data) + len(values)]
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": ends}
        data += values
    text = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + data)
    (folder / "vocab.txt").write_text("\n".join(VOCABULARY))
    return SentenceNetwork(folder)


def test_vectors_of_sentences_do_not_depend_on_others(tmp_path):
    network = small_network(tmp_path)
    texts = [["a", "b"], ["b"], ["unbelievable", "a"], ["b", "a"], ["a", "b", "abb", "b", "a"]]
    vectors = network(texts, 5)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)
    alone = np.concatenate([network([text], 5) for text in texts])
    np.testing.assert_allclose(vectors, alone, atol=1e-5)
    assert (vectors @ vectors.T)[np.triu_indices(5, 1)].max() < 0.9999
    np.testing.assert_allclose(network([["a", "b", "abb", "a"]], 5)[0], vectors[4], atol=1e-5)
