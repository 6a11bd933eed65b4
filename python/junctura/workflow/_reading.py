"""From a file to a workflow: everything that can be known to be wrong is said here, before anything runs."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from junctura import _machine
from junctura._sizes import bytes_of, seconds_of, shown_bytes
from junctura._yaml import Document, Wrong, at, read
from junctura.errors import InvalidArgument
from junctura.workflow import _programs
from junctura.workflow._graph import Graph
from junctura.workflow._jobs import Resources
from junctura.workflow._matrix import TASKS_MAX, Values, combinations
from junctura.workflow._meeting import Meeting, check_bundle, meeting
from junctura.workflow._schema import WORKFLOW
from junctura.workflow._tasks import Start, Task, Workflow
from junctura.workflow._words import AT_START, HERE, OBJECT, check, fill, fill_some, instance, words, written

_NAME_MAX = 150
# What a shell would do, and nothing here does.
_SHELL = {"|", "||", "&", "&&", ";", "<", ">", ">>", "2>", "2>&1"}
_IN_POOL = ("on", "each", "bundle", "joined")


def is_workflow(document: Document) -> bool:
    """Whether a document is one, and neither a requirement nor a plan."""
    return isinstance(document.value, dict) and "tasks" in document.value


def load(path: str | Path) -> Workflow:
    """The workflow in a file.

    Raises
    ------
    NotFound, Io, LimitExceeded
        The file is not there, cannot be read or is larger than 4 MiB.
    InvalidArgument
        It is no workflow, or something in it is wrong: the error names file, line, key and the nearest right word.

    """
    found = workflow_in([path])
    if found is None:
        raise InvalidArgument(str(path), "no workflow: it has no `tasks`")
    return found


def workflow_in(files: Sequence[str | Path]) -> Workflow | None:
    """The workflow in files; None where there is none, but requirements or a plan.

    Raises
    ------
    InvalidArgument
        As for `load`; or it is not the only document.

    """
    found = [document for file in files for document in read(file)]
    workflows = [document for document in found if is_workflow(document)]
    if not workflows:
        return None
    if len(found) > 1:
        raise InvalidArgument(workflows[0].path, "a workflow runs alone: a task of it may run others")
    return workflow_of(workflows[0])


def workflow_of(document: Document) -> Workflow:
    """The workflow of a document; see `load`."""
    try:
        WORKFLOW.check(document.value)
        return _Reader(document).workflow()
    except Wrong as wrong:
        raise document.error(wrong) from None


@dataclass(frozen=True)
class _Known:
    """Which words the texts of one task may have."""

    early: tuple[str, ...]
    late: tuple[str, ...] | None


class _Reader:
    """Reads a document that is as the schema says."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._said: dict[str, Any] = document.value
        self._path = Path(document.path).resolve()
        self._folder = self._path.parent
        self._meeting: Meeting | None = None
        self._cores = self._said.get("parallel") or _machine.cores()
        self._memory = _machine.memory_bytes()

    def workflow(self) -> Workflow:
        if "pool" in self._said:
            with at("pool"):
                self._meeting = meeting(self._said["pool"], self._folder)
        tasks: list[Task] = []
        for name, said in self._said["tasks"].items():
            with at("tasks", name):
                tasks += self._instances(name, said, TASKS_MAX - len(tasks))
        return Workflow(
            self._said["workflow"],
            self._path,
            Graph(tasks).ordered(),
            self._meeting.wanted if self._meeting else None,
            _limit(self._said),
            self._said.get("parallel"),
        )

    def _instances(self, name: str, said: dict[str, Any], room: int) -> Iterator[Task]:
        """All tasks of one name."""
        if "users" in said and "service" not in said:
            raise Wrong("only a service has users", "users")
        if "exclude" in said and "matrix" not in said:
            raise Wrong("there is no matrix", "exclude")
        all_values = combinations(said["matrix"], said.get("exclude", ())) if "matrix" in said else [{}]
        if len(all_values) > room:
            raise Wrong(f"with these there are more than {TASKS_MAX} tasks")
        _check_start(said)
        known = self._known(said, tuple(all_values[0]))
        parts = self._parts(said, known)
        line = self._document.line(("tasks", name))
        for values in all_values:
            called = instance(name, values)
            if len(called) > _NAME_MAX:
                raise Wrong(f'the name "{called[:40]}..." has more than {_NAME_MAX} characters', "matrix")
            yield self._task(said, parts, values, Task(called, name, (), Path(), values=values, line=line))

    def _known(self, said: dict[str, Any], matrix: tuple[str, ...]) -> _Known:
        early = (*matrix, HERE)
        late = tuple(word for word in AT_START if word != "pool" or self._meeting)
        each = said.get("start", {}).get("each")
        if each is None:
            return _Known(early, (*early, *late))
        if self._meeting is None:
            raise Wrong("the workflow has no pool", "start", "each")
        # What its words in braces stand for makes no difference to which attributes there are.
        attributes = self._meeting.attributes(each) if "{" not in each else None
        return _Known(early, None if attributes is None else (*early, *late, OBJECT, *attributes))

    def _parts(self, said: dict[str, Any], known: _Known) -> dict[str, Any]:
        """What all tasks of one name have in common, and the templates of what they have not."""
        kind = "run" if "run" in said else "service"
        with at(kind):
            command = _command(said[kind])
            for text in command:
                self._check_word(text, known)
        environment = {name: written(value) for name, value in said.get("environment", {}).items()}
        for name, value in environment.items():
            with at("environment", name):
                self._check_word(value, known)
        folder = said.get("folder", ".")
        with at("folder"):
            self._check_word(folder, known)
        start = said.get("start", {})
        for key in ("after", *_IN_POOL):
            with at("start", key):
                for text in _listed(start.get(key, [])):
                    check(text, known.early, AT_START)
                if key != "after" and key in start and self._meeting is None:
                    raise Wrong("the workflow has no pool")
        with at("users"):
            for text in _listed(said.get("users", [])):
                check(text, known.early, AT_START)
        executor = said.get("executor", self._said.get("executor", "local"))
        return {
            "kind": kind,
            "command": command,
            "environment": environment,
            "folder": folder,
            "executor": executor,
            "resources": self._resources(said.get("resources", {}), executor),
            "limit_s": _limit(said),
        }

    def _check_word(self, text: str, known: _Known) -> None:
        if self._meeting is None and "pool" in words(text):
            raise Wrong('"{pool}" is not known: the workflow has no pool')
        check(text, known.late)

    def _resources(self, said: dict[str, Any], executor: str) -> Resources:
        with at("resources", "memory"):
            memory = bytes_of(said["memory"]) if "memory" in said else None
        found = Resources(said.get("cores", 1), memory, said.get("nodes", 1), said.get("ranks"))
        if executor == "local":
            self._check_room(found)
        return found

    def _check_room(self, wanted: Resources) -> None:
        if wanted.nodes > 1:
            raise Wrong("a local task has this one: a batch system has more (executor)", "resources", "nodes")
        if wanted.cores > self._cores:
            whose = "`parallel` allows" if "parallel" in self._said else "this machine has"
            raise Wrong(f"{wanted.cores} are more than the {self._cores} that {whose}", "resources", "cores")
        if wanted.memory_bytes is not None and wanted.memory_bytes > self._memory:
            more = f"{shown_bytes(wanted.memory_bytes)} are more than the {shown_bytes(self._memory)} of this machine"
            raise Wrong(more, "resources", "memory")

    def _task(self, said: dict[str, Any], parts: Mapping[str, Any], values: Values, task: Task) -> Task:
        here = {**values, HERE: str(self._folder)}
        with at(parts["kind"]):
            command = _programs.placed(tuple(fill_some(text, here) for text in parts["command"]), self._folder)
            if parts["executor"] == "local":
                _programs.check(command, self._folder)
        environment = {}
        for name, value in parts["environment"].items():
            with at("environment", name):
                environment[name] = fill_some(value, here)
        with at("folder"):
            folder = Path(fill_some(parts["folder"], here))
        with at("users"):
            users = tuple(fill(text, here) for text in _listed(said.get("users", [])))
        return Task(
            task.name,
            task.of,
            command,
            folder,
            environment,
            values,
            "service" in said,
            users,
            self._start(said.get("start", {}), here),
            said.get("attempts", 1),
            parts["limit_s"],
            parts["resources"],
            said.get("may_fail", False),
            parts["executor"],
            task.line,
        )

    def _start(self, said: dict[str, Any], here: Values) -> Start:
        found: dict[str, Any] = {"count": said["count"]} if "count" in said else {}
        for key in ("after", *_IN_POOL):
            with at("start", key):
                texts = tuple(fill(text, here) for text in _listed(said.get(key, [])))
                for text in texts:
                    self._check_condition(key, text)
            if texts:
                found[key] = texts if key in ("after", "joined") else texts[0]
        return Start(**found)

    def _check_condition(self, key: str, text: str) -> None:
        if key in ("on", "each") and self._meeting is not None:
            self._meeting.check_selector(text)
        elif key == "bundle":
            check_bundle(text)


def _check_start(said: dict[str, Any]) -> None:
    start = said.get("start", {})
    if "each" in start and "service" in said:
        raise Wrong("a service starts once", "start", "each")
    if "count" in start and "each" not in start:
        raise Wrong("there is no each", "start", "count")


def _command(said: Any) -> tuple[str, ...]:
    if isinstance(said, list):
        found = tuple(map(written, said))
    else:
        try:
            found = tuple(shlex.split(said))
        except ValueError as error:
            raise Wrong(f"cannot be split at spaces: {error}") from error
        if shell := next((part for part in found if part in _SHELL), ""):
            raise Wrong(f'no shell reads "{shell}": write [sh, -c, "..."]')
    if not found or not found[0]:
        raise Wrong("there is no program")
    return found


def _limit(said: dict[str, Any]) -> float | None:
    with at("limit"):
        return seconds_of(said["limit"]) if "limit" in said else None


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
