"""A fork server: loads once what all workers need, and forks them, so that none loads it again.

``junctura run`` forks it after reading the recipes, before it opens anything else: the modules that both need are
imported already. If that is not possible, the crew starts ``python -m junctura.products._workers.fork_server
DESCRIPTOR``. The descriptor is a socket that preserves message boundaries:

```text
  load PARAM MODULE ...   crew     first: a parameter that workers will write, or -, and modules that they will import
  start COUNT ADDRESS     crew     as many workers more, of the broker whose pool is there
  started PID             worker   before it does anything else, or leaves the process group of the fork server
  ended PID STATUS        fork server  nothing is left of it
```
A fork server has one thread, no pool and no open file. When the other end of the socket is closed, it ends with all
workers.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import importlib
import os
import select
import signal
import socket
from collections.abc import Callable, Sequence

from junctura.products._outputs._parameters import read_tables
from junctura.products._workers import worker_process
from junctura.products._workers.crew import heard


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("descriptor", type=int, help="of the socket")
    channel = socket.socket(fileno=parser.parse_args().descriptor)
    channel.set_inheritable(False)
    serve(channel, lambda: None)


def serve(channel: socket.socket, prepare: Callable[[], None]) -> None:
    """Forks workers until the other end of the socket is closed; runs the worker in a forked child.

    Parameters
    ----------
    channel
        The socket to the crew.
    prepare
        Creates data that all workers need, after the modules are imported.

    """
    # The broker handles Ctrl-C: it ends its workers, with their child processes.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # A session leader has its own group already.
    with contextlib.suppress(PermissionError):
        os.setpgid(0, 0)
    if pool := ForkServer(channel, prepare).tend():
        worker_process.work(pool)


def _load(libraries: Sequence[str], param: str, prepare: Callable[[], None]) -> None:
    # Modules are not garbage, and to look for garbage takes a seventh of an import.
    gc.disable()
    # A worker reports a missing module itself.
    for library in libraries:
        with contextlib.suppress(ImportError):
            importlib.import_module(library)
    if param:
        with contextlib.suppress(Exception):
            read_tables(param)
    prepare()
    # Existing objects are excluded from garbage collection, so that their memory stays shared.
    gc.collect()
    gc.freeze()
    gc.enable()


class ForkServer:
    """The parent process of the workers.

    Parameters
    ----------
    channel
        The socket to the crew.
    prepare
        Creates data that all workers need, after the modules are imported.

    """

    def __init__(self, channel: socket.socket, prepare: Callable[[], None] = lambda: None) -> None:
        self._channel, self._prepare = channel, prepare
        # By the descriptors that become readable when the processes end.
        self._workers: dict[int, int] = {}
        self._poll = select.poll()
        self._poll.register(channel, select.POLLIN)

    def tend(self) -> str:
        """Starts workers and reports their ends; returns the pool address in a forked child, None when all have
        ended.
        """
        while True:
            for descriptor, _ in self._poll.poll():
                if descriptor in self._workers:
                    self._see_off(descriptor)
                    continue
                match heard(self._channel).split(" "):
                    case ["load", param, *libraries]:
                        _load(libraries, param.removeprefix("-"), self._prepare)
                    case ["start", count, *pool]:
                        if self._start(int(count)):
                            return " ".join(pool)
                    case _:
                        for pid in self._workers.values():
                            _end(pid)
                        return ""

    def _tell(self, said: str) -> None:
        # The end of the crew is detected by the next receive.
        with contextlib.suppress(ConnectionError):
            self._channel.send(said.encode())

    def _start(self, count: int) -> bool:
        """Whether this process is a forked child."""
        for _ in range(count):
            pid = os.fork()
            if not pid:
                self._tell(f"started {os.getpid()}")
                self._channel.close()
                for descriptor in self._workers:
                    os.close(descriptor)
                return True
            descriptor = os.pidfd_open(pid)
            self._workers[descriptor] = pid
            self._poll.register(descriptor, select.POLLIN)
        return False

    def _see_off(self, descriptor: int) -> None:
        self._poll.unregister(descriptor)
        os.close(descriptor)
        pid = self._workers.pop(descriptor)
        self._tell(f"ended {pid} {_end(pid)}")


def _end(pid: int) -> int:
    """Ends a worker with its child processes, such as MIR when it makes weights; returns its exit status."""
    # Also a stopped worker. Its process ID cannot have been reused: it has not been waited for.
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    # Before it has a group it has no child processes.
    os.kill(pid, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


if __name__ == "__main__":
    main()
