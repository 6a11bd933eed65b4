"""Levels of fields that are heights or depths: those that the words of MARS leave out, as 2 m and 10 m above ground."""

from __future__ import annotations

from typing import Any, NamedTuple

from junctura.field._eccodes import value_of

# By how ecCodes names types of level, with the attributes of CF (1.11, section 4.3) that they have.
_UP = {"units": "m", "positive": "up", "standard_name": "height"}
_DOWN = {"units": "m", "positive": "down", "standard_name": "depth"}
_METRES = {
    "heightAboveGround": {**_UP, "long_name": "height above the surface"},
    "heightAboveGroundLayer": {**_UP, "long_name": "height above the surface"},
    "heightAboveSea": {**_UP, "long_name": "height above mean sea level", "standard_name": "altitude"},
    "heightAboveSeaLayer": {**_UP, "long_name": "height above mean sea level", "standard_name": "altitude"},
    "depthBelowLand": {**_DOWN, "long_name": "depth below the land surface"},
    "depthBelowSea": {**_DOWN, "long_name": "depth below the sea surface"},
}


class Level(NamedTuple):
    """A level: its type by ecCodes' name, and its value; of a layer that of its upper surface."""

    kind: str
    value: float

    @property
    def attrs(self) -> dict[str, str] | None:
        """The attributes of a coordinate of such levels; None where they are no heights or depths in metres."""
        return _METRES.get(self.kind)


def level_of(eccodes: Any, handle: int) -> Level | None:
    """The level of a message; None where its header states none."""
    kind, value = value_of(eccodes, handle, "typeOfLevel", str), value_of(eccodes, handle, "level", float)
    return None if kind is None or value is None else Level(kind, float(value))


def member_of(attributes: Any) -> int | None:
    """The ensemble member of a field with these attributes: a control forecast (type ``cf``) is member 0."""
    if "number" in attributes:
        return int(attributes["number"])
    return 0 if attributes.get("type") == "cf" else None
