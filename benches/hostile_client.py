"""A client that misuses a server, for ``hostile.py``: ``hostile_client.py KIND URL GATE``.

It prints ``ready`` when it has been connected, misbehaves until SIGTERM, and prints what it did as JSON. A connection
that ends is replaced by a new one. ``GATE`` is the server's TCP address, for the kinds that only a gate answers.

No kind withdraws objects of others, stops the server or asks for a drain: every client may do that. ``UNPROTECTED``
has kinds against which a server does not promise anything (docs/guide/security.md): they fill its memory, or make
each object of others expensive.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import random
import resource
import signal
import struct
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from hostile_wire import (
    ABORT,
    ALL_EVENTS,
    BEGAN,
    BUNDLE,
    BUNDLES,
    CANCEL,
    DEMAND,
    FOLLOW,
    HELLO,
    LEASE,
    LIST,
    LISTED,
    MORE,
    OFFER,
    PACK,
    RELEASE,
    REQUIRE,
    RETIRE,
    RETRACT,
    STAGE,
    STAT,
    STOP,
    SUBSCRIBE,
    WITHDRAW,
    Door,
    cbor,
    cbor_head,
    frame,
    golden_frames,
    greeting,
    key_target,
    offer,
    record,
    selector_target,
)

MIB = 1 << 20
# What garbage must not become by chance: the end of the server or of objects of others, or what keeps those.
SPARED = (HELLO, FOLLOW, REQUIRE, WITHDRAW, RETIRE, 17, 20)
# An array that claims 2^60 elements.
HUGE = 1 << 60


class EndedError(BaseException):
    """SIGTERM came."""


class Hand:
    """What every kind has: where the server is, and what was counted."""

    def __init__(self, url: str, gate: str) -> None:
        self.url, self.gate = url, gate
        self.space = f"hostile-{os.getpid()}"
        self.counts: Counter[str] = Counter()
        self.is_ready = False

    def door(self, *, silent: bool = False, at_gate: bool = False) -> Door:
        door = Door(self.gate if at_gate else self.url, self.counts, silent=silent)
        self.ready()
        return door

    def ready(self) -> None:
        if not self.is_ready:
            self.is_ready = True
            print("ready", flush=True)

    @contextlib.contextmanager
    def opened(self, *, at_gate: bool = False) -> Iterator[Door]:
        with contextlib.closing(self.door(at_gate=at_gate)) as door:
            yield door

    def cycles(self) -> Iterator[int]:
        """Numbers without end, counted."""
        for cycle in itertools.count():
            self.counts["cycles"] += 1
            yield cycle


def follow(
    selector: str, *, window: int = 16, only_new: bool = True, until_live: bool = False, group: str | None = None
) -> bytes:
    shared = {20: group, 21: {0: False}} if group else {}
    return cbor({0: selector, 1: [0, []], 2: window, 4: only_new, 6: until_live, **shared})


def demand(selector: str, timeout_ms: int | None = None) -> bytes:
    return cbor({0: selector_target(selector), **({} if timeout_ms is None else {1: timeout_ms})})


def listing(selector: str, order: list[Any] | None = None) -> bytes:
    return cbor({0: selector, 1: order or [0, []]})


def require(selector: str, name: str | None = None) -> bytes:
    return cbor({0: selector, 1: False, **({2: name} if name else {}), 4: False, 20: False})


def lease(payload_bytes: int) -> bytes:
    return cbor({0: payload_bytes, 1: None})


def withdraw(space: str, name: str) -> bytes:
    return cbor({0: key_target(space, name), 1: 0, 2: True})


def number_body(number: int) -> bytes:
    return struct.pack("<Q", number)


def ask_all(door: Door, kind: int, bodies: Iterator[bytes] | list[bytes]) -> list[int]:
    """Sends many requests at once; their numbers."""
    numbers: list[int] = []

    def frames() -> Iterator[bytes]:
        for body in bodies:
            numbers.append(door.number())
            yield frame(kind, body, numbers[-1])

    door.say(frames())
    return numbers


def stop_all(door: Door, numbers: list[int]) -> None:
    door.say(frame(STOP, number_body(number), door.number()) for number in numbers)


def offer_many(hand: Hand, door: Door, count: int, *, prefix: str = "", for_ms: int = 0) -> None:
    """Makes objects of its own visible."""
    bodies = [offer(record(hand.space, f"{prefix}{n:06}"), for_ms=for_ms) for n in range(count)]
    ask_all(door, OFFER, bodies)
    door.sync()


# The kinds. Each has the connection in hand and goes on until something ends it.


def regexes(hand: Hand) -> None:
    """Selectors whose regular expressions are at their limits."""
    with hand.opened() as door:
        for cycle in hand.cycles():
            texts = [" or ".join(f'name~"\\\\w{cycle}x{n}x{k}"' for k in range(32)) for n in range(4)]
            texts += [" or ".join(f'name~"(?i)[a-\\\\x{{10ffff}}]{cycle}x{n}x{k}"' for k in range(2)) for n in range(4)]
            ask_all(door, DEMAND, [demand(text, 0) for text in texts])
            door.sync()


def selectors(hand: Hand) -> None:
    """Thousands of standing selectors; a few hundred that no index helps with."""
    with hand.opened() as door:
        for cycle in hand.cycles():
            values = [f"space={hand.space},name=" + "/".join(f"{n}v{v}" for v in range(50)) for n in range(4000)]
            plain = [f'space={hand.space},name~"^{cycle}n{n}$"' for n in range(200)]
            free = [f"not name={cycle}n{n} and space={hand.space}" for n in range(200)]
            started = ask_all(door, FOLLOW, [follow(text) for text in values])
            started += ask_all(door, SUBSCRIBE, [cbor({0: text, 1: ALL_EVENTS}) for text in plain + free])
            door.sync()
            offer_many(hand, door, 50)
            door.drain(1.0)
            stop_all(door, started)
            ask_all(door, WITHDRAW, [withdraw(hand.space, f"{n:06}") for n in range(50)])
            door.sync()


def lists(hand: Hand) -> None:
    """Lists of everything, page by page, by key and by an attribute."""
    with hand.opened() as door:
        offer_many(hand, door, 5000)
        for cycle in hand.cycles():
            number = door.number()
            door.expect(number)
            door.say([frame(LIST, listing("", [0, []] if cycle % 2 else [1, ["name"]]), number)])
            kind, body = door.answer(number)
            while kind in (BEGAN, LISTED) and not (kind == LISTED and body[0]):
                if kind == LISTED:
                    door.say([frame(MORE, number_body(number), door.number())])
                kind, body = door.answer(number)
            door.forget(number)


def demands(hand: Hand) -> None:
    """Demands for keys and by selectors that nobody serves, given up later."""
    with hand.opened() as door:
        for cycle in hand.cycles():
            keys = (cbor({0: key_target(hand.space, f"{cycle}n{n}")}) for n in range(20_000))
            numbers = ask_all(door, DEMAND, keys)
            texts = (demand(f"space={hand.space},name={cycle}m{n},colour={'y' * 900}") for n in range(2000))
            numbers += ask_all(door, DEMAND, texts)
            door.sync()
            door.drain(0.5)
            door.say(frame(CANCEL, number_body(number), door.number()) for number in numbers)
            door.sync()


def requirements(hand: Hand) -> None:
    """Requirements with names and without, of its own objects, ended or left behind."""
    with hand.opened() as door:
        for cycle in hand.cycles():
            ask_all(door, REQUIRE, [require(f"space={hand.space}") for _ in range(2000)])
            names = [f"{hand.space}-{n}" for n in range(200)]
            ask_all(door, REQUIRE, [require(f"space={hand.space}", name) for name in names])
            offer_many(hand, door, 20)
            ask_all(door, WITHDRAW, [withdraw(hand.space, f"{n:06}") for n in range(20)])
            ask_all(door, RETRACT, [cbor({0: name}) for name in names])
            door.sync()
            if cycle % 2:
                return


def attributes(hand: Hand) -> None:
    """Objects of one byte whose attributes are at their limits: 60 of 1,000 bytes."""
    with hand.opened() as door:
        most = {f"a{n:02}": "v" * 1000 for n in range(60)}
        for cycle in hand.cycles():
            ask_all(door, OFFER, [offer(record(hand.space, f"{cycle}n{n}", **most)) for n in range(50)])
            ask_all(door, WITHDRAW, [withdraw(hand.space, f"{cycle}n{n}") for n in range(50)])
            door.sync()


def events(hand: Hand) -> None:
    """Subscriptions to everything whose events are never read."""
    with hand.opened() as door:
        ask_all(door, SUBSCRIBE, [cbor({0: "", 1: ALL_EVENTS}) for _ in range(16)])
        until = time.monotonic() + 5
        with hand.opened() as other:
            for cycle in hand.cycles():
                name = f"{cycle}" + "k" * 900
                other.say([frame(OFFER, offer(record(hand.space, name)), other.number())])
                other.ask(WITHDRAW, withdraw(hand.space, name))
                if time.monotonic() > until:
                    return


def leases(hand: Hand) -> None:
    """Leases memory, puts nothing there, passes over every recall, and leaves without a word.

    A segment has several times what is asked for: this is a tenth of 256 MiB.
    """
    with hand.opened() as door:
        ask_all(door, LEASE, [lease(MIB) for _ in range(4)])
        door.drain(2.0)
        hand.counts["cycles"] += 1


def storm(hand: Hand) -> None:
    """Connects, says Hello, and leaves, as often as it can."""
    for cycle in hand.cycles():
        if cycle % 2:
            hand.door(silent=True).close()
        else:
            hand.door().close()


def silent(hand: Hand) -> None:
    """Connections that say nothing, or half of what a client says first."""
    half = greeting()[:9] if hand.url.startswith("tcp://") else frame(1, b"\xa5\0\1", 1)[:12]
    kept: list[Door] = []
    try:
        for cycle in hand.cycles():
            kept.append(hand.door(silent=True))
            if cycle % 2:
                kept[-1].raw(half)
            if len(kept) == 200:
                time.sleep(0.5)
                while kept:
                    kept.pop().close()
    finally:
        for door in kept:
            door.close()


def garbage(hand: Hand) -> None:
    """Bytes that are no frames, frames whose bodies are nonsense, and frames with a wrong bit."""
    draw = random.Random(os.getpid())
    golden = [one for one in golden_frames() if one[4] not in SPARED] or [
        frame(OFFER, offer(record("s", "n")), 7),
        frame(DEMAND, demand("name=1", 0), 7),
    ]
    for cycle in hand.cycles():
        with contextlib.suppress(ConnectionError, OSError), hand.opened() as door:
            if cycle % 4 == 0:
                door.raw(draw.randbytes(4096))
            elif cycle % 4 == 1:
                kinds = [kind for kind in range(2, 40) if kind not in SPARED]
                door.say(frame(draw.choice(kinds), draw.randbytes(draw.randrange(200)), n) for n in range(1, 100))
            elif cycle % 4 == 2:
                unheld = struct.pack("<IIQ", 77, 0, 42) * 60_000
                door.say([frame(RELEASE, unheld)])
            else:
                for _ in range(100):
                    wrong = bytearray(draw.choice(golden))
                    wrong[draw.randrange(16, max(17, len(wrong))) % len(wrong)] ^= 1 << draw.randrange(8)
                    door.say([bytes(wrong)])
            door.drain(0.01)


def lengths(hand: Hand) -> None:
    """Frames, texts, lists, payloads and leases that claim far more than there is."""
    claims = [
        frame(DEMAND, cbor({0: [1, [bytearray(cbor_head(3, (1 << 62)))]]}), 5),
        frame(LIST, cbor({0: bytearray(cbor_head(4, HUGE)), 1: [0, []]}), 6),
        frame(SUBSCRIBE, cbor_head(5, HUGE), 7),
        frame(OFFER, offer(record(hand.space, "claims"), length=HUGE), 8),
        frame(OFFER, struct.pack("<HHIIIIIQ", 0, 0, 0, 4, 0, 1 << 31, 1 << 31, HUGE) + b"\0\0\0\0", 9),
        frame(LEASE, lease(HUGE), 10),
        frame(BUNDLE, cbor({1: HUGE}), 11),
        frame(FOLLOW, follow("name=1", window=HUGE), 12),
        frame(RELEASE, b"\xff" * 4096, 13),
        frame(DEMAND, cbor({0: [1, ["(" * 60_000]], 1: 0}), 14),
        frame(DEMAND, b"\x81" * 60_000, 15),
    ]
    for _ in hand.cycles():
        for claim in claims:
            with contextlib.suppress(ConnectionError, OSError), hand.opened() as door:
                door.say([claim])
                door.drain(0.002)
        with contextlib.suppress(ConnectionError, OSError), hand.opened() as door:
            door.raw(b"\xff" * 16)
            door.drain(0.002)


def arrays(hand: Hand) -> None:
    """Objects and requests for parts of arrays that claim 2^60 elements."""
    with hand.opened() as door:
        payload = f"junctura-array 1\nshape={HUGE} grid=1048576\n".encode()
        for cycle in hand.cycles():
            names = [f"{cycle}n{n}" for n in range(50)]
            extents = {"dtype": "<f8"}
            ask_all(door, OFFER, [offer(record(hand.space, name, **extents), payload) for name in names])
            ask_all(door, PACK, [pack(f"shape={HUGE} grid=1048576", f"shape={HUGE}") for _ in range(50)])
            ask_all(door, WITHDRAW, [withdraw(hand.space, name) for name in names])
            door.sync()


def pack(whole: str, wanted: str) -> bytes:
    piece = 'piece_of="free{space=default}{}{name=none}",rank=0'
    pieces = [{0: 0, 1: selector_target(piece)}]
    return cbor({0: whole, 1: wanted, 2: [0], 3: 0, 4: "<f8", 5: "<f8", 6: pieces})


def packs(hand: Hand) -> None:
    """Asks a gate for parts of arrays, each time with a layout of 700 KB."""
    layout = "shape=8388608 slabs=" + ";".join(["0:1"] * 175_000)
    with hand.opened(at_gate=True) as door:
        for _ in hand.cycles():
            ask_all(door, PACK, [pack("shape=8388608 grid=2", layout) for _ in range(8)])
            door.sync()


def offers(hand: Hand) -> None:
    """Offers and withdraws, as fast as it can."""
    with hand.opened() as door:
        for cycle in hand.cycles():
            names = [f"{cycle}n{n}" for n in range(200)]
            ask_all(door, OFFER, [offer(record(hand.space, name)) for name in names])
            ask_all(door, WITHDRAW, [withdraw(hand.space, name) for name in names])
            door.sync()


def groups(hand: Hand) -> None:
    """Many groups with many members, joined and left, and readers that end when they have caught up."""
    with hand.opened() as door:
        offer_many(hand, door, 500)
        for _ in hand.cycles():
            own = f"space={hand.space}"
            members = [follow(own, only_new=False, group=f"{hand.space}-{n % 50}") for n in range(500)]
            started = ask_all(door, FOLLOW, members)
            started += ask_all(door, FOLLOW, [follow(own, only_new=False, until_live=True) for _ in range(100)])
            door.sync()
            stop_all(door, started)
            ask_all(door, RETRACT, [cbor({0: f"{hand.space}-{n}"}) for n in range(50)])
            door.sync()


def bundles(hand: Hand) -> None:
    """Opens bundles, stages members, asks for them, and gives them up."""
    with hand.opened() as door:
        for cycle in hand.cycles():
            opened = ask_all(door, BUNDLE, [cbor({0: f"{hand.space}/{cycle}n{n}"}) for n in range(50)])
            bodies = [
                number_body(bundle) + offer(record(hand.space, f"{cycle}b{bundle}n{n}"))
                for bundle in opened
                for n in range(20)
            ]
            ask_all(door, STAGE, bodies)
            ask_all(door, BUNDLES, [cbor({0: "", 2: 0}) for _ in range(10)])
            ask_all(door, ABORT, [number_body(bundle) for bundle in opened])
            door.sync()


def stats(hand: Hand) -> None:
    """Asks for the server's counters, a hundred times at once."""
    with hand.opened() as door:
        for _ in hand.cycles():
            ask_all(door, STAT, [b""] * 100)
            door.sync()


