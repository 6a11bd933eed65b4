"""The pool of a run: a server process for the run, and a thread that delivers events of the pool.

Objects are observed through events: none is received or held, so the run does not affect retention.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import select
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple

import junctura
from junctura._selectors import either, together
from junctura.errors import Closed, Disconnected, Error, InvalidSelector, Unavailable
from junctura.workflow._engine import events as ev
from junctura.workflow._engine.selector_hint import HINTS_S, NAME, selector_hint
from junctura.workflow._executors.jobs import Ended, Executor, Job
from junctura.workflow._spec.tasks import PoolWanted

if TYPE_CHECKING:
    from typing_extensions import Self

_OUT = (Closed, Disconnected)
# Length of the server's last output in an error.
_SAID_BYTES_MAX = 2000
# The line with which a server reports its address, and the part of its log in which the line may be.
_ANNOUNCED = re.compile(rb"^((?:unix:|tcp://|etcd://)\S+)\n", re.M)
_ANNOUNCED_BYTES_MAX = 1 << 20
# The text of `junctura pool serve --announce` before the address of a server that runs already.
_EARLIER = re.compile(rb"^junctura: a server runs at \S+ already", re.M)
# Interval between searches for the line.
_LOOK_S = 0.1


class Server:
    """A pool for this run only, served by a process that runs like a task.

    Its address is not in the file system, so nothing remains after it ends in any way.
    """

    def __init__(self, wanted: PoolWanted, executor: Executor, folder: Path, log: Path) -> None:
        self.url = f"unix:@junctura-run-{secrets.token_hex(8)}"
        self._log = log
        self._ended = threading.Event()
        self._cause = ""
        reading, self._writing = os.pipe()
        with os.fdopen(reading) as said:
            self._running = executor.start(self._job(wanted, folder), lambda: None, self._on_end)
            is_serving = bool(said.readline())
        if not is_serving:
            self._ended.wait()
            raise Unavailable("the run's own pool", f"cannot be served: {self._said() or self._cause}")

    def _job(self, wanted: PoolWanted, folder: Path) -> Job:
        options = ["--pool", self.url, "--announce", "--drain-timeout", "0s"]
        for option, value in (
            ("--schema", wanted.schema),
            ("--budget", wanted.memory_bytes),
            ("--spill", wanted.spill),
        ):
            options += [option, str(value)] if value is not None else []
        # Its report arrives here, whatever process starts the server; other output is written to its log.
        pipe = f"/proc/{os.getpid()}/fd/{self._writing}"
        announcing = (
            "/bin/sh",
            "-c",
            'exec "$@" >"$0"',
            pipe,
            sys.executable,
            "-m",
            "junctura",
            "pool",
            "serve",
            *options,
        )
        return Job("pool", announcing, folder, self._log)

    def _on_end(self, ended: Ended) -> None:
        self._cause = ended.cause or f"exit status {ended.code}, signal {ended.signal}"
        # A thread that waits for the address waits for nothing.
        os.close(self._writing)
        self._ended.set()

    def _said(self) -> str:
        with contextlib.suppress(OSError), self._log.open("rb") as file:
            file.seek(max(0, self._log.stat().st_size - _SAID_BYTES_MAX))
            return file.read().decode(errors="replace").strip()
        return ""

    def end(self) -> None:
        """Stops the server, and waits until it has exited; may be called twice."""
        self._running.end()
        self._ended.wait()


class Announcement(NamedTuple):
    """The address that a task announced."""

    url: str
    # Whether another server runs there.
    is_earlier: bool


def announcement(log: Path) -> Announcement | None:
    """Returns what the log of a task announces; None: nothing."""
    with contextlib.suppress(OSError), log.open("rb") as file:
        content = file.read(_ANNOUNCED_BYTES_MAX)
        if found := _ANNOUNCED.search(content):
            return Announcement(found[1].decode(errors="replace"), _EARLIER.search(content) is not None)
    return None


class AnnouncementWatch:
    """Reports once, from a thread of its own, the address of the pool that a task serves, from the task's log.

    The task may run on another host, whose writes to a file cause no notification: the file is polled.
    """

    def __init__(self, log: Path, tell: Callable[[str], None]) -> None:
        self._log, self._tell = log, tell
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._go, name=f"{NAME}: announced", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stops reporting; waits for the thread. May be called twice."""
        self._closed.set()
        self._thread.join()

    def _go(self) -> None:
        while (found := announcement(self._log)) is None:
            if self._closed.wait(_LOOK_S):
                return
        self._tell(found.url)


