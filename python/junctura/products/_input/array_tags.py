"""Attributes of decoded fields that the schema of a pool does not have: stored in the `tags` of an array."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import junctura
from junctura.products._regrid.vector_rotation import ALONG_GRID

# The start of a range of steps, and whether vector components follow the grid; a message has both itself.
_ADDED = ("stepStart", ALONG_GRID)


def bare(attributes: Mapping[str, Any], schema: junctura.Schema) -> dict[str, Any]:
    """Removes added attributes that a schema does not have; an open schema accepts any text."""
    return {
        name: str(value) if name in _ADDED else value
        for name, value in attributes.items()
        if name not in _ADDED or _takes(schema, name)
    }


def tagged(attributes: Mapping[str, Any], schema: junctura.Schema) -> dict[str, Any]:
    """Moves these attributes to the tags, as ``stepStart=6``."""
    tags = [f"{name}={attributes[name]}" for name in _ADDED if name in attributes and not _takes(schema, name)]
    found = bare(attributes, schema)
    return {**found, "tags": [*found.get("tags", ()), *tags]} if tags and _takes(schema, "tags") else found


def untagged(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Restores the attributes that `tagged` has moved to the tags."""
    found = dict(attributes)
    if isinstance(found.get("tags"), str):
        return found
    tags = found.pop("tags", ())
    added = dict(str(tag).split("=", 1) for tag in tags if str(tag).startswith(tuple(f"{name}=" for name in _ADDED)))
    left = [tag for tag in tags if str(tag).partition("=")[0] not in added]
    return {**added, **found, **({"tags": left} if left else {})}


def _takes(schema: junctura.Schema, name: str) -> bool:
    return schema.is_open or name in schema.attributes
