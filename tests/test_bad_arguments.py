"""Arguments beyond tasks that are of another kind: one DataError that names them."""

import pytest

import classex_bayes as cb

TASK = cb.SourceTask.from_losses([0, 0, 1, 2], range(4), n_classes=4)
FEW = [cb.ClassExReg(0.5)]
CASES = {
    "load path": (lambda: cb.load({1: [2]}), "path: expected a path"),
    "report path": (lambda: cb.write_report(None, 3.5, 9), "(path|model): "),
    "store": (lambda: cb.backtest(TASK, 3, FEW, store=2), "store: expected a path, found 2"),
    "levels": (lambda: cb.backtest(TASK, 3, FEW, levels=0.5), "levels: .*0.5"),
    "jobs": (lambda: cb.backtest(TASK, 3, FEW, n_jobs="two"), "n_jobs: .*'two'"),
    "sampler": (lambda: cb.backtest(TASK, 3, FEW, sampler=[1]), r"sampler: .*\[1\]"),
    "sampler of two": (
        lambda: cb.compare_classifiers({"a": TASK, "b": TASK}, 9, sampler=5),
        "sampler: .*5",
    ),
    "smaller tasks": (
        lambda: cb.check_marginality(TASK, smaller_tasks=2.5),
        "smaller_tasks: .*2.5",
    ),
    "progress": (
        lambda: cb.BayesianExtrapolator().fit(TASK, progressbar="no"),
        "progressbar: expected True or False",
    ),
}


@pytest.mark.parametrize(("use", "message"), CASES.values(), ids=CASES)
def test_each_is_named(use, message):
    with pytest.raises(cb.DataError, match=f"^{message}"):
        use()
