"""Types of the native module for drawing maps; part of `_native`, not a module on its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy.typing as npt
from typing_extensions import Buffer

_Bytes: TypeAlias = Buffer | npt.NDArray[Any]
_Colour: TypeAlias = tuple[int, int, int]

def _isolines(
    colours: _Bytes,
    values: _Bytes,
    wide: int,
    lines: Sequence[tuple[float, int, tuple[_Colour, _Colour]]],
    stroke: tuple[float, float, float, float, float, float],
) -> list[bytes]: ...
def _blend(colours: _Bytes, pixels: _Bytes, covers: tuple[_Bytes, _Bytes], inks: tuple[_Colour, _Colour]) -> None: ...
def _dim(colours: _Bytes, light: _Bytes) -> None: ...
def _sample(
    made: _Bytes,
    values: _Bytes,
    places: tuple[_Bytes, _Bytes, _Bytes, _Bytes],
    parts: tuple[_Bytes, _Bytes, _Bytes],
) -> None: ...
def _shade(
    colours: _Bytes,
    wide: int,
    values: tuple[_Bytes, _Bytes | None],
    bar: tuple[float, float, float, float] | tuple[Sequence[float], Sequence[int]],
    palette: _Bytes,
    hatch: tuple[int, int],
) -> None: ...
