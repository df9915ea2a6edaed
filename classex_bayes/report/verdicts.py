"""Whether sampler, fit and model are to be trusted, in sentences."""

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
        few = "; ".join(diagnosis.problems)
        return f"The draws are independent of each other, {size}{f': {few}' if few else ''}."
    diverged = diagnosis.divergences
    facts = [] if math.isnan(diagnosis.r_hat) else [f"r-hat is at most {diagnosis.r_hat:.3f}"]
    if not math.isnan(diagnosis.ess_bulk):
        effective = min(diagnosis.ess_bulk, diagnosis.ess_tail)
        facts.append(f"every predicted accuracy rests on at least {effective:,.0f} effective draws")
    facts.append(f"{diverged:,} draws diverged" if diverged else "no draw diverged")
    figures = f"{size}: {', '.join(facts)}."
    if not diagnosis.problems:
        return f"The sampler converged. {figures}"
    return (
        f"Do not trust the draws yet: {'; '.join(diagnosis.problems)}. {figures} Draw more, "
        "or raise target_accept."
    )


def fit_sentence(gap: FitGap | None) -> str:
    """Return how close the posterior comes to what the data allow."""
    if gap is None:
        return "The fit was not measured: it is to accuracies alone, or the best law was not found."
    verdict = (
        "The posterior misses the shape of the data"
        if gap.unusual
        else "The posterior reaches what the data allow"
    )
    return f"{verdict}: it lies {gap!r}."


def checks_sentence(report: PredictiveReport) -> str:
    """Return whether replicates of the pilot look like it."""
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
