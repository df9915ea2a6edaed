"""Sentences that say whether sampler, fit and model can be trusted."""

import math
from typing import Any

from classex_bayes.bayes.checks.posterior_checks import PredictiveReport
from classex_bayes.bayes.convergence import Diagnosis
from classex_bayes.bayes.fit_gap import FitGap


def convergence_sentence(diagnosis: Diagnosis, sampler: dict[str, Any]) -> str:
    """Return whether the draws can be trusted."""
    size = f"{sampler['chains']} chain{'s' if sampler['chains'] > 1 else ''}"
    size += f" of {sampler['draws']:,} draws"
    if diagnosis.independent:
        few = f": {'; '.join(diagnosis.problems)}; {diagnosis.remedy}" if diagnosis.problems else ""
        return f"The draws are independent of each other, {size}{few}."
    diverged = diagnosis.divergences
    facts = [] if math.isnan(diagnosis.r_hat) else [f"r-hat is at most {diagnosis.r_hat:.3f}"]
    if not math.isnan(diagnosis.ess_bulk):
        effective = min(diagnosis.ess_bulk, diagnosis.ess_tail)
        facts.append(f"effective sample sizes of accuracies are at least {effective:,.0f}")
    facts.append(f"{diverged:,} divergence{'' if diverged == 1 else 's'}")
    figures = f"{size}: {', '.join(facts)}."
    if not diagnosis.problems:
        return f"The sampler converged. {figures}"
    return (
        f"Do not trust the draws yet: {'; '.join(diagnosis.problems)}. {figures} "
        "Increase draws and tune, or raise target_accept."
    )


def fit_sentence(gap: FitGap | None) -> str:
    """Return how far the posterior lies below the best law, and what to do if it is too far."""
    if gap is None:
        return "The fit was not measured: the data are accuracies only, or no best law was found."
    if gap.unusual:
        return " ".join(gap.notes)
    return f"The posterior fits the data as well as expected: it lies {gap!r}."


def checks_sentence(report: PredictiveReport) -> str:
    """Return whether replicates resemble the pilot."""
    total = len(report.table)
    if report.passed:
        return (
            f"The model reproduces the pilot: none of {total} discrepancies between the pilot and "
            "replicates is unusual."
        )
    unusual = len(report.unusual)
    names = " and ".join(f'"{name}"' for name in report.unusual)
    return (
        f"The model misses something: {unusual} of {total} discrepancies between the pilot and "
        f"replicates {'is' if unusual == 1 else 'are'} unusual: {names}."
    )
