"""Intervals under unequal class weights, over data sets and on other laws than the page's.

`pytest -m slow tests/slow_studies/test_class_weights.py` takes about ten minutes on one core.
"""

import numpy as np
import pytest

import classex_bayes as cb
from classex_bayes.simulate import GaussianKnownCentres, UniformSphere

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::UserWarning")]

N_TASKS, N_CLASSES = 60, 60
LAWS = {
    "known centres": (GaussianKnownCentres(dim=8, noise_variance=0.3), 1),
    "sphere": (UniformSphere(dim=16), 3),
}
WEIGHTS = {
    "equal": np.ones(N_CLASSES),
    "half": np.append(N_CLASSES - 1, np.ones(N_CLASSES - 1)),
    "nearly all": np.append(19 * (N_CLASSES - 1), np.ones(N_CLASSES - 1)),
    "zipf": 1 / np.arange(1, N_CLASSES + 1.0),
    "steep": np.arange(1, N_CLASSES + 1.0) ** -2,
}
DRAWS = {"draws": 300, "tune": 300, "chains": 2, "progressbar": False}


@pytest.mark.parametrize("weight", WEIGHTS.values(), ids=WEIGHTS)
@pytest.mark.parametrize("made_from", ["scores", "ranks"])
@pytest.mark.parametrize(("law", "repeats"), LAWS.values(), ids=LAWS)
def test_intervals_hold_the_accuracy(law, repeats, made_from, weight):
    k = N_CLASSES * np.array([1, 5, 20])
    true, held = law.accuracy(k), []
    for seed in range(N_TASKS):
        probes, gallery, y = law.sample(N_CLASSES, repeats=repeats, random_seed=seed)
        task = cb.SourceTask.from_embeddings(probes, gallery, y, class_weight=weight)
        if made_from == "ranks":
            task = cb.SourceTask.from_ranks(task.ranks, y, n_classes=N_CLASSES, class_weight=weight)
        model = cb.BayesianExtrapolator().fit(task, random_seed=seed, **DRAWS)
        draws = model.predict(k).accuracy.values.reshape(-1, k.size)
        lower, upper = np.quantile(draws, [0.05, 0.95], axis=0)
        held.append((lower <= true) & (true <= upper))
    # 0.85 less two standard errors of 60 tasks.
    assert np.all(np.mean(held, axis=0) > 0.85 - 2 * np.sqrt(0.85 * 0.15 / N_TASKS))
