"""The output of ``--check`` and ``--dry-run``: the graph of a workflow, and each command as it will run."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from junctura._document.sizes import shown_bytes, shown_seconds
from junctura.workflow._spec.placeholders import Value, displayed, written
from junctura.workflow._spec.tasks import PoolWanted, Start, Task, Workflow
from junctura.workflow._view.graph_drawing import in_columns, rails

_CUT = 72
_VALUES_SHOWN = 4
_SIGNS = {"task": "●", "service": "◆", "each": "○"}
_LEGEND = {
    "task": "runs once",
    "service": "service: ends when its users are done",
    "each": "runs once for each object",
}


def check_text(workflow: Workflow) -> str:
    """Formats the graph of a workflow as text."""
    kinds: dict[str, list[Task]] = {}
    for task in workflow.tasks:
        kinds.setdefault(task.of, []).append(task)
    services = {task.of for task in workflow.tasks if task.service}
    of = {task.name: task.of for task in workflow.tasks} | {name: name for name in kinds}
    drawn = rails(_waits(kinds, of))
    rows = [
        {
            "name": f"{drawn[index]}{_SIGNS[_kind(tasks[0])]} {name}",
            "count": f"x {len(tasks)}" if len(tasks) > 1 else "",
            "when": _cut(_when(tasks, services)),
            "what": "; ".join(_what(tasks)),
        }
        for index, (name, tasks) in enumerate(kinds.items())
    ]
    used = {_kind(tasks[0]) for tasks in kinds.values()}
    legend = "   ".join(f"{_SIGNS[kind]} {meaning}" for kind, meaning in _LEGEND.items() if kind in used)
    indented = [f"  {line}" for line in in_columns(rows)]
    return "\n".join([_heading(workflow, len(kinds)), "", *indented, "", f"  {legend}"])


def check_document(workflow: Workflow) -> dict[str, Any]:
    """Formats the graph, with all properties of tasks, as JSON."""
    pool = workflow.pool
    said = pool and {name: getattr(pool, name) for name in ("url", "schema", "memory_bytes", "service")}
    return {
        "workflow": workflow.name,
        "file": str(workflow.path),
        "pool": said,
        "limit_s": workflow.limit_s,
        "parallel": workflow.parallel,
        "tasks": [_task(task, workflow) for task in workflow.tasks],
    }


def dry_run_text(workflow: Workflow) -> str:
    """Formats each task as it will run; values that are known only then are shown as words in braces."""
    services = {task.of for task in workflow.tasks if task.service}
    return "\n".join(line for task in workflow.tasks for line in _dry(task, workflow, services))


def start_in_words(start: Start, services: frozenset[str] | set[str] = frozenset()) -> str:
    """Returns when a task starts, as text; `services` are the names among its dependencies that are services."""
    said = [f"for each {start.each}"] if start.each is not None else []
    said += [f"{start.count} of them"] if start.count is not None else []
    said += [f"when {start.on} is there"] if start.on is not None else []
    said += [f"when bundle {start.bundle} is complete"] if start.bundle is not None else []
    said += [f"when {_and(start.joined)} joined"] if start.joined else []
    after = [name for name in start.after if name not in services]
    begun = [name for name in start.after if name in services]
    said += [f"after {_and(after)}"] if after else []
    said += [f"once {_and(begun)} runs"] if begun else []
    return ", ".join(said) or "at once"


def _waits(kinds: Mapping[str, Sequence[Task]], of: Mapping[str, str]) -> list[set[int]]:
    rows = {name: row for row, name in enumerate(kinds)}
    return [{rows[of[name]] for task in tasks for name in task.start.after} for tasks in kinds.values()]


def _kind(task: Task) -> str:
    if task.service:
        return "service"
    return "task" if task.start.each is None else "each"


def _heading(workflow: Workflow, kinds: int) -> str:
    count = len(workflow.tasks)
    said = [f"{count} task{'s' * (count != 1)}" + (f" of {kinds} kinds" if 1 < kinds < count else "")]
    said += [_pool(workflow.pool)] if workflow.pool else ["no pool"]
    said += [f"{workflow.parallel} cores"] if workflow.parallel else []
    said += [f"ends after {shown_seconds(workflow.limit_s)} at most"] if workflow.limit_s else []
    return f"{workflow.name}: {', '.join(said)}"


def _pool(pool: PoolWanted) -> str:
    if pool.url is not None:
        return f"pool {pool.url}"
    if pool.service is not None:
        return f"a pool that {pool.service} serves"
    memory = f", {shown_bytes(pool.memory_bytes)}" if pool.memory_bytes else ""
    return f"a pool of its own ({Path(pool.schema or 'mars').name}{memory})"


def _when(tasks: Sequence[Task], services: set[str]) -> str:
    """Abbreviates a list of individual conditions to the first and the last."""
    first, last = (start_in_words(tasks[index].start, services) for index in (0, -1))
    return first if first == last else f"{first} … {last}"


def _what(tasks: Sequence[Task]) -> Iterator[str]:
    task = tasks[0]
    for word in task.values:
        yield f"{word} {_values([one.values[word] for one in tasks])}"
    if task.service:
        yield f"until {_and(_users(tasks)) or 'all others'} are done"
    yield from _needs(task)
    times = f"{task.attempts} attempts" if task.attempts > 1 else ""
    limit = f"{shown_seconds(task.limit_s)} at most" if task.limit_s else ""
    if times or limit:
        yield " of ".join(part for part in (times, limit) if part)
    if task.may_fail:
        yield "may fail"
    if task.start.none != "warn":
        yield "may have no object" if task.start.none == "allow" else "fails without an object"


def _needs(task: Task) -> Iterator[str]:
    needs = task.resources
    if task.executor != "local":
        yield task.executor
    for number, word in ((needs.nodes, "nodes"), (needs.ranks or 1, "ranks"), (needs.cores, "cores")):
        if number > 1:
            yield f"{number} {word}"
    if needs.memory_bytes:
        yield shown_bytes(needs.memory_bytes)


def _users(tasks: Sequence[Task]) -> list[str]:
    return list(dict.fromkeys(user for task in tasks for user in task.users))


def _values(values: Sequence[Value]) -> str:
    texts = list(dict.fromkeys(map(written, values)))
    return ", ".join(texts) if len(texts) <= _VALUES_SHOWN else f"{texts[0]}, {texts[1]} … {texts[-1]}"


def _and(names: Sequence[str]) -> str:
    shown = list(names) if len(names) <= _VALUES_SHOWN else [*names[:2], f"{len(names) - 2} others"]
    return " and ".join([", ".join(shown[:-1]), shown[-1]]) if len(shown) > 1 else "".join(shown)


def _cut(text: str) -> str:
    return text if len(text) <= _CUT else f"{text[: _CUT - 1]}…"


def _task(task: Task, workflow: Workflow) -> dict[str, Any]:
    start, needs = task.start, task.resources
    return {
        "task": task.name,
        "of": task.of,
        "line": task.line,
        "service": task.service,
        "users": list(task.users),
        "after": list(start.after),
        "start": start_in_words(start),
        "on": start.on,
        "each": start.each,
        "count": start.count,
        "none": start.none if start.each is not None else None,
        "bundle": start.bundle,
        "joined": list(start.joined),
        "values": dict(task.values),
        "command": [_filled(text, task, workflow) for text in task.command],
        "folder": _filled(str(task.folder), task, workflow),
        "environment": {name: _filled(value, task, workflow) for name, value in task.environment.items()},
        "resources": {
            "cores": needs.cores,
            "memory_bytes": needs.memory_bytes,
            "nodes": needs.nodes,
            "ranks": needs.ranks,
        },
        "attempts": task.attempts,
        "limit_s": task.limit_s,
        "may_fail": task.may_fail,
        "executor": task.executor,
    }


def _filled(text: str, task: Task, workflow: Workflow) -> str:
    """Fills in the known values; other words stay as written."""
    known: dict[str, Value] = {"attempt": 1}
    if task.start.each is None:
        known["task"] = task.name
    if workflow.pool is not None and workflow.pool.url is not None:
        known["pool"] = workflow.pool.url
    return displayed(text, known)


def _dry(task: Task, workflow: Workflow, services: set[str]) -> Iterator[str]:
    kind = "a service, " if task.service else ""
    where = "" if task.executor == "local" else f", by {task.executor}"
    yield f"{task.name}: {kind}{start_in_words(task.start, services)}{where}"
    folder = _filled(str(task.folder), task, workflow)
    yield f"  in {'the folder of the run' if folder == '.' else folder}"
    for name, value in task.environment.items():
        yield f"  {name}={shlex.quote(_filled(value, task, workflow))}"
    yield f"  $ {shlex.join(_filled(text, task, workflow) for text in task.command)}"
