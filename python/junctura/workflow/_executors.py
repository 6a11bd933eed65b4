"""What runs the tasks of a workflow, by the names that it uses."""

from __future__ import annotations

from junctura.workflow._jobs import Executor
from junctura.workflow._local import Local
from junctura.workflow._psij import Batch
from junctura.workflow._tasks import Workflow


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
        found[name] = Batch(name)
    return found
