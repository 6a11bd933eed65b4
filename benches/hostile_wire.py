"""A client of the wire format that checks nothing: for ``hostile_client.py``, and for the probe of ``hostile.py``.

Frames are made and read by hand (docs/formats/wire.md, docs/formats/link.md), so that a client can send what the
libraries refuse to send. It needs nothing but Python.
"""

from __future__ import annotations

import os
import select
import socket
import struct
import time
from collections import Counter, deque
from collections.abc import Iterable
from pathlib import Path
from typing import Any

# Frames from client to server.
HELLO, OFFER, LEASE, DEMAND, CANCEL, LIST, FOLLOW, MORE = 1, 2, 3, 5, 6, 7, 8, 9
RELEASE, REQUIRE, WITHDRAW, RETIRE, SUBSCRIBE, STOP, STAT, RETRACT = 10, 11, 12, 13, 14, 15, 16, 18
BUNDLE, SEAL, ABORT, STAGE, BUNDLES, SYNC, PACK = 22, 23, 24, 25, 26, 28, 30
# Frames from server to client.
WELCOME, FAILED, LISTED, STATS, BEGAN = 64, 65, 72, 75, 78

INLINE, FOR_A_TIME = 1, 16
ALL_EVENTS = 0x1FFFF
FRAME_HEAD, RECORD_HEAD = struct.Struct("<IBBHQ"), struct.Struct("<B3xIIIQ")
# Record kinds of a link that have a body.
RECORD_BODIES = (1, 2, 11)
BATCH_BYTES = 64 << 10
PATIENCE_S = 30.0


def cbor(value: Any) -> bytes:
    """Encodes a value; a ``bytearray`` is taken as it is, whatever it claims."""
    if isinstance(value, bytearray):
        return bytes(value)
    if value is None or isinstance(value, bool):
        return {None: b"\xf6", True: b"\xf5", False: b"\xf4"}[value]
    if isinstance(value, int):
        return cbor_head(0, value)
    if isinstance(value, bytes):
        return cbor_head(2, len(value)) + value
    if isinstance(value, str):
        text = value.encode()
        return cbor_head(3, len(text)) + text
    if isinstance(value, dict):
        return cbor_head(5, len(value)) + b"".join(cbor(key) + cbor(item) for key, item in value.items())
    return cbor_head(4, len(value)) + b"".join(cbor(item) for item in value)


def cbor_head(major: int, number: int) -> bytes:
    if number < 24:
        return bytes([major << 5 | number])
    for code, form in ((24, ">B"), (25, ">H"), (26, ">I"), (27, ">Q")):
        if number < 1 << (8 * struct.calcsize(form)):
            return bytes([major << 5 | code]) + struct.pack(form, number)
    raise ValueError(number)


def frame(kind: int, body: bytes = b"", request: int = 0) -> bytes:
    return FRAME_HEAD.pack(len(body), kind, 0, 0, request) + body


def record(space: str, name: str, **undeclared: str) -> bytes:
    """The attributes of an object of the schema ``free``."""
    declared = ((0, space.encode()), (1, name.encode()))
    parts = [struct.pack("<BH", place, len(text)) + text for place, text in declared]
    for key in sorted(undeclared):
        text = undeclared[key].encode()
        parts.append(struct.pack("<BB", 255, len(key)) + key.encode() + struct.pack("<H", len(text)) + text)
    return b"".join(parts)


def offer(attributes: bytes, payload: bytes = b"x", *, length: int | None = None, for_ms: int = 0) -> bytes:
    """The body of ``Offer``; ``length``: what it claims of its payload; ``for_ms``: how long the object stays."""
    claimed = len(payload) if length is None else length
    flags = INLINE | (FOR_A_TIME if for_ms else 0)
    return struct.pack("<HHIIIIIQ", 0, flags, for_ms, len(attributes), 0, 0, 0, claimed) + attributes + payload


def key_target(space: str, name: str) -> list[Any]:
    return [0, [0, record(space, name)]]


def selector_target(selector: str) -> list[Any]:
    return [1, [selector]]


