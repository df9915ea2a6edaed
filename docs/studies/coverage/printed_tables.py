"""Accuracies on more classes from tables that other people printed; the file has their sources."""

import json
from pathlib import Path

import pandas as pd

import classex_bayes as cb
from studies.coverage.trials import all_rows, summary
from studies.pages import markdown, version
from studies.shared import CI_PROB, quiet

FILE = Path(__file__).with_suffix(".json")
FEW = {"cores": 1, "draws": 500, "tune": 500, "chains": 2}
SAMPLER = {"sampler": FEW, "progressbar": False}
_COLUMNS = ["area", "data", "metric", "truth", "mean", "lower", "upper"]


def tasks_of(pilot):
    """Tasks of one printed test, by the name of what is used."""
    if "accuracy" in pilot:
        sizes = len(pilot["k"])
        name = "one accuracy" if sizes == 1 else f"{sizes} accuracies"
        yield name, cb.SourceTask.from_accuracies(**pilot)
        return
    m = [*map(int, pilot["recalls"])]
    yield f"recall@{', '.join(map(str, m))}", cb.SourceTask.from_recalls(**pilot)
    if m[0] == 1 and "per_unit" not in pilot:
        sizes = {name: pilot[name] for name in ("n_test", "n_classes")}
        accuracy = pilot["recalls"]["1"]
        yield "one accuracy", cb.SourceTask.from_accuracies(pilot["n_classes"], accuracy, **sizes)


def predictions(system):
    """Rows of one system: each kind of data, and each printed result on more classes."""
    rows = []
    with quiet():
        for name, task in tasks_of(system["pilot"]):
            model = cb.BayesianExtrapolator().fit(task, random_seed=1, **SAMPLER)
            for truth in system["truths"]:
                metric = truth["metric"]
                found = model.predict(truth["k"], metric=metric)
                ends = found.interval(CI_PROB, "eti").to_numpy()[0]
                values = truth["value"], found.mean.item(), *ends
                rows.append((system["area"], name, metric, *values))
    return rows


def tables(options):
    """Coverage and errors of each area."""
    systems = pd.DataFrame(json.loads(FILE.read_text())["systems"])
    if options.small:
        systems = systems.groupby("area").head(1)
    cases = [(system,) for system in systems.to_dict("records")]
    trials = options.kept(
        "printed_tables",
        lambda: pd.DataFrame(all_rows(predictions, cases, options.jobs), columns=_COLUMNS),
    )
    table = summary(trials, ["area", "data", "metric"])
    table["metric"] = table["metric"].str.replace("_", " ")
    table = table.rename(columns={"pilots": "systems", "held": "coverage", "rmse": "RMSE"})
    formats = {"coverage": ".2f", "bias": "+.4f", "RMSE": ".4f", "width": ".3f"}
    return {"calibration.md": {"printed tables": f"{markdown(table, formats)}\n\n{version()}"}}
