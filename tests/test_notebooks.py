"""The notebooks run, with few draws, and are stored with their outputs."""

import json
import os
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))
of_notebooks = pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.stem)


@of_notebooks
def test_outputs_are_stored_in_order_and_without_errors(notebook):
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    outputs = [output for cell in code for output in cell["outputs"]]
    assert not [output for output in outputs if output["output_type"] == "error"]
    assert any("image/png" in output.get("data", {}) for output in outputs)


@pytest.fixture(scope="session")
def kernel():
    """One kernel for all notebooks of a process, so that the packages are imported once."""
    from jupyter_client import KernelManager

    manager = KernelManager()
    manager.start_kernel(env={**os.environ, "CLASSEX_REDUCED": "1"})
    yield manager
    manager.shutdown_kernel(now=True)


@pytest.mark.notebooks
@of_notebooks
def test_notebook_runs(notebook, kernel):
    import nbformat
    from nbclient import NotebookClient

    book = nbformat.read(notebook, as_version=4)
    book.cells.insert(0, nbformat.v4.new_code_cell("%reset -f"))
    client = NotebookClient(book, km=kernel, timeout=120)
    client.execute()
    client.kc.stop_channels()
