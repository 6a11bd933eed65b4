"""The executors that a workflow names."""

from __future__ import annotations

from junctura.workflow._executors.batch import BatchExecutor
from junctura.workflow._executors.jobs import Executor
from junctura.workflow._executors.local import Local
from junctura.workflow._spec.tasks import Workflow


def executors(workflow: Workflow) -> dict[str, Executor]:
    """Returns the executors that a workflow needs; the pool of the run is served by this host.

    Raises
    ------
    ImportError
        The workflow needs a batch system, and PSI/J is not installed.
    InvalidArgument
        The batch system is unknown.

    """
    found: dict[str, Executor] = {"local": Local()}
    for name in sorted({task.executor for task in workflow.tasks} - {"local"}):
        found[name] = BatchExecutor(name)
    return found
