"""`classex-bayes open-set`: identification at a threshold."""

from typing import Annotated, Any

import typer
from rich.table import Table

from classex_bayes.cli.analysis import (
    ended,
    name_of,
    open_set_model,
    path_in,
    read,
    save_beside,
    written_lines,
)
from classex_bayes.cli.console import Terminal, parse_counts, warn_of_thousands
from classex_bayes.cli.options import (
    Counts,
    DataOptions,
    FileOptions,
    Files,
    FitOptions,
    WantedFpir,
    with_options,
)
from classex_bayes.exceptions import DataError
from classex_bayes.report.document import listed, open_set_document


@with_options(data=DataOptions(), fit=FitOptions(), place=FileOptions())
def open_set(
    *,
    files: Files,
    k: Counts,
    fpir: WantedFpir = None,
    threshold: Annotated[
        float | None,
        typer.Option(
            metavar="SCORE",
            help="Instead of --fpir: scores are accepted from it on, or distances to it.",
        ),
    ] = None,
    rank: Annotated[
        int, typer.Option(min=1, metavar="N", help="Length of the lists that FNIR is of.")
    ] = 1,
    data: DataOptions,
    fit: FitOptions,
    place: FileOptions,
    terminal: Terminal,
) -> None:
    """Predict FNIR and FPIR with K enrolled classes, or the threshold that keeps FPIR low."""
    if (fpir is None) == (threshold is None):
        found = "neither" if fpir is None else "both"
        raise DataError(f"--fpir, --threshold: expected one of them, found {found}")
    counts = parse_counts(k)
    figure = path_in(place, f"{name_of(files)}-det.png", terminal)
    task = read(files, terminal, data)
    warn_of_thousands(k, counts, task.n_classes, terminal)
    from classex_bayes.results import interval_settings

    level, _ = interval_settings(fit.ci_prob, None)
    model = open_set_model(task, fit)
    rates = model.predict(counts, threshold=threshold, fpir=fpir, rank=rank)
    written: dict[str, str] = {}
    failures: list[str] = []
    if figure is not None:
        written, failures = save_beside(model, figure)
        try:
            from classex_bayes.plots.open_set_plot import plot_det

            plot = plot_det(model, counts, rank=rank, ci_prob=level, backend="matplotlib")
            plot.savefig(figure)
            written["figure"] = str(figure)
        except Exception as error:
            failures.append(f"the figure could not be written ({error})")
    for note in rates.notes:
        if note not in task.doubts:  # told when the file was read
            terminal.aside(f"note: {note}")
    numbers = {**open_set_document(model, task, rates, level), "files": listed(written)}
    terminal.result(_table(rates, level), written_lines(written), numbers)
    ended(model, failures, terminal)


def _table(rates: Any, ci_prob: float) -> Table:
    from classex_bayes.formatting import capitalized
    from classex_bayes.results import interval_name

    title = f"{capitalized(rates.description)}, from {rates.n_classes:,} source classes"
    table = Table(title=title, title_justify="left")
    table.add_column("rate")
    for name in ("k", "threshold", "mean"):
        table.add_column(name, justify="right")
    table.add_column(interval_name(ci_prob))
    for row in rates.summary(ci_prob, round_to="none").reset_index().itertuples(index=False):
        rate, k, threshold, mean, _, lower, upper = row
        cells = f"{k:,}", f"{threshold:.6g}", f"{mean:.3g}", f"{lower:.3g} to {upper:.3g}"
        table.add_row(rate, *cells)
    return table
