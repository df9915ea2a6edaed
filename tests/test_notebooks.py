"""The notebooks run, with few draws, and are stored with their outputs."""

import json
import os
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))
MEGABYTE = 1_000_000


def code_cells(notebook):
    """Code cells of a notebook, as stored."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.stem)
def test_outputs_are_stored_in_order(notebook):
    cells = code_cells(notebook)
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    assert not [cell for cell in cells if "execution" in cell["metadata"]], "times of execution"
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert not [output for output in outputs if output["output_type"] == "error"]
    assert not [output for output in outputs if output.get("name") == "stderr"]
    assert any("image/png" in output.get("data", {}) for output in outputs)
    assert notebook.stat().st_size < 0.6 * MEGABYTE


def test_notebooks_stay_small():
    assert len(NOTEBOOKS) == 9
    assert sum(notebook.stat().st_size for notebook in NOTEBOOKS) < 3 * MEGABYTE


@pytest.mark.notebooks
def test_outputs_of_few_draws_are_not_stored(tmp_path, monkeypatch):
    from nbformat import v4

    import execute_notebooks

    class Client:
        def __init__(self, book, **options):
            self.book = book

        def execute(self):
            self.book.cells[0].outputs = [v4.new_output("stream", text="0.9")]

    monkeypatch.setattr(execute_notebooks, "NotebookClient", Client)
    path = tmp_path / "book.ipynb"
    book = v4.new_notebook(cells=[v4.new_code_cell("print(0.9)")])
    path.write_text(v4.writes(book), encoding="utf-8")
    before = path.read_bytes()
    monkeypatch.setenv("CLASSEX_REDUCED", "1")
    execute_notebooks.execute(str(path))
    assert path.read_bytes() == before
    monkeypatch.delenv("CLASSEX_REDUCED")
    execute_notebooks.execute(str(path))
    assert code_cells(path)[0]["outputs"][0]["text"] == ["0.9"]


@pytest.fixture(scope="session")
def kernel():
    """One kernel for all notebooks of a process, so that the packages are imported once."""
    from jupyter_client import KernelManager

    manager = KernelManager()
    manager.start_kernel(env={**os.environ, "CLASSEX_REDUCED": "1"})
    yield manager
    manager.shutdown_kernel(now=True)


@pytest.mark.notebooks
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.stem)
def test_notebook_runs(notebook, kernel):
    import nbformat
    from nbclient import NotebookClient

    book = nbformat.read(notebook, as_version=4)
    book.cells.insert(0, nbformat.v4.new_code_cell("%reset -f"))
    client = NotebookClient(book, km=kernel, timeout=120)
    client.execute()
    client.kc.stop_channels()
