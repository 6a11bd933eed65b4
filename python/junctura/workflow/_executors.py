"""What runs the tasks of a workflow, by the names that it uses."""

from __future__ import annotations

from importlib import import_module

from junctura.workflow._jobs import Executor
from junctura.workflow._local import Local
from junctura.workflow._tasks import Workflow


def executors(workflow: Workflow) -> dict[str, Executor]:
    """Those that a workflow needs; the run's own pool is served by this machine.

    Raises
    ------
    ImportError
        A batch system is wanted, and PSI/J is not installed.

    """
    found: dict[str, Executor] = {"local": Local()}
    for name in sorted({task.executor for task in workflow.tasks} - {"local"}):
        found[name] = import_module("junctura.workflow._psij").Batch(name)
    return found
