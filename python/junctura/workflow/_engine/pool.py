"""The pool of a run: a server of the run's own, and one thread that tells what happens in a pool.

Objects are looked at by their events: none is received or held, so what producers said of retention means what it says.
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
from typing import Any

from typing_extensions import Self

import junctura
from junctura._selectors import either, together
from junctura.errors import Closed, Disconnected, Error, InvalidSelector, Unavailable
from junctura.workflow._engine import events as ev
from junctura.workflow._executors.jobs import Ended, Executor, Job
from junctura.workflow._spec.tasks import PoolWanted

NAME = "junctura workflow"
_OUT = (Closed, Disconnected)
# So much of what the server said when it could not serve.
_SAID_BYTES_MAX = 2000
# The line with which a server says where it serves, and up to where in its log that may stand.
_ANNOUNCED = re.compile(rb"^((?:unix:|tcp://|etcd://)\S+)\n", re.M)
_ANNOUNCED_BYTES_MAX = 1 << 20
# How often it is looked for.
_LOOK_S = 0.1


class Server:
    """A pool of the run's own, served by a process that is run as its tasks are.

    Its name is in no folder, so whatever ends it leaves none behind.
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
        options = [self.url, "--announce", "--drain-timeout", "0s"]
        for option, value in (
            ("--schema", wanted.schema),
            ("--budget", wanted.memory_bytes),
            ("--spill", wanted.spill),
        ):
            options += [option, str(value)] if value is not None else []
        # What it announces comes here, by whatever process it is started; the rest goes to its log.
        pipe = f"/proc/{os.getpid()}/fd/{self._writing}"
        announcing = ("/bin/sh", "-c", 'exec "$@" >"$0"', pipe, sys.executable, "-m", "junctura", "serve", *options)
        return Job("pool", announcing, folder, self._log)

    def _on_end(self, ended: Ended) -> None:
        self._cause = ended.cause or f"exit status {ended.code}, signal {ended.signal}"
        # Whoever waits for it to serve waits for nothing.
        os.close(self._writing)
        self._ended.set()

    def _said(self) -> str:
        with contextlib.suppress(OSError), self._log.open("rb") as file:
            file.seek(max(0, self._log.stat().st_size - _SAID_BYTES_MAX))
            return file.read().decode(errors="replace").strip()
        return ""

    def end(self) -> None:
        """Ends it, and waits until it has; may be called twice."""
        self._running.end()
        self._ended.wait()


class AnnouncementWatch:
    """Tells once, from a thread of its own, where a task serves a pool: it announces that in its log.

    It may run on another machine, and of what that writes into a file nothing tells: it is looked at now and then.
    """

    def __init__(self, log: Path, tell: Callable[[str], None]) -> None:
        self._log, self._tell = log, tell
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._go, name=f"{NAME}: announced", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Nothing is told any more; waits for the thread. May be called twice."""
        self._closed.set()
        self._thread.join()

    def _go(self) -> None:
        while not (url := self._url()):
            if self._closed.wait(_LOOK_S):
                return
        self._tell(url)

    def _url(self) -> str:
        with contextlib.suppress(OSError), self._log.open("rb") as file:
            if found := _ANNOUNCED.search(file.read(_ANNOUNCED_BYTES_MAX)):
                return found[1].decode(errors="replace")
        return ""


class Watch:
    """Tells what happens in a pool as events of the engine of a run, from a thread of its own.

    What is there already is told before this returns.

    Raises
    ------
    Unavailable
        The pool cannot be reached.
    InvalidSelector
        No schema of the pool can read one of the selectors.

    """

    def __init__(self, url: str, selectors: Iterable[str], tell: Callable[[ev.Event], None]) -> None:
        self._tell = tell
        self._fences: deque[int] = deque()
        self._is_closed = False
        self._woken, self._waking = os.pipe()
        with contextlib.ExitStack() as stack:
            stack.callback(os.close, self._woken)
            stack.callback(os.close, self._waking)
            pool = stack.enter_context(junctura.Pool(url, name=NAME))
            self._asked: list[_Asked] = [stack.enter_context(_Clients(pool))]
            for matching in _matchings(pool, selectors):
                # Each has a connection of its own: what is read with something else of one wakes nobody.
                self._asked.append(stack.enter_context(_PoolObjects(url, matching)))
            for asked in self._asked:
                for event in asked.first():
                    tell(event)
            self._stack = stack.pop_all()
        self._thread = threading.Thread(target=self._go, name=NAME, daemon=True)
        self._thread.start()

    def fence(self, number: int) -> None:
        """Has `Fenced` told when all has been told that happened before; does not wait."""
        self._fences.append(number)
        os.write(self._waking, b".")

    def close(self) -> None:
        """Nothing is told any more; waits for the thread. May be called twice."""
        if not self._is_closed:
            self._is_closed = True
            os.write(self._waking, b".")
            self._thread.join()
            with contextlib.suppress(*_OUT):
                self._stack.close()

    def _go(self) -> None:
        poll = select.poll()
        for descriptor in (self._woken, *(asked.pool.fileno() for asked in self._asked)):
            poll.register(descriptor, select.POLLIN)
        try:
            while not self._is_closed:
                self._take_all()
                poll.poll()
        except Exception as error:
            if not self._is_closed:
                cause = error.cause if isinstance(error, Error) else repr(error)
                self._tell(ev.PoolEnded(f"the pool has ended: {cause}"))
            # Nothing comes: who asks is told so at once.
            while not self._is_closed:
                self._answer(len(self._fences))
                os.read(self._woken, 4096)

    def _take_all(self) -> None:
        # What is told now is all that happened before these fences were asked for.
        count = len(self._fences)
        for _ in range(count):
            os.read(self._woken, 1)
        for asked in self._asked:
            # Also tells whether the server is there still, which one who looks without waiting is not told.
            asked.pool.sync()
            for event in asked.come():
                self._tell(event)
        self._answer(count)

    def _answer(self, count: int) -> None:
        for _ in range(count):
            self._tell(ev.Fenced(self._fences.popleft()))


class _Asked:
    """What is heard by one connection."""

    def __init__(self, pool: junctura.Pool, selector: str, kinds: list[Any]) -> None:
        self.pool = pool
        self._events = pool.subscribe(selector, kinds=kinds)

    def first(self) -> Iterator[ev.Event]:
        """What is there already; some of it may come again."""
        raise NotImplementedError

    def told(self, event: junctura.Event) -> Iterator[ev.Event]:
        """What an event of the pool means for the run."""
        raise NotImplementedError

    def come(self) -> Iterator[ev.Event]:
        """All that has come.

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
    """Who comes and goes, and which bundles are complete."""

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
            yield ev.Left(event.client.client, event.reason)

    def _joined(self, client: int, name: str, host: str, pid: int) -> Iterator[ev.Event]:
        if name != NAME and client not in self._there:
            self._there.add(client)
            yield ev.Joined(client, name, host, pid)


class _PoolObjects(_Asked):
    """Objects that are looked for."""

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
    """Selectors that the same schemas can read, asked as one; says which of them found something."""

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
                # Attributes are words in commands, and words in a line of JSON.
                words = {name: _plain(value) for name, value in attributes.items()}
                number = f"{version.incarnation}.{version.sequence}"
                yield ev.Offered(text, described.key, number, words, nbytes, time.time())


def _matchings(pool: junctura.Pool, selectors: Iterable[str]) -> Iterator[_Matching]:
    """The selectors, together where the same schemas can read them."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for text in sorted(set(selectors)):
        schemas = tuple(schema.name for schema in pool.schemas if _reads(schema, text))
        if not schemas:
            # The pool says better why.
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
