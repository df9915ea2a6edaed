"""Tables of the errors of rates and of metrics, from what the two commands of coverage wrote.

Run from the root of the repository: `python docs/figures/draw_coverage.py FOLDER`.
"""

import sys
from pathlib import Path

import pandas as pd
from studies.pages import markdown, version, write_parts

RATES = {"fnir": "FNIR", "fpir": "FPIR", "answered": "answered", "accuracy": "accuracy if answered"}


def summary(table, name):
    """One row for each population, pilot and `name`: over numbers of classes and thresholds."""
    groups = table.groupby(["population", "pilot", name], sort=False)
    return groups.agg(
        held=("held", "mean"),
        lowest=("held", "min"),
        highest=("held", "max"),
        bias=("bias", "mean"),
        rmse=("rmse", "mean"),
        width=("width", "mean"),
    ).reset_index()


def shown(rows, name):
    """The rows as a table in Markdown."""
    rows["of the cells"] = [
        f"{low:.2f} to {high:.2f}"
        for low, high in zip(rows["lowest"], rows["highest"], strict=True)
    ]
    columns = ["population", "pilot", name, "held", "of the cells", "bias", "rmse", "width"]
    formats = {"held": ".2f", "bias": "+.3f", "rmse": ".3f", "width": ".3f"}
    return markdown(rows[columns].rename(columns={"rmse": "RMSE"}), formats | {"RMSE": ".3f"})


def main():
    """Write the parts of both pages."""
    folder = Path(sys.argv[1])
    rates = pd.read_csv(folder / "open_set_coverage.csv")
    rates = rates[rates["pilots"] >= rates["pilots"].max() / 2]
    rates["rate"] = rates["rate"].map(RATES)
    promises = pd.read_csv(folder / "open_set_promises.csv")
    promises = promises.pivot_table(index=["population", "pilot"], columns="limit", values="mean")
    promises.columns = [f"FPIR ≤ {limit:g}" for limit in promises.columns]
    kept = markdown(promises.reset_index(), dict.fromkeys(promises.columns, ".2f"))
    errors = shown(summary(rates, "rate"), "rate")
    write_parts("open_set.md", {"open-set errors": f"{version()}\n\n{errors}", "promises": kept})
    corpus = pd.read_csv(folder / "open_set_corpus.csv")
    shares = dict.fromkeys(("FNIR held", "FPIR held", "kept"), ".2f")
    write_parts("open_set.md", {"open-set corpus": f"{version()}\n\n{markdown(corpus, shares)}"})
    metrics = pd.read_csv(folder / "metric_coverage.csv")
    metrics = metrics[metrics["metric"].isin(["recall@10", "mrr", "ndcg@10"])]
    tables = [
        f"From {model}:\n\n{shown(summary(part, 'metric'), 'metric')}"
        for model, part in metrics.groupby("model")
    ]
    write_parts("questions.md", {"metric errors": "\n\n".join([version(), *tables])})


if __name__ == "__main__":
    main()
