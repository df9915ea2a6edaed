"""Substances, recognised by properties that are computed from their structure."""

from pathlib import Path

import numpy as np
import pandas as pd

from classex_bayes.typing import FloatArray
from studies.corpus.packages import Packages
from studies.corpus.population import Population, Recipe
from studies.corpus.projections import ridged
from studies.corpus.shared_data import CHEMICALS, chemicals

N_FITTED = 600  # other substances that the network is trained on
N_ERRORS = 200  # other substances, for the covariance of the errors of the network
SEED = 1860

_CRITICAL = "Critical Properties"
TABULATED = (
    (f"{_CRITICAL}/Yaws Collection.tsv", ("Tc", "Pc", "Vc", "omega")),
    ("Phase Change/Yaws Boiling Points.tsv", ("Tb",)),
)
COMPUTED = (
    ("Misc/joback_predictions.tsv", ("Tc", "Pc", "Vc", "Tb", "Hvap")),
    (f"{_CRITICAL}/omega_Psat_Tc_predictions.tsv", ("omega",)),
    (f"{_CRITICAL}/wilson_jasperson_Tc_Pc_predictions.tsv", ("Tc", "Pc")),
    (f"{_CRITICAL}/fedors_Vc_predictions.tsv", ("Vc",)),
)


def table(folder: Path, sources: tuple[tuple[str, tuple[str, ...]], ...]) -> pd.DataFrame:
    """Return log properties by registry number, of substances with all properties."""
    parts = []
    for name, columns in sources:
        part = pd.read_csv(folder / name, sep="\t", dtype={"CAS": str})
        part.index = pd.Index(part["CAS"].str.replace("-", "").astype(int))
        parts.append(part.loc[~part.index.duplicated(), list(columns)])
    joined = pd.concat(parts, axis=1, join="inner").dropna().sort_index()
    return pd.DataFrame(np.log(joined[(joined > 0).all(axis=1)]))


def whitening(errors: FloatArray) -> FloatArray:
    """Return the matrix that makes errors (rows) uncorrelated, with variance one."""
    return np.asarray(np.linalg.inv(np.linalg.cholesky(ridged(np.cov(errors.T), 1e-3))).T)


def substances(packages: Packages) -> Population:
    """Substances with tabulated and computed properties and one test instance each."""
    from sklearn.neural_network import MLPRegressor

    folder = chemicals(packages)
    tabulated, computed = table(folder, TABULATED), table(folder, COMPUTED)
    both = tabulated.index.intersection(computed.index)
    order = np.random.default_rng(SEED).permutation(len(both))
    fitted, shown, classes = np.split(order, [N_FITTED, N_FITTED + N_ERRORS])

    def standardized(frame: pd.DataFrame) -> FloatArray:
        values = frame.loc[both].to_numpy()
        return np.asarray((values - values[fitted].mean(0)) / values[fitted].std(0))

    templates, inputs = standardized(tabulated), standardized(computed)
    network = MLPRegressor(
        hidden_layer_sizes=(64, 64),
        activation="tanh",
        solver="lbfgs",
        alpha=0.3,
        max_iter=5000,
        random_state=SEED,
    )
    predicted = network.fit(inputs[fitted], templates[fitted]).predict(inputs)
    white = whitening((templates - predicted)[shown])
    return Population(
        gallery=templates[classes] @ white,
        probes=predicted[classes] @ white,
        y=np.arange(len(classes)),
    )


RECIPES: tuple[Recipe, ...] = (
    Recipe(
        name="substance-properties",
        kind="measured things",
        summary="substances from computed properties; a network",
        about="Classes are 3,005 substances. The template has five properties of the tables of "
        "Yaws: critical temperature, pressure and volume, acentric factor and boiling point. Some "
        "of these values are measured, others are estimated. The test instance has nine properties "
        "that others computed from the structure of the same substance (methods of Joback, "
        "Wilson-Jasperson and Fedors; acentric factors by a vapour pressure model). No noise is "
        "added: errors are those of the methods and of the tables. Substances that lack a property "
        "in either source are left out, and 800 others train the network. A wrong answer names a "
        "substance of similar size and polarity, often an isomer. Some isomers have equal values "
        "in the tables, so they cannot be distinguished.",
        classifier="A network with two layers of 64 units predicts logarithms of the properties in "
        "the tables from the computed properties. It is trained on 600 other substances. Its "
        "errors on 200 others whiten the properties. Scores are squared Euclidean distances. The "
        "properties and the network were chosen after accuracies had been seen.",
        packages=(
            f"chemicals {CHEMICALS} (PyPI, MIT; tables of Yaws, predictions of the authors)",
        ),
        make=substances,
    ),
)
