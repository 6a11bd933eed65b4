"""The file tier of a served pool: across processes, in `stat`, and when a reader of it is killed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from e2e_shell import Process, Shell

import junctura

SIZE = 300_000

# Pools are reached over TCP here (see CONTRIBUTING.md).
TCP = os.environ.get("JUNCTURA_TEST_DETOUR") == "tcp"


def payload(number: int) -> bytes:
    return bytes([number % 251]) * SIZE


def fill(shell: Shell, count: int) -> junctura.Pool:
    pool = junctura.Pool(f"unix:{shell.folder}/junctura/test.sock", schema="free")
    for number in range(count):
        pool.offer(payload(number), name=f"{number:03}")
    return pool


def test_other_processes_read_what_was_spilled_after_its_producer_has_left(bare: Shell, tmp_path: Path) -> None:
    server = bare.serve("--budget", "4MiB", "--spill", str(tmp_path / "spill"), "--spill-size", "40MiB")
    fill(bare, 50).close()
    spill = bare.stat()["spill"]
    assert spill["objects"] >= 36
    assert spill["limit_bytes"] == 40 << 20
    assert f"of 40.0 MiB in {tmp_path}/spill" in bare.text("pool", "stat")
    places = [entry["place"] for entry in bare.documents("ls", "--json")]
    # The server may still be at it.
    assert spill["objects"] <= places.count("file") <= bare.stat()["spill"]["objects"]
    assert places.count("file") + places.count("memory") == 50
    heading, first, *_ = bare.text("ls", "--long").splitlines()
    assert (heading.split()[-2:], first.split()[-2]) == (["place", "version"], "file")
    bare.run("get", "--all", "-o", f"{tmp_path}/got/", "--template", "{name}")
    for number in range(50):
        assert (tmp_path / f"got/{number:03}").read_bytes() == payload(number)
    server.signal(15)
    assert server.end()[0] == 0
    assert not list((tmp_path / "spill").iterdir())


def test_a_reader_of_the_file_that_is_killed_takes_nothing_with_it(bare: Shell, tmp_path: Path) -> None:
    bare.serve("--budget", "4MiB", "--spill", str(tmp_path))
    with fill(bare, 30) as pool, pool.subscribe(kinds=["left"]) as events:
        program = "import sys, junctura\nobj = junctura.Pool(sys.argv[1], schema='free').demand(name='000')\n"
        program += "print(obj.transport, flush=True)\nsys.stdin.read()"
        holder = Process([sys.executable, "-c", program, pool.url], bare.environment, subprocess.PIPE)
        assert holder.line() == ("tcp" if TCP else "file")
        assert pool.stat()["objects"]["held"] == 1
        holder.kill()
        assert next(events).kind == "left"
        assert pool.stat()["objects"]["held"] == 0
        with pool.demand(name="000") as obj:
            assert bytes(obj) == payload(0)
        pool.withdraw_all("")
        assert pool.stat()["spill"]["objects"] == 0


def test_a_payload_that_was_changed_in_the_file_is_told_and_no_other_one_suffers(bare: Shell, tmp_path: Path) -> None:
    server = bare.serve("--budget", "4MiB", "--spill", str(tmp_path / "spill"))
    with fill(bare, 30) as pool:
        # It has no name, and is open more than once.
        descriptors = Path(f"/proc/{server.pid}/fd").iterdir()
        file = next(path for path in descriptors if str(path.readlink()).startswith(f"{tmp_path}/spill/"))
        with file.open("r+b") as damaged:
            damaged.seek(file.read_bytes().index(payload(1)) + SIZE // 2)
            damaged.write(b"\xff")
        with pytest.raises(junctura.Corrupt, match="001"):
            bytes(pool.demand(name="001"))
        for number in (0, 2, 29):
            with pool.demand(name=f"{number:03}") as obj:
                assert bytes(obj) == payload(number)
