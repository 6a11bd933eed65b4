"""Task templates: an entry of the file creates one task, or one for each combination of its matrix.

Texts are templates. Properties common to all tasks of a name are checked once, values of a matrix for each task.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from junctura import _limits
from junctura._document.located_yaml import Wrong, at
from junctura._document.sizes import bytes_of, seconds_of, shown_bytes
from junctura.workflow._executors.jobs import Resources
from junctura.workflow._spec import programs
from junctura.workflow._spec.matrix import Values, combinations
from junctura.workflow._spec.placeholders import (
    AT_START,
    HERE,
    OBJECT,
    check,
    fill,
    fill_some,
    instance,
    words,
    written,
)
from junctura.workflow._spec.pool_spec import Meeting, check_bundle
from junctura.workflow._spec.tasks import Start, Task

_NAME_MAX = 150
# Shell features that have no effect here.
_SHELL = {"|", "||", "&", "&&", ";", "<", ">", ">>", "2>", "2>&1"}
_Texts: TypeAlias = "dict[tuple[str, ...], tuple[str, ...]]"
_CONDITIONS = ("after", "on", "each", "bundle", "joined")


@dataclass(frozen=True)
class Setting:
    """The common properties of all tasks of a file.

    Attributes
    ----------
    folder
        The folder of the file.
    meeting
        The pool of the tasks.
    executor
        The default executor.
    cores
        The cores for local tasks; `whose` describes the limit.

    """

    folder: Path
    meeting: Meeting | None
    executor: str
    cores: int
    whose: str
    memory_bytes: int

    @classmethod
    def of(cls, said: dict[str, Any], folder: Path, meeting: Meeting | None) -> Setting:
        cores, whose = said.get("parallel"), "`parallel` allows"
        if cores is None:
            cores, whose = _limits.cores(), "this machine has"
        return cls(folder, meeting, said.get("executor", "local"), cores, whose, _limits.memory_bytes())


class Kind:
    """Creates all tasks of one name.

    Raises
    ------
    Wrong
        An entry is invalid for all values; positions of errors are relative to the name.

    """

    def __init__(self, name: str, said: dict[str, Any], line: int, setting: Setting) -> None:
        self._name, self._said, self._line, self._setting = name, said, line, setting
        self._key = "run" if "run" in said else "service"
        self._start: dict[str, Any] = said.get("start", {})
        _check_belongings(said)
        self._all_values = combinations(said["matrix"], said.get("exclude", ())) if "matrix" in said else [{}]
        self._executor = said.get("executor", setting.executor)
        self._resources = self._read_resources()
        self._limit_s = limit(said)
        self._templates = self._read_templates()
        self._check_conditions()

    def __len__(self) -> int:
        return len(self._all_values)

    def tasks(self) -> Iterator[Task]:
        """Creates a task for each combination of values.

        Raises
        ------
        Wrong
            An entry is invalid for some values.

        """
        for values in self._all_values:
            yield self._task(values)

    def _read_resources(self) -> Resources:
        said = self._said.get("resources", {})
        with at("resources", "memory"):
            memory = bytes_of(said["memory"]) if "memory" in said else None
        found = Resources(said.get("cores", 1), memory, said.get("nodes", 1), said.get("ranks"))
        if self._executor == "local":
            self._check_room(found)
        return found

    def _check_room(self, wanted: Resources) -> None:
        setting = self._setting
        if wanted.nodes > 1:
            raise Wrong("a local task has this one: a batch system has more (executor)", "resources", "nodes")
        if wanted.cores > setting.cores:
            more = f"{wanted.cores} are more than the {setting.cores} that {setting.whose}"
            raise Wrong(more, "resources", "cores")
        if wanted.memory_bytes is not None and wanted.memory_bytes > setting.memory_bytes:
            both = [shown_bytes(wanted.memory_bytes), shown_bytes(setting.memory_bytes)]
            raise Wrong(f"{both[0]} are more than the {both[1]} of this machine", "resources", "memory")

    def _read_templates(self) -> _Texts:
        """Returns all texts in which words that are known at the start of a task are allowed, by position."""
        with at(self._key):
            found: _Texts = {(self._key,): _command(self._said[self._key])}
        found["folder",] = (self._said.get("folder", "."),)
        for name, value in self._said.get("environment", {}).items():
            found["environment", name] = (written(value),)
        early = self._early()
        late = self._late()
        for place, texts in found.items():
            for index, text in enumerate(texts):
                with at(*place, index):
                    if self._setting.meeting is None and "pool" in words(text):
                        raise Wrong('"{pool}" is not known: the workflow has no pool')
                    check(text, None if late is None else (*early, *late))
        return found

    def _early(self) -> tuple[str, ...]:
        return (*self._all_values[0], HERE)

    def _late(self) -> tuple[str, ...] | None:
        """Returns the words that are known at the start of a task; None: any may be an attribute of an object."""
        meeting = self._setting.meeting
        late = tuple(word for word in AT_START if word != "pool" or meeting)
        each = self._start.get("each")
        if each is None or meeting is None:
            return late
        attributes = None if words(each) else meeting.attributes(each)
        return None if attributes is None else (*late, OBJECT, *attributes)

    def _check_conditions(self) -> None:
        for key in _CONDITIONS:
            if key not in self._start:
                continue
            with at("start", key):
                if key != "after" and self._setting.meeting is None:
                    raise Wrong("the workflow has no pool")
                _check_all(_listed(self._start[key]), self._early())
        with at("users"):
            _check_all(_listed(self._said.get("users", [])), self._early())

    def _task(self, values: Values) -> Task:
        called = instance(self._name, values)
        if len(called) > _NAME_MAX:
            raise Wrong(f'the name "{called[:40]}..." has more than {_NAME_MAX} characters', "matrix")
        known = {**values, HERE: str(self._setting.folder)}
        filled: _Texts = {}
        for place, texts in self._templates.items():
            with at(*place):
                filled[place] = tuple(fill_some(text, known) for text in texts)
        said = self._said
        return Task(
            name=called,
            of=self._name,
            command=self._placed(filled[self._key,]),
            folder=Path(*filled["folder",]),
            environment={name: filled["environment", name][0] for name in said.get("environment", {})},
            values=values,
            service=self._key == "service",
            users=_filled(said.get("users", []), known, "users"),
            start=self._starts(known),
            attempts=said.get("attempts", 1),
            limit_s=self._limit_s,
            resources=self._resources,
            may_fail=said.get("may_fail", False),
            executor=self._executor,
            line=self._line,
        )

    def _placed(self, command: tuple[str, ...]) -> tuple[str, ...]:
        found = programs.placed(command, self._setting.folder)
        if self._executor == "local":
            with at(self._key):
                programs.check(found, self._setting.folder)
        return found

    def _starts(self, known: Values) -> Start:
        if not self._start:
            return Start()
        found: dict[str, Any] = {"count": self._start.get("count"), "none": self._start.get("none", "warn")}
        for key in _CONDITIONS:
            if key not in self._start:
                continue
            texts = _filled(self._start[key], known, "start", key)
            with at("start", key):
                self._check_condition(key, texts[0])
            found[key] = texts if key in ("after", "joined") else texts[0]
        return Start(**found)

    def _check_condition(self, key: str, text: str) -> None:
        if key in ("on", "each") and self._setting.meeting is not None:
            self._setting.meeting.check_selector(text)
        elif key == "bundle":
            check_bundle(text)


def limit(said: dict[str, Any]) -> float | None:
    """Returns a time limit in seconds."""
    with at("limit"):
        return seconds_of(said["limit"]) if "limit" in said else None


def _check_belongings(said: dict[str, Any]) -> None:
    """Checks that no key is given that has no meaning without another one."""
    start = said.get("start", {})
    if "users" in said and "service" not in said:
        raise Wrong("only a service has users", "users")
    if "exclude" in said and "matrix" not in said:
        raise Wrong("there is no matrix", "exclude")
    if "each" in start and "service" in said:
        raise Wrong("a service starts once", "start", "each")
    if "on" in start and "each" in start:
        raise Wrong("it starts for each object, and waits for no other: a task before it can (after)", "start", "on")
    if "count" in start and "each" not in start:
        raise Wrong("there is no each", "start", "count")
    if "none" in start and "each" not in start:
        raise Wrong("there is no each", "start", "none")
    if "none" in start and "count" in start:
        raise Wrong("with a count, the task fails if objects are missing", "start", "none")


def _check_all(texts: list[str], early: tuple[str, ...]) -> None:
    for text in texts:
        check(text, early, AT_START)


def _filled(said: Any, known: Values, *place: str) -> tuple[str, ...]:
    with at(*place):
        return tuple(fill(text, known) for text in _listed(said))


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


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
