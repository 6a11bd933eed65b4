"""Any workflow, whatever its tasks do: invariants of every run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from run_world import BAD, GOOD, KILLED, World, task, workflow

from junctura.workflow._engine import events as ev
from junctura.workflow._engine.engine import Engine
from junctura.workflow._engine.engine_state import TaskState
from junctura.workflow._spec.tasks import PoolWanted, Task

CORES = 3
SELECTORS = ("x=1", "y=1")
POOLS = (PoolWanted(), PoolWanted(url="unix:theirs"), PoolWanted(service="server"))
Draw = Callable[[st.SearchStrategy[Any]], Any]


@st.composite
def tasks(draw: Draw) -> list[Task]:
    """A workflow as its reader lets it pass: none waits for a later one."""
    made: list[Task] = []
    names: list[str] = []
    for number in range(draw(st.integers(1, 6))):
        name = "abcdef"[number]
        after = tuple(draw(st.lists(st.sampled_from(names), max_size=2, unique=True))) if names else ()
        words: dict[str, Any] = {"after": after, "attempts": draw(st.integers(1, 2)), "cores": draw(st.integers(1, 4))}
        kind = draw(st.sampled_from(("task", "task", "service", "on", "each", "counted", "many", "joined")))
        words |= draw(conditions(kind))
        words["may_fail"] = draw(st.integers(0, 4)) == 0
        if kind == "service":
            words["users"] = tuple(draw(st.lists(st.sampled_from(names), max_size=2, unique=True))) if names else ()
        instances = [f"{name}-0", f"{name}-1"] if kind == "many" else [name]
        made += [task(instance, of=name, **words) for instance in instances]
        names.append(name)
    return made


@st.composite
def conditions(draw: Draw, kind: str) -> dict[str, Any]:
    selector = draw(st.sampled_from(SELECTORS))
    found: dict[str, dict[str, Any]] = {
        "service": {"service": True, **({"on": selector} if draw(st.integers(0, 3)) == 0 else {})},
        "on": {"on": selector},
        "each": {"each": selector, "none": draw(st.sampled_from(("warn", "allow", "fail")))},
        "counted": {"each": selector, "count": draw(st.integers(1, 3))},
        "joined": {"joined": ("somebody",)},
    }
    return found.get(kind, {})


class Run(World):
    """A world that is checked while it goes."""

    draw: Draw
    # How much had been noted by then, who, and what.
    offerings: list[tuple[int, str, ev.Offered]]
    has_pool_ended = False

    def go(self, draw: Draw, interrupts: bool) -> None:
        self.draw, self.offerings = draw, []
        self.begin()
        for _ in range(400):
            self.check()
            moves = self.moves(interrupts)
            if self.over is not None or not moves:
                break
            draw(st.sampled_from(moves))()

    def moves(self, interrupts: bool) -> list[Callable[[], None]]:
        """What may happen next."""
        found: list[Callable[[], None]] = []
        if self.pool:
            found.append(lambda: self.take(self.pool.popleft()))
        for name in self.live:
            part = self.engine.parts[name]
            if part.phase.value == "launched":
                found.append(lambda name=name: self.run(name))  # type: ignore[misc]
            # A service runs on until it is told to end, or dies.
            if not part.task.service or part.is_asked or part.tries_left:
                found.append(lambda part=part: self.come_to_end(part))  # type: ignore[misc]
            if self.sequence < 6 and not self.has_pool_ended:
                found.append(lambda name=name: self.something(name))  # type: ignore[misc]
        if interrupts and self.over is None and self.draw(st.integers(0, 20)) == 0:
            found.append(lambda: self.take(ev.RunInterrupted()))
        pool = self.engine.workflow.pool
        is_theirs = pool is not None and pool.url is not None
        if is_theirs and not self.has_pool_ended and self.draw(st.integers(0, 20)) == 0:
            found.append(self.end_pool)
        return found

    def end_pool(self) -> None:
        """That of others ends, behind all that it had told."""
        self.tell()
        self.has_pool_ended = True
        self.take(ev.PoolEnded("the pool has ended"))

    def something(self, name: str) -> None:
        """A task offers something, or joins the pool, or leaves it."""
        match self.draw(st.integers(0, 3)):
            case 0:
                self.take(ev.Joined(7, "somebody"))
            case 1:
                self.take(ev.Left(7))
            case _:
                offered = self.offer(name, self.draw(st.sampled_from(SELECTORS)))
                self.offerings.append((len(self.notes), name, offered))

    def come_to_end(self, part: TaskState) -> None:
        good = part.is_asked or self.draw(st.integers(0, 3)) > 0
        self.end(part.task.name, GOOD if good else self.draw(st.sampled_from((BAD, KILLED))))

    def check(self) -> None:
        """What is true at any moment."""
        parts = self.engine.parts
        held = sum(min(parts[name].task.resources.cores, CORES) for name in self.live if not parts[name].task.service)
        assert held <= CORES
        for name, attempt in self.live.items():
            assert self.begun.count(name) == attempt <= parts[name].task.attempts
            assert attempt == 1 or (name, GOOD) not in self.ended
            self.check_start(parts[name])

    def _do(self, actions: list[ev.Action]) -> None:
        for action in actions:
            # At once there is no order.
            if isinstance(action, ev.End) and not action.at_once:
                self.check_dismissed(self.engine.parts[action.task].task)
        super()._do(actions)

    def check_dismissed(self, service: Task) -> None:
        """A service is told to end when its users are over; without some that are named, all tasks are."""
        if not service.service:
            return
        parts = [part for part in self.engine.parts.values() if part.template is None and not part.task.service]
        after = self.engine.ties.behind(service.name)
        users = service.users or [part.task.of for part in parts if part.task.name in after]
        assert all(part.is_over for part in parts if part.task.of in users)

    def check_start(self, part: TaskState) -> None:
        start = part.task.start
        parts = [one for one in self.engine.parts.values() if one.template is None]
        for before in [one for one in parts if one.task.of in start.after]:
            is_well = before.is_well and (not before.task.service or before.task.may_fail)
            assert is_well or (before.task.service and before.has_begun), (part.task.name, before)
        assert start.on is None or any(one.selector == start.on for one in self.all_offered)
        assert start.each is None or (part.sight is not None and part.sight.selector == start.each)


def is_patient(run: Run) -> bool:
    """Whether something may still come from outside, or of a service."""
    pool = run.engine.workflow.pool
    if run.has_pool_ended:
        return False
    return pool is not None and (pool.url is not None or bool(run.live.keys() - {pool.service}))


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data(), tasks(), st.sampled_from(POOLS), st.booleans())
def test_every_run_ends_as_it_should(data: st.DataObject, made: list[Task], pool: PoolWanted, interrupts: bool) -> None:
    servers = [task(pool.service, service=True)] if pool.service else []
    run = Run(Engine(workflow(*made, *servers, pool=pool), CORES))
    run.go(data.draw, interrupts)
    assert not run.pool or run.over is not None
    if run.over is None:
        assert is_patient(run)
        assert all(run.engine.parts[name].task.service for name in run.live)
        run.take(ev.RunInterrupted())
        while run.live:
            run.end(next(iter(run.live)), KILLED)
    check_the_end(run)


def check_the_end(run: Run) -> None:
    status, code = run.status()
    parts = run.engine.parts.values()
    assert all(part.is_over for part in parts)
    noted = [note.words["task"] for note in run.notes if note.kind in ("done", "failed", "skipped", "cancelled")]
    assert sorted(noted) == sorted(run.engine.parts), "each has one end"
    assert "it waits for what waits for it" not in run.said("failed").values()
    bad = [part for part in parts if part.phase.value in ("failed", "skipped") and not part.is_well]
    assert code == {"done": 0, "failed": 1, "interrupted": 130}[status]
    assert status == "interrupted" or (status == "failed") == bool(bad)
    if status == "done":
        assert not [part for part in parts if part.phase.value == "cancelled" and not part.task.service]
    warned = {note.words["task"] for note in run.notes if note.words.get("warning")}
    unmatched = [part for part in parts if part.is_template and part.phase.value == "done" and not part.seen]
    assert warned == {part.task.name for part in unmatched if part.task.start.none == "warn"}
    versions = [(of, sight.version) for of, sight in run.sights]
    for part in parts:
        if part.template is not None and part.sight is not None:
            mine = [one for one in parts if one.template is part.template and one.sight == part.sight]
            assert mine == [part], "one for each object"
        if part.is_template and part.phase.value == "done" and part.task.start.none == "fail":
            assert part.seen
        if part.is_template and part.phase.value == "done" and part.task.start.count is None:
            check_complete(run, part, versions)


def check_complete(run: Run, template: TaskState, versions: list[tuple[str, str]]) -> None:
    """An `each` that is done has had a task for all that tasks had offered before."""
    done_at = next(
        index
        for index, note in enumerate(run.notes)
        if note.kind == "done" and note.words["task"] == template.task.name
    )
    for when, name, event in run.offerings:
        is_service = run.engine.parts[name].task.service
        if event.selector == template.task.start.each and when < done_at and not is_service:
            assert (template.task.of, event.version) in versions