class Watch:
    """Delivers events of the pool as events of the engine, from a thread of its own.

    Existing objects are reported before this returns.

    Raises
    ------
    Unavailable
        The pool cannot be reached.
    InvalidSelector
        No schema of the pool accepts one of the selectors.

    """

    def __init__(self, url: str, selectors: Iterable[str], tell: Callable[[ev.Event], None]) -> None:
        self._tell = tell
        self._url = url
        self._fences: deque[int] = deque()
        self._unmatched: deque[str] = deque()
        self._closing = threading.Event()
        self._woken, self._waking = os.pipe()
        with contextlib.ExitStack() as stack:
            stack.callback(os.close, self._woken)
            stack.callback(os.close, self._waking)
            pool = stack.enter_context(junctura.Pool(url, name=NAME))
            self._asked: list[_Asked] = [stack.enter_context(_Clients(pool))]
            for matching in _matchings(pool, selectors):
                # Each has its own connection: data of one read during a call for another would not wake a waiting
                # thread.
                self._asked.append(stack.enter_context(_PoolObjects(url, matching)))
            for asked in self._asked:
                for event in asked.first():
                    tell(event)
            self._stack = stack.pop_all()
        self._thread = threading.Thread(target=self._go, name=NAME, daemon=True)
        self._thread.start()

    def fence(self, number: int) -> None:
        """Requests a `Fenced` after every earlier event has been delivered; does not wait."""
        self._fences.append(number)
        os.write(self._waking, b".")

    def hint(self, selector: str) -> None:
        """Requests the `Hinted` of a selector; does not wait."""
        self._unmatched.append(selector)
        os.write(self._waking, b".")

    def close(self) -> None:
        """Stops delivering; waits for the thread. May be called twice."""
        if not self._closing.is_set():
            self._closing.set()
            os.write(self._waking, b".")
            self._thread.join()
            with contextlib.suppress(*_OUT):
                self._stack.close()

    def _go(self) -> None:
        poll = select.poll()
        for descriptor in (self._woken, *(asked.pool.fileno() for asked in self._asked)):
            poll.register(descriptor, select.POLLIN)
        try:
            while not self._closing.is_set():
                self._take_all()
                poll.poll()
        except Exception as error:
            if not self._closing.is_set():
                cause = error.cause if isinstance(error, Error) else repr(error)
                self._tell(ev.PoolEnded(f"the pool has ended: {cause}"))
            # No more events arrive: requests are answered at once.
            while not self._closing.is_set():
                self._answer(len(self._fences), len(self._unmatched))
                os.read(self._woken, 4096)

    def _take_all(self) -> None:
        # Events delivered now are those before the request for these fences.
        fences, unmatched = len(self._fences), len(self._unmatched)
        for _ in range(fences + unmatched):
            os.read(self._woken, 1)
        for asked in self._asked:
            # This also detects the end of the server, which a call without waiting does not report.
            asked.pool.sync()
            for event in asked.come():
                self._tell(event)
        self._answer(fences, unmatched)

    def _answer(self, fences: int, unmatched: int) -> None:
        for _ in range(fences):
            self._tell(ev.Fenced(self._fences.popleft()))
        deadline = time.monotonic() + HINTS_S
        for _ in range(unmatched):
            if self._closing.is_set():
                return
            selector = self._unmatched.popleft()
            self._tell(ev.Hinted(selector, selector_hint(self._url, selector, deadline)))


class _Asked:
    """The events of one connection."""

    def __init__(self, pool: junctura.Pool, selector: str, kinds: list[Any]) -> None:
        self.pool = pool
        self._events = pool.subscribe(selector, kinds=kinds)

    def first(self) -> Iterator[ev.Event]:
        """Reports the existing state; some of it may be reported again."""
        raise NotImplementedError

    def told(self, event: junctura.Event) -> Iterator[ev.Event]:
        """Returns the engine events for an event of the pool."""
        raise NotImplementedError

    def come(self) -> Iterator[ev.Event]:
        """Returns all events received so far.

        Raises
        ------
        Closed, Disconnected
            The server has ended.

        """
        while True:
            try:
                event = self._events.next(timeout=0)
            except junctura.Timeout:
                return
            if event is None:
                raise Closed(self.pool.url, "the server was stopped")
            yield from self.told(event)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _value: BaseException | None, _trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(*_OUT):
            self._events.close()


