"""Runs of real processes, in folders of their own, and what must be left of each: nothing but its record and logs."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

LIMIT_S = 90
MARK = "JUNCTURA_TEST_RUN"
Line = dict[str, Any]

# A producer, a consumer and others that workflows of tests are made of. The pool is that of the run.
PROGRAMS = {
    "produce.py": """
        import os, sys, junctura
        who, count = sys.argv[1], int(sys.argv[2])
        with junctura.Pool(os.environ["JUNCTURA_POOL"]) as pool:
            for number in range(count):
                pool.offer(b"payload", name=f"{who}-{number}", kind="field", of=who)
        """,
    "consume.py": """
        import os, sys, junctura
        with junctura.Pool(os.environ["JUNCTURA_POOL"]) as pool:
            with pool.demand(sys.argv[1], timeout=60) as obj:
                print(obj["name"], obj.nbytes)
        """,
    "serve.py": """
        import os, signal, junctura
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
        # Who waits for it sees its name.
        with junctura.Pool(os.environ["JUNCTURA_POOL"]):
            signal.sigwait([signal.SIGTERM])
            print("asked to end")
        """,
    "hang.py": """
        import os, signal, subprocess, sys
        # With a child in a session of its own, and no ear for requests to end.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        subprocess.Popen(["sleep", "1000"], start_new_session=True)
        if len(sys.argv) > 1:
            print("hangs", flush=True)
            os.mkfifo(sys.argv[1]) if not os.path.exists(sys.argv[1]) else None
            open(sys.argv[1], "w").close()
        signal.pause()
        """,
    "die.py": """
        import os, signal
        os.kill(os.getpid(), signal.SIGKILL)
        """,
    "once.py": """
        # Fails when it is begun for the first time.
        import os, sys
        if not os.path.exists(sys.argv[1]):
            open(sys.argv[1], "w").close()
            sys.exit(3)
        """,
}


def program_folder(folder: Path) -> Path:
    """Writes the programs into a folder."""
    for name, text in PROGRAMS.items():
        lines = text.strip("\n").splitlines()
        (folder / name).write_text("\n".join(line[8:] for line in lines) + "\n")
    return folder


class Real:
    """`junctura run` as a process, marked so that all that it leaves can be found."""

    def __init__(self, folder: Path, text: str) -> None:
        self.folder = program_folder(folder)
        self.mark = uuid.uuid4().hex
        (folder / "flow.yaml").write_text(text)
        self._segments = segments()
        self._socket = ""

    def start(self, *options: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "junctura.workflow", "flow.yaml", "--run-dir", "run", *options]
        if "--resume" in options:
            command.remove("--run-dir")
            command.remove("run")
        environment = {**os.environ, MARK: self.mark}
        # It has a group of its own, as a shell gives it: Ctrl-C is for all of the group.
        return subprocess.Popen(
            command,
            cwd=self.folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def end(self, process: subprocess.Popen[str], code: int) -> str:
        """Waits for its end; what it said. Nothing is left of it."""
        out, err = process.communicate(timeout=LIMIT_S)
        assert process.returncode == code, (process.returncode, out, err, self.logs())
        self.check_nothing_is_left()
        return out + err

    def run(self, code: int, *options: str) -> str:
        return self.end(self.start(*options), code)

    def check_nothing_is_left(self) -> None:
        """No process, no segment of memory, no socket."""
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            pool = json.loads((self.folder / "run/record.jsonl").read_text().splitlines()[0]).get("pool")
            self._socket = pool.removeprefix("unix:") if pool else ""
        assert marked(self.mark) == {}
        assert segments() <= self._segments
        assert not self._socket or self._socket not in Path("/proc/net/unix").read_text()

    def record(self) -> list[Line]:
        """Its lines; the last is the end of the run."""
        text = (self.folder / "run/record.jsonl").read_text()
        assert text.endswith("\n")
        lines: list[Line] = [json.loads(line) for line in text.splitlines()]
        assert [line["at"] for line in lines] == sorted(line["at"] for line in lines)
        assert lines[0]["kind"] == "run" and lines[-1]["kind"] == "run_end"
        check_record(lines)
        return lines

    def outcomes(self) -> dict[str, str]:
        ends = ("done", "failed", "skipped", "cancelled")
        return {line["task"]: line["kind"] for line in self.record() if line["kind"] in ends}

    def log(self, attempt: str) -> str:
        return (self.folder / "run/logs" / f"{attempt}.log").read_text()

    def logs(self) -> dict[str, str]:
        return {path.name: path.read_text()[-500:] for path in self.folder.glob("run/logs/*.log")}


def check_record(lines: list[Line]) -> None:
    """Each attempt that was started has ended, and each task that was ready has an end."""
    started = [(line["task"], line["attempt"]) for line in lines if line["kind"] == "start"]
    ended = [(line["task"], line["attempt"]) for line in lines if line["kind"] == "end"]
    assert len(started) == len(set(started)) and len(ended) == len(set(ended))
    assert set(started) <= set(ended)
    ready = {line["task"] for line in lines if line["kind"] == "ready"}
    over = {line["task"] for line in lines if line["kind"] in ("done", "failed", "skipped", "cancelled")}
    assert ready <= over


def marked(mark: str) -> dict[int, str]:
    """The processes that have a mark in their environment, and their commands."""
    word = f"{MARK}={mark}".encode()
    found = {}
    for folder in Path("/proc").iterdir():
        # One that has ended by now, or is not ours.
        with contextlib.suppress(OSError):
            if folder.name.isdecimal() and word in (folder / "environ").read_bytes():
                found[int(folder.name)] = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
    return found


def segments() -> set[str]:
    return {path.name for path in Path("/dev/shm").glob("junctura*")}


def interrupt(process: subprocess.Popen[str], number: int = signal.SIGINT) -> None:
    """Ctrl-C: all of its group get the signal."""
    os.killpg(process.pid, number)
