"""Measures how long one request of one client keeps a server from all others.

A server answers a millisecond of one client's requests before others get their turn, and carries out
requests about many objects in steps (docs/guide/operations.md); a bundle becomes visible in one piece. Each
sample is one such request, on a server of its own, in a pool that one client has prepared within its limits:
how long another client waited at most, and beside it the processor time of the thread that decides, which does
not depend on what else the machine does. What grows with the pool is measured at two sizes.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable
from pathlib import Path

from harness import Bench, Case, Check, Contender, Figures, LeftOutError, Measure, begin, first_line, portable
from hostile import Place, Watch, command, schedule, served
from hostile_client import (
    Hand,
    ask_all,
    demand,
    follow,
    lease,
    listing,
    number_body,
    offer_many,
    require,
    stop_all,
    withdraw,
)
from hostile_wire import (
    ABORT,
    ALL_EVENTS,
    BUNDLE,
    DEMAND,
    FOLLOW,
    LEASE,
    LIST,
    OFFER,
    REQUIRE,
    RETIRE,
    SEAL,
    STAGE,
    STAT,
    SUBSCRIBE,
    WITHDRAW,
    Door,
    cbor,
    offer,
    record,
    selector_target,
)

WAIT = Measure("longest_wait_ms", "ms", more_is_better=False)
# A turn of all heavy clients, and what a sleeping client takes to notice its answer.
WAIT_MS_MAX = 1.0
FEW, MANY = 5_000, 50_000
# More than fit into the memory.
SEGMENTS = 250
MIB = 1 << 20

Step = Callable[[Hand, Door], None]


def nothing(hand: Hand, door: Door) -> None:
    """Prepares nothing."""


def objects(count: int) -> Step:
    return lambda hand, door: offer_many(hand, door, count)


def owed(requirements: int, count: int) -> Step:
    """So many requirements of as many objects each."""

    def prepare(hand: Hand, door: Door) -> None:
        offer_many(hand, door, count)
        ask_all(door, REQUIRE, [require(f"space={hand.space}") for _ in range(requirements)])

    return prepare


def subscribed(count: int) -> Step:
    everything = cbor({0: "", 1: ALL_EVENTS})
    return lambda _, door: void(ask_all(door, SUBSCRIBE, [everything] * count))


def interested(kind: int, body: Callable[[str], bytes], count: int) -> Step:
    """So many interests in the objects that are offered next."""
    return lambda hand, door: void(ask_all(door, kind, [body(f"space={hand.space}")] * count))


def waiting(count: int) -> Step:
    """Leases that wait, behind those that have taken all memory."""
    return lambda _, door: void(ask_all(door, LEASE, [lease(MIB)] * (count + SEGMENTS)))


def staged(count: int) -> Step:
    def prepare(hand: Hand, door: Door) -> None:
        bundle = ask_all(door, BUNDLE, [b"\xa0"])[0]
        bodies = (number_body(bundle) + offer(record(hand.space, f"{n:06}")) for n in range(count))
        ask_all(door, STAGE, bodies)
        hand.counts["bundle"] = bundle

    return prepare


def required(count: int) -> Step:
    """A requirement of so many objects."""

    def prepare(hand: Hand, door: Door) -> None:
        offer_many(hand, door, count)
        hand.counts["requirement"] = ask_all(door, REQUIRE, [require(f"space={hand.space}")])[0]

    return prepare


def void(_: object) -> None:
    """Drops what a step gives."""


def request(kind: int, body: Callable[[Hand], bytes]) -> Step:
    return lambda hand, door: void(ask_all(door, kind, [body(hand)]))


def expressions(texts: list[str]) -> Step:
    return request(DEMAND, lambda _: demand(" or ".join(f'name~"{text}"' for text in texts), 0))


offer_one = request(OFFER, lambda hand: offer(record(hand.space, "1")))


def slow_scan(hand: Hand) -> bytes:
    text = f'space={hand.space} and name~"^(x+x+)+y$"'
    return cbor({0: selector_target(text), 1: 0, 2: True})


SLOW = {
    "32 regular expressions": (nothing, expressions([f"\\\\w{n}" for n in range(32)])),
    "2 regular expressions that ignore case": (
        nothing,
        expressions(["(?i)[a-\\\\x{10ffff}]" + str(n) for n in range(2)]),
    ),
    "a follow of 10,000 values": (
        nothing,
        request(FOLLOW, lambda _: follow("name=" + "/".join(map(str, range(9990))))),
    ),
    "counters": (nothing, request(STAT, lambda _: b"")),
    "an offer, beside 1,000 subscriptions to all": (
        subscribed(1000),
        request(OFFER, lambda _: offer(record("o", "1"))),
    ),
    "an offer, beside 10,000 requirements of it": (
        owed(10_000, 0),
        request(OFFER, lambda hand: offer(record(hand.space, "1"))),
    ),
}
GROWING: dict[str, Callable[[int], tuple[Step, Step]]] = {
    "a list by key of {}": lambda n: (objects(n), request(LIST, lambda _: listing(""))),
    "a list by attribute of {}": lambda n: (objects(n), request(LIST, lambda _: listing("", [1, ["name"]]))),
    "a withdraw-all of none of {}": lambda n: (objects(n), request(RETIRE, slow_scan)),
    "a withdraw-all of {}": lambda n: (
        objects(n),
        request(RETIRE, lambda hand: cbor({0: selector_target(f"space={hand.space}"), 1: 0, 2: True})),
    ),
    "the end of a requirement of {}": lambda n: (
        required(n),
        lambda hand, door: stop_all(door, [hand.counts["requirement"]]),
    ),
    # Tables of 57,344 entries grow.
    "10,000 offers to {}": lambda n: (objects(n), lambda hand, door: offer_many(hand, door, 10_000, prefix="x")),
    "a requirement of {}": lambda n: (objects(n), request(REQUIRE, lambda hand: require(f"space={hand.space}"))),
    "a follow with room for {}": lambda n: (
        objects(n),
        request(FOLLOW, lambda hand: follow(f"space={hand.space}", window=MIB, only_new=False)),
    ),
    "a withdraw, 20 requirements owed {}": lambda n: (
        owed(20, n),
        request(WITHDRAW, lambda hand: withdraw(hand.space, "none")),
    ),
    "the end of a client, 20 requirements owed {}": lambda n: (owed(20, n), lambda _, door: door.close()),
    "a bundle of {} becomes visible": lambda n: (
        staged(n),
        request(SEAL, lambda hand: number_body(hand.counts["bundle"])),
    ),
    "a bundle of {} is aborted": lambda n: (
        staged(n),
        request(ABORT, lambda hand: number_body(hand.counts["bundle"])),
    ),
    "an offer, beside {} demands of it": lambda n: (interested(DEMAND, demand, n), offer_one),
    "an offer, beside {} follows of it": lambda n: (interested(FOLLOW, follow, n), offer_one),
    "an offer, beside {} subscriptions to it": lambda n: (
        interested(SUBSCRIBE, lambda text: cbor({0: text, 1: ALL_EVENTS}), n),
        offer_one,
    ),
}


WAITING = {
    f"a lease, behind {count:,} that wait": (waiting(count), request(LEASE, lambda _: lease(MIB)))
    for count in (500, 5000)
}


def sample(prepare: Step, act: Step) -> Figures:
    with served(Place("unix", "256MiB")) as server, Watch(server) as watch:
        hand = Hand(server.url, server.gate)
        hand.is_ready = True
        with contextlib.closing(hand.door()) as door:
            try:
                prepare(hand, door)
                door.sync()
            except OSError as error:
                raise LeftOutError(str(error)) from error
            # What was put off until the server is idle.
            time.sleep(0.1)
            decider = Path(f"/proc/{server.process.pid}/task/{server.process.pid}")
            idle = schedule(decider)[0]
            time.sleep(0.1)
            watch.begin()
            before = schedule(decider)[0]
            idle = before - idle
            act(hand, door)
            time.sleep(0.1)
            watch.starter.sync()
            after = schedule(decider)[0]
            waits = watch.figures()["probe_us"]
    # The probes take as much as in the tenth of a second before.
    return {"cpu_ms": round(max(0, after - before - idle) / 1e6, 2), "longest_wait_ms": round(waits["max"] / 1000, 2)}


def contender(name: str, steps: tuple[Step, Step]) -> Contender:
    return Contender(name, "us", "its effect", "no payload", [command(), "pool", "serve"], lambda: sample(*steps))


def cases(bench: Bench) -> list[Case]:
    sizes = (FEW // 10, FEW) if bench.quick else (FEW, MANY)
    grown = {name.format(f"{n:,}"): make(n) for name, make in GROWING.items() for n in sizes}
    grown |= WAITING
    found = []
    for name, all_steps in (("turns-requests", SLOW), ("turns-sizes", grown)):
        contenders = [contender(one, steps) for one, steps in all_steps.items()]
        checks = [Check(one.name, at_most=WAIT_MS_MAX) for one in contenders]
        found.append(
            Case(name, "how long one request of one client keeps another waiting", WAIT, contenders, checks, 3)
        )
    return found


def main() -> int:
    bench = begin("hostile_turns", "How long can one request keep a server from all others?")
    bench.versions.update(junctura=first_line(command(), "--version"), command=portable([command()])[0])
    return bench.run(cases(bench))


if __name__ == "__main__":
    sys.exit(main())
