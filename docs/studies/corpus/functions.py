"""Functions of Python libraries, recognised by their docstrings or in a later version."""

import ast
import warnings
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from classex_bayes.typing import FloatArray
from studies.corpus.packages import Packages
from studies.corpus.population import Population, Recipe, shuffled
from studies.corpus.projections import principal_components
from studies.corpus.text_features import LatentSemantics, hashed, ngrams, words

# Versions and licences.
_LIBRARIES = {
    "sympy": ("1.14.0", "BSD-3-clause"),
    "networkx": ("3.6", "BSD-3-clause"),
    "mne": ("1.13.2", "BSD-3-clause"),
    "nltk": ("3.10.4", "Apache-2.0"),
    "xarray": ("2026.9.0", "Apache-2.0"),
    "keras": ("3.15.1", "Apache-2.0"),
    "jax": ("0.12.0.1", "Apache-2.0"),
    "dask": ("2026.8.0", "BSD-3-clause"),
    "tensorflow-probability": ("0.25.0", "Apache-2.0"),
    "django": ("6.0", "BSD-3-clause"),
}
_OLDER = {"sympy": "1.5", "networkx": "2.4", "django": "2.2"}
# Libraries without a tested version.
_PCA_LIBRARIES = ("jax", "mne", "nltk")
_N_DESCRIBED = 10_000
_FEWEST_WORDS = 8


class Function(NamedTuple):
    """A function or method: module, qualified name, docstring and identifiers of the body."""

    module: str
    name: str
    docstring: str
    body: tuple[str, ...]


