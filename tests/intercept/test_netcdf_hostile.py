"""Objects whose attributes claim what their payloads do not have: a reader gets an error, and no memory of others."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from netcdf_programs import run

import junctura

READER = """
import json, sys
import netCDF4, numpy as np
found = []
with netCDF4.Dataset("pool.nc") as file:
    for name, *index in json.loads(sys.argv[1]):
        try:
            found.append(np.ma.filled(file[name][tuple(slice(*part) for part in index)]).tolist())
        except (OSError, RuntimeError, IndexError, MemoryError) as error:
            found.append(str(error))
print(json.dumps(found))
"""


WRITER = """
import netCDF4, numpy as np
with netCDF4.Dataset("pool.nc", "w") as file:
    for name, length in (("x", 4), ("y", 6), ("u", None), ("w", None)):
        file.createDimension(name, length)
    file.createVariable("grid", "f8", ("y", "x"))[:] = np.arange(24.0).reshape(6, 4)
    file.createVariable("texts", str, ("x",))[:] = np.array(["a", "b", "c", "d"], dtype=object)
    file.createVariable("table", "i4", ("x", "u", "w"), fill_value=-1)[:] = np.arange(24).reshape(4, 3, 2)
"""


@pytest.fixture
def served(intercepted: dict[str, str], tmp_path: Path) -> dict[str, str]:
    """A file in the pool: a grid, texts, and a table that may grow in both directions."""
    run(sys.executable, "-c", WRITER, folder=tmp_path, environment=intercepted)
    return intercepted


def replace(served: dict[str, str], folder: Path, name: str, payload: bytes, **attributes: Any) -> None:
    with junctura.Pool(f"unix:{served['XDG_RUNTIME_DIR']}/junctura/test.sock") as pool:
        key = {"folder": str(folder.resolve()), "file": "pool.nc", "name": name}
        pool.offer(payload, {**key, **attributes}, schema="netcdf")


def read(served: dict[str, str], folder: Path, *reads: Any) -> tuple[list[Any], str]:
    done = subprocess.run(
        [sys.executable, "-c", READER, json.dumps(reads)],
        cwd=folder,
        env=served,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30)),
    )
    assert done.returncode == 0, done.stderr
    found: list[Any] = json.loads(done.stdout)
    return found, done.stderr


WHOLE: Any = ["grid", [0, 6], [0, 4]]


@pytest.mark.parametrize(
    ("payload", "attributes"),
    [
        (bytes(8), {"shape": [6, 4]}),
        (bytes(6 * 4 * 8 - 1), {"shape": [6, 4]}),
        (b"", {}),
        # Products of extents that have 64 bits.
        (b"", {"shape": [1 << 32, 1 << 32]}),
        (b"", {"shape": [1 << 61, 8]}),
        (bytes(8), {"shape": [(1 << 61) + 1, 1]}),
        (bytes(8), {"shape": [1 << 62, 4]}),
        (bytes(8), {"shape": [-1, 1]}),
        (bytes(24), {"shape": [6, 4], "pieces": "yes"}),
    ],
)
def test_an_array_of_other_extents_is_refused_each_time(
    payload: bytes, attributes: dict[str, Any], served: dict[str, str], tmp_path: Path
) -> None:
    replace(served, tmp_path, "grid", payload, **attributes)
    found, told = read(served, tmp_path, WHOLE, WHOLE, ["grid", [5, 6], [3, 4]], ["texts", [0, 4]])
    assert all(isinstance(one, str) for one in found[:3]), found
    assert found[3] == ["a", "b", "c", "d"]
    assert "pieces" in attributes or "the object of variable grid does not have the values" in told


@pytest.mark.parametrize(
    ("payload", "attributes"),
    [
        (b"a\0b\0", {}),
        (b"abc", {"shape": [1 << 40]}),
        (b"", {"shape": [1 << 61]}),
        (bytes(64), {"shape": [4], "pieces": "yes"}),
    ],
)
def test_texts_that_are_missing_are_refused(
    payload: bytes, attributes: dict[str, Any], served: dict[str, str], tmp_path: Path
) -> None:
    replace(served, tmp_path, "texts", payload, **attributes)
    found, told = read(served, tmp_path, ["texts", [0, 4]], ["texts", [0, 4]], ["texts", [3, 4]], WHOLE)
    assert all(isinstance(one, str) for one in found[:3]), found
    assert found[3][5] == [20, 21, 22, 23]
    assert "the object of variable texts does not have the values" in told


@pytest.mark.parametrize("shape", [[0, 1 << 60, 1], [4, 1 << 40, 0], [4, 0, 0]])
def test_extents_without_values_take_no_memory(shape: list[int], served: dict[str, str], tmp_path: Path) -> None:
    replace(served, tmp_path, "table", b"", shape=shape)
    found, _ = read(served, tmp_path, ["table", [0, 4], [0, 3], [0, 2]], ["table", [3, 4], [2, 3], [1, 2]])
    assert found == [[[[-1, -1]] * 3] * 4, [[[-1]]]]


def test_a_smaller_array_is_filled(served: dict[str, str], tmp_path: Path) -> None:
    replace(served, tmp_path, "table", np.arange(8, dtype="i4").tobytes(), shape=[4, 2, 1])
    reads = ["table", [0, 4], [0, 3], [0, 2]], ["table", [1, 4, 2], [1, 3], [0, 2]], ["table", [2, 3], [2, 3], [1, 2]]
    found, _ = read(served, tmp_path, *reads)
    assert found[0] == [[[2 * at, -1], [2 * at + 1, -1], [-1, -1]] for at in range(4)]
    assert found[1] == [[[2 * at + 1, -1], [-1, -1]] for at in (1, 3)]
    assert found[2] == [[[-1]]]


@pytest.mark.parametrize(
    "payload", [b"", b" \n", b"\n" * 4096, b"   \t\n", b"9" * 4096 + b"\n", b"-1 u\n", b"\xff \n" * 9]
)
def test_a_damaged_state_changes_nothing_else(payload: bytes, served: dict[str, str], tmp_path: Path) -> None:
    replace(served, tmp_path, ".state", payload, status="closed", writer="x" * 1000)
    found, _ = read(served, tmp_path, WHOLE)
    assert found[0][5] == [20, 21, 22, 23]


@pytest.mark.parametrize(
    ("payload", "attributes"),
    [
        (b"", {}),
        (b"\x89HDF\r\n\x1a\n", {"length": str(1 << 62)}),
        (b"CDF\1" + b"\xff" * 400, {}),
        (b"x", {"length": "-1"}),
    ],
)
def test_damaged_definitions_are_refused(
    payload: bytes, attributes: dict[str, Any], served: dict[str, str], tmp_path: Path
) -> None:
    replace(served, tmp_path, ".definitions", payload, **attributes)
    done = subprocess.run(
        ["ncdump", "-h", "pool.nc"], cwd=tmp_path, env=served, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1, done