def scans(hand: Hand) -> None:
    """Demands and mass withdrawals by selectors that no index helps with and that match nothing, among many objects."""
    with hand.opened() as door:
        offer_many(hand, door, 5000)
        for _ in hand.cycles():
            texts = [f'space={hand.space} and name~"^(x+x+)+{n}y$"' for n in range(20)]
            ask_all(door, DEMAND, [demand(text, 0) for text in texts])
            ask_all(door, RETIRE, [cbor({0: selector_target(text), 1: 0, 2: True}) for text in texts])
            door.sync()


def windows(hand: Hand) -> None:
    """Follows of a few thousand objects with room for all of them, ended unread."""
    with hand.opened() as door:
        offer_many(hand, door, 5000)
        for _ in hand.cycles():
            stop_all(door, ask_all(door, FOLLOW, [follow(f"space={hand.space}", window=MIB, only_new=False)]))
            door.sync()


def withdrawals(hand: Hand) -> None:
    """Withdraws objects that many requirements of its own are owed."""
    with hand.opened() as door:
        for cycle in hand.cycles():
            started = ask_all(door, REQUIRE, [require(f"space={hand.space}") for _ in range(100)])
            offer_many(hand, door, 1000, prefix=f"{cycle}n")
            ask_all(door, WITHDRAW, [withdraw(hand.space, f"{cycle}n{n:06}") for n in range(1000)])
            stop_all(door, started)
            door.sync()


