"""The recipes of the map as patches: they change the files of its table, and nothing is missing."""

import ast
import os
import re
import shutil
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path
from textwrap import indent

import pytest
from test_map import PAGE, RECIPES

ROOT = Path(__file__).parents[1]
FOLDERS = "classex_bayes", "docs", "notebooks", "tests"
CODE = {
    getattr(node, "name", None) or ast.unparse(node.targets[0]): ast.unparse(node)
    for recipe in RECIPES.values()
    for node in ast.parse(recipe).body
    if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.Assign)
}
# "file @ words + new": the new line or word comes before the words, which occur once in the file.
# Several new lines follow below. Without words the file is new. "<name>" is code of a recipe.
PATCHES = {
    "a prior": """
bayes/model/priors.py @ # Priors that `load` + <LogisticPrior>
bayes/model/priors.py @ MixturePrior.__name__: + LogisticPrior.__name__: LogisticPrior,
bayes/__init__.pyi @ from .model.priors import P
+ from .model.priors import LogisticPrior as LogisticPrior
docs/api/posterior.md @ .. autoclass:: classex_bayes.bayes.Prior
+ .. autoclass:: classex_bayes.bayes.LogisticPrior
""",
    "a point estimator": """
estimators/power_law.py @
+ import numpy as np
+ from classex_bayes.estimators.base import PointEstimator
+ <PowerLaw>
estimators/__init__.pyi @ from .probit_normal import H + from .power_law import PowerLaw as PowerLaw
estimators/published.py @ from classex_bayes.estimators.probit
+ from classex_bayes.estimators.power_law import PowerLaw
estimators/published.py @ LogLinear(), + PowerLaw(),
docs/api/estimators.md @ .. autoclass:: classex_bayes.estimators.PitmanYor
+ .. autoclass:: classex_bayes.estimators.PowerLaw
docs/estimators.md @ | `SampledMetrics` | ranks + | `PowerLaw` | accuracies | a power of k | |
""",
    "a metric": r"""
core/metrics.py @ # The metrics of trec_eval + <stops>
core/metrics.py @ "mrr": Gain(
+ "rbp": Gain("rank-biased precision", stops, lambda j, n_relevant, m: np.ones_like(j)),
bayes/law_model.py @ - "mean_rank" + - "rbp" or "rbp@m": the mean of 0.2 * 0.8^(R - 1).
docs/questions.md @ | `"mrr"`, + | `"rbp"`, `"rbp@10"` | $0.2 \cdot 0.8^{j + N_j - 1}$ | none, 10 |
""",
    "a new kind of data": r"""
task/choices.py @
+ import numpy as np
+ import classex_bayes as cb
+ from classex_bayes.task.provenance import Provenance, UnknownRanks
+ from classex_bayes.task.rank_table import RankTable
+ <WRONG>
+ <forced_choices>
task/source_task.py @ from classex_bayes.task.class_labels
+ from classex_bayes.task.choices import forced_choices
task/source_task.py @ @classmethod\n    def from_negatives
+ @classmethod
+ def from_choices(cls, right: Any, y: Any, n_alternatives: int) -> Self:
+     '''Make a task of choices among random alternatives, of which one is the true class.
+
+     Parameters
+     ----------
+     right : bool array-like of shape (n,)
+         Whether each choice was right.
+     y : int array-like of shape (n,)
+         True classes.
+     n_alternatives : int
+         Number of classes that each choice was made among.
+     '''
+     return cls(forced_choices(np.asarray(y), right, n_alternatives).table)
docs/data.md @ | a confusion matrix
+ | choices among alternatives | `from_choices(right, y, 4)` |
""",
    "a rule on the data": r"""
task/rules.py @ def sums_to_one(scores + <_repeats>
task/rules.py @ OF_CURVES = _C + <_REPEATS>
task/rules.py @ _GUESSING,\n    _DECLINE, + _REPEATS,
docs/checks.md @ | accuracy on few classes | + | instances of a class | one is far larger | |
""",
    "a plot": r"""
plots/check_plots.py @ @plot_function("ci_band", "mean", "observed")\ndef plot_ppc + <plot_ranks>
plots/__init__.pyi @ from .check_plots import plot_s
+ from .check_plots import plot_ranks as plot_ranks
docs/api/plots.md @ .. autofunction:: classex_bayes.plots.plot_drift
+ .. autofunction:: classex_bayes.plots.plot_ranks
docs/gallery.md @ ## Can the model be trusted
+ ![Share of instances with a rank of at most r](figures/gallery/ranks.png)
+
+ ```python
+ cb.plots.plot_ranks(task)
+ ```
+
""",
    "a verb of the shell": r"""
cli/task_verbs.py @ verb,\n) + option,
cli/task_verbs.py @ @verb(\n    "classifiers"
+ @verb("ranks", "classex-bayes ranks scores.npz --best 5")
+ class RanksVerb(DataOptions, FileVerb):
+     '''Show the share of instances whose true class is among the best; nothing is fitted.'''
+     best: Annotated[int, option("N", "Largest rank that is shown.", min=1)] = 10
+     seed: Seed = 1
+     def run(self) -> None:
+         ranks = self.read().ranks
+         shares = [float((ranks <= rank).mean()) for rank in range(1, self.best + 1)]
+         lines = [f"among the {rank} best: {share:.3f}" for rank, share in enumerate(shares, 1)]
+         self.terminal.result(lines, {"shares": shares, "seed": self.seed})
docs/command_line.md @ | `diagnose FILES` | + | `ranks FILES` | shares of ranks |
docs/command_line.md @ | `diagnose` | `title` + | `ranks` | `shares[]` |
""",
}
SCRIPT = """
import numpy as np
import classex_bayes as cb

task = cb.load_glyphs().task().subsample(50, random_seed=1)
np.savez("pilot.npz", ranks=task.ranks, y=task.y, n_classes=50)
cb.plots.plot_ranks(task).figure.savefig("docs/figures/gallery/ranks.png")
model = cb.BayesianExtrapolator(cb.bayes.LogisticPrior())
model.fit(task, sampler={"draws": 100, "tune": 200, "chains": 2}, random_seed=1, progressbar=False)
again = cb.load(cb.save(model, "model.nc"))
assert again.prior == cb.bayes.LogisticPrior() and again.prior is not model.prior
assert 0 < again.predict(500, metric="rbp").mean[500] < task.metric("rbp", 50) < 0.2
assert "PowerLaw" in [estimator.name for estimator in cb.literature()]
assert 0 < cb.estimators.PowerLaw().fit(task).predict(500).mean[500] < task.accuracy(50)
assert cb.SourceTask.from_choices([True, False], range(2), 4).accuracy(4) == 0.5
"""
TESTS = "tests/test_architecture.py", "tests/test_docs.py"


