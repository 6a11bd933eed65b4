"""Cores and memory are what the control groups leave of them, in both versions."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from junctura import _limits
from junctura.products._workers.crew import automatic

GIB = 1 << 30


@pytest.fixture(autouse=True)
def _large_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """With 16 cores and 64 GiB."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(16)))
    monkeypatch.setattr(os, "sysconf", {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 16 << 20}.__getitem__)


def machine(folder: Path, groups: str, files: dict[str, str]) -> tuple[Path, Path]:
    (folder / "proc/self").mkdir(parents=True)
    (folder / "proc/self/cgroup").write_text(groups)
    for name, text in files.items():
        file = folder / "cgroup" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text + "\n")
    return folder / "proc", folder / "cgroup"


V1 = "9:name=systemd:/\n4:memory:/job/step\n3:cpu,cpuacct:/job/step\n0::/\n"
CASES = {
    "no groups": ("", {}, 16, 64 * GIB),
    "v2": ("0::/job/step\n", {"job/step/cpu.max": "400000 100000", "job/step/memory.max": str(8 * GIB)}, 4, 8 * GIB),
    "v2, a part of a core": ("0::/a\n", {"a/cpu.max": "150000 100000", "a/memory.max": "max"}, 2, 64 * GIB),
    "v2, less than a core": ("0::/a\n", {"a/cpu.max": "10000 100000"}, 1, 64 * GIB),
    "v2, no limit": ("0::/a\n", {"a/cpu.max": "max 100000", "a/memory.max": "max"}, 16, 64 * GIB),
    "v2, above": (
        "0::/job/step\n",
        {"job/step/cpu.max": "max 100000", "job/cpu.max": "300000 100000", "job/memory.max": str(3 * GIB)},
        3,
        3 * GIB,
    ),
    "v2, in a container": ("0::/../other/path\n", {"cpu.max": "200000 100000", "memory.max": str(GIB)}, 2, GIB),
    "v1": (
        V1,
        {
            "cpu/job/step/cpu.cfs_quota_us": "250000",
            "cpu/job/step/cpu.cfs_period_us": "100000",
            "memory/job/memory.limit_in_bytes": str(6 * GIB),
            "memory/memory.limit_in_bytes": "9223372036854771712",
        },
        3,
        6 * GIB,
    ),
    "v1, no limit": (
        V1,
        {
            "cpu/job/step/cpu.cfs_quota_us": "-1",
            "cpu/job/step/cpu.cfs_period_us": "100000",
            "memory/job/step/memory.limit_in_bytes": "9223372036854771712",
        },
        16,
        64 * GIB,
    ),
    "nonsense": ("what\n0::/a\n::\n", {"a/cpu.max": "many", "a/memory.max": "-3"}, 16, 64 * GIB),
    "more than there is": ("0::/a\n", {"a/cpu.max": "6400000 100000", "a/memory.max": str(640 * GIB)}, 16, 64 * GIB),
}


@pytest.mark.parametrize("case", CASES)
def test_the_least_limit_counts(tmp_path: Path, case: str) -> None:
    groups, files, cores, memory = CASES[case]
    proc, folder = machine(tmp_path, groups, files)
    assert (_limits.cores(proc, folder), _limits.memory_bytes(proc, folder)) == (cores, memory)


def test_affinity_counts_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3, 5})
    proc, folder = machine(tmp_path, *CASES["v2"][:2])
    assert _limits.cores(proc, folder) == 2


@pytest.mark.parametrize(("cores", "gib", "expected"), [(16, 64, 16), (16, 8, 4), (2, 64, 2), (16, 1, 1), (1, 1, 1)])
def test_workers_have_a_gibibyte_each_of_the_half_that_is_not_the_pool_s(
    monkeypatch: pytest.MonkeyPatch, cores: int, gib: int, expected: int
) -> None:
    monkeypatch.setattr(_limits, "cores", lambda: cores)
    monkeypatch.setattr(_limits, "memory_bytes", lambda: gib * GIB)
    assert automatic() == expected


def test_what_memory_has_no_room_for_goes_where_temporary_files_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TMPDIR", raising=False)
    assert _limits.spacious() == Path("/var/tmp")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    assert _limits.spacious() == tmp_path


def test_the_peak_of_a_process_is_its_own() -> None:
    """Freed memory counts, and so does that of children that have ended; not that of the parent."""
    ballast = bytearray(os.urandom(1 << 20) * 600)
    program = """
import subprocess, sys
from junctura._limits import peak_bytes
own = peak_bytes()
held = bytearray(b"x" * (200 << 20))
del held
freed = peak_bytes()
subprocess.run([sys.executable, "-c", "held = bytearray(b'x' * (400 << 20))"], check=True)
print(own, freed, peak_bytes())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    own, freed, with_child = map(int, done.stdout.split())
    assert len(ballast) > 600e6 > own + 100e6
    assert 190 << 20 < freed - own < 450 << 20
    assert with_child > 400 << 20
