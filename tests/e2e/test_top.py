"""`junctura top`: what it shows, on a server that works, hangs or has ended; notes of clients; `doctor --pool`."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import termios

import pytest
from e2e_shell import JUNCTURA, Document, Shell

import junctura

pytestmark = pytest.mark.skipif(
    "JUNCTURA_TEST_DETOUR" in os.environ, reason="a board is memory of the server's machine"
)


def connect(shell: Shell, name: str = "member-1") -> junctura.Pool:
    return junctura.Pool(f"unix:{shell.folder}/junctura/test.sock", schema="free", name=name)


def top(shell: Shell, *arguments: str) -> Document:
    document: Document = shell.documents("top", "--once", "--json", "--delay", "0.1", *arguments)[0]
    return document


def findings(document: Document) -> list[str]:
    return [finding["code"] for finding in document["findings"]]


def test_numbers_of_a_pool(shell: Shell) -> None:
    with connect(shell) as pool, connect(shell, "member-2") as other:
        pool.offer(b"x" * 1000, name="a")
        held = other.demand(name="a")
        pool.note("decoding", step=36, of=240)
        pool.sync()
        numbers = top(shell)
        assert numbers["is_turning"]
        assert numbers["is_consistent"]
        assert numbers["state"] == "serving"
        assert (numbers["visible"], numbers["visible_bytes"], numbers["held"]) == (1, 1000, 1)
        clients = {client["name"]: client for client in numbers["clients"]}
        assert clients["member-1"]["note"] == "decoding, step=36, of=240"
        assert clients["member-2"]["held"] == 1
        components = {component["component"]: component for component in numbers["components"]}
        assert (components["member-*"]["clients"], components["member-*"]["held"]) == (2, 1)
        assert [dataset["dataset"] for dataset in numbers["datasets"]] == ["space=default"]
        text = shell.text(
            "top", "--once", "--delay", "0.1", "--screen", "clients", "--sort", "held", "--filter", "member"
        )
        lines = text.splitlines()
        table = lines[lines.index("") + 1 :]
        assert [line.split()[0] for line in table] == ["NAME", "member-2", "member-1"]
        assert "decoding, step=36, of=240" in shell.text("pool", "stat")
        held.release()


def test_the_last_note_counts(shell: Shell) -> None:
    with connect(shell) as pool:
        for step in range(100):
            pool.note(step=step, of=100)
        board = pool.board()
        while [client["note"] for client in board.snapshot()["clients"]] != ["step=99, of=100"]:
            pool.sync()
        with pytest.raises(junctura.InvalidArgument, match="1,024 bytes"):
            pool.note("x" * 1025)
        with pytest.raises(junctura.InvalidArgument, match="control character"):
            pool.note("a\nb")


def test_a_hung_server_is_noticed(bare: Shell) -> None:
    server = bare.serve()
    with connect(bare) as pool:
        pool.offer(b"x", name="a")
        assert findings(top(bare)) == []
        server.signal(signal.SIGSTOP)
        try:
            hung = top(bare)
            assert not hung["is_turning"]
            assert hung["turn_age_s"] >= 2
            assert (hung["pid"], hung["visible"]) == (server.pid, 1)
            assert "not_turning" in findings(hung)
            assert "not turning for" in bare.text("top", "--once", "--delay", "0.1").splitlines()[0]
        finally:
            server.signal(signal.SIGCONT)
        assert top(bare)["is_turning"]


def test_a_hung_server_without_a_board(bare: Shell) -> None:
    server = bare.serve()
    server.signal(signal.SIGSTOP)
    try:
        assert "has not made one" in bare.error(3, "top", "--once")
    finally:
        server.signal(signal.SIGCONT)


def test_mistakes_are_named(bare: Shell) -> None:
    assert "no server runs there" in bare.error(3, "top", "--once")
    assert "delivered_per_s" in bare.error(2, "top", "--once", "--sort", "speed")
    assert "--once" in bare.error(2, "top")
    assert "--delay" in bare.error(2, "top", "--once", "--delay", "1ms")


class Screen:
    """`junctura top` on a terminal of 80 x 24."""

    def __init__(self, shell: Shell, *arguments: str) -> None:
        self.near, far = pty.openpty()
        termios.tcsetwinsize(far, (24, 80))
        self.before = termios.tcgetattr(far)
        self.far = far
        command = [str(JUNCTURA), "top", "--delay", "0.1", *arguments]
        environment = {**shell.environment, "TERM": "xterm-256color"}
        self.process = subprocess.Popen(command, env=environment, stdin=far, stdout=far, stderr=subprocess.PIPE)
        self.lines = [[" "] * 80 for _ in range(24)]
        self.row = self.column = 0
        self.rest = ""

    def wait_for(self, text: str) -> None:
        """Reads until the terminal shows this text."""
        while not any(text in "".join(line) for line in self.lines):
            self.take(os.read(self.near, 4096).decode("latin-1"))

    def take(self, sent: str) -> None:
        """Moves of the cursor, and characters; other sequences change no character."""
        sent = self.rest + sent
        done = 0
        for found in re.finditer(r"\x1b\[([?\d;]*)([A-Za-z])|([^\x1b])", sent):
            done = found.end()
            numbers, kind, letter = found.groups()
            if kind == "H":
                self.row, self.column = (int(number) - 1 for number in numbers.split(";"))
            elif kind == "K":
                self.lines[self.row][self.column :] = [" "] * (80 - self.column)
            elif letter and self.column < 80:
                self.lines[self.row][self.column] = letter
                self.column += 1
        self.rest = sent[done:]

    def press(self, keys: str) -> None:
        os.write(self.near, keys.encode())

    def end(self) -> int:
        """Waits for the end; the terminal has to be as it was."""
        while self.process.poll() is None:
            if select.select([self.near], [], [], 0.1)[0]:
                os.read(self.near, 4096)
        assert termios.tcgetattr(self.far) == self.before
        os.close(self.near)
        os.close(self.far)
        return self.process.returncode


def test_keys_on_a_terminal(shell: Shell) -> None:
    with connect(shell, "drawers-3") as pool, pool.begin_demand(name="never"):
        pool.sync()
        screen = Screen(shell)
        screen.wait_for("drawers-*")
        screen.press("3")
        screen.wait_for("drawers-3")
        screen.press("e")
        screen.wait_for("name=never")
        screen.press("q")
        screen.wait_for("PID  OFF/S")
        screen.press("q")
        assert screen.end() == 0


@pytest.mark.parametrize("killed", [True, False])
def test_a_server_that_is_started_again_is_shown(bare: Shell, killed: bool) -> None:
    server = bare.serve()
    screen = Screen(bare)
    screen.wait_for(f"pid {server.pid}")
    if killed:
        server.signal(signal.SIGKILL)
        screen.wait_for("not turning for")
    else:
        bare.run("pool", "stop")
        screen.wait_for("ended")
    server.end()
    again = bare.serve()
    screen.wait_for(f"pid {again.pid}")
    with connect(bare):
        screen.wait_for("member-*")
    screen.press("q")
    assert screen.end() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_restores_the_terminal(shell: Shell, number: signal.Signals) -> None:
    with connect(shell):
        screen = Screen(shell)
        screen.wait_for("member-*")
        screen.process.send_signal(number)
        assert screen.end() == 0


def doctor(shell: Shell, status: int) -> dict[str, Document]:
    done = shell.run("doctor", "--json", "--pool", shell.pool, status=status)
    documents = [json.loads(line) for line in done.stdout.splitlines()]
    return {document["check"]: document for document in documents if "check" in document}


def test_doctor_of_a_pool(bare: Shell) -> None:
    assert "no server runs there" in doctor(bare, 1)["server"]["found"]
    server = bare.serve()
    with connect(bare):
        found = doctor(bare, 0)
        for check in ("server", "server version", "route", "wall clock", "pool", "limits", "waits"):
            assert found[check]["level"] == "ok", found[check]
        server.signal(signal.SIGSTOP)
        try:
            hung = doctor(bare, 1)["server"]
            assert f"process {server.pid} does not answer" in hung["found"]
            assert "kill -CONT" in hung["remedy"]
        finally:
            server.signal(signal.SIGCONT)
