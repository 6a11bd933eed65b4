"""The status of a running workflow: a table that is updated on a terminal, occasional lines elsewhere."""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TextIO

from junctura._progress import Screen, bar
from junctura.workflow._view.text_format import clean, count, last_lines, seconds

if TYPE_CHECKING:
    from typing_extensions import Self

_COLUMNS = ("waiting", "ready", "running", "done", "failed")
_ENDS = ("done", "failed", "skipped", "cancelled")
_EVERY_S = 0.1
_TICK_S = 0.5
_KINDS_MAX = 16
_RUNNING_SHOWN = 4
_RATE_S = 5.0
_LOG_LINES = 5
_TOLD_MAX = 50
_BAR = 12


class StatusView:
    """Shows a run from the lines of its record as they are written. Never raises; blocks only on its stream.

    Parameters
    ----------
    quiet
        Whether to show nothing.
    folder
        The folder of the run, to show the last lines of logs of failed tasks.
    stream
        The output; standard error.
    clock
        Returns the time, in seconds since 1970.

    """

    def __init__(
        self,
        quiet: bool = False,
        folder: Path | None = None,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._screen, self._folder, self._clock = Screen(quiet, stream), folder, clock
        self._quiet = quiet
        self._name = "workflow"
        self._begin = self._at = 0.0
        self._kinds: dict[str, Counter[str]] = {}
        self._tasks: dict[str, tuple[str, str]] = {}
        self._running: dict[str, float] = {}
        self._logs: dict[str, str] = {}
        self._events: Counter[str] = Counter()
        self._offered: deque[float] = deque()
        self._told: Counter[tuple[str, str]] = Counter()
        self._shown_at = 0.0
        self._lock = threading.Lock()
        self._is_over = threading.Event()
        self._ticker: threading.Thread | None = None

    def take(self, event: dict[str, Any]) -> None:
        """Handles a new line of the record."""
        if self._quiet:
            return
        with self._lock:
            said = self._note(event)
            if event.get("kind") == "run_end":
                self._draw(is_last=True)
                self._screen.keep()
                self._is_over.set()
            if said:
                self._screen.say(*said)
                self._shown_at = 0.0
            self._draw()

    def recall(self, events: Iterable[dict[str, Any]]) -> None:
        """Handles earlier lines of a resumed run: they are counted, and not shown."""
        with self._lock:
            for event in events:
                self._note(event)
            # Rare messages are shown again.
            self._told.clear()

    def __enter__(self) -> Self:
        if self._screen.is_terminal:
            self._ticker = threading.Thread(target=self._tick, name="junctura-view", daemon=True)
            self._ticker.start()
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _value: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._is_over.set()
        if self._ticker is not None:
            self._ticker.join()

    def _tick(self) -> None:
        """Updates durations when there are no events."""
        while not self._is_over.wait(_TICK_S):
            with self._lock:
                self._draw()

    def _note(self, event: dict[str, Any]) -> list[str]:
        """Records a line; returns the messages to show."""
        kind = str(event.get("kind"))
        at = event.get("at")
        self._at = max(self._at, float(at)) if isinstance(at, int | float) else self._at
        of_the_run = {"run": self._run, "event": self._event, "run_end": self._run_end}
        if kind in of_the_run:
            return of_the_run[kind](event)
        name = event.get("task")
        if not isinstance(name, str):
            return []
        steps = {"ready": self._ready, "start": self._start, "begin": self._began, "end": self._ended}
        if kind in steps:
            return steps[kind](name, event)
        if kind in _ENDS:
            return self._became(name, kind, event)
        return self._end_asked(name, event) if kind == "end_asked" else []

    def _become(self, name: str, state: str, of: str = "") -> None:
        kind, before = self._tasks.get(name, (of or name, ""))
        counts = self._kinds.setdefault(kind, Counter())
        counts[before] -= 1
        counts[state] += 1
        self._tasks[name] = (kind, state)
        if state != "running":
            self._running.pop(name, None)

    def _run(self, event: dict[str, Any]) -> list[str]:
        self._name, self._begin = clean(str(event.get("workflow") or self._name), 60), self._at
        said = event.get("tasks")
        tasks = [task for task in said if isinstance(task, dict)] if isinstance(said, list) else []
        repeated = event.get("again")
        repeated = {str(name) for name in repeated} if isinstance(repeated, list) else set()
        # Tasks for objects that are not complete are repeated, too.
        for name, (of, state) in list(self._tasks.items()):
            if state != "done" or name in repeated:
                self._become(name, "waiting", of)
        for task in tasks:
            name = str(task.get("task"))
            if self._tasks.get(name, ("", ""))[1] != "done" or task.get("service") or name in repeated:
                self._become(name, "waiting", str(task.get("of") or name))
        pool = f", pool {clean(str(event['pool']))}" if event.get("pool") else ""
        again = ", resumed" if event.get("resumed") else ""
        again += f"; {count(len(repeated), 'task')} done before run again: their objects are lost" if repeated else ""
        return [f"  {self._name}: {count(len(tasks), 'task')}{pool}{again}"]

    def _event(self, event: dict[str, Any]) -> list[str]:
        what = str(event.get("event"))
        if what == "served":
            return [] if self._screen.is_terminal else [f"{self._since()}  pool {clean(str(event.get('pool')))}"]
        self._events[what] += 1
        if what == "offered":
            self._offered.append(self._at)
        return []

    def _ready(self, name: str, event: dict[str, Any]) -> list[str]:
        self._become(name, "ready", str(event.get("of") or name))
        return []

    def _start(self, name: str, event: dict[str, Any]) -> list[str]:
        self._logs[name] = str(event.get("log") or "")
        return []

    def _began(self, name: str, event: dict[str, Any]) -> list[str]:
        self._become(name, "running")
        self._running[name] = self._at
        number = event.get("attempt")
        return self._plain(name, "runs", f", attempt {number}" if isinstance(number, int) and number > 1 else "")

    def _ended(self, name: str, event: dict[str, Any]) -> list[str]:
        self._running.pop(name, None)
        if event.get("code") == 0 or self._tasks.get(name, ("", ""))[1] != "running":
            return []
        self._become(name, "ready")
        cause = clean(str(event.get("cause") or f"exit status {event.get('code')}"))
        self._told["", "attempts"] += 1
        if self._told["", "attempts"] > _TOLD_MAX:
            return []
        text = f"{self._since()}  {clean(name, 60)}, attempt {event.get('attempt')}: {cause}"
        return [text, *self._tail(self._logs.get(name, ""))]

    def _became(self, name: str, state: str, event: dict[str, Any]) -> list[str]:
        # The template of tasks for objects is not a task itself.
        self._become(name, state if event.get("counts", True) else "")
        self._logs.pop(name, None)
        cause = f": {clean(str(event['cause']))}" if event.get("cause") else ""
        if state == "failed" and self._screen.is_terminal and sum(self._counts("failed")) <= _TOLD_MAX:
            return [f"{self._since()}  {clean(name, 60)} has failed{cause}"]
        if state == "done" and cause:
            # It has no task: its selector probably has a mistake.
            return [f"{self._since()}  {clean(name, 60)} is done{cause}"]
        return self._plain(name, f"is {state}" if state != "failed" else "has failed", cause)

    def _end_asked(self, name: str, event: dict[str, Any]) -> list[str]:
        return self._plain(name, "is told to end", f": {clean(str(event['cause']))}" if event.get("cause") else "")

    def _plain(self, name: str, did: str, more: str) -> list[str]:
        """Without a terminal, shows the first ten events of a kind, and then at growing intervals."""
        if self._screen.is_terminal:
            return []
        kind = self._tasks.get(name, (name, ""))[0]
        self._told[kind, did] += 1
        some = self._told[kind, did]
        if some % 10 ** (len(str(some)) - 1):
            return []
        which = f" ({some:,} of {clean(kind, 60)})" if some >= 10 else ""
        return [f"{self._since()}  {clean(name, 60)} {did}{which}{more}"]

    def _run_end(self, event: dict[str, Any]) -> list[str]:
        counts = ", ".join(
            f"{event[state]:,} {state}" for state in _ENDS if isinstance(event.get(state), int) and event[state]
        )
        warned = event.get("warnings")
        if isinstance(warned, int) and warned > 0:
            counts = ", ".join([*([counts] if counts else []), count(warned, "warning")])
        objects = f"; {count(self._events['offered'], 'object')}" if self._events["offered"] else ""
        status = clean(str(event.get("status") or "ended"), 30)
        return [f"  {self._name} {status} after {seconds(self._at - self._begin)}: {counts or 'no tasks'}{objects}"]

    def _since(self) -> str:
        return f"  {seconds(max(0.0, self._at - self._begin)):>9}"

    def _tail(self, log: str) -> list[str]:
        """Returns the last lines of a log."""
        if self._folder is None or not log:
            return []
        return [f"             | {line}" for line in last_lines(self._folder / log, _LOG_LINES)]

    def _draw(self, *, is_last: bool = False) -> None:
        now = self._clock()
        is_early = 0 <= now - self._shown_at < _EVERY_S and not is_last
        if not self._screen.is_terminal or is_early or self._is_over.is_set():
            return
        self._shown_at = now
        self._screen.draw(self._table(max(now, self._at)))

    def _counts(self, state: str) -> list[int]:
        return [counts[state] for counts in self._kinds.values()]

    def _table(self, now: float) -> list[str]:
        width = min(24, max([len(of) for of in self._kinds] + [8]))
        heads = "".join(f"{column:>9}" for column in _COLUMNS)
        lines = [f"  {clean(self._name, width):<{width}}{heads}   {seconds(max(0.0, now - self._begin))}"]
        # Unfinished tasks first.
        kinds = sorted(self._kinds, key=lambda of: not self._is_open(of))[:_KINDS_MAX]
        lines += [self._row(of, width) for of in self._kinds if of in kinds]
        if len(self._kinds) > _KINDS_MAX:
            lines.append(f"  and {len(self._kinds) - _KINDS_MAX} more kinds")
        running = sorted(self._running, key=lambda name: self._running[name])
        shown = [
            f"{clean(name, 30)} {seconds(max(0.0, now - self._running[name]))}" for name in running[:_RUNNING_SHOWN]
        ]
        lines.append(f"  {len(running):,} run{': ' if shown else ''}{', '.join(shown)}")
        if self._events:
            lines.append(self._pool(now))
        return lines

    def _is_open(self, of: str) -> bool:
        return any(self._kinds[of][state] for state in ("waiting", "ready", "running"))

    def _row(self, of: str, width: int) -> str:
        counts = self._kinds[of]
        total = sum(counts[state] for state in (*_COLUMNS, "skipped", "cancelled"))
        cells = "".join(f"{counts[column] or '·':>9}" for column in _COLUMNS)
        others = "".join(f", {counts[state]:,} {state}" for state in ("skipped", "cancelled") if counts[state])
        return f"  {clean(of, width):<{width}}{cells}   {bar(counts['done'], total, _BAR)}{others}"

    def _pool(self, now: float) -> str:
        while self._offered and self._offered[0] <= now - _RATE_S:
            self._offered.popleft()
        rate = f" ({len(self._offered) / _RATE_S:.1f}/s)" if self._offered else ""
        others = "".join(f", {some:,} {clean(what, 20)}" for what, some in self._events.items() if what != "offered")
        return f"  pool: {self._events['offered']:,} offered{rate}{others}"
