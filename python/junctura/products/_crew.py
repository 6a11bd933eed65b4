"""The broker's workers: processes that are started with it, replaced when they die, and ended with it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys

from junctura import _machine
from junctura.errors import Unavailable

# Workers share the cores: each computes in one thread, and libraries that start more hang or get in each other's way.
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
_WORKER_MEMORY = 1 << 30
# So many more than there are workers may die one after another before the broker gives up.
_DEATHS_MAX = 20


def automatic() -> int:
    """As many workers as there are cores, and memory besides the broker's pool: a gibibyte for each."""
    return max(1, min(_machine.cores(), (_machine.memory_bytes() - pool_bytes()) // _WORKER_MEMORY))


def pool_bytes() -> int:
    """How much memory the broker's pool may have: half of what there is."""
    return _machine.memory_bytes() // 2


class Crew:
    """Processes that work for a broker.

    Parameters
    ----------
    url
        Where the broker's pool is.
    count
        How many there are to be.

    """

    def __init__(self, url: str, count: int) -> None:
        self.url, self.count = url, count
        self.deaths = 0
        # Since one of them has last done something.
        self._in_a_row = 0
        # By the descriptors that become readable when they end.
        self.processes: dict[int, subprocess.Popen[bytes]] = {}
        for _ in range(count):
            self._start()

    def _start(self) -> None:
        command = [sys.executable, "-m", "junctura.products._worker", self.url]
        process = subprocess.Popen(command, env={**os.environ, **ONE_THREAD}, stdin=subprocess.DEVNULL)
        self.processes[os.pidfd_open(process.pid)] = process

    def ended(self, descriptor: int) -> None:
        """One has ended before there was nothing more to do: another one takes its place.

        Raises
        ------
        Unavailable
            Too many have.

        """
        process = self.processes.pop(descriptor)
        os.close(descriptor)
        _kill(process)
        process.wait()
        self.deaths += 1
        self._in_a_row += 1
        if self._in_a_row > self.count + _DEATHS_MAX:
            cause = f"{self._in_a_row} have died one after another, the last one with status {process.returncode}"
            raise Unavailable("workers", cause)
        self._start()

    def worked(self) -> None:
        """One of them has done something."""
        self._in_a_row = 0

    def end(self) -> None:
        """Ends them all."""
        for process in self.processes.values():
            # Also those that are stopped. What they write has its name only when it is whole.
            _kill(process)
        for descriptor, process in self.processes.items():
            process.wait()
            os.close(descriptor)
        self.processes.clear()


def _kill(process: subprocess.Popen[bytes]) -> None:
    """With all that it has started: MIR, when it makes weights."""
    # Nobody else can have its number yet: it has not been waited for. Before it has a group it has started nothing.
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.kill()
