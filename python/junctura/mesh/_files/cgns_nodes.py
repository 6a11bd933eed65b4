"""Nodes of CGNS files: HDF5 groups with a label and data (CGNS's HDF5 mapping), and tables of the SIDS."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from junctura.errors import Corrupt, InvalidArgument, LimitExceeded, Unsupported
from junctura.mesh._files.reading import check_size, check_storage
from junctura.mesh._model import Array
from junctura.mesh._shapes import SHAPES

NAME_MAX = 32
# Bytes of a text.
_TEXT_MAX = 64 << 20
MIXED, NGON, NFACE = 20, 22, 23
# The number of each side of the model, as CGNS counts faces.
_FACES = {"tet": (2, 3, 4, 1), "pyramid": (2, 3, 4, 5, 1), "wedge": (1, 2, 3, 4, 5), "hex": (2, 3, 4, 5, 1, 6)}
# The node that has what CGNS has no place for.
OWN = "Junctura"
OWN_NAMES = "Names"
# Before the number of a step: values that no solution can have.
OWN_FIELDS = "FieldsAtStep"
# Types of boundary conditions.
USER_DEFINED = "UserDefined"
CONDITIONS = frozenset(
    f"BC{name}"
    for name in (
        *("AxisymmetricWedge", "DegenerateLine", "DegeneratePoint", "Dirichlet", "Extrapolate", "Farfield", "General"),
        *("Inflow", "InflowSubsonic", "InflowSupersonic", "Neumann"),
        *("Outflow", "OutflowSubsonic", "OutflowSupersonic", "SymmetryPlane", "SymmetryPolar"),
        *("TunnelInflow", "TunnelOutflow", "Wall", "WallInviscid"),
        *("WallViscous", "WallViscousHeatFlux", "WallViscousIsothermal"),
    )
)
_TYPES = {"i4": "I4", "i8": "I8", "f4": "R4", "f8": "R8"}
_WIDER = {"i1": "i4", "i2": "i4", "u1": "i4", "u2": "i4", "u4": "i8", "u8": "i8", "b1": "i4"}


def faces_of(shape: str) -> Array:
    """Returns CGNS's number of each side of a shape; of other shapes than solids it is that of the model."""
    linear = SHAPES[shape].linear
    return np.array(_FACES.get(linear) or range(1, 3 + len(SHAPES[shape].sides)))


def label_of(node: Any) -> str:
    """Returns the label of a node; empty if it has none."""
    found = node.attrs.get("label", b"")
    return bytes(found).partition(b"\0")[0].decode("ascii", "replace").strip()


def children(node: Any, label: str) -> Iterator[tuple[str, Any]]:
    """Yields the nodes of a label, with their names."""
    for name in node:
        child = node.get(name)
        if child is not None and hasattr(child, "attrs") and label_of(child) == label:
            yield name, child


def data(node: Any, path: str) -> Array:
    """Returns the data of a node."""
    if " data" not in node:
        raise Corrupt(path, f"the node {node.name} has no data")
    values = node[" data"]
    check_storage(path, values)
    check_size(path, node.name, values.size * values.dtype.itemsize)
    found: Array = values[()]
    return found


def text(node: Any) -> str:
    """Returns the data of a node as a text."""
    if " data" in node:
        check_storage(str(node.file.filename), node[" data"])
        if node[" data"].size > _TEXT_MAX:
            raise LimitExceeded(str(node.file.filename), f"the text {node.name} has {node[' data'].size} bytes")
    found = node[" data"][()] if " data" in node else np.empty(0, np.int8)
    return np.ascontiguousarray(found).astype(np.uint8).tobytes().decode("utf-8", "replace").strip("\0 ")


def texts(values: Array) -> list[str]:
    """Returns a table of characters as texts."""
    rows = np.ascontiguousarray(values).astype(np.uint8).reshape(-1, values.shape[-1])
    return [row.tobytes().decode("utf-8", "replace").strip("\0 ") for row in rows]


class NodeWriter:
    """Creates the nodes of a file.

    Parameters
    ----------
    file
        An empty file of h5py.

    """

    def __init__(self, file: Any) -> None:
        self.root = file
        self._attributes(file, "HDF5 MotherNode", "Root Node of HDF5 File", "MT")
        del file.attrs["flags"]
        file.create_dataset(" format", data=_characters("IEEE_LITTLE_32", 15))
        file.create_dataset(" hdf5version", data=_characters("HDF5 Version 1.8.17", 33))
        self.node(file, "CGNSLibraryVersion", "CGNSLibraryVersion_t", np.array([4.2], np.float32))

    def node(self, parent: Any, name: str, label: str, values: Array | str | None = None) -> Any:
        """Creates a node; a text becomes characters.

        Raises
        ------
        InvalidArgument
            The name has more than 32 bytes, or a slash.

        """
        if not 1 <= len(name.encode()) <= NAME_MAX or "/" in name or name in (".", "..") or name in parent:
            raise InvalidArgument(f"CGNS node {name}", "a name has 1 to 32 bytes, no slash, and occurs once")
        group = parent.create_group(name, track_order=True)
        kind = "MT"
        if isinstance(values, str):
            values, kind = np.frombuffer(values.encode() or b" ", np.int8), "C1"
        elif values is not None:
            values = _typed(name, values)
            kind = "C1" if values.dtype == np.int8 else _TYPES[values.dtype.str[1:]]
        self._attributes(group, name, label, kind)
        if values is not None:
            group.create_dataset(" data", data=values, track_times=False)
        return group

    def _attributes(self, group: Any, name: str, label: str, kind: str) -> None:
        group.attrs.create("name", name.encode(), dtype="S33")
        group.attrs.create("label", label.encode(), dtype="S33")
        group.attrs.create("type", kind.encode(), dtype="S3")
        group.attrs.create("flags", np.array([1], np.int32))


def _typed(name: str, values: Array) -> Array:
    """Returns values in a type of CGNS; an array of characters is left alone."""
    code = values.dtype.str[1:]
    if code == "i1" and values.ndim == 2:
        return values
    wider = _WIDER.get(code, code)
    if wider not in _TYPES:
        raise Unsupported(name, f"values of the type {values.dtype}; CGNS has integers and floats of 4 and 8 bytes")
    if code == "u8" and values.size and values.max() > np.iinfo(np.int64).max:
        raise Unsupported(name, f"the number {values.max()} has more than 63 bits")
    return values.astype(f"<{wider}", copy=False)


def _characters(value: str, size: int) -> Array:
    return np.frombuffer(value.encode().ljust(size, b"\0"), np.int8)


class NodeNames:
    """Short unique names for nodes."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def short(self, name: str) -> str:
        """Returns a name of at most 32 bytes without a slash, which no other has."""
        clean = name.replace("/", ":").strip() or "_"
        found = clean
        at = 1
        while len(found.encode()) > NAME_MAX or found in self._taken or found in (".", ".."):
            at += 1
            end = f"#{at}"
            kept = clean.encode()[: NAME_MAX - len(end)].decode("utf-8", "ignore")
            found = kept + end
        self._taken.add(found)
        return found
