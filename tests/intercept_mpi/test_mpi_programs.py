"""Programs of others, unmodified: what is in the pool has the bytes of the file that they write without it."""

from __future__ import annotations

import io
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from mpi_programs import PROGRAMS, missing, ranks

import junctura

Run = Callable[..., "subprocess.CompletedProcess[str]"]
# Debian's h5py with MPI is a package of the system's interpreter.
SYSTEM_PYTHON = "/usr/bin/python3"
APT = "apt-get install --no-install-recommends lammps meep-mpi-default python3-h5py-mpi"


def need(*programs: str) -> None:
    if missing("mpirun.openmpi", *programs):
        pytest.skip(f"{', '.join(programs)}: {APT}")


def both(run: Run, words: list[str], environment: dict[str, str], intercepted: dict[str, str], folder: Path) -> Path:
    """Runs a command with files, moves them away, and runs it with the pool; the folder of the files."""
    run(words, environment)
    real = folder / "real"
    real.mkdir()
    for each in folder.glob("*.bytes"):
        each.rename(real / each.name)
    for each in folder.glob("*.h5"):
        each.rename(real / each.name)
    run(words, intercepted)
    return real


def test_lammps(
    client: junctura.Pool, environment: dict[str, str], intercepted: dict[str, str], run: Run, tmp_path: Path
) -> None:
    need("lmp")
    words = ranks("openmpi", 2, "lmp", "-in", PROGRAMS / "dump.lammps", "-log", "none")
    real = both(run, words, environment, intercepted, tmp_path)
    dumps = sorted(real.glob("dump.*"))
    assert len(dumps) == 3
    for dump in dumps:
        assert client.demand_array(name=dump.name, space=str(tmp_path), timeout=10).tobytes() == dump.read_bytes()
    # LAMMPS begins a restart by the C library, and continues it by MPI-IO: it is a file.
    restart = "restart.mpiio.bytes"
    assert (tmp_path / restart).stat().st_size == (real / restart).stat().st_size


def test_h5py(
    client: junctura.Pool, environment: dict[str, str], intercepted: dict[str, str], run: Run, tmp_path: Path
) -> None:
    need(SYSTEM_PYTHON)
    plain = {name: value for name, value in environment.items() if name != "PYTHONPATH"}
    with_pool = {name: value for name, value in intercepted.items() if name != "PYTHONPATH"}
    can = "import h5py, mpi4py, sys; sys.exit(not h5py.get_config().mpi)"
    # h5py takes the variant with MPI in a process that was started by a launcher.
    launched = ranks("openmpi", 1, SYSTEM_PYTHON, "-c", can)
    if subprocess.run(launched, env=plain, capture_output=True, check=False).returncode:
        pytest.skip(f"h5py with MPI: {APT}")
    words = ranks("openmpi", 2, SYSTEM_PYTHON, PROGRAMS / "datasets.py", "field.h5")
    real = both(run, words, plain, with_pool, tmp_path)
    held = client.demand_array(name="field.h5", space=str(tmp_path), timeout=10).tobytes()
    assert held == (real / "field.h5").read_bytes()
    assert not (tmp_path / "field.h5").exists()
    assert io.BytesIO(held).read(8) == b"\x89HDF\r\n\x1a\n"


def only_times_differ(one: bytes, other: bytes) -> bool:
    """Whether files of HDF5 differ in nothing but the time at which a dataset was made, in seconds."""

    def is_time(at: int) -> bool:
        words = [int.from_bytes(each[at : at + 4], "little") for each in (one, other)]
        return min(words) > 1_600_000_000 and max(words) - min(words) < 600

    differences = [at for at, (a, b) in enumerate(zip(one, other, strict=True)) if a != b]
    return all(any(is_time(start) for start in range(at - 3, at + 1)) for at in differences)


def test_meep(
    client: junctura.Pool, environment: dict[str, str], intercepted: dict[str, str], run: Run, tmp_path: Path
) -> None:
    need("meep")
    words = ranks("openmpi", 2, "meep", PROGRAMS / "wave.ctl")
    real = both(run, words, environment, intercepted, tmp_path)
    files = sorted(real.glob("*.h5"))
    assert len(files) == 2
    for file in files:
        held = client.demand_array(name=file.name, space=str(tmp_path), timeout=10).tobytes()
        assert only_times_differ(held, file.read_bytes()), file.name
