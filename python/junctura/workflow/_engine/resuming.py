"""Which completed tasks run again when a run is resumed.

The objects of the run's own pool, and of a pool that a task serves, are lost with the run. Which objects a program
reads cannot be determined before it runs. So all tasks that have offered objects run again if any task has to run. In
a pool that is served elsewhere the objects are still there.
"""

from __future__ import annotations

from junctura.workflow._engine.engine_state import fits
from junctura.workflow._engine.events import Past
from junctura.workflow._spec.tasks import Workflow


def needed_again(workflow: Workflow, past: Past) -> frozenset[str]:
    """Returns the completed tasks that have to run again."""
    services = {task.name for task in workflow.tasks if task.service}
    done = (past.done & _known(workflow, past)) - services
    to_do = {task.name for task in workflow.tasks if not task.service and task.name not in past.done}
    again: set[str] = set()
    if to_do and workflow.pool is not None and workflow.pool.url is None:
        again |= past.producers & done
    # A task that waits for clients of a completed task needs them, wherever the pool is served.
    patterns = {task.name: task.start.joined for task in workflow.tasks if task.start.joined}
    while True:
        awaited = [pattern for name in to_do | again for pattern in patterns.get(name, ())]
        found = {
            task for client, tasks in past.clients.items() if fits(client, awaited) for task in tasks & done
        } - again
        if not found:
            return frozenset(again)
        again |= found


def _known(workflow: Workflow, past: Past) -> set[str]:
    """Returns the tasks that can run again; those for objects run again when the object is offered again."""
    templates = {task.name for task in workflow.tasks if task.start.each is not None}
    mine = {task.name for task in workflow.tasks} - templates
    return mine | {seen.task for seen in past.seen if seen.of in templates}
