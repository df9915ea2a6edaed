"""Bad calls with numbers beyond their bounds, or with what is no number."""

import classex_bayes as cb
from bad_calls import Bad

NAN = float("nan")
TASK = cb.SourceTask.from_ranks([1] * 90 + [2] * 6 + [3, 5, 9, 40], range(100), n_classes=100)
BOUNDS = cb.MomentBounds().fit(TASK)
interval = BOUNDS.predict([100, 300]).interval
LAW = cb.simulate.VonMisesFisher(dim=4, concentration=3)


def kde(bandwidth):
    return cb.KDE(bandwidth).fit(TASK)


ROWS = [
    *[Bad(interval, "ci_prob", str(p), {"ci_prob": p}) for p in (0, 1, -0.1, 1.1, NAN, True)],
    Bad(interval, "ci_prob", "'0.9'", {"ci_prob": "0.9"}, remedy=lambda: interval(1 - 2**-53)),
    *[Bad(BOUNDS.reach, "width", str(w), {"width": w, "ci_prob": 0.9}) for w in (2, NAN, True)],
    *[
        Bad(BOUNDS.predict, "k", words, {"k": k}, remedy=lambda: BOUNDS.predict(10**12))
        for k, words in [(10**12 + 1, "1e+12"), (NAN, "nan"), ([], ""), ([7, 2, 7], "7")]
    ],
    *[
        Bad(TASK.subsample, "n_classes", str(n), {"n_classes": n}, lambda: TASK.subsample(9.0))
        for n in (2.5, True)
    ],
    *[
        Bad(LAW.sample, "random_seed", str(seed), {"n_classes": 9, "random_seed": seed})
        for seed in (-1, True, 1.0, "1")
    ],
]
