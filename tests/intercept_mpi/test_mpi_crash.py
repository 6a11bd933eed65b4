"""A writer that is killed between any two calls: readers see whole files, or none."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest
from mpi_programs import compile_c, ranks

import junctura

CALLS = ["open", "set_view", "write_all", "sync", "write_at", "close", "finalize"]
WHOLE = np.arange(2 * 4000, dtype="i4").tobytes()


@pytest.mark.parametrize("mode", ["array", "bytes"])
@pytest.mark.parametrize("killed_before", CALLS)
def test_a_killed_writer_leaves_a_whole_file_or_none(
    killed_before: str,
    mode: str,
    family: str,
    made: Path,
    client: junctura.Pool,
    intercepted: dict[str, str],
    tmp_path: Path,
) -> None:
    words = ranks(family, 2, compile_c(family, "steps", made), f"steps.{mode}")
    with subprocess.Popen(
        words,
        env=intercepted,
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    ) as writer:
        assert writer.stdin is not None
        assert writer.stdout is not None
        for call in CALLS:
            assert writer.stdout.readline().strip() == call
            if call == killed_before:
                break
            writer.stdin.write("go\n")
            writer.stdin.flush()
        mine = client.list("interface=mpi-io")
        os.killpg(writer.pid, signal.SIGKILL)
        writer.wait(timeout=60)
    is_whole = CALLS.index(killed_before) > CALLS.index("close")
    assert len(mine) == is_whole
    # Nothing becomes visible afterwards, and what is visible is whole.
    assert [entry["name"] for entry in client.list("interface=mpi-io")] == ([f"steps.{mode}"] if is_whole else [])
    if is_whole:
        held = client.demand_array(name=f"steps.{mode}", space=str(tmp_path), timeout=10)
        assert held.tobytes() == WHOLE
    else:
        with pytest.raises(junctura.Error):
            client.demand_array(name=f"steps.{mode}", space=str(tmp_path), timeout=0)
    # The real file was not begun either.
    assert list(tmp_path.iterdir()) == []