def waiting_leases(hand: Hand) -> None:
    """Thousands of leases of nearly all memory, which wait because it keeps a little of it itself."""
    with hand.opened() as door:
        ask_all(door, LEASE, [lease(MIB)])
        budget_bytes = json.loads(door.ask(STAT)[1])["memory"]["budget_bytes"]
        for _ in hand.cycles():
            numbers = ask_all(door, LEASE, [lease(budget_bytes) for _ in range(4000)])
            door.say(frame(CANCEL, number_body(number), door.number()) for number in numbers)
            door.sync()


def killed(hand: Hand) -> None:
    """A process that holds much of everything, killed by SIGKILL, again and again."""
    for _ in hand.cycles():
        ready, said = os.pipe()
        child = os.fork()
        if child == 0:
            hold_much(hand, said)
        os.close(said)
        try:
            hand.counts["held"] += len(os.read(ready, 1))
        finally:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            os.close(ready)
        hand.ready()


def hold_much(hand: Hand, said: int) -> NoReturn:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        hand.is_ready = True
        door = hand.door()
        own = f"space={hand.space}"
        offer_many(hand, door, 2000, prefix=f"{os.getpid()}n", for_ms=2000)
        ask_all(door, LEASE, [lease(MIB) for _ in range(2)])
        ask_all(door, FOLLOW, [follow(own, window=4096, only_new=False) for _ in range(4)])
        ask_all(door, DEMAND, [cbor({0: key_target(hand.space, f"none{n}")}) for n in range(5000)])
        ask_all(door, REQUIRE, [require(own) for _ in range(200)])
        ask_all(door, SUBSCRIBE, [cbor({0: own, 1: ALL_EVENTS}) for _ in range(100)])
        opened = ask_all(door, BUNDLE, [b"\xa0" for _ in range(50)])
        ask_all(door, STAGE, [number_body(one) + offer(record(hand.space, f"staged{one}")) for one in opened])
        door.sync()
        os.write(said, b"1")
        time.sleep(60)
    finally:
        os._exit(0)


