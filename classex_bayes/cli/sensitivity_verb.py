"""`classex-bayes sensitivity`: what the prior decides, and what the data."""

from classex_bayes.cli.analysis import ended, fitted, read
from classex_bayes.cli.console import Terminal, flat_table, parse_counts, warn_of_thousands
from classex_bayes.cli.options import Counts, Files, SamplerOptions, TaskOptions, with_options
from classex_bayes.exceptions import Interrupted


@with_options(data=TaskOptions(), fit=SamplerOptions())
def sensitivity(
    *,
    files: Files,
    k: Counts,
    data: TaskOptions,
    fit: SamplerOptions,
    terminal: Terminal,
) -> None:
    """Tell how much of the accuracy on K classes the prior decides, and how much the data."""
    counts = parse_counts(k)
    task = read(files, terminal, data)
    warn_of_thousands(k, counts, task.n_classes, terminal)
    model, interruption = fitted(task, terminal, fit)
    if interruption:
        raise Interrupted(interruption)
    from classex_bayes.bayes.checks.sensitivity import sensitivity as run
    from classex_bayes.report.document import facts, notes_of, records

    found = run(model, counts)
    for note in found.prediction.notes:
        if note not in task.warnings:  # told when the file was read
            terminal.aside(f"note: {note}")
    numbers = {
        **facts(model, task),
        "rows": records(found.table),
        "sentences": list(found.sentences),
        "notes": notes_of(found.prediction.notes, model.name),
    }
    title = f"Sensitivity of the accuracy, from {task.n_classes:,} source classes"
    terminal.result(flat_table(title, found.table.reset_index()), list(found.sentences), numbers)
    ended(model, (), terminal)
