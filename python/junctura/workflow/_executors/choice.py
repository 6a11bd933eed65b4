"""The executors that a workflow names."""

from __future__ import annotations

from junctura.workflow._executors.batch import BatchExecutor
from junctura.workflow._executors.jobs import Executor
from junctura.workflow._executors.local import Local
from junctura.workflow._spec.tasks import Workflow


def executors(workflow: Workflow) -> dict[str, Executor]:
    """Those that a workflow needs; the run's own pool is served by this machine.

    Raises
    ------
    ImportError
        A batch system is wanted, and PSI/J is not installed.
    InvalidArgument
        There is no such batch system.

    """
    found: dict[str, Executor] = {"local": Local()}
    for name in sorted({task.executor for task in workflow.tasks} - {"local"}):
        found[name] = BatchExecutor(name)
    return found
