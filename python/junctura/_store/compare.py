"""Differences between two listings: keys, attributes, bytes, and values within a tolerance.

Imported on first use; ecCodes only for values of GRIB messages.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from junctura import field as fields
from junctura.errors import Corrupt, InvalidArgument, TooLarge

if TYPE_CHECKING:
    from junctura import Listing, Stored


class Valued(Protocol):
    """An object whose values are needed."""

    @property
    def attributes(self) -> dict[str, Any]: ...
    def array(self) -> npt.NDArray[Any]: ...
    def _payload(self) -> Any: ...


@dataclass
class Comparison:
    """The differences between two listings, by key (without ignored attributes).

    Attributes
    ----------
    both : int
        Number of common keys.
    only_first, only_second : dict of str to Stored
        Objects in only one listing.
    attributes : dict of str to dict
        For common keys: attributes outside the key that differ, each with its text in the first and the second listing;
        None if it is absent.
    bytes : dict of str to (Stored, Stored)
        For common keys: those with different bytes.
    values : dict of str to float, or None
        If values were compared: of the keys with different bytes, those whose values differ by more than the tolerance,
        with the largest difference; infinite if the numbers of values differ, or one value is NaN and the other a
        number, or values cannot be read, or two GRIB messages are on different grids.

    Examples
    --------
    >>> with junctura.Store.create(folder / "store", schema="free") as store:
    ...     for run, name in (("a", "t"), ("b", "t"), ("b", "u")):
    ...         store.archive(b"payload", space=run, name=name)
    >>> comparison = junctura.compare(store.list("space=a"), store.list("space=b"), ignore=["space"])
    >>> comparison.both, list(comparison.only_second)
    (1, ['{}{}{name=u}'])

    """

    both: int = 0
    only_first: dict[str, Stored] = field(default_factory=dict)
    only_second: dict[str, Stored] = field(default_factory=dict)
    attributes: dict[str, dict[str, tuple[str | None, str | None]]] = field(default_factory=dict)
    bytes: dict[str, tuple[Stored, Stored]] = field(default_factory=dict)
    values: dict[str, float] | None = None

    @property
    def is_same(self) -> bool:
        """Whether there is no difference; if values were compared, different bytes with the same values do not
        count.
        """
        payloads = self.bytes if self.values is None else self.values
        return not (self.only_first or self.only_second or self.attributes or payloads)


def compare(
    first: Listing,
    second: Listing,
    /,
    *,
    ignore: Sequence[str] = (),
    rtol: float | None = None,
    atol: float | None = None,
) -> Comparison:
    """Compares the objects of two listings: of two stores, or of two experiments in one.

    Bytes are compared by length and checksum, without reading. With a tolerance, the values of objects with different
    bytes are compared, for GRIB messages and arrays with a ``dtype``.

    Parameters
    ----------
    first, second : Listing
        Results of `Store.list`, each with one version of each key.
    ignore : sequence of str
        Attributes to ignore, also in keys: ``["expver"]`` for two experiments.
    rtol, atol : float, optional
        Values are equal if they differ by at most ``atol + rtol * abs(second)``, as in `numpy.allclose`; an omitted one
        is 0. Without both, no values are compared.

    Returns
    -------
    Comparison

    Raises
    ------
    InvalidArgument
        No object has an attribute that is to be ignored, or several objects of one listing have one key without it.
    ImportError
        For values of GRIB messages without ecCodes: ``pip install 'junctura[grib]'``.

    Examples
    --------
    >>> with junctura.Store.create(folder / "store", schema="free") as store:
    ...     for run, value in (("a", 1.0), ("b", 1.5)):
    ...         store.archive(numpy.array([value, 2.0]), space=run, name="t")
    >>> found = junctura.compare(store.list("space=a"), store.list("space=b"), ignore=["space"], atol=0.1)
    >>> found.is_same, found.both, found.values
    (False, 1, {'{}{}{name=t}': 0.5})

    """
    found = Comparison()
    found.both, told = first._compare(second, list(ignore))
    for what, key, here, there in told:
        if what == "first":
            found.only_first[key] = here
        elif what == "second":
            found.only_second[key] = there
        elif what == "attributes":
            found.attributes[key] = {name: (one, two) for name, one, two in here}
        else:
            found.bytes[key] = (here, there)
    if rtol is not None or atol is not None:
        differences = {key: apart(*pair, rtol or 0.0, atol or 0.0) for key, pair in found.bytes.items()}
        found.values = {key: difference for key, difference in differences.items() if difference > 0}
    return found


def apart(first: Valued, second: Valued, rtol: float, atol: float) -> float:
    """Returns the maximum difference of two fields; 0 if it is within the tolerance."""
    one, two = _values(first), _values(second)
    if one is None or two is None or one.values.shape != two.values.shape or not _is_one_grid(one, two):
        return math.inf
    if np.isclose(one.values, two.values, rtol=rtol, atol=atol, equal_nan=True).all():
        return 0.0
    if not np.array_equal(np.isnan(one.values), np.isnan(two.values)):
        return math.inf
    return float(np.nanmax(np.abs(one.values - two.values)))


class _Compared(NamedTuple):
    """Returns values; for a message by rows and columns if its grid has any, and the message."""

    values: npt.NDArray[Any]
    message: bytes | None = None


def _is_one_grid(one: _Compared, two: _Compared) -> bool:
    """Whether values at one place in two arrays are at one point."""
    if one.message is None or two.message is None:
        return True
    if fields.octets_of(one.message) == fields.octets_of(two.message):
        return True
    grids = [fields.decoded(message, fields.grid_of) for message in (one.message, two.message)]
    return grids[0].is_same(grids[1])


def _values(obj: Valued) -> _Compared | None:
    """Returns the values of a field or an array; None if it is neither, not numeric, or unreadable."""
    if "dtype" not in obj.attributes:
        message = fields.message_of(obj)
        return None if message is None else _decoded(message)
    try:
        array = obj.array()
    except InvalidArgument:
        return None
    return _Compared(array.astype(np.float64)) if np.issubdtype(array.dtype, np.number) else None


def _decoded(message: bytes) -> _Compared | None:
    try:
        values, order = fields.decoded(message, fields.ordered)
    except (Corrupt, TooLarge):
        return None
    is_in_rows = order is not None and order.rows * order.columns == values.size
    return _Compared(order.arranged(values) if order and is_in_rows else values, message)
