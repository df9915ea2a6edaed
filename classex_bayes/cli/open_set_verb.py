"""`classex-bayes open-set`: identification at a threshold."""

from typing import Annotated

import typer

from classex_bayes.cli.analysis import (
    ended,
    name_of,
    open_set_model,
    path_in,
    rates_table,
    read,
    save_beside,
    show_notes,
    written_lines,
)
from classex_bayes.cli.console import Terminal, parse_counts
from classex_bayes.cli.options import (
    Counts,
    DataOptions,
    FileOptions,
    Files,
    FitOptions,
    WantedFpir,
    share,
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
    fnir: Annotated[
        float | None,
        typer.Option(
            metavar="FNIR",
            help="Instead of --fpir: thresholds keep FNIR below it with probability 0.95.",
            parser=share,
        ),
    ] = None,
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
    """Predict FNIR and FPIR with K enrolled classes, or the threshold that keeps one low."""
    if (number := sum(given is not None for given in (fpir, fnir, threshold))) != 1:
        raise DataError(f"--fpir, --fnir, --threshold: expected one of them, found {number}")
    counts = parse_counts(k)
    figure = path_in(place, f"{name_of(files)}-det.png", terminal)
    task = read(files, terminal, data)
    from classex_bayes.results import interval_settings

    level, _ = interval_settings(fit.ci_prob, None)
    model = open_set_model(task, files, terminal, fit)
    rates = model.predict(counts, threshold=threshold, fpir=fpir, fnir=fnir, rank=rank)
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
    show_notes([f"note: {note}" for note in rates.notes], [task], terminal)
    numbers = {**open_set_document(model, task, rates, level), "files": listed(written)}
    terminal.result([rates_table(rates, task, level)], written_lines(written), numbers)
    ended([model], failures, terminal)
