"""A fork server: loads once what all workers need, and forks them, so that none of them loads it again.

``junctura run`` forks it when it has read the recipes, before it has anything else: so it has loaded already what both
need. Where that cannot be, the crew starts ``python -m junctura.products._workers.fork_server DESCRIPTOR``. The
descriptor is a socket that keeps messages apart:

```text
  load PARAM MODULE ...   crew     first: a parameter that workers will write, or -, and modules that they will import
  start COUNT ADDRESS     crew     as many workers more, of the broker whose pool is there
  started PID             worker   before it does anything else, or leaves the process group of the fork server
  ended PID STATUS        fork server  nothing is left of it
```
A fork server has one thread, no pool and no file open. When the other end of the socket is closed, it ends
with all workers.
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
    """Forks workers until the other end of the socket is closed, and does tasks if this process becomes one of them.

    Parameters
    ----------
    channel
        To the crew.
    prepare
        Makes what all workers need, when the modules are loaded.

    """
    # Ctrl-C is the broker's: it ends its workers, with what they have started.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Who leads a session has a group already.
    with contextlib.suppress(PermissionError):
        os.setpgid(0, 0)
    if pool := ForkServer(channel, prepare).tend():
        worker_process.work(pool)


def _load(libraries: Sequence[str], param: str, prepare: Callable[[], None]) -> None:
    # A worker that needs what is not there says so.
    for library in libraries:
        with contextlib.suppress(ImportError):
            importlib.import_module(library)
    if param:
        with contextlib.suppress(Exception):
            read_tables(param)
    prepare()
    # What is there now is never collected, so that its memory stays shared.
    gc.collect()
    gc.freeze()


class ForkServer:
    """Has workers as its children.

    Parameters
    ----------
    channel
        To the crew.
    prepare
        Makes what all workers need, when the modules are loaded.

    """

    def __init__(self, channel: socket.socket, prepare: Callable[[], None] = lambda: None) -> None:
        self._channel, self._prepare = channel, prepare
        # By the descriptors that become readable when they end.
        self._workers: dict[int, int] = {}
        self._poll = select.poll()
        self._poll.register(channel, select.POLLIN)

    def tend(self) -> str:
        """Starts workers and tells of their ends; if this process is one of them now, its pool, else all have ended."""
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
        # Whether the crew is gone is seen when it is listened to.
        with contextlib.suppress(ConnectionError):
            self._channel.send(said.encode())

    def _start(self, count: int) -> bool:
        """Whether this process is one that was started."""
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
    """Ends a worker with all that it has started, as MIR when it makes weights; its exit status."""
    # Also one that is stopped. Nobody else can have its number yet: it has not been waited for.
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    # Before it has a group it has started nothing.
    os.kill(pid, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


if __name__ == "__main__":
    main()
