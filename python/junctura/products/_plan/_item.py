"""A field on its way through a plan: what it means, and its values, decoded when the first action asks for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

import junctura
from junctura.errors import Corrupt, InvalidArgument
from junctura.products._input.decoded_field import Field
from junctura.products._input.decoding import field_of

_PIECES = b"junctura-array 1\n"


class Item:
    """One field, shared by all branches that it goes into; nobody changes it.

    Parameters
    ----------
    attributes
        What it means.
    source
        The object that it came as, whose memory it holds; None for what an action has made.
    pool
        The pool that it came from.
    field
        Its values, where they are known.
    message
        The field as a message of GRIB, where it is one.

    """

    def __init__(
        self,
        attributes: Mapping[str, Any],
        source: junctura.Object | None = None,
        field: Field | None = None,
        message: bytes | None = None,
        *,
        pool: junctura.Pool | None = None,
    ) -> None:
        self.attributes = dict(attributes)
        self.source = source
        self.pool = pool
        self._field = field
        self._message = message
        # The same message with other attributes, where it is decoded for both.
        self._before: Item | None = None

    @property
    def is_in_pieces(self) -> bool:
        """Whether it is an array that ranks have offered in pieces, which `aggregate` gathers."""
        return self.source is not None and bytes(memoryview(self.source)[: len(_PIECES)]) == _PIECES

    @property
    def kind(self) -> np.dtype[Any]:
        """Of an array in pieces, what its elements are (docs/formats/array.md).

        Raises
        ------
        Corrupt
            Its text does not say it.

        """
        text = b"" if self.source is None else bytes(memoryview(self.source)[:256])
        name, _, said = text.partition(b"\n")[2].partition(b"\n")[0].decode(errors="replace").partition("=")
        try:
            return np.dtype(said if name == "dtype" else "")
        except TypeError as error:
            raise Corrupt(self.named, "it does not say what the elements of the array are") from error

    @property
    def message(self) -> bytes | memoryview | None:
        """The message of GRIB that it is; None where it is values only."""
        if self._message is not None:
            return self._message
        if self.source is None or bytes(memoryview(self.source)[:4]) != b"GRIB":
            return None
        return memoryview(self.source)

    @property
    def field(self) -> Field:
        """Its values; a message is decoded the first time.

        Raises
        ------
        InvalidArgument, Corrupt, Unsupported
            See `junctura.products._input.decoding.field_of`.

        """
        if self._field is None:
            self._field = self._read()
        return self._field

    def _read(self) -> Field:
        if self.source is None or self.is_in_pieces:
            raise InvalidArgument(self.named, "it is an array in pieces: aggregate it first")
        if self._before is not None and self.message is not None:
            before = self._before.field
            return replace(before, attributes={**before.attributes, **self.attributes})
        return field_of(self.source, self.attributes)

    @property
    def named(self) -> str:
        """What it is, for messages."""
        return f"field {named(self.attributes)}"

    def saying(self, attributes: Mapping[str, Any]) -> Item:
        """The same field with other attributes; nothing is copied, and a message is decoded for both at once."""
        said = {**self.attributes, **attributes}
        if self.source is None:
            units = str(attributes.get("units", self.field.units))
            return Item(said, field=replace(self.field, attributes=said, units=units), message=self._message)
        other = Item(said, source=self.source, pool=self.pool)
        other._before = self
        return other

    def of(self, field: Field) -> Item:
        """Other values, on the way in its place; a message of them is not made yet."""
        return Item(field.attributes, field=field)


def named(attributes: Mapping[str, Any]) -> str:
    """What tells a field from those beside it, for messages."""
    words = ("param", "levelist", "step", "number")
    return ",".join(f"{word}={attributes[word]}" for word in words if word in attributes) or str(dict(attributes))
