"""The pool of a workflow in its file, and the selectors and bundles that tasks wait for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from junctura import Schema, Selector, _limits
from junctura._document.located_yaml import Wrong, at, nearest
from junctura._document.sizes import bytes_of, shown_bytes
from junctura.errors import Error, InvalidSelector
from junctura.workflow._spec.tasks import PoolWanted

_BUNDLE = re.compile(r"[A-Za-z0-9._+:=,@-]+(/[A-Za-z0-9._+:=,@-]+){0,15}")
_BUNDLE_MAX = 512
_BUILT_IN = {name: Schema.builtin(name) for name in Schema.BUILTIN_NAMES}


# In the error for an attribute that a schema does not declare.
_NOT_DECLARED = "is no attribute of schema"


@dataclass(frozen=True)
class Meeting:
    """A pool to use; with its schema if known, which is the case for the run's own pool."""

    wanted: PoolWanted
    schema: Schema | None

    def attributes(self, selector: str) -> tuple[str, ...] | None:
        """Returns the possible attributes of objects that a selector matches; None: any."""
        if self.schema is None or self.schema.is_open or _cause(selector, self.schema):
            return None
        return tuple(self.schema.attributes)

    def check_selector(self, selector: str) -> None:
        """Checks that objects can match a selector.

        Raises
        ------
        Wrong
            No schema of the pool, or that a served pool may have, accepts the selector.

        """
        # Every pool has the built-in schemas, too.
        causes = {name: _cause(selector, schema) for name, schema in _BUILT_IN.items()}
        if self.schema is not None:
            own = causes["its own"] = _cause(selector, self.schema)
            # Objects of the open schema may have any text, but hardly in an attribute that the chosen schema declares.
            if own and not self.schema.is_open and _NOT_DECLARED not in own:
                raise Wrong(own)
        if not all(causes.values()):
            return
        if self.schema is not None:
            raise Wrong(causes["its own"])
        if len(set(causes.values())) == 1:
            raise Wrong(causes["free"])


def meeting(said: Any, folder: Path) -> Meeting:
    """Returns the pool in the file.

    Raises
    ------
    Wrong
        Its schema does not exist, its memory exceeds that of the host, or a served pool has options of a pool of the
        run.

    """
    if isinstance(said, str):
        return Meeting(PoolWanted(url=said), None)
    if "service" in said:
        if others := sorted(said.keys() - {"service"}):
            raise Wrong(f'"{said["service"][:60]}" serves it, and says that', others[0])
        return Meeting(PoolWanted(service=said["service"]), None)
    memory = None
    if "memory" in said:
        with at("memory"):
            memory = bytes_of(said["memory"])
            if memory > (most := _limits.memory_bytes()):
                raise Wrong(f"{shown_bytes(memory)} are more than the {shown_bytes(most)} of this machine")
    name = said.get("schema", "mars")
    with at("schema"):
        schema, where = _schema(name, folder)
    spill = Path(said["spill"]) if "spill" in said else None
    return Meeting(PoolWanted(schema=where, memory_bytes=memory, spill=spill), schema)


def _schema(name: str, folder: Path) -> tuple[Schema, str]:
    """Returns a schema, and its option for a server."""
    if name in _BUILT_IN:
        return _BUILT_IN[name], name
    file = folder / name
    try:
        return Schema.from_yaml(file.read_text()), str(file)
    except FileNotFoundError:
        raise Wrong(f'there is no schema "{name}", and no such file{nearest(name, _BUILT_IN)}') from None
    except (OSError, ValueError) as error:
        raise Wrong(str(error)) from error
    except Error as error:
        raise Wrong(f"{name}: {error.subject}: {error.cause}") from error


def check_bundle(path: str) -> None:
    """Checks the name of a bundle.

    Raises
    ------
    Wrong
        The name is invalid.

    """
    if len(path) > _BUNDLE_MAX or not _BUNDLE.fullmatch(path):
        raise Wrong(f'"{path[:60]}" is no name of a bundle: up to 16 parts between /, of letters, digits and ._+:-=,@')


def _cause(selector: str, schema: Schema) -> str:
    """Returns why a schema rejects a selector; empty if it does not."""
    try:
        Selector(selector, schema)
    except InvalidSelector as error:
        return f"{error.subject}: {error.cause}"
    return ""
