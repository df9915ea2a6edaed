"""The tables and figures of the papers, computed again with every estimator: docs/papers.md."""
