"""What the numbers say, in sentences."""

import math
from typing import Any

import numpy as np

from classex_bayes.bayes.checks.posterior_checks import PredictiveReport
from classex_bayes.bayes.sampling import Diagnosis
from classex_bayes.results import ClassesUntil
from classex_bayes.task.source_task import SourceTask

_CARRIED, _MOST_NAMED = 0.4, 5
_MOST_DECIMALS = 2
_SMALLEST_CHANCE = 0.001
_NUMERALS = ("No", "One", "Two", "Three", "Four", "Five")


def percent(share: float, digits: int = 0) -> str:
    """A share as text, with at least `digits` decimals and never rounded to 0% or 100%.

    Examples
    --------
    >>> percent(0.712), percent(0.9996), percent(1.0), percent(0.9, 1), percent(1e-9)
    ('71%', '99.96%', '100%', '90.0%', 'under 0.01%')
    """
    most = max(digits, _MOST_DECIMALS)
    for decimals in range(digits, most + 1):
        text = f"{100 * share:.{decimals}f}"
        if share in (0, 1) or 0 < float(text) < 100:
            return f"{100 * share:g}%" if share in (0, 1) else f"{text}%"
    smallest = 10.0**-most
    return f"over {100 - smallest:g}%" if share > 0.5 else f"under {smallest:g}%"


def exact(share: float) -> str:
    """A share that someone has chosen, with all its digits."""
    return f"{100 * share:.12g}%"


def chance(probability: float) -> str:
    """A probability from draws, which tell no difference from 0 or 1 below 0.1%.

    Examples
    --------
    >>> chance(0.0), chance(0.004), chance(0.25), chance(1.0)
    ('below 0.1%', '0.4%', '25%', 'above 99.9%')
    """
    if probability < _SMALLEST_CHANCE:
        return f"below {percent(_SMALLEST_CHANCE, 1)}"
    if probability > 1 - _SMALLEST_CHANCE:
        return f"above {percent(1 - _SMALLEST_CHANCE, 1)}"
    return percent(probability, 0 if 0.01 <= probability <= 0.99 else 1)


def level(ci_prob: float) -> str:
    """Name of an interval: "90% interval"."""
    return f"{100 * ci_prob:g}% interval"


def digits_for(width: float) -> int:
    """Decimals of a percentage beside an interval of this width, 1 to 3."""
    return min(max(math.ceil(-math.log10(max(width, 1e-9))) - 1, 1), 3)


def span(lower: float, upper: float) -> str:
    """The limits of an interval: "63.1 to 78.0%"."""
    digits = digits_for(upper - lower)
    return f"{percent(lower, digits).removesuffix('%')} to {percent(upper, digits)}"


def sentence(text: str) -> str:
    """The text with a capital, unless it begins with a symbol.

    Examples
    --------
    >>> sentence("no pair is tied"), sentence("k = 9 is far")
    ('No pair is tied', 'k = 9 is far')
    """
    return text if text[1:2] == " " else text[:1].upper() + text[1:]


def headline(k: int, mean: float, lower: float, upper: float, ci_prob: float) -> str:
    """The answer in one sentence.

    Examples
    --------
    >>> headline(10_000, 0.7123, 0.6312, 0.7799, 0.9)
    'On 10,000 classes: 71.2%, 90% interval 63.1 to 78.0%'
    """
    rounded = percent(mean, digits_for(upper - lower))
    return f"On {k:,} classes: {rounded}, {level(ci_prob)} {span(lower, upper)}"


def pilot_sentence(task: SourceTask) -> str:
    """What the pilot found.

    Examples
    --------
    >>> pilot_sentence(SourceTask.from_losses([0, 2, 0, 1], [0, 0, 1, 2], n_classes=3))[-47:]
    'got 50.0% right, all classes weighing the same.'
    """
    largest = int(task.grid()[-1])
    right = percent(float(task.accuracy(largest)[0]), 1)
    among = "" if largest == task.n_classes else f" among {largest:,}"
    details = ""
    if task.kind != "accuracies":
        tested, repeats = np.unique(task.y, return_counts=True)
        weights = task.class_weight[tested]
        if np.ptp(weights) > 0:
            details = ", classes weighing as they were given"
        elif np.ptp(repeats) > 0:
            details = ", all classes weighing the same"
    of_them = "" if details or task.kind == "accuracies" else " of them"
    return (
        f"The pilot tested {task.n_classes:,} classes with {task.n_test:,} instances and got "
        f"{right}{of_them} right{among}{details}."
    )


