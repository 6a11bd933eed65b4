"""GRIB2 messages made by hand: small fields of an ensemble, as ECMWF would code them.

```text
0 indicator │ 1 identification │ 2 class, type, … │ 3 grid │ 4 product │ 5 packing │ 6 bitmap │ 7 values │ 7777
```
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

PARAMS = {"t": (0, 0), "u": (2, 2), "v": (2, 3), "q": (1, 0)}
POINTS = 16


@dataclass(frozen=True)
class Field:
    """What a message is about."""

    param: str = "t"
    levelist: int = 500
    step: int = 0
    number: int = 1
    date: int = 20260101
    time: int = 0
    points: int = POINTS

    def selector(self) -> str:
        return (
            f"param={self.param},levelist={self.levelist},step={self.step},number={self.number},"
            f"date={self.date},time={self.time:04}"
        )


def section(number: int, body: bytes) -> bytes:
    return struct.pack(">IB", len(body) + 5, number) + body


def message(field: Field, fill: int = 7) -> bytes:
    """One message; `fill` makes its values."""
    year, month, day = field.date // 10000, field.date // 100 % 100, field.date % 100
    identification = struct.pack(">HHBBBHBBBBBBB", 98, 0, 33, 0, 1, year, month, day, field.time // 100, 0, 0, 0, 5)
    local = struct.pack(">HHHH4s", 1, 1, 11, 1035, b"0001")
    grid = struct.pack(
        ">BIBBHBBIBIBIIIIIIIBIIIIB",
        *(0, field.points, 0, 0, 0),
        *(6, 255, 0xFFFFFFFF, 255, 0xFFFFFFFF, 255, 0xFFFFFFFF),
        *(field.points, 1, 0, 0xFFFFFFFF, 0, 0, 48, 0, field.points - 1, 1, 1, 0),
    )
    category, number = PARAMS[field.param]
    product = struct.pack(
        ">HHBBBBBHBBIBBIBBIBBB",
        *(0, 1, category, number, 4, 255, 255, 0, 0, 1, field.step),
        *(100, 0, field.levelist * 100, 255, 255, 0xFFFFFFFF),
        *(3, field.number, 50),
    )
    packing = struct.pack(">IHfHHBB", field.points, 0, 0.0, 0, 0, 8, 0)
    values = bytes((fill + i) % 256 for i in range(field.points))
    body = b"".join(
        [
            section(1, identification),
            section(2, local),
            section(3, grid),
            section(4, product),
            section(5, packing),
            section(6, b"\xff"),
            section(7, values),
            b"7777",
        ]
    )
    return b"GRIB" + struct.pack(">HBBQ", 0, 0, 2, len(body) + 16) + body


def ensemble(members: int = 2, steps: int = 2, levels: tuple[int, ...] = (500, 850)) -> dict[Field, bytes]:
    """Fields of an ensemble, each with values of its own."""
    fields = [
        Field(param, level, 6 * step, member + 1)
        for param in ("t", "u")
        for level in levels
        for step in range(steps)
        for member in range(members)
    ]
    return {field: message(field, fill) for fill, field in enumerate(fields)}


def split(data: bytes) -> list[bytes]:
    """The messages in some bytes, of either edition, read independently of the product."""
    messages, at = [], 0
    while (at := data.find(b"GRIB", at)) >= 0:
        size = int.from_bytes(data[at + 4 : at + 7] if data[at + 7] == 1 else data[at + 8 : at + 16], "big")
        found = data[at : at + size]
        if found.endswith(b"7777"):
            messages.append(found)
            at += size
        else:
            at += 4
    return messages