class _Clients(_Asked):
    """Observes clients that connect and disconnect, and complete bundles."""

    def __init__(self, pool: junctura.Pool) -> None:
        super().__init__(pool, "", ["joined", "left", "completed"])
        self._there: set[int] = set()

    def first(self) -> Iterator[ev.Event]:
        for bundle in self.pool.bundles():
            if bundle.state == "visible" and bundle.path is not None:
                yield ev.Completed(bundle.path)
        for one in self.pool.stat()["clients"]:
            yield from self._joined(one["client"], one["name"], one.get("host", ""), one["pid"])

    def told(self, event: junctura.Event) -> Iterator[ev.Event]:
        if event.kind == "completed" and event.bundle is not None and event.bundle[0] is not None:
            yield ev.Completed(event.bundle[0])
        elif event.kind == "joined" and event.client is not None:
            yield from self._joined(event.client.client, event.client.name, event.client.host, event.client.pid)
        elif event.kind == "left" and event.client is not None and event.client.client in self._there:
            self._there.discard(event.client.client)
            yield ev.Left(event.client.client, event.reason, event.client.offered)

    def _joined(self, client: int, name: str, host: str, pid: int) -> Iterator[ev.Event]:
        if name != NAME and client not in self._there:
            self._there.add(client)
            yield ev.Joined(client, name, host, pid)


class _PoolObjects(_Asked):
    """Observes objects that match selectors."""

    def __init__(self, url: str, matching: _Matching) -> None:
        self._own = junctura.Pool(url, name=NAME)
        self._matching = matching
        try:
            super().__init__(self._own, matching.selector, ["offered"])
        except BaseException:
            self._own.close()
            raise

    def first(self) -> Iterator[ev.Event]:
        for entry in self.pool.list(self._matching.selector):
            yield from self._matching.offered(entry, entry.nbytes)

    def told(self, event: junctura.Event) -> Iterator[ev.Event]:
        if event.object is not None:
            yield from self._matching.offered(event.object, event.nbytes)

    def __exit__(
        self, _type: type[BaseException] | None, _value: BaseException | None, _trace: TracebackType | None
    ) -> None:
        super().__exit__(_type, _value, _trace)
        with contextlib.suppress(*_OUT):
            self._own.close()


class _Matching:
    """Selectors for the same schemas, combined into one request; identifies the selectors that match an object."""

    def __init__(self, texts: list[str]) -> None:
        self.selector = either(texts)
        self._texts = texts
        self._read: dict[str, list[tuple[str, junctura.Selector]]] = {}

    def offered(self, described: junctura.Described, nbytes: int) -> Iterator[ev.Event]:
        schema = described.schema
        if schema.name not in self._read:
            self._read[schema.name] = [(text, junctura.Selector(text, schema)) for text in self._texts]
        attributes = described.attributes
        version = described.version
        for text, selector in self._read[schema.name]:
            if selector.matches(attributes):
                # Attributes are words in commands, and strings in a line of JSON.
                words = {name: _plain(value) for name, value in attributes.items()}
                number = f"{version.incarnation}.{version.sequence}"
                yield ev.Offered(text, described.key, number, words, nbytes, time.time())


def _matchings(pool: junctura.Pool, selectors: Iterable[str]) -> Iterator[_Matching]:
    """Returns the selectors, combined if the same schemas accept them."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for text in sorted(set(selectors)):
        schemas = tuple(schema.name for schema in pool.schemas if _reads(schema, text))
        if not schemas:
            # The pool reports a better reason.
            pool.list(text)
        alike.setdefault(schemas, []).append(text)
    for texts in alike.values():
        yield from map(_Matching, together(texts))


def _reads(schema: junctura.Schema, text: str) -> bool:
    try:
        junctura.Selector(text, schema)
    except InvalidSelector:
        return False
    return True


def _plain(value: Any) -> str | int | float | bool | list[Any]:
    if isinstance(value, (str, int, float, bool)):
        return value
    return [_plain(one) for one in value] if isinstance(value, (list, tuple)) else str(value)
