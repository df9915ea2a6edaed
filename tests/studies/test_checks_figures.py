"""Power and false alarms of the predictive checks over data sets, on laws other than the page's.

`pytest -m slow tests/studies/test_checks_figures.py` takes about ten minutes on two
processors.
"""

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.stats import binom
from trained_classifiers import GaussianClasses

from classex_bayes.simulate import GaussianNearestNeighbor
from studies.coverage import checks
from studies.laws import bivariate_normal

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::UserWarning")]
LAWS = {
    "20 dimensions": GaussianNearestNeighbor(dim=20, noise_variance=0.4),
    "5 dimensions": GaussianNearestNeighbor(dim=5, noise_variance=0.05),
    "normal labels": bivariate_normal(rho=0.95, dim=4),
}
N_TASKS = 20
# Most false alarms that a level of 2% in all rows together leaves with a chance of 99.9%.
MOST_ALARMS = int(binom.isf(0.001, N_TASKS, 0.02))


@pytest.fixture(autouse=True)
def own_laws(monkeypatch):
    monkeypatch.setattr(checks, "EMBEDDED", LAWS)


def alarms(tasks):
    return sum(checks.raises_alarm(task) for task in tasks)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(("n_classes", "repeats"), [(100, 4), (60, 8)])
def test_sound_tasks_pass(law, n_classes, repeats):
    tasks = (checks.sound_task(law, n_classes, repeats, 77 + seed) for seed in range(N_TASKS))
    assert alarms(tasks) <= MOST_ALARMS


def test_classes_of_very_unequal_covariances_pass():
    from classex_bayes.task.source_task import SourceTask

    def task(seed):
        law = GaussianClasses(dim=8, noise_variance=0.2, degrees=12)
        train, train_y, test, y = law.sample(100, n_train=1, n_test=4, random_seed=seed)
        gallery = train[np.argsort(train_y)]
        return SourceTask.from_scores(-cdist(test, gallery, "sqeuclidean"), y, random_seed=1)

    assert alarms(task(seed) for seed in range(N_TASKS)) <= MOST_ALARMS


@pytest.mark.parametrize("law", LAWS)
def test_six_classes_at_random_raise_an_alarm(law):
    tasks = (checks.broken_task(law, 100, 4, "random", 6, 77 + s)[0] for s in range(N_TASKS))
    assert alarms(tasks) >= 18


@pytest.mark.parametrize("law", LAWS)
def test_six_swapped_labels_raise_an_alarm(law):
    tasks = (checks.broken_task(law, 100, 4, "swapped", 6, 77 + s)[0] for s in range(N_TASKS))
    assert alarms(tasks) >= 15
