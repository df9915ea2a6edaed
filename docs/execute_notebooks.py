"""Executes notebooks in full and stores their outputs.

From the root of the repository: `python docs/execute_notebooks.py notebooks/*.ipynb`.
"""

import sys

import nbformat
from nbclient import NotebookClient

for path in sys.argv[1:]:
    book = nbformat.read(path, as_version=4)
    NotebookClient(book, timeout=600, record_timing=False).execute()
    nbformat.write(book, path)
