"""Ctrl-C ends every wait.

A child says on a pipe that it is about to wait; the signal is sent then. Whether it arrives before or during the wait,
the wait has to end.
"""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

PROGRAM = """
import signal, sys
import junctura
pool = junctura.Pool(schema="free", budget="8MiB", offer_timeout=None)
for at in range(4):
    pool.offer(b"", name=f"{{at}}")
{setup}
try:
    print("waiting", flush=True)
    {wait}
except KeyboardInterrupt:
    print("interrupted", flush=True)
# The pool works as before.
assert len(pool.list("name=0/1/2/3")) == 4, pool.list()
print("done", flush=True)
"""

WAITS = {
    "demand": ("", "pool.demand(name='a')"),
    "demand with a timeout": ("", "pool.demand(name='a', timeout=3600)"),
    "follow": ("follow = pool.follow('name=x')", "next(follow)"),
    "a full window": ("follow = pool.follow(window=2); held = [next(follow), next(follow)]", "follow.next(3600)"),
    "events": ("events = pool.subscribe('name=x', kinds=['offered'])", "next(events)"),
    "withdraw": ("kept = pool.require('name=a'); pool.offer(b'', name='a')", "pool.withdraw(name='a')"),
    "offer": ("", "[pool.offer(bytes(1 << 20), name=f'big {at}') for at in range(64)]"),
    "offer_many": ("", "pool.offer_many([(bytes(1 << 20), {'name': f'big {at}'}) for at in range(64)])"),
    "allocate": ("", "kept = [pool.allocate(1 << 20) for _ in range(64)]"),
    "another thread reads": (
        "import threading; threading.Thread(target=lambda: pool.demand(name='a'), daemon=True).start()",
        "pool.demand(name='b')",
    ),
}


def run(program: str, sent: signal.Signals) -> tuple[str, int]:
    """What a program prints after it was sent a signal in its wait, and how it ends."""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout is not None
            assert child.stdout.readline() == "waiting\n"
            child.send_signal(sent)
            out, _ = child.communicate()
        finally:
            child.kill()
    return out, child.returncode


@pytest.mark.parametrize(("setup", "wait"), WAITS.values(), ids=WAITS.keys())
def test_ctrl_c(setup: str, wait: str) -> None:
    program = PROGRAM.format(setup=setup, wait=wait)
    assert run(program, signal.SIGINT) == ("interrupted\ndone\n", 0)


def test_a_handler_that_raises_nothing_does_not_end_a_wait() -> None:
    program = """
import os, signal, threading
import junctura
pool = junctura.Pool(schema="free")
handled = threading.Event()
signal.signal(signal.SIGUSR1, lambda *_: handled.set())

def answer():
    handled.wait()
    pool.offer(b"", name="a")

threading.Thread(target=answer).start()
print("waiting", flush=True)
print(pool.demand(name="a")["name"], flush=True)
"""
    assert run(program, signal.SIGUSR1) == ("a\n", 0)


def test_what_a_handler_raises_is_what_the_wait_raises() -> None:
    program = """
import signal
import junctura
pool = junctura.Pool(schema="free")

class Enough(Exception):
    pass

def handler(*_):
    raise Enough

signal.signal(signal.SIGUSR1, handler)
try:
    print("waiting", flush=True)
    pool.demand(name="a")
except Enough:
    print("enough", flush=True)
"""
    assert run(program, signal.SIGUSR1) == ("enough\n", 0)


CREATOR = """
import subprocess, sys
import junctura
pool = junctura.Pool(schema="free")
child = subprocess.Popen([sys.executable, "-c", CHILD, pool.url], stdout=sys.stdout)
pool.require("")
pool.offer(b"", name="owed")
pool.demand(name="ready")
print("waiting", flush=True)
pool.demand(name="never")
"""

CHILD = """
import sys
import junctura
pool = junctura.Pool(sys.argv[1], schema="free")
pool.offer(b"", name="ready")
try:
    pool.demand(name="never")
except junctura.Disconnected:
    print("told", flush=True)
"""


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
def test_an_embedded_pool_ends_with_its_creator_and_its_children_are_told(sent: signal.Signals) -> None:
    out, status = run(f"CHILD = {CHILD!r}\n{CREATOR}", sent)
    assert out == "told\n"
    assert status == (-signal.SIGTERM if sent == signal.SIGTERM else -signal.SIGINT)
