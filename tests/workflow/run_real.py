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
        import os, signal, sys, junctura
        who, count = sys.argv[1], int(sys.argv[2])
        payload = b"payload" if len(sys.argv) < 4 else bytes(int(sys.argv[3]))
        with junctura.Pool(os.environ["JUNCTURA_POOL"]) as pool:
            for number in range(count + 1):
                if os.environ.get("DIES_AFTER") == str(number):
                    os.kill(os.getpid(), signal.SIGKILL)
                if number < count:
                    pool.offer(payload, name=f"{who}-{number}", kind="field", of=who)
        """,
    "bundle.py": """
        import os, junctura
        with junctura.Pool(os.environ["JUNCTURA_POOL"]) as pool, pool.bundle("step/0") as bundle:
            for number in range(2):
                bundle.offer(b"payload", name=f"part-{number}", kind="part")
            bundle.seal()
        """,
    "ask.py": """
        # Goes on when what was made of its object is there.
        import os, junctura
        with junctura.Pool(os.environ["JUNCTURA_POOL"]) as pool:
            pool.offer(b"payload", name="question", kind="field")
            pool.demand(name="answer", timeout=60)
        """,
    "answer.py": """
        import os, junctura
        with junctura.Pool(os.environ["JUNCTURA_POOL"]) as pool:
            pool.offer(b"payload", name="answer", kind="answer")
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
            if "DIES_JOINED" in os.environ:
                os.kill(os.getpid(), signal.SIGKILL)
            signal.sigwait([signal.SIGTERM])
            print("asked to end")
        """,
    "gone.py": """
        # Until the service is not in the pool.
        import os, junctura
        with junctura.Pool(os.environ["JUNCTURA_POOL"]) as pool, pool.subscribe("", kinds=["left"]) as events:
            while any(one["name"] == "service" for one in pool.stat()["clients"]):
                events.next()
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
        self._segments = segments_of_nobody()

    def start(self, *options: str, module: str = "junctura.workflow") -> subprocess.Popen[str]:
        command = [sys.executable, "-m", module, "flow.yaml", "--run-dir", "run", *options]
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
        try:
            out, err = process.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            # With it goes all that it has started.
            process.kill()
            out, err = process.communicate()
            raise AssertionError(f"it does not end: {out} {err} {self.logs()}") from None
        assert process.returncode == code, (process.returncode, out, err, self.logs())
        self.check_nothing_is_left()
        return out + err

    def run(self, code: int, *options: str) -> str:
        return self.end(self.start(*options), code)

    def check_nothing_is_left(self) -> None:
        """No process, no segment of memory, no socket."""
        assert marked(self.mark) == {}
        assert segments_of_nobody() <= self._segments
        sockets = Path("/proc/net/unix").read_text()
        assert not [pool for pool in self._own_pools() if pool.removeprefix("unix:") in sockets]

    def _own_pools(self) -> list[str]:
        """Those that the run has served itself, each time that it went on."""
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            said = map(json.loads, (self.folder / "run/record.jsonl").read_text().splitlines())
            pools = [line["pool"] for line in said if line["kind"] == "run"]
            return [pool for pool in pools if pool is not None and pool.startswith("unix:@junctura-run-")]
        return []

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


def segments_of_nobody() -> set[tuple[int, str]]:
    """Memory of pools that processes have which were left by whoever started them, with these.

    Only of those without an environment, whose mark cannot be seen: others beside this test start servers, too.
    """
    found = set()
    for folder in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if folder.name.isdecimal() and _is_orphan(folder):
                links = [str(link.readlink()) for link in (folder / "fd").iterdir()]
                found |= {(int(folder.name), link) for link in links if link.startswith("/memfd:junctura")}
    return found


def _is_orphan(process: Path) -> bool:
    """Whether it was left, and nothing says by whom."""
    # The name of its program stands in brackets, and may have any in it.
    parent = (process / "stat").read_text().rpartition(")")[2].split()[1]
    return parent == "1" and process.name != str(os.getpid()) and not (process / "environ").read_bytes()


def interrupt(process: subprocess.Popen[str], number: int = signal.SIGINT) -> None:
    """Ctrl-C: all of its group get the signal."""
    os.killpg(process.pid, number)
