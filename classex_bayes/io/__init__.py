"""Files: written whole or not at all, and read without running any code."""

from classex_bayes.io.tasks import read_task
from classex_bayes.io.trees import read_tree, write_text, write_tree

__all__ = ["read_task", "read_tree", "write_text", "write_tree"]