def count(k: float, largest: int) -> str:
    """A number of classes, which may lie beyond the largest one looked at, or below 2."""
    if k < 2:
        return "fewer than 2"
    return f"more than 10^{math.log10(largest):.0f}" if math.isinf(k) else f"{k:,.0f}"


def until_sentence(until: ClassesUntil, ci_prob: float) -> str:
    """How many classes keep the accuracy."""
    wanted, largest = exact(until.level), until.largest
    lower, upper = (count(k, largest) for k in until.interval(ci_prob))
    limits = f"{level(ci_prob)} {lower} to {upper}"
    if until.median < 2:
        return f"Accuracy is below {wanted} on as few as 2 classes ({limits})."
    verb = f"stays above {wanted} on" if math.isinf(until.median) else f"falls to {wanted} at"
    return f"Accuracy {verb} {count(until.median, largest)} classes ({limits})."


def errors_sentence(task: SourceTask) -> str:
    """How few classes carry 40% of the errors among all k1 classes.

    Examples
    --------
    >>> task = SourceTask.from_losses([0, 3, 1, 0, 2, 0], [0, 1, 1, 2, 2, 3], n_classes=4)
    >>> errors_sentence(task)
    'One class carries 67% of the 3 errors: 1.'
    """
    if task.kind == "accuracies":
        return "Errors of single classes are not known: the pilot is a bare accuracy curve."
    wrong = np.bincount(task.y, weights=task.losses > 0, minlength=task.n_classes)
    total = int(wrong.sum())
    if total == 0:
        return f"None of the {task.n_test:,} instances is wrong among {task.n_classes:,} classes."
    worst = np.argsort(-wrong, kind="stable")
    carried = np.cumsum(wrong[worst]) / total
    few = int(np.searchsorted(carried, _CARRIED - 1e-12)) + 1
    share = f"{percent(carried[few - 1])} of the {total:,} errors"
    if few > _MOST_NAMED:
        tested = np.unique(task.y).size
        return f"{few:,} of the {tested:,} tested classes carry {share}."
    names = ", ".join(str(j if task.classes is None else task.classes[j]) for j in worst[:few])
    verb = "class carries" if few == 1 else "classes carry"
    return f"{_NUMERALS[few]} {verb} {share}: {names}."


def convergence_sentence(diagnosis: Diagnosis, sampler: dict[str, Any]) -> str:
    """Whether the draws can be trusted."""
    size = f"{sampler['chains']} chain{'s' if sampler['chains'] > 1 else ''}"
    size += f" of {sampler['draws']:,} draws"
    diverged = diagnosis.divergences
    facts = [] if math.isnan(diagnosis.r_hat) else [f"r-hat is at most {diagnosis.r_hat:.3f}"]
    if not math.isnan(diagnosis.ess_bulk):
        effective = min(diagnosis.ess_bulk, diagnosis.ess_tail)
        facts.append(f"every predicted accuracy rests on at least {effective:,.0f} effective draws")
    facts.append(f"{diverged:,} draws diverged" if diverged else "no draw diverged")
    told = f"{size}: {', '.join(facts)}."
    if not diagnosis.problems:
        return f"The sampler converged. {told}"
    return (
        f"Do not trust the draws yet: {'; '.join(diagnosis.problems)}. {told} Draw more, or raise "
        "target_accept."
    )


def checks_sentence(report: PredictiveReport) -> str:
    """Whether replicates of the pilot look like it."""
    total = len(report.table)
    if report.passed:
        return (
            f"The model reproduces the pilot: none of {total} discrepancies between it and "
            "replicates that the model draws is unusual."
        )
    unusual = len(report.unusual)
    names = " and ".join(f'"{name}"' for name in report.unusual)
    return (
        f"{unusual} of {total} discrepancies between the pilot and replicates that the model draws "
        f"{'is' if unusual == 1 else 'are'} unusual: {names}."
    )
