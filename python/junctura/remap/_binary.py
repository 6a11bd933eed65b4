"""The binary format of weights, which Rust, C, C++ and Fortran read: ``docs/formats/weights.md``."""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from junctura import _native
from junctura._near_file import near_file
from junctura.errors import InvalidArgument, Io, NotFound

_MAGIC = b"JCTWGHTS"


def read(path: str | os.PathLike[str]) -> _native._Weights | None:
    """Returns the weights of a binary file; none for a file of another kind."""
    try:
        with Path(path).open("rb") as file:
            start = file.read(len(_MAGIC))
            if start != _MAGIC:
                return None
            return _native._Weights.decode(start + file.read())
    except FileNotFoundError as error:
        raise NotFound(str(path), f"there is no such file{near_file(path)}") from error
    except OSError as error:
        raise Io(str(path), str(error)) from error


def checked(weights: _native._Weights, given: Sequence[tuple[int, ...] | None], path: str) -> _native._Weights:
    """Returns the weights, if the grids have the given shapes."""
    for shape, found in zip(given, (weights.source_shape, weights.target_shape), strict=True):
        if shape is not None and np.prod(shape) != np.prod(found):
            raise InvalidArgument(
                path, f"a grid of the shape {shape} has not {np.prod(found)} points, as the file states"
            )
    return weights


def write(path: str | os.PathLike[str], weights: _native._Weights) -> None:
    """Writes a binary file; a reader never finds a partial file."""
    whole = Path(path)
    part = whole.with_name(f".{whole.name}.{secrets.token_hex(4)}")
    try:
        part.write_bytes(weights.encode())
        part.replace(whole)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise Io(str(path), str(error)) from error
