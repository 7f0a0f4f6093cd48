"""The notebooks of examples/notebooks run from their first to their last cell, and are stored without outputs."""

from __future__ import annotations

import os
import tempfile
import warnings
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode

PROJECT = Path(__file__).resolve().parents[2]
NOTEBOOKS = PROJECT / "examples" / "notebooks"


def executed(name: str) -> NotebookNode:
    """The notebook with the outputs of a fresh kernel, which is reached by sockets in a folder.

    Free ports that are chosen for a kernel may be taken by another process before the kernel binds them.
    """
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        # Between asyncio, zmq and tornado there is always something that will change one day.
        warnings.simplefilter("ignore")
        from jupyter_client.manager import AsyncKernelManager
        from nbclient import NotebookClient

        notebook: NotebookNode = nbformat.read(NOTEBOOKS / name, as_version=4)
        kernel = AsyncKernelManager(kernel_name="python3", transport="ipc", ip=f"{folder}/kernel")
        client = NotebookClient(notebook, km=kernel, timeout=300, resources={"metadata": {"path": NOTEBOOKS}})
        path = os.pathsep.join(filter(None, (str(PROJECT), os.environ.get("PYTHONPATH"))))
        client.execute(
            cleanup_kc=True,
            env={**os.environ, "PYTHONPATH": path, "MPLBACKEND": "module://matplotlib_inline.backend_inline"},
        )
    return notebook


def outputs(notebook: NotebookNode, kind: str) -> list[str]:
    """What the cells show, in one MIME type."""
    shown = [output for cell in notebook.cells for output in cell.get("outputs", ()) if "data" in output]
    return [output["data"][kind] for output in shown if kind in output["data"]]


@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda path: path.name)
def test_a_notebook_is_stored_without_outputs(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert code
    assert all(not cell.outputs and cell.execution_count is None for cell in code)


def test_the_first_query_shows_its_answers() -> None:
    notebook = executed("first-query.ipynb")
    assert len(outputs(notebook, "image/png")) == 2
    assert "'evaluator': 'kernel'" in outputs(notebook, "text/plain")[-1]


def test_the_averages_are_those_of_the_tutorial() -> None:
    notebook = executed("averages.ipynb")
    assert len(outputs(notebook, "image/png")) == 1
    table, types = outputs(notebook, "text/plain")[:2]
    assert "21.25" in table and "Server room" in table
    assert "float64" in types and "int64" in types and "datetime64" in types


@pytest.mark.spark
def test_the_live_chart_gets_all_answers() -> None:
    notebook = executed("spark-live.ipynb")
    assert len(outputs(notebook, "image/png")) == 1
    printed = [
        output.text for cell in notebook.cells for output in cell.get("outputs", ()) if output.output_type == "stream"
    ]
    assert any(text.startswith("7 answers from ") for text in printed), printed