def edits(patch):
    """Files of a patch, words in them, and the text that comes before these."""
    form = r"^(\S+) @ ?(.*?)(?: \+ (.*))?\n((?:\+.*\n)*)"
    for file, words, new, lines in re.findall(form, patch, re.MULTILINE):
        new = new or re.sub(r"^\+ ?", "", lines, flags=re.MULTILINE).removesuffix("\n")
        new = re.sub(r"^<(\w+)>$", lambda name: CODE[name[1]] + "\n\n", new, flags=re.MULTILINE)
        yield file, words.replace(r"\n", "\n"), new


def apply(patch, checkout):
    """Change the files of a checkout."""
    for file, words, new in edits(patch):
        path = checkout / ("" if file.startswith("docs") else "classex_bayes") / file
        text = path.read_text(encoding="utf-8") if words else ""
        assert text.count(words) == 1, f"{file}: {words!r} occurs {text.count(words)} times"
        start = text.index(words)
        left = text[:start].rpartition("\n")[2]  # of the words in their line
        new = f"{new} " if left.strip() else indent(f"{new}\n", left).removeprefix(left) + left
        path.write_text(text[:start] + new + text[start:], encoding="utf-8")


@pytest.mark.parametrize("recipe", PATCHES)
def test_the_table_has_the_files_of_a_patch(recipe):
    (row,) = re.findall(rf"^\| {recipe}\b.*", PAGE, re.MULTILINE)
    places = set(re.findall(r"`([\w/*]+(?:/|\.\w+))`", row))
    files = {file for file, _, _ in edits(PATCHES[recipe])}
    assert [file for file in files if not any(fnmatch(file, f"{p}*") for p in places)] == []


@pytest.mark.nightly
def test_a_checkout_with_all_patches_is_whole(tmp_path):
    for path in ROOT.iterdir():
        if path.name in FOLDERS:
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(path, tmp_path / path.name, ignore=ignored)
        elif path.is_file():
            shutil.copy(path, tmp_path)
    for patch in PATCHES.values():
        apply(patch, tmp_path)
    here = os.environ | {"PYTHONPATH": str(tmp_path), "MPLBACKEND": "agg"}
    shell = ["-m", "classex_bayes", "ranks", "pilot.npz", "--best", "5"]
    tests = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not slow", *TESTS]
    for arguments in (["-c", SCRIPT], shell, tests):
        command = [sys.executable, *arguments]
        run = subprocess.run(command, cwd=tmp_path, env=here, capture_output=True, text=True)
        assert run.returncode == 0, run.stdout[-5000:] + run.stderr[-2000:]