def compute(hand: Hand) -> None:
    """The control: computes, and does not connect to the server."""
    hand.ready()
    for _ in hand.cycles():
        sum(range(100_000))


# Against these a server does not promise anything.


def hoard(hand: Hand) -> None:
    """Leases all memory and puts nothing there."""
    with hand.opened() as door:
        ask_all(door, LEASE, [lease(MIB) for _ in range(4096)])
        door.drain(5.0)
        hand.counts["cycles"] += 1


def fill(hand: Hand) -> None:
    """Offers until the memory for attributes is full."""
    with hand.opened() as door:
        most = {f"a{n:02}": "v" * 1000 for n in range(60)}
        for cycle in hand.cycles():
            ask_all(door, OFFER, [offer(record(hand.space, f"{cycle}n{n}", **most)) for n in range(50)])
            door.drain(0.1)


def owed(hand: Hand) -> None:
    """Requirements of everything that nobody reads."""
    with hand.opened() as door:
        ask_all(door, REQUIRE, [require("") for _ in range(100)])
        hand.counts["cycles"] += 1
        door.drain(5.0)


def crowd(hand: Hand) -> None:
    """A thousand subscriptions to everything, whose events it reads."""
    with hand.opened() as door:
        ask_all(door, SUBSCRIBE, [cbor({0: "", 1: ALL_EVENTS}) for _ in range(1000)])
        for _ in hand.cycles():
            door.drain(1.0)


