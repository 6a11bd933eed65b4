"""An object that a task has fetched."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from junctura._array.numpy_payload import own
from junctura._xarray import label_attributes

if TYPE_CHECKING:
    import xarray

    from junctura._native import Object, Stored


class Fetched:
    """A fetched object: its attributes and its payload.

    In the task that fetched it the payload is read in place, without a copy; serialization to another process copies
    it. Arrays of the payload are read-only.

    Attributes
    ----------
    key
        The key of the object.
    version
        The version in the pool, or the number of the commit in the store.
    attributes
        The attributes of the object.

    Examples
    --------
    >>> with junctura.Pool(schema="free") as pool:
    ...     version = pool.offer(numpy.arange(3), name="a")
    ...     (task,) = junctura.dask.from_selector("name=a", pool=pool, as_="delayed")
    ...     fetched = task.compute(scheduler="synchronous")
    ...     fetched["name"], fetched.nbytes
    ('a', 24)

    """

    def __init__(self, obj: Object | Stored) -> None:
        self.key = obj.key
        self.version = str(getattr(obj, "commit", None) or obj.version)
        self.attributes: dict[str, Any] = obj.attributes
        kinds = label_attributes.kinds_of(obj.schema)
        self._kinds = {name: kind for name, kind in kinds.items() if name in self.attributes}
        self._held: Object | Stored | bytes = obj

    @property
    def nbytes(self) -> int:
        """Size of the payload in bytes."""
        return len(self._held)

    def __getitem__(self, name: str) -> Any:
        return self.attributes[name]

    def get(self, name: str, default: Any = None) -> Any:
        """Returns an attribute, or `default` if the object does not have it."""
        return self.attributes.get(name, default)

    def __bytes__(self) -> bytes:
        return bytes(self._held)

    def array(self) -> npt.NDArray[Any]:
        """Returns the payload as an array with the `dtype` and `shape` of its attributes; without these, an array of
        bytes.
        """
        if not isinstance(self._held, bytes):
            return self._held.array()
        return own(self._held, self.attributes.get("dtype"), self.attributes.get("shape"))

    def to_xarray(self) -> xarray.DataArray:
        """The field with its labels; a GRIB message is decoded.

        Raises
        ------
        ImportError
            Without xarray, or without ecCodes for GRIB: ``pip install 'junctura[grib]'``.

        """
        return label_attributes.to_xarray(self)

    def _payload(self) -> Any:
        held = self._held
        return held._payload() if hasattr(held, "_payload") else held

    def __repr__(self) -> str:
        return f"<junctura.dask.Fetched {self.key} {self.nbytes} bytes>"

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_held": bytes(self)}
