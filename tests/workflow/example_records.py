"""Records of runs that never were: a clockwork starts tasks on cores, as the runner does, and writes that down.

``python example_records.py FOLDER`` writes them all, to be looked at.
"""

from __future__ import annotations

import heapq
import itertools
import json
import random
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

BEGIN = 1_795_168_800.25
Line = dict[str, Any]


@dataclass
class Work:
    """One task: after which others it starts, how long each attempt takes and how it ends, what it offers and when."""

    name: str
    of: str
    after: tuple[str, ...] = ()
    attempts: tuple[tuple[float, int], ...] = ((1.0, 0),)
    cores: int = 1
    service: bool = False
    users: tuple[str, ...] = ()
    offers: tuple[tuple[float, str], ...] = ()
    # Of a task that is there for each object: its selector, and which object it was.
    selector: str = ""
    object: str = ""
    queue_s: float = 0.002


@dataclass
class Play:
    """A run of such tasks."""

    workflow: str
    works: list[Work]
    cores: int = 4
    begin: float = BEGIN
    # What tasks there are for an object.
    each: Callable[[str], Iterable[Work]] = lambda _object: ()
    tell_who: bool = True
    stop_s: float | None = None
    resumed: bool = False
    done_before: frozenset[str] = frozenset()
    lines: list[Line] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._now = self.begin
        self._order = itertools.count()
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._ended: dict[str, str] = dict.fromkeys(self.done_before, "done")
        self._ready: list[tuple[Work, int]] = []
        self._waiting = [work for work in self.works if work.name not in self.done_before]
        self._free = self.cores
        self._begun: set[str] = set()
        # For which task another one waits that was looked at.
        self._stuck: dict[str, str] = {}

    def run(self) -> list[Line]:
        self.say(
            "run",
            format=1,
            workflow=self.workflow,
            file=f"{self.workflow}.yaml",
            run="2026-11-20T06-00-00",
            resumed=self.resumed,
            pool="unix:run-4711",
            host="node-17",
            pid=4711,
            version="0.1.0",
            tasks=[
                {
                    "task": w.name,
                    "of": w.of,
                    "service": w.service,
                    "after": list(w.after),
                    "start": "",
                    "cores": w.cores,
                }
                for w in self.works
            ],
        )
        self._look()
        while self._heap:
            self._now, _, step = heapq.heappop(self._heap)
            if self.stop_s is not None and self._now > self.begin + self.stop_s:
                return self.lines
            step()
            self._look()
        states = list(self._ended.values())
        counts = {one: states.count(one) for one in ("done", "failed", "skipped", "cancelled")}
        status = "failed" if counts["failed"] else "done"
        self.say("run_end", status=status, code=int(status == "failed"), seconds=self._now - self.begin, **counts)
        return self.lines

    def _known(self, work: Work) -> Line:
        known = {"task": work.name, "of": work.of, "service": work.service, "after": list(work.after)}
        return {**known, "start": "", "cores": work.cores}

    def say(self, kind: str, **words: Any) -> None:
        self.lines.append({"kind": kind, "at": round(self._now, 6), **words})

    def _in(self, seconds: float, step: Callable[[], None]) -> None:
        heapq.heappush(self._heap, (self._now + seconds, next(self._order), step))

    def _look(self) -> None:
        for work in list(self._waiting):
            if not self._is_over(self._stuck.get(work.name, "")):
                continue
            bad = [name for name in work.after if self._ended.get(name) in ("failed", "skipped")]
            self._stuck[work.name] = next((name for name in work.after if not self._is_over(name)), "")
            if bad:
                self._waiting.remove(work)
                self._become(work, "skipped", f"{bad[0]} has {self._ended[bad[0]]}")
            elif not self._stuck[work.name]:
                self._waiting.remove(work)
                reason: Line = {"kind": "after", "tasks": list(work.after)} if work.after else {"kind": "start"}
                self._make_ready(work, reason)
        while self._ready and self._free >= self._ready[0][0].cores:
            self._start(*self._ready.pop(0))

    def _is_over(self, name: str) -> bool:
        return not name or name in self._ended or name in self._begun

    def _make_ready(self, work: Work, reason: Line, number: int = 1) -> None:
        self.say("ready", task=work.name, of=work.of, service=work.service, cores=work.cores, reason=reason)
        self._ready.append((work, number))

    def _start(self, work: Work, number: int) -> None:
        self._free -= work.cores
        self.say(
            "start",
            task=work.name,
            attempt=number,
            command=["python", f"{work.of}.py", "--name", work.name],
            identity=f"process {4712 + next(self._order)}",
            log=f"logs/{work.name}.{number}.log",
        )
        self._in(work.queue_s, lambda: self._begin(work, number))

    def _begin(self, work: Work, number: int) -> None:
        self.say("begin", task=work.name, attempt=number)
        if work.service:
            self._begun.add(work.name)
            self._in(0.04, lambda: self._event("joined", client=work.name))
            return
        seconds, code = work.attempts[number - 1]
        for after, name in work.offers:
            if after < seconds:
                self._in(after, lambda name=name: self._offer(work, name))  # type: ignore[misc]
        self._in(seconds, lambda: self._end(work, number, code, seconds))

    def _event(self, event: str, **words: Any) -> None:
        self.say("event", event=event, **words)

    def _offer(self, work: Work, name: str) -> None:
        who = {"client": work.name} if self.tell_who else {}
        attributes = dict(part.split("=") for part in name.split(","))
        self._event("offered", object=name, attributes=attributes, bytes=6_480_000, **who)
        for other in self.each(name):
            reason = {"kind": "object", "object": name, "selector": other.selector, "attributes": attributes}
            self._make_ready(other, {**reason, "offered_at": round(self._now, 6)})

    def _end(self, work: Work, number: int, code: int, seconds: float) -> None:
        self._free += work.cores
        cause = f"exit status {code}" if code > 0 else f"killed by signal {-code}" if code else ""
        words = {"code": None, "signal": -code} if code < 0 else {"code": code, "signal": None}
        self.say("end", task=work.name, attempt=number, cause=cause, seconds=seconds, **words)
        if code and number < len(work.attempts):
            self._make_ready(work, {"kind": "restart", "attempt": number + 1}, number + 1)
            return
        self._become(work, "failed" if code else "done", cause)

    def _become(self, work: Work, outcome: str, cause: str) -> None:
        self.say(outcome, task=work.name, cause=cause)
        self._ended[work.name] = outcome
        for service in self.works:
            left = [user for user in service.users if user not in self._ended]
            if service.service and not left and service.name not in self._ended and not self._pending():
                self._ended[service.name] = "done"
                self.say("end_asked", task=service.name, cause="its users are done", at_once=False)
                self._in(0.2, lambda service=service: self._stop(service))  # type: ignore[misc]

    def _pending(self) -> bool:
        return bool(self._ready)

    def _stop(self, service: Work) -> None:
        self._free += service.cores
        self._event("left", client=service.name)
        self.say("end", task=service.name, attempt=1, code=0, signal=None, cause="", seconds=self._now - self.begin)
        self.say("done", task=service.name, cause="")


