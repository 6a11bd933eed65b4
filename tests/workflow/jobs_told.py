"""Jobs that are watched: what they tell, and the end of processes that are nobody's children here."""

from __future__ import annotations

import os
import queue
import select
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from junctura.workflow._executors.jobs import Ended, Executor, Job, Running

LIMIT_S = 90


class Told:
    """A job that was started, and what is told of it."""

    def __init__(self, executor: Executor, job: Job, on_taken: Callable[[str], None] | None = None) -> None:
        self.order: list[str] = []
        self._begun = threading.Event()
        self._ends: queue.Queue[Ended] = queue.Queue()
        self.running: Running = executor.start(job, self._on_begin, self._on_end, on_taken)

    def _on_begin(self) -> None:
        self.order.append("begin")
        self._begun.set()

    def _on_end(self, ended: Ended) -> None:
        self.order.append("end")
        self._ends.put(ended)

    def begun(self) -> Told:
        assert self._begun.wait(LIMIT_S)
        return self

    def ended(self) -> Ended:
        return self._ends.get(timeout=LIMIT_S)


class Jobs:
    """Starts jobs in a folder."""

    def __init__(self, executor: Executor, folder: Path) -> None:
        self.executor = executor
        self.folder = folder
        self._count = 0

    def job(self, *command: str, environment: Mapping[str, str] | None = None, **other: Any) -> Job:
        self._count += 1
        name = f"job-{self._count}.1"
        given = {"folder": self.folder, "log": self.folder / f"{name}.log", **other}
        return Job(name, command, environment=environment or {}, **given)

    def start(self, *command: str, **other: Any) -> Told:
        return Told(self.executor, self.job(*command, **other))

    def run(self, *command: str, **other: Any) -> Ended:
        return self.start(*command, **other).ended()

    def fifo(self, name: str) -> Path:
        path = self.folder / name
        os.mkfifo(path)
        return path


class Processes:
    """Processes by their number, which are waited for."""

    def __init__(self, *numbers: int) -> None:
        self._files = [os.pidfd_open(number) for number in numbers]

    def wait_until_gone(self) -> None:
        for file in self._files:
            ready, _, _ = select.select([file], [], [], LIMIT_S)
            os.close(file)
            assert ready, "a process was left"


def are_gone(*numbers: int) -> bool:
    """Whether there are no such processes."""
    return not any(Path(f"/proc/{number}").exists() for number in numbers)
