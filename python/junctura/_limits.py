"""Resource limits of this process: cores and memory, from its control groups and its CPU affinity.

```text
  cgroup v2   /sys/fs/cgroup/PATH/            cpu.max, memory.max
  cgroup v1   /sys/fs/cgroup/cpu/PATH/        cpu.cfs_quota_us, cpu.cfs_period_us
              /sys/fs/cgroup/memory/PATH/     memory.limit_in_bytes
```
``/proc/self/cgroup`` has the paths. The minimum of a group and its ancestors applies; in a container the path may exist
only outside, and then the ancestors that exist are used.
"""

from __future__ import annotations

import contextlib
import math
import os
import resource
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

_PROC, _GROUPS = Path("/proc"), Path("/sys/fs/cgroup")
# Without a limit, groups of version 1 report a number near the maximum.
_NO_LIMIT = 1 << 60
# The variables for the number of threads of libraries. Workers share the cores: each computes in one thread, and
# libraries that start more threads deadlock or slow each other down.
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def cores(proc: Path = _PROC, groups: Path = _GROUPS) -> int:
    """Returns the number of cores for this process; a fraction of a core counts as one."""
    quotas = _limits(proc, groups, "cpu", _quota)
    return max(1, math.ceil(min([float(len(os.sched_getaffinity(0))), *quotas])))


def memory_bytes(proc: Path = _PROC, groups: Path = _GROUPS) -> int:
    """Returns the memory limit of this process and its children."""
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return int(min([physical, *_limits(proc, groups, "memory", _bytes)]))


def free_bytes(proc: Path = _PROC, groups: Path = _GROUPS) -> int:
    """Returns the memory that this process and its children may allocate now, without evicting that of other
    processes.
    """
    most = memory_bytes(proc, groups)
    with contextlib.suppress(OSError, ValueError, StopIteration):
        lines = (proc / "meminfo").read_text().splitlines()
        available = next(line for line in lines if line.startswith("MemAvailable:"))
        return min(most, 1024 * int(available.split()[1]))
    return most


def peak_bytes(proc: Path = _PROC) -> int:
    """Returns the peak resident memory of this process, or of one of its ended children."""
    children = 1024 * resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    # The value of `getrusage` for the process itself starts with the memory of its parent.
    with contextlib.suppress(OSError, ValueError, IndexError):
        with open(f"{proc}/self/status", "rb", buffering=0) as file:  # noqa: PTH123 - five times as fast as a `Path`
            said = file.read()
        return max(children, 1024 * int(said.partition(b"\nVmHWM:")[2].split(maxsplit=1)[0]))
    return children


def spacious() -> Path:
    """Returns a directory on disk for data beyond memory: ``$TMPDIR``, else ``/var/tmp``, which is not in memory."""
    there = Path("/var/tmp")
    return there if "TMPDIR" not in os.environ and os.access(there, os.W_OK) else Path(tempfile.gettempdir())


def _limits(proc: Path, groups: Path, controller: str, read: Callable[[Path, bool], float | None]) -> Iterator[float]:
    """Yields the limit files of the groups of this process, for both versions."""
    said = ""
    with contextlib.suppress(OSError):
        said = (proc / "self/cgroup").read_text()
    for line in said.splitlines():
        _, _, named = line.partition(":")
        controllers, _, path = named.partition(":")
        is_new = not controllers
        if not is_new and controller not in controllers.split(","):
            continue
        root = groups if is_new else groups / controller
        folder = root / path.lstrip("/")
        for at in (folder, *folder.parents):
            # An unreadable value is no limit; neither is `max`.
            with contextlib.suppress(OSError, ValueError):
                if (limit := read(at, is_new)) is not None:
                    yield limit
            if at == root:
                break


def _quota(group: Path, is_new: bool) -> float | None:
    if is_new:
        quota, period = (group / "cpu.max").read_text().split()
    else:
        quota, period = ((group / f"cpu.cfs_{name}_us").read_text() for name in ("quota", "period"))
    return int(quota) / int(period) if int(quota) > 0 and int(period) > 0 else None


def _bytes(group: Path, is_new: bool) -> float | None:
    limit = int((group / ("memory.max" if is_new else "memory.limit_in_bytes")).read_text())
    return limit if 0 < limit < _NO_LIMIT else None