def ensemble() -> list[Line]:
    """Six members, each offering fields, a service that makes products, a picture for some."""
    dice = random.Random(6)
    works = [
        Work("prepare", "prepare", attempts=((1.4, 0),)),
        Work("products", "products", service=True, users=tuple(f"member-{n}" for n in range(6)), after=("prepare",)),
    ]
    for n in range(6):
        length = 7 + dice.random() * 3
        offers = tuple(
            (0.6 + k * length / 14, f"param={p},step={k * 6},number={n}") for k in range(13) for p in ("t", "gh")
        )
        attempts = ((1.9, -9), (length, 0)) if n == 3 else ((length, 0),)
        works.append(Work(f"member-{n}", "member", ("prepare",), attempts, offers=offers))
    members = tuple(f"member-{n}" for n in range(6))
    works.append(Work("mean", "mean", members, ((2.2, 0),), cores=2))
    works.append(Work("verify", "verify", ("mean",), ((0.9, 0),)))
    works.append(Work("report", "report", ("mean", "verify"), ((0.5, 0),)))

    def each(name: str) -> Iterable[Work]:
        number = name.rpartition("=")[2]
        if "param=gh,step=24," in name:
            yield Work(f"picture-{number}", "picture", attempts=((1.1, 0),), selector="param=gh,step=24", object=name)

    return Play("ensemble", works, cores=6, each=each).run()