def functions(source: str | bytes, module: str) -> list[Function]:
    """Return the functions and methods of a module, without those inside functions.

    The body is the sequence of identifiers in a function's statements: names, attributes and
    keywords of calls. It contains neither the docstring nor the function's name.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = ast.parse(source)
    return list(_functions(tree, module, ""))


def _functions(node: ast.AST, module: str, prefix: str) -> Iterator[Function]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef):
            yield from _functions(child, module, f"{prefix}{child.name}.")
        elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            docstring = ast.get_docstring(child) or ""
            statements = child.body[bool(docstring) :]
            body = tuple(name for statement in statements for name in _identifiers(statement))
            yield Function(module, f"{prefix}{child.name}", docstring, body)


def _identifiers(node: ast.AST) -> Iterator[str]:
    for field in ("id", "attr", "arg"):
        name = getattr(node, field, None)
        if isinstance(name, str):
            yield name
    for child in ast.iter_child_nodes(node):
        yield from _identifiers(child)


def description(docstring: str) -> list[str]:
    r"""Return the words of a docstring up to its first underlined section or example.

    >>> description("Sum of x.\n\nExamples\n--------\n>>> f(1)")
    ['sum', 'of', 'x']
    """
    lines = docstring.splitlines()
    for i, line in enumerate(lines):
        if line.lstrip().startswith(">>>"):
            return words("\n".join(lines[:i]))
        if i and len(line.strip()) > 2 and set(line.strip()) <= set("-="):
            return words("\n".join(lines[: i - 1]))
    return words(docstring)


def canonical_directions(
    first: FloatArray, second: FloatArray, ridge: float
) -> tuple[FloatArray, FloatArray]:
    """Return the directions of canonical correlation of paired vectors, the best one first.

    `ridge` times the mean variance of a coordinate is added to each variance.
    """
    whitenings = []
    for vectors in (first, second):
        covariance = vectors.T @ vectors / len(vectors)
        variances, axes = np.linalg.eigh(covariance)
        whitenings.append(axes / np.sqrt(variances + ridge * variances.mean()) @ axes.T)
    left, _, right = np.linalg.svd(whitenings[0] @ first.T @ second @ whitenings[1])
    return whitenings[0] @ left, whitenings[1] @ right.T


def library(packages: Packages, name: str, version: str = "") -> list[Function]:
    """Functions of all modules of a library, except for its tests."""
    folder = packages.pypi(name, version or _LIBRARIES[name][0])
    result = []
    for file in sorted(folder.rglob("*.py")):
        parts = file.relative_to(folder).parts
        if not any(part.startswith("test") for part in parts):
            try:
                result += functions(file.read_bytes(), ".".join(parts)[:-3])
            except SyntaxError:  # a template of code, or code of Python 2
                continue
    return result


def described_functions(packages: Packages) -> list[tuple[list[str], list[str]]]:
    """Return the words of the code and of the description of each function, in random order."""
    pairs = {}
    for name in _LIBRARIES:
        for function in library(packages, name):
            text = description(function.docstring)
            if min(len(text), len(function.body)) >= _FEWEST_WORDS:
                code = words(" ".join((function.name, *function.body)))
                pairs[(*code, "", *text)] = code, text
    return shuffled(pairs.values(), 17)


def _by_docstring(packages: Packages) -> Population:
    every = described_functions(packages)
    tested, training = every[:_N_DESCRIBED], every[_N_DESCRIBED:]
    vectors = LatentSemantics([code + text for code, text in training], 256)
    of_code, of_text = canonical_directions(
        vectors([code for code, _ in training]), vectors([text for _, text in training]), 0.1
    )
    gallery = vectors([code for code, _ in tested]) @ of_code[:, :200]
    probes = vectors([text for _, text in tested]) @ of_text[:, :200]
    return Population(gallery, probes, np.arange(len(tested)), "cosine")


def bodies(packages: Packages, name: str, version: str = "") -> dict[str, tuple[str, ...]]:
    """Identifiers in the body of each function, by full name; the last of equal names counts."""
    return {
        f"{function.module}:{function.name}": function.body
        for function in library(packages, name, version)
        if len(function.body) >= _FEWEST_WORDS
    }


def _body_counts(bodies: list[tuple[str, ...]]) -> FloatArray:
    """Signed square roots of hashed counts of identifiers and of adjacent pairs."""
    features = [ngrams(body, (1, 2), ".") for body in bodies]
    counts = hashed(features, 2048).toarray()
    return np.sign(counts) * np.sqrt(np.abs(counts))


def function_versions(
    packages: Packages,
) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    """Return the identifiers of functions in an older and in the newer version of libraries."""
    old, new = [], []
    for name, version in _OLDER.items():
        olds, news = bodies(packages, name, version), bodies(packages, name)
        shared = sorted(olds.keys() & news.keys())
        old += [olds[function] for function in shared]
        new += [news[function] for function in shared]
    return old, new


def _by_older_version(packages: Packages) -> Population:
    old, new = function_versions(packages)
    training = [body for name in _PCA_LIBRARIES for body in bodies(packages, name).values()]
    axes = principal_components(_body_counts(training), 128).axes
    return Population(_body_counts(old) @ axes, _body_counts(new) @ axes, np.arange(len(old)))


def _sheet(name: str, older: str = "") -> str:
    """Entry of a library in a datasheet."""
    version, licence = _LIBRARIES[name]
    return f"{name} {older or version} (PyPI, {licence})"


RECIPES: tuple[Recipe, ...] = (
    Recipe(
        name="functions-docstrings",
        kind="code",
        summary="Python functions from their docstrings; latent semantics and canonical "
        "correlation",
        about=(
            "Classes are 10,000 functions and methods of ten Python libraries, drawn at random. "
            "The template is made of the name and of the identifiers in the body, split into "
            "words. The test instance is the description in the docstring, up to its first section "
            "or example. Functions are left out if the description has fewer than eight words, if "
            "the body has fewer than eight identifiers, if they are inside functions or in the "
            "tests of the libraries, or if another function has the same template and description. "
            "Programmers wrote both; no noise is added. A wrong answer is another function for a "
            "description."
        ),
        classifier=(
            "Latent semantics (256 dimensions) and canonical correlation analysis (200) of "
            "templates and descriptions, both learnt on the other functions of the libraries. The "
            "score is the cosine. Libraries, features and dimensions were chosen after accuracies "
            "had been seen."
        ),
        packages=tuple(map(_sheet, _LIBRARIES)),
        make=_by_docstring,
    ),
    Recipe(
        name="functions-versions",
        kind="code",
        summary="Python functions in a later version; principal components of identifiers",
        about=(
            "Classes are the functions and methods that two versions of a library have under the "
            "same full name: SymPy of 2019 and 2025, NetworkX of 2019 and 2025, Django of 2019 and "
            "2025. The template is the older body, and the test instance is the newer one. Both "
            "are the identifiers of the body, without the function's name. Many bodies have not "
            "changed, and some functions of a version have equal bodies; they stay. Functions are "
            "left out if they have fewer than eight identifiers in either version, or if they are "
            "inside functions or in the tests of the libraries. The changes are real; no noise is "
            "added. A wrong answer takes a function for the successor of another."
        ),
        classifier=(
            "Euclidean distance in 128 principal components, learnt on the functions of three "
            "other libraries. Features are square roots of the counts of identifiers and of "
            "adjacent pairs, hashed to 2,048 signed buckets."
        ),
        packages=(
            *(_sheet(name, version) for name, version in _OLDER.items()),
            *map(_sheet, (*_OLDER, *_PCA_LIBRARIES)),
        ),
        make=_by_older_version,
    ),
)