class Door:
    """One connection: ``unix:/path`` or ``tcp://host:port``, greeted and introduced unless ``silent``.

    What comes is counted and dropped, except answers that ``ask`` waits for.
    """

    def __init__(self, url: str, counts: Counter[str], *, name: str = "hostile", silent: bool = False) -> None:
        self.counts = counts
        self.is_linked = url.startswith("tcp://")
        self._requests = 1
        self._arrived, self._frames = bytearray(), bytearray()
        self._answers: dict[int, deque[tuple[int, bytes]]] = {}
        if self.is_linked:
            host, port = url.removeprefix("tcp://").rsplit(":", 1)
            self.socket = socket.create_connection((host, int(port)), timeout=PATIENCE_S)
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        else:
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.settimeout(PATIENCE_S)
            try:
                self.socket.connect(url.removeprefix("unix:"))
            except OSError:
                self.socket.close()
                raise
        counts["connections"] += 1
        if silent:
            self.socket.setblocking(False)
            return
        try:
            self._introduce(name)
        except BaseException:
            self.socket.close()
            raise

    def _introduce(self, name: str) -> None:
        if self.is_linked:
            self.socket.sendall(greeting())
            head = self._exactly(12)
            self._exactly(struct.unpack("<H", head[10:])[0])
        self.socket.setblocking(False)
        hello = cbor({0: 1, 1: name, 2: "host", 3: os.getpid(), 4: []})
        self.expect(1)
        self.say([frame(HELLO, hello, 1)])
        kind, _ = self.answer(1)
        self.forget(1)
        if kind != WELCOME:
            raise ConnectionError("the server refuses the client")

    def _exactly(self, size: int) -> bytes:
        got = b""
        while len(got) < size:
            more = self.socket.recv(size - len(got))
            if not more:
                raise ConnectionError("the server closed the connection")
            got += more
        return got

    def number(self) -> int:
        """A request number that is new."""
        self._requests += 1
        return self._requests

    def say(self, frames: Iterable[bytes], *, deaf: bool = False) -> None:
        """Sends frames, in batches; reads what comes meanwhile, unless ``deaf``."""
        batch = bytearray()
        for one in frames:
            batch += one
            self.counts["frames"] += 1
            if len(batch) >= BATCH_BYTES:
                self._send(self._packed(batch), deaf=deaf)
                batch.clear()
        if batch:
            self._send(self._packed(batch), deaf=deaf)

    def _packed(self, frames: bytearray) -> bytes:
        return (RECORD_HEAD.pack(1, len(frames), 0, 0, 0) if self.is_linked else b"") + bytes(frames)

    def raw(self, words: bytes) -> None:
        """Sends bytes as they are."""
        self._send(words)

    def _send(self, words: bytes, *, deaf: bool = False) -> None:
        left, until = memoryview(words), time.monotonic() + PATIENCE_S
        while left:
            try:
                sent = self.socket.send(left)
                left = left[sent:]
            except BlockingIOError:
                pass
            if left:
                self._wait(0.5, also_out=True)
                if time.monotonic() > until:
                    raise ConnectionError("the server does not read")
            if not deaf:
                self.drain()

    def _wait(self, seconds: float, *, also_out: bool = False) -> None:
        events = select.POLLIN | (select.POLLOUT if also_out else 0)
        poll = select.poll()
        poll.register(self.socket, events)
        poll.poll(seconds * 1000)

    def drain(self, seconds: float = 0.0) -> None:
        """Reads what has come; waits so long for more."""
        until = time.monotonic() + seconds
        while True:
            try:
                words = self.socket.recv(1 << 20)
            except BlockingIOError:
                left = until - time.monotonic()
                if left <= 0:
                    return
                self._wait(left)
                continue
            if not words:
                raise ConnectionError("the server closed the connection")
            self.counts["bytes_read"] += len(words)
            self._read(words)

    def _read(self, words: bytes) -> None:
        if self.is_linked:
            self._arrived += words
            at = 0
            while len(self._arrived) - at >= RECORD_HEAD.size:
                kind, length, *_ = RECORD_HEAD.unpack_from(self._arrived, at)
                size = RECORD_HEAD.size + (length if kind in RECORD_BODIES else 0)
                if len(self._arrived) - at < size:
                    break
                if kind == 1:
                    self._frames += self._arrived[at + RECORD_HEAD.size : at + size]
                at += size
            del self._arrived[:at]
        else:
            self._frames += words
        at = 0
        while len(self._frames) - at >= FRAME_HEAD.size:
            length, kind, _, _, request = FRAME_HEAD.unpack_from(self._frames, at)
            size = FRAME_HEAD.size + length
            if len(self._frames) - at < size:
                break
            self.counts["failed" if kind == FAILED else "answers"] += 1
            if request in self._answers:
                self._answers[request].append((kind, bytes(self._frames[at + FRAME_HEAD.size : at + size])))
            at += size
        del self._frames[:at]

    def ask(self, kind: int, body: bytes = b"") -> tuple[int, bytes]:
        """Sends a request and waits for its first answer: kind and body."""
        number = self.number()
        self.expect(number)
        self.say([frame(kind, body, number)])
        answer = self.answer(number)
        self.forget(number)
        return answer

    def expect(self, number: int) -> None:
        """Keeps the answers to a request, for ``answer``."""
        self._answers[number] = deque()

    def forget(self, number: int) -> None:
        """Drops further answers to a request."""
        del self._answers[number]

    def answer(self, number: int) -> tuple[int, bytes]:
        """The next answer to a request that ``expect`` named."""
        until = time.monotonic() + PATIENCE_S
        while not self._answers[number]:
            if time.monotonic() > until:
                raise ConnectionError("the server does not answer")
            self._wait(0.5)
            self.drain()
        return self._answers[number].popleft()

    def sync(self) -> None:
        """Waits until the server has read everything so far."""
        self.ask(SYNC)

    def close(self) -> None:
        self.socket.close()


def greeting() -> bytes:
    """What a client of a gate says first."""
    body = cbor({1: 1 << 20})
    return b"JUNCTURA" + struct.pack("<HH", 1, len(body)) + body


def golden_frames() -> list[bytes]:
    """One frame of every kind that a client sends, where the repository is at hand."""
    page = Path(__file__).resolve().parent.parent / "docs/formats/wire-golden.txt"
    if not page.exists():
        return []
    lines = page.read_text(encoding="ascii").splitlines()
    words = [bytes.fromhex(line.split()[1]) for line in lines if line and not line.startswith("#")]
    return [one for one in words if one[4] < 64]
