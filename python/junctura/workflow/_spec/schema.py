"""The schema of a workflow's file: the one source for validation and for editors.

``python -m junctura.workflow._spec.schema`` prints ``workflow.schema.json``, a file of the package; a test compares
them.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from junctura._document.sizes import BYTES_PATTERN, SECONDS_PATTERN
from junctura._document.validation import Either, Flag, KnownMapping, ListOf, Number, Spec, Table, Text, Word

TASKS_MAX = 100_000
NAME = r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$"
_NAME_WHAT = "a name of letters, digits, . _ and -"
EXECUTORS = {
    "local": "A process of this machine; the default",
    "slurm": "A job of Slurm",
    "pbs": "A job of PBS Pro or OpenPBS",
    "pbs_classic": "A job of Torque",
    "lsf": "A job of LSF",
    "cobalt": "A job of Cobalt",
    "flux": "A job of Flux",
}

NONE = {
    "warn": "The task is done, and the result has a warning; the default",
    "allow": "The task is done",
    "fail": "The task fails",
}


def _or_list(item: Spec, doc: str) -> Either:
    return Either((item, ListOf(item, high=10_000)), doc)


def _size(doc: str) -> Either:
    return Either((Text(pattern=BYTES_PATTERN, what="a size as 500MiB"), Number(low=1, whole=True)), doc)


def _time(doc: str) -> Either:
    return Either((Text(pattern=SECONDS_PATTERN, what="a time as 10min"), Number(low=0)), doc)


_VALUE = (Text(length_min=0, length_max=65_536), Number(), Flag())
_VALUES = Either((*_VALUE, ListOf(Either(_VALUE), high=TASKS_MAX)), "One, a list, or a/to/b/by/c")
_WORD_KEY, _WORD_WHAT = r"^[A-Za-z_]\w{0,59}$", "a word of letters, digits and _"
_TASK_NAME = Text(length_max=1000, what="the name of a task")
_SELECTOR = "A selector, of objects in the pool"
_COMMAND = "Program and arguments, in a list, or in a text that is split at spaces; no shell reads them"
_COMMANDS = (Text(length_max=65_536), ListOf(Either(_VALUE), high=10_000))
RESOURCES = KnownMapping(
    {
        "cores": Number("By default 1", 1, 1_000_000, whole=True),
        "memory": _size("Of one node"),
        "nodes": Number("By default 1", 1, 1_000_000, whole=True),
        "ranks": Number("Processes that are started of it", 1, 10_000_000, whole=True),
    },
    doc="What it needs",
)
START = KnownMapping(
    {
        "after": _or_list(_TASK_NAME, "Tasks that have ended well; of services: that have begun"),
        "on": Text(f"{_SELECTOR}: when the first is there", length_max=65_536),
        "each": Text(f"{_SELECTOR}: once for each", length_max=65_536),
        "count": Number("Of `each`: after so many objects it has them all", 1, 100_000_000, whole=True),
        "none": Word(NONE, "Of `each`: the result if no object matched", "value of none"),
        "bundle": Text("When the bundle of this name is complete", length_max=1000),
        "joined": _or_list(
            Text(what="a name", length_max=1000), "When clients of all these names are in the pool; * is anything"
        ),
    },
    doc="When all this holds; by default at once",
)
TASK = KnownMapping(
    {
        "run": Either(_COMMANDS, _COMMAND),
        "service": Either(_COMMANDS, f"{_COMMAND}. It is told to end when those are done that use it"),
        "users": _or_list(_TASK_NAME, "Of a service: the tasks for which it runs; by default all that are no services"),
        "start": START,
        "matrix": Table(
            _VALUES, "A task for each combination of these values", _WORD_KEY, _WORD_WHAT, high=20, what="a mapping"
        ),
        "exclude": ListOf(
            Table(Either(_VALUE), "", _WORD_KEY, _WORD_WHAT, high=20), "Combinations that are left out", high=10_000
        ),
        "folder": Text("Where it runs, in the folder of the run; it is made", length_max=4000),
        "environment": Table(
            Either(_VALUE),
            "Variables that it has besides those of `junctura run`",
            r"^[A-Za-z_]\w*$",
            "the name of a variable",
            high=1000,
        ),
        "resources": RESOURCES,
        "attempts": Number("How often it is begun at most; by default 1", 1, 1000, whole=True),
        "limit": _time("After so long an attempt is ended, and has failed"),
        "may_fail": Flag("The run goes on as if it had ended well, and says so"),
        "executor": Word(EXECUTORS, "What runs it", "executor"),
    },
    doc="What is run, and when",
    one=("run", "service"),
)
POOL = Either(
    (
        Text(pattern=r"^(unix:|tcp://|etcd://).", what="the URL of a pool, as unix:model or tcp://host:port"),
        KnownMapping(
            {
                "schema": Text("mars, free, another that is built in, or a file beside this one", length_max=4000),
                "memory": _size("For payloads; by default a quarter of the machine's"),
                "spill": Text("A folder for what memory has no room for", length_max=4000),
                "service": Text(
                    "The task that serves it and prints its address: junctura pool serve --announce", length_max=1000
                ),
            }
        ),
    ),
    "Where the tasks meet: one that is served, or what the run's own is to be",
)
WORKFLOW = KnownMapping(
    {
        "workflow": Text("Its name", NAME, _NAME_WHAT),
        "pool": POOL,
        "limit": _time("After so long the run ends"),
        "parallel": Number("Cores that local tasks have at once; by default all", 1, 1_000_000, whole=True),
        "executor": Word(EXECUTORS, "What runs tasks that do not say it", "executor"),
        "tasks": Table(TASK, "What is run; by name", NAME, _NAME_WHAT, TASKS_MAX, "a mapping of tasks"),
    },
    ("workflow", "tasks"),
    "A workflow: programs, and when they start and end",
)


def text() -> str:
    """Returns the text of ``workflow.schema.json``."""
    said: dict[str, Any] = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Junctura: a workflow"}
    return json.dumps(said | WORKFLOW.json(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.stdout.write(text())
