"""The `junctura` command as tests run it: in a folder of sockets of its own, without a pool unless one is asked for."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
JUNCTURA = Path(
    os.environ.get("CARGO_TARGET_DIR", ROOT / "target"), os.environ.get("JUNCTURA_PROFILE", "ci"), "junctura"
)
# Pools of this machine are reached over TCP, too: see "The suites over TCP" in CONTRIBUTING.md.
DETOUR = "JUNCTURA_TEST_DETOUR"
DATA = ROOT.parent / "shared/data/grib"

Document = dict[str, Any]


class Process:
    """A command that goes on, whose output is read line by line."""

    def __init__(self, command: list[str], environment: dict[str, str], stdin: int | None) -> None:
        pipe = subprocess.PIPE
        self.popen = subprocess.Popen(command, env=environment, stdin=stdin, stdout=pipe, stderr=pipe)

    @property
    def pid(self) -> int:
        return self.popen.pid

    def line(self) -> str:
        """The next line of its output; empty at the end."""
        assert self.popen.stdout is not None
        return self.popen.stdout.readline().decode().rstrip("\n")

    def document(self) -> Document:
        """The next line, which is JSON."""
        document: Document = json.loads(self.line())
        return document

    def said(self) -> str:
        """The next line of its messages; empty at the end."""
        assert self.popen.stderr is not None
        return self.popen.stderr.readline().decode().rstrip("\n")

    def write(self, data: bytes) -> None:
        assert self.popen.stdin is not None
        self.popen.stdin.write(data)
        self.popen.stdin.flush()

    def ask(self, line: str) -> str:
        """Tells it a line, and waits for the one that it answers."""
        self.write(f"{line}\n".encode())
        return self.line()

    def signal(self, number: int) -> None:
        self.popen.send_signal(number)

    def kill(self) -> None:
        """Ends it with -9 and waits until it is gone."""
        self.popen.kill()
        self.end()

    def show_rest(self) -> None:
        """Prints the rest of its messages: pytest shows them where the test failed."""
        messages = self.popen.communicate()[1]
        if messages:
            print(f"--- messages of {self.popen.args!r}\n{messages.decode(errors='replace')}")

    def end(self) -> tuple[int, str, str]:
        """Waits for its end: exit status, the rest of its output and of its messages."""
        out, err = self.popen.communicate(timeout=60)
        return self.popen.returncode, out.decode(errors="replace"), err.decode()


class Shell:
    """Runs the command; `pool` is what commands get that name none."""

    def __init__(self, pool: str = "unix:test") -> None:
        # Names of sockets are short, so the folders of tests are not for them.
        self.folder = Path(tempfile.mkdtemp(prefix="junctura-e2e-"))
        self.pool = pool
        self.started: list[Process] = []
        plain = {
            name: value for name, value in os.environ.items() if not name.startswith("JUNCTURA_") or name == DETOUR
        }
        self.environment = {**plain, "XDG_RUNTIME_DIR": str(self.folder), "JUNCTURA_POOL": pool}

    def run(
        self, *arguments: str | Path, stdin: bytes = b"", status: int = 0, **environment: str
    ) -> subprocess.CompletedProcess[bytes]:
        """Runs a command to its end, which must have this exit status."""
        done = subprocess.run(
            [str(JUNCTURA), *map(str, arguments)],
            input=stdin,
            env={**self.environment, **environment},
            capture_output=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == status, f"{arguments}: {done.returncode}\n{done.stdout!r}\n{done.stderr.decode()}"
        return done

    def text(self, *arguments: str | Path, stdin: bytes = b"") -> str:
        """What a command prints."""
        return self.run(*arguments, stdin=stdin).stdout.decode()

    def error(self, status: int, *arguments: str | Path, stdin: bytes = b"") -> str:
        """What a command that fails says."""
        return self.run(*arguments, stdin=stdin, status=status).stderr.decode()

    def documents(self, *arguments: str | Path, stdin: bytes = b"") -> list[Document]:
        """The JSON lines that a command prints."""
        return [json.loads(line) for line in self.text(*arguments, stdin=stdin).splitlines()]

    def start(self, *arguments: str | Path, stdin: int | None = subprocess.DEVNULL) -> Process:
        """Starts a command that goes on."""
        process = Process([str(JUNCTURA), *map(str, arguments)], self.environment, stdin)
        self.started.append(process)
        return process

    def serve(self, *arguments: str) -> Process:
        """Starts a server and waits until clients can connect."""
        server = self.start("pool", "serve", "--pool", self.pool, *arguments)
        assert "serving" in server.said()
        return server

    def watch(self, *arguments: str) -> Process:
        """Starts to watch, as JSON, and waits until it has begun."""
        watch = self.start("watch", "--json", *arguments)
        assert "watching" in watch.said()
        return watch

    def result(self, process: Process, seconds: float) -> bytes:
        """The output of a command that must succeed in so many seconds; if it does not end, why is printed."""
        try:
            out, said = process.popen.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            self.show_waits()
            raise
        assert process.popen.returncode == 0, said.decode()
        return out

    def show_waits(self) -> None:
        """Prints what waits in the pool, and in which call each process of the command is."""
        processes = ["ps", "-C", JUNCTURA.name, "-o", "pid,ppid,stat,wchan:24,time,args"]
        for question in (["explain", "--waiting"], ["explain", "--memory"], ["pool", "stat"]):
            print(f"--- {' '.join(question)}\n{self.answer([str(JUNCTURA), *question])}")
        print(f"--- processes\n{self.answer(processes)}")

    def answer(self, command: list[str]) -> str:
        """What a command says, which may hang."""
        try:
            done = subprocess.run(
                command, env=self.environment, capture_output=True, text=True, timeout=10, check=False
            )
        except (subprocess.TimeoutExpired, OSError) as error:
            return str(error)
        return done.stdout + done.stderr

    def stat(self) -> Document:
        document: Document = self.documents("pool", "stat", "--json")[0]
        return document

    def close(self) -> None:
        """Ends everything that was started, servers that clients started among it."""
        for process in reversed(self.started):
            if process.popen.poll() is None:
                process.popen.kill()
            process.show_rest()
        if (self.folder / "junctura").is_dir():
            for socket in (self.folder / "junctura").glob("*.sock"):
                listing = subprocess.run(
                    [str(JUNCTURA), "pool", "stat", "--json", "--pool", f"unix:{socket}"],
                    env=self.environment,
                    capture_output=True,
                    check=False,
                )
                if listing.returncode == 0:
                    os.kill(json.loads(listing.stdout)["server"]["pid"], 15)
        shutil.rmtree(self.folder, ignore_errors=True)


def key_of(document: Document) -> str:
    """The key in a JSON line."""
    key: str = document["key"]
    return key


def shown_until_its_end(terminal: int) -> bytes:
    """What comes on our end of a terminal until nobody has the other one open; closes it."""
    shown = b""
    try:
        while chunk := os.read(terminal, 65536):
            shown += chunk
    except OSError:  # That is how a terminal ends.
        pass
    os.close(terminal)
    return shown