def files() -> list[Line]:
    """Sixteen files of thirty fields each: a task for each field."""
    dice = random.Random(16)
    works = [
        Work(
            f"read-{n}",
            "read",
            attempts=((3 + dice.random() * 2, 0),),
            offers=tuple((0.1 + k * 0.09, f"param=t,step={n * 6},levelist={k}") for k in range(30)),
        )
        for n in range(16)
    ]
    names = itertools.count()

    def each(name: str) -> Iterable[Work]:
        number = next(names)
        length = 0.15 + dice.random() * 0.2
        bad = number in (100, 301)
        attempts = ((length, 1), (length, 1)) if bad else ((length, 0),)
        yield Work(f"regrid-{number}", "regrid", attempts=attempts, selector="param=t", object=name)

    works.append(Work("index", "index", tuple(w.name for w in works), ((0.8, 0),)))
    return Play("files", works, cores=12, each=each).run()


def trues(count: int = 1000, cores: int = 16) -> list[Line]:
    """Very many tasks of nearly no length."""
    dice = random.Random(1)
    works = [Work(f"true-{n}", "true", attempts=((0.01 + dice.random() * 0.02, 0),)) for n in range(count)]
    return Play("trues", works, cores=cores).run()


def at_once(count: int = 2000) -> list[Line]:
    """So many at once that no lanes can show them."""
    dice = random.Random(2)
    works = [
        Work(
            f"sample-{n}",
            "sample",
            attempts=((20 + dice.gauss(0, 4), 1 if n % 97 == 0 else 0),),
            queue_s=1 + dice.expovariate(0.2),
        )
        for n in range(count)
    ]
    works.append(Work("gather", "gather", tuple(w.name for w in works if int(w.name[7:]) % 97), ((6.0, 0),)))
    return Play("sweep", works, cores=600).run()


def resumed() -> list[Line]:
    """A task fails, its followers are skipped; the machine stops; on the next day the run goes on."""

    def works(code: int) -> list[Work]:
        made = [Work("fetch", "fetch", attempts=((3.0, 0),))]
        made += [Work(f"step-{n}", "step", ("fetch",), ((4.0 + n, code if n == 1 else 0),)) for n in range(4)]
        made.append(Work("plot", "plot", ("step-1",), ((2.0, 0),)))
        made.append(Work("all", "all", tuple(f"step-{n}" for n in range(4)), ((3.0, 0),)))
        return made

    first = Play("resumed", works(2), cores=3, stop_s=11.5)
    lines = first.run()
    done = frozenset(line["task"] for line in lines if line["kind"] == "done")
    again = Play("resumed", works(0), cores=3, begin=BEGIN + 86_000, resumed=True, done_before=done)
    return lines + again.run()


def three() -> list[Line]:
    """The least that is a workflow."""
    works = [Work("model", "model", attempts=((12.0, 0),)), Work("plot", "plot", ("model",), ((3.0, 0),))]
    works.append(Work("mail", "mail", ("plot",), ((0.4, 0),)))
    return Play("three", works).run()


def queued() -> list[Line]:
    """A batch system lets tasks wait."""
    dice = random.Random(5)
    works = [Work("compile", "compile", attempts=((95.0, 0),), queue_s=20)]
    works += [
        Work(f"case-{n}", "case", ("compile",), ((600 + dice.random() * 900, 0),), 8, queue_s=30 + dice.random() * 700)
        for n in range(24)
    ]
    works.append(Work("compare", "compare", tuple(f"case-{n}" for n in range(24)), ((240.0, 0),), queue_s=45))
    return Play("cases", works, cores=96).run()


EXAMPLES = {one.__name__: one for one in (ensemble, files, trues, at_once, resumed, three, queued)}


def text(lines: Iterable[Line]) -> str:
    """As it stands in a record."""
    return "".join(json.dumps(line) + "\n" for line in lines)


if __name__ == "__main__":
    for name, make in EXAMPLES.items():
        folder = Path(sys.argv[1]) / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "record.jsonl").write_text(text(make()))
