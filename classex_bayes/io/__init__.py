"""Files. They are written completely or not at all, and reading them never runs code."""

from classex_bayes.io.tables import read_design
from classex_bayes.io.task_files import read_nonmated, read_task
from classex_bayes.io.whole_files import read_tree, write_text, write_tree

__all__ = ["read_design", "read_nonmated", "read_task", "read_tree", "write_text", "write_tree"]
