"""Executes notebooks in full and stores their outputs.

From the root of the repository: `python docs/execute_notebooks.py notebooks/*.ipynb`. With
CLASSEX_REDUCED=1 the notebooks use few draws, and stored outputs stay as they are.
"""

import base64
import io
import os
import sys

import nbformat
from nbclient import NotebookClient
from PIL import Image


def shrink(png: str) -> str:
    """A picture (base64) with 256 colours: alike to the eye, a third of the bytes."""
    picture = Image.open(io.BytesIO(base64.b64decode(png))).convert("RGB")
    stored = io.BytesIO()
    picture.quantize(256, dither=Image.Dither.NONE).save(stored, "PNG", optimize=True)
    return base64.b64encode(stored.getvalue()).decode()


def shrink_pictures(book: nbformat.NotebookNode) -> None:
    """Replace every picture among the outputs of a notebook by its small form."""
    for cell in book.cells:
        for output in cell.get("outputs", []):
            if "image/png" in output.get("data", {}):
                output.data["image/png"] = shrink(output.data["image/png"])


def execute(path: str) -> None:
    """Execute a notebook, and store its outputs unless they come from few draws."""
    book = nbformat.read(path, as_version=4)
    NotebookClient(book, timeout=600, record_timing=False).execute()
    if "CLASSEX_REDUCED" not in os.environ:
        shrink_pictures(book)
        nbformat.write(book, path)


if __name__ == "__main__":
    for path in sys.argv[1:]:
        execute(path)
