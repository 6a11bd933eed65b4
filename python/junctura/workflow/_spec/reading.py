"""Reads a file into a workflow. Reports every error that can be known before anything runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from junctura._document.located_yaml import Document, Wrong, at, read
from junctura.errors import InvalidArgument
from junctura.workflow._spec.graph import Graph
from junctura.workflow._spec.pool_spec import meeting
from junctura.workflow._spec.schema import TASKS_MAX, WORKFLOW
from junctura.workflow._spec.tasks import Task, Workflow
from junctura.workflow._spec.templates import Kind, Setting, limit


def is_workflow(document: Document) -> bool:
    """Whether a document is a workflow, and neither a recipe nor a plan."""
    return isinstance(document.value, dict) and "tasks" in document.value


def load(path: str | Path) -> Workflow:
    """Reads the workflow in a file.

    Raises
    ------
    NotFound, Io, LimitExceeded
        The file does not exist, cannot be read or is larger than 4 MiB.
    InvalidArgument
        The file is not a valid workflow: the error names file, line, key and the closest valid word.

    """
    found = workflow_in([path])
    if found is None:
        raise InvalidArgument(str(path), "no workflow: it has no `tasks`")
    return found


def workflow_in(files: Sequence[str | Path]) -> Workflow | None:
    """Reads the workflow in files; returns None for recipes or a plan.

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
    """Returns the workflow of a document; see `load`."""
    try:
        WORKFLOW.check(document.value)
        return _workflow(document)
    except Wrong as wrong:
        raise document.error(wrong) from None


def _workflow(document: Document) -> Workflow:
    said = document.value
    path = Path(document.path).resolve()
    pool = None
    if "pool" in said:
        with at("pool"):
            pool = meeting(said["pool"], path.parent)
    setting = Setting.of(said, path.parent, pool)
    # All tasks are counted before the first is created.
    kinds: dict[str, Kind] = {}
    room = TASKS_MAX
    for name, of_it in said["tasks"].items():
        with at("tasks", name):
            kinds[name] = Kind(name, of_it, document.line(("tasks", name)), setting)
            room -= len(kinds[name])
            if room < 0:
                raise Wrong(f"with these there are more than {TASKS_MAX} tasks")
    tasks: list[Task] = []
    for name, kind in kinds.items():
        with at("tasks", name):
            tasks += kind.tasks()
    graph = Graph(tasks)
    ordered = graph.ordered()
    if pool is not None and pool.wanted.service is not None:
        graph.check_server(pool.wanted.service)
    return Workflow(said["workflow"], path, ordered, pool.wanted if pool else None, limit(said), said.get("parallel"))
