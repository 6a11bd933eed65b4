"""What decoding adds to a field and the schema of a pool has no attribute for: kept among the `tags` of an array."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import junctura
from junctura.products._regrid.vector_rotation import ALONG_GRID

# Where a range of steps begins, and whether components of vectors are along the grid; a message says both itself.
_ADDED = ("stepStart", ALONG_GRID)


def bare(attributes: Mapping[str, Any], schema: junctura.Schema) -> dict[str, Any]:
    """Attributes without those that were added here and that a schema does not take; one that is open takes texts."""
    return {
        name: str(value) if name in _ADDED else value
        for name, value in attributes.items()
        if name not in _ADDED or _takes(schema, name)
    }


def tagged(attributes: Mapping[str, Any], schema: junctura.Schema) -> dict[str, Any]:
    """The same, with those among the tags, as ``stepStart=6``."""
    tags = [f"{name}={attributes[name]}" for name in _ADDED if name in attributes and not _takes(schema, name)]
    found = bare(attributes, schema)
    return {**found, "tags": [*found.get("tags", ()), *tags]} if tags and _takes(schema, "tags") else found


def untagged(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes with those that `tagged` has put among the tags."""
    found = dict(attributes)
    if isinstance(found.get("tags"), str):
        return found
    tags = found.pop("tags", ())
    added = dict(str(tag).split("=", 1) for tag in tags if str(tag).startswith(tuple(f"{name}=" for name in _ADDED)))
    left = [tag for tag in tags if str(tag).partition("=")[0] not in added]
    return {**added, **found, **({"tags": left} if left else {})}


def _takes(schema: junctura.Schema, name: str) -> bool:
    return schema.is_open or name in schema.attributes
