"""Numbers of pydataless (Rocher, Hendrickx and de Montjoye 2025) for tests of `PitmanYor`.

It wants SciPy below 1.18, so it has an environment of its own:

    python3.12 -m venv pydataless
    pydataless/bin/pip install pydataless==1.1.0
    pydataless/bin/python tests/reference/make_pydataless.py > tests/reference/pydataless.json
"""

import json
from importlib.metadata import version

import numpy as np

SIZES = np.array([2, 3, 10, 100, 10**4, 10**6])
LAWS = [(0.05, 0.0), (0.05, 20.0), (0.5, 0.5), (0.5, 3000.0), (0.9, 2.0), (0.95, 200.0)]
FAR = np.array([1000, 10_000, 1_000_000])
SHORT, LONG = [10, 20, 50, 100], [2, 5, 10, 20, 50, 100, 200, 500]
CURVES = {
    "readme of pydataless": ([10, 50, 100, 500], [0.99, 0.97, 0.95, 0.9]),
    "steep": (SHORT, [0.9, 0.84, 0.74, 0.65]),
    "steepening": (LONG, [0.998, 0.993, 0.985, 0.97, 0.94, 0.89, 0.82, 0.69]),
    "straight": (LONG, [0.98, 0.94, 0.91, 0.88, 0.84, 0.81, 0.78, 0.74]),
    "flattening": (LONG, [0.9, 0.83, 0.8, 0.78, 0.765, 0.758, 0.752, 0.748]),
    "low": (SHORT, [0.5, 0.4, 0.3, 0.24]),
}


def numbers() -> dict:
    """What pydataless finds, as JSON takes it."""
    from dataless import PYP, PYPExtrapolation  # not here when tests look for examples

    fits = {}
    for name, (k, accuracy) in CURVES.items():
        model = PYPExtrapolation(np.array(k), correctness=np.array(accuracy))
        fits[name] = {
            "k": k,
            "accuracy": accuracy,
            "entropy": float(model.params.h),
            "gamma": float(model.params.gamma),
            "fitted": model.predict(np.array(k)).tolist(),
            "predicted": model.predict(FAR).tolist(),
        }
    laws = [
        {"discount": d, "concentration": alpha, "entropy": float(PYP(d=d, alpha=alpha).h)}
        | {"correctness": PYP(d=d, alpha=alpha).correctness(SIZES).tolist()}
        for d, alpha in LAWS
    ]
    made = {"pydataless": version("pydataless"), "sizes": SIZES.tolist(), "laws": laws}
    return made | {"far": FAR.tolist(), "fits": fits}


if __name__ == "__main__":
    print(json.dumps(numbers(), indent=1))
