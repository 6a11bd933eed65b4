"""An object in the hands of a task."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from junctura._array.numpy_payload import own
from junctura._xarray import label_attributes

if TYPE_CHECKING:
    import xarray

    from junctura._native import Object, Stored


class Fetched:
    """An object where a task has it: what it means, and its payload.

    In the task that fetched it the payload stays where it lies, and nothing is copied; one that travels to another
    process is copied, and is the same there. An array that was taken of it is read-only.

    Attributes
    ----------
    key
        Its identity.
    version
        Which of that key: the version in the pool, or the number of the commit in the store.
    attributes
        What it means.

    """

    def __init__(self, obj: Object | Stored) -> None:
        self.key = obj.key
        self.version = str(getattr(obj, "commit", None) or obj.version)
        self.attributes: dict[str, Any] = obj.attributes
        self._held: Object | Stored | bytes = obj

    @property
    def nbytes(self) -> int:
        """Of the payload."""
        return len(self._held)

    def __getitem__(self, name: str) -> Any:
        return self.attributes[name]

    def get(self, name: str, default: Any = None) -> Any:
        """An attribute, if there is such a one."""
        return self.attributes.get(name, default)

    def __bytes__(self) -> bytes:
        return bytes(self._held)

    def array(self) -> npt.NDArray[Any]:
        """The payload as the array that its attributes say; one of bytes if they say none."""
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
