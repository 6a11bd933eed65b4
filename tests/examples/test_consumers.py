"""The examples of consumers: in a loop, in threads and processes, in Dask, in PyTorch, in a notebook."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def last_line(script: str, *arguments: str) -> str:
    """What it says at the end."""
    command = [sys.executable, str(EXAMPLES / script), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()[-1]


@pytest.mark.parametrize("fields", ["1", "30"])
def test_one_loop(fields: str) -> None:
    assert last_line("04_asyncio/service.py", "--fields", fields).endswith("0 waits are left")


def test_threads_and_processes() -> None:
    assert last_line("05_consumers/consumers.py", "--fields", "5") == "spawn: 10000.0"


def test_dask() -> None:
    pytest.importorskip("distributed")
    assert last_line("06_dask/means.py", "--fields", "4").endswith("[0.0, 1.0, 2.0, 3.0]")


def test_torch() -> None:
    said = last_line("07_torch/tensor.py")
    if "there is no PyTorch" in said:
        pytest.skip(said)
    assert "in the pool's memory" in said


def test_the_notebook() -> None:
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    notebook = nbformat.read(EXAMPLES / "08_notebook/fields.ipynb", as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "it is kept without outputs"
    nbclient.NotebookClient(notebook, timeout=100, kernel_name="python3").execute()
    frame = notebook.cells[3].outputs[0]["data"]["text/plain"]
    assert "t/0" in frame and "t/3" in frame
