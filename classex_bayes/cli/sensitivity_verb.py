"""`classex-bayes sensitivity`: what the prior decides, and what the data."""

from classex_bayes.cli.analysis import ended, fitted, read, show_notes
from classex_bayes.cli.console import Terminal, flat_table, parse_counts
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
    model, interruption = fitted(task, terminal, fit)
    if interruption:
        raise Interrupted(interruption)
    from classex_bayes.bayes.checks.sensitivity import sensitivity as run
    from classex_bayes.report.document import facts, notes_of, records

    result = run(model, counts)
    notes = result.prediction.notes
    show_notes([f"note: {note}" for note in notes], [task], terminal)
    numbers = {
        **facts(model, task),
        "rows": records(result.table),
        "sentences": list(result.sentences),
        "notes": notes_of(notes, model.name),
    }
    title = f"Sensitivity of the accuracy, from {task.n_classes:,} source classes"
    terminal.result(flat_table(title, result.table.reset_index()), list(result.remarks), numbers)
    ended([model], (), terminal)