def matching(hand: Hand) -> None:
    """Standing selectors with slow regular expressions, asked for each object of others."""
    with hand.opened() as door:
        texts = [f'class~"^([a-z]?){{100}}{n}$"' for n in range(50)]
        ask_all(door, SUBSCRIBE, [cbor({0: text, 1: 1}) for text in texts])
        for _ in hand.cycles():
            door.drain(1.0)


KINDS: dict[str, Callable[[Hand], None]] = {
    kind.__name__: kind
    for kind in (
        regexes,
        selectors,
        lists,
        demands,
        requirements,
        attributes,
        events,
        leases,
        storm,
        silent,
        garbage,
        lengths,
        arrays,
        packs,
        offers,
        groups,
        bundles,
        stats,
        scans,
        windows,
        withdrawals,
        waiting_leases,
        killed,
    )
}
CONTROL = {"compute": compute}
UNPROTECTED: dict[str, Callable[[Hand], None]] = {kind.__name__: kind for kind in (hoard, fill, owed, crowd, matching)}


def misbehave(hand: Hand, kind: Callable[[Hand], None]) -> None:
    """Goes on whatever happens: an error or the end of a connection is followed by the next one."""
    while True:
        with survived(hand):
            kind(hand)


@contextlib.contextmanager
def survived(hand: Hand) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        hand.counts["ended_connections"] += 1
        hand.counts[f"ended: {error}"[:80]] += 1
        # A server that refuses connections is not asked more than a few hundred times a second.
        time.sleep(0.003)


def end(*_: object) -> NoReturn:
    raise EndedError


def main() -> None:
    kind, url, gate = sys.argv[1:4]
    signal.signal(signal.SIGTERM, end)
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    hand = Hand(url, gate)
    try:
        misbehave(hand, {**KINDS, **CONTROL, **UNPROTECTED}[kind])
    except EndedError:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        print(json.dumps({"kind": kind, **hand.counts}), flush=True)


if __name__ == "__main__":
    main()
