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
    {tell}
    {wait}
except KeyboardInterrupt:
    print("interrupted", flush=True)
# The pool works as before.
assert len(pool.list("name=0/1/2/3")) == 4, pool.list()
print("done", flush=True)
"""

A_BUNDLE = "bundle = pool.bundle('b', members=2)"
OWED = "kept = pool.require('name=a'); pool.offer(b'', name='a')"
# Before the loop runs, asyncio itself may take a signal for a mere cancellation (CPython 3.11, `Runner.run`).
TELL = 'print("waiting", flush=True)'
IN_A_LOOP = """
import asyncio
async def main():
    print("waiting", flush=True)
    async with junctura.aio.Pool(pool) as ours:
        {}
"""
RUN = "asyncio.run(main())"


def awaited(*lines: str) -> tuple[str, str]:
    return IN_A_LOOP.format("\n        ".join(lines)), RUN


WAITS = {
    "a demand that was begun": ("demand = pool.begin_demand(name='a')", "demand.get()"),
    "a demand through a requirement": ("kept = pool.require('name=a')", "kept.demand(name='a')"),
    "follow of a group": ("follow = pool.follow('name=x', group='g')", "next(follow)"),
    "follow of a requirement": ("kept = pool.require('name=x'); follow = kept.follow()", "next(follow)"),
    "wait": ("demand = pool.begin_demand(name='a')", "pool.wait(demand)"),
    "wait with a timer": ("timer = junctura.Timer(after=3600)", "pool.wait(timer)"),
    "a bundle": (A_BUNDLE, "bundle.wait()"),
    "a bundle with a timeout": (A_BUNDLE, "bundle.wait(3600)"),
    "withdraw-all": (OWED, "pool.withdraw_all('name=a')"),
    "a pipeline": (
        "pipeline = pool.pipeline()",
        "[pipeline.offer(bytes(1 << 20), name=f'big {at}') for at in range(64)]",
    ),
    "asyncio: demand": awaited("await ours.demand(name='a')"),
    "asyncio: demand with a timeout": awaited("await ours.demand(name='a', timeout=3600)"),
    "asyncio: follow": awaited("async for obj in ours.follow('name=x'): pass"),
    "asyncio: follow with a timeout": awaited("await ours.follow('name=x').next(3600)"),
    "asyncio: follow of a group": awaited("async for obj in ours.follow('name=x', group='g'): pass"),
    "asyncio: events": awaited("async for event in ours.subscribe('name=x', kinds=['offered']): pass"),
    "asyncio: withdraw": (OWED + awaited("await ours.withdraw(name='a')")[0], RUN),
    "asyncio: withdraw-all": (OWED + awaited("await ours.withdraw_all('name=a')")[0], RUN),
    "asyncio: offer": awaited("for at in range(64):", "    await ours.offer(bytes(1 << 20), name=f'big {at}')"),
    "asyncio: offer_many": awaited(
        "await ours.offer_many([(bytes(1 << 20), {'name': f'big {at}'}) for at in range(64)])"
    ),
    "asyncio: pipeline": awaited(
        "async with ours.pipeline() as pipeline:",
        "    for at in range(64):",
        "        await pipeline.offer(bytes(1 << 20), name=f'big {at}')",
    ),
    "asyncio: allocate": awaited("kept = [await ours.allocate(1 << 20) for _ in range(64)]"),
    "asyncio: a bundle": awaited("async with ours.bundle('b', members=2) as bundle:", "    await bundle.wait()"),
    "asyncio: a requirement": awaited("async with ours.require('name=x') as kept:", "    await kept.demand(name='x')"),
    "asyncio: wait": awaited("await ours.wait(ours.subscribe(kinds=['left']))"),
    "asyncio: many tasks": awaited("await asyncio.gather(*(ours.demand(name=f'x{at}') for at in range(100)))"),
    "demand": ("", "pool.demand(name='a')"),
    "demand with a timeout": ("", "pool.demand(name='a', timeout=3600)"),
    "follow": ("follow = pool.follow('name=x')", "next(follow)"),
    "a full window": ("follow = pool.follow(window=2); held = [next(follow), next(follow)]", "follow.next(3600)"),
    "events": ("events = pool.subscribe('name=x', kinds=['offered'])", "next(events)"),
    "withdraw": ("kept = pool.require('name=a'); pool.offer(b'', name='a')", "pool.withdraw(name='a')"),
    "offer": ("", "[pool.offer(bytes(1 << 20), name=f'big {at}') for at in range(64)]"),
    "offer_many": ("", "pool.offer_many([(bytes(1 << 20), {'name': f'big {at}'}) for at in range(64)])"),
    "allocate": ("", "kept = [pool.allocate(1 << 20) for _ in range(64)]"),
    "stop": (
        f"server = junctura.Pool(schema='free'); {OWED}".replace("pool.", "server."),
        "server.stop()",
    ),
    "asyncio: stop": (
        f"server = junctura.Pool(schema='free'); {OWED}".replace("pool.", "server.")
        + awaited("await junctura.aio.Pool(server).stop()")[0],
        RUN,
    ),
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
    program = PROGRAM.format(setup=setup, tell="pass" if wait == RUN else TELL, wait=wait)
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
try:
    # The creator may hear of it, and be gone, before this returns.
    pool.offer(b"", name="ready")
    pool.demand(name="never")
except (junctura.Disconnected, junctura.Closed) as error:
    print(type(error).__name__, flush=True)
"""


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
def test_an_embedded_pool_ends_with_its_creator_and_its_children_are_told(sent: signal.Signals) -> None:
    out, status = run(f"CHILD = {CHILD!r}\n{CREATOR}", sent)
    assert out == ("Disconnected\n" if sent == signal.SIGTERM else "Closed\n")
    assert status == (-signal.SIGTERM if sent == signal.SIGTERM else -signal.SIGINT)
