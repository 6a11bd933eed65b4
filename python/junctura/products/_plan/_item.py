"""A field in a plan: its attributes, and its values, which are decoded when the first action needs them."""

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
    """One field, shared by all branches that receive it; immutable.

    Parameters
    ----------
    attributes
        The attributes of the field.
    source
        The object from which it was received, whose memory it holds; None for the result of an action.
    pool
        The pool from which it was received.
    field
        Its values, if known.
    message
        The field as a GRIB message, if it is one.

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
        # The same message with other attributes, if it is decoded for both.
        self._before: Item | None = None

    @property
    def is_in_pieces(self) -> bool:
        """Whether it is an array that ranks offer in pieces, which `aggregate` assembles."""
        return self.source is not None and bytes(memoryview(self.source)[: len(_PIECES)]) == _PIECES

    @property
    def kind(self) -> np.dtype[Any]:
        """Returns the element type of an array in pieces (docs/formats/array.md).

        Raises
        ------
        Corrupt
            Its description is not valid.

        """
        text = b"" if self.source is None else bytes(memoryview(self.source)[:256])
        name, _, said = text.partition(b"\n")[2].partition(b"\n")[0].decode(errors="replace").partition("=")
        try:
            return np.dtype(said if name == "dtype" else "")
        except TypeError as error:
            raise Corrupt(self.named, "it does not say what the elements of the array are") from error

    @property
    def message(self) -> bytes | memoryview | None:
        """The GRIB message; None if the field has values only."""
        if self._message is not None:
            return self._message
        if self.source is None or bytes(memoryview(self.source)[:4]) != b"GRIB":
            return None
        return memoryview(self.source)

    @property
    def field(self) -> Field:
        """The values; a message is decoded the first time.

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
        """A description for messages."""
        return f"field {named(self.attributes)}"

    def saying(self, attributes: Mapping[str, Any]) -> Item:
        """Returns the same field with other attributes; nothing is copied, and a message is decoded once for both."""
        said = {**self.attributes, **attributes}
        if self.source is None:
            units = str(attributes.get("units", self.field.units))
            return Item(said, field=replace(self.field, attributes=said, units=units), message=self._message)
        other = Item(said, source=self.source, pool=self.pool)
        other._before = self
        return other

    def of(self, field: Field) -> Item:
        """Returns a field with other values, as the result of an action; they are not encoded as a message yet."""
        return Item(field.attributes, field=field)


def named(attributes: Mapping[str, Any]) -> str:
    """The attributes that distinguish a field from similar ones, for messages."""
    words = ("param", "levelist", "step", "number")
    return ",".join(f"{word}={attributes[word]}" for word in words if word in attributes) or str(dict(attributes))
