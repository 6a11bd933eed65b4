"""Header contents of a message without words in MARS, kept with its field for GRIB products.

`Field.header` has it, as texts:
```text
  keys    keys of ecCodes and their values: subCentre=0,generatingProcessIdentifier=141
  local   the local section of edition 2, in hexadecimal digits
  level   the words of MARS that the field had for its level: a level that is changed is no more that of the header
  units   the unit that the operation `units` states, which maps keep
```
Offsets are those of the WMO's FM 92 GRIB: edition 1, section 1; edition 2, sections 1, 2 and templates 4.0 to 4.15.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

KEYS, LOCAL, LEVEL, STATED = "keys", "local", "level", "units"
# Templates of code table 4.0 that begin with the octets of template 4.0.
_LIKE_0 = (*range(16), 60, 61, 86, 87)
_MEMBERS = (1, 11, 60, 61)
_PROCESS = {"typeOfGeneratingProcess": 12, "backgroundProcess": 13, "generatingProcessIdentifier": 14}
_SURFACES = {
    "typeOfFirstFixedSurface": (23, 1),
    "scaleFactorOfFirstFixedSurface": (24, 1),
    "scaledValueOfFirstFixedSurface": (25, 4),
    "typeOfSecondFixedSurface": (29, 1),
    "scaleFactorOfSecondFixedSurface": (30, 1),
    "scaledValueOfSecondFixedSurface": (31, 4),
}
# A larger local section is dropped.
_LOCAL_BYTES_MAX = 4096


def header_of(message: bytes, sections: Mapping[int, bytes]) -> dict[str, str]:
    """The header of a message, with the sections of edition 2; edition 1 has none."""
    if message[7] == 1:
        keys = {"centre": _number(message, 8, 5, 1), "subCentre": _number(message, 8, 26, 1)}
        keys |= {"generatingProcessIdentifier": _number(message, 8, 6, 1)}
    else:
        keys = _of_edition_2(sections)
    found = {KEYS: ",".join(f"{name}={value}" for name, value in keys.items())}
    local = sections.get(2, b"")
    if 5 < len(local) <= _LOCAL_BYTES_MAX:
        found[LOCAL] = local.hex()
    return {name: text for name, text in found.items() if text}


def sections_of(message: bytes, last: int) -> dict[int, bytes]:
    """Returns the sections of edition 2 up to this one, by number; none for edition 1."""
    found: dict[int, bytes] = {}
    at = 16 if message[7] == 2 else len(message)
    while at < len(message) - 4 and last not in found:
        length = int.from_bytes(message[at : at + 4], "big")
        found[message[at + 4]] = message[at : at + length]
        at += length
    return found


def _of_edition_2(sections: Mapping[int, bytes]) -> dict[str, int]:
    issued, product = sections.get(1, b""), sections.get(4, b"")
    if len(issued) < 21 or len(product) < 34:
        return {}
    keys = {"centre": _number(issued, 0, 6, 2), "subCentre": _number(issued, 0, 8, 2)}
    template = _number(product, 0, 8, 2)
    if template not in _LIKE_0:
        return keys
    keys |= {name: _number(product, 0, octet, 1) for name, octet in _PROCESS.items()}
    if template in _MEMBERS:
        keys |= {"typeOfEnsembleForecast": _number(product, 0, 35, 1)}
        keys |= {"numberOfForecastsInEnsemble": _number(product, 0, 37, 1)}
    return keys | {name: _number(product, 0, octet, count) for name, (octet, count) in _SURFACES.items()}


def _number(section: bytes, begin: int, octet: int, count: int) -> int:
    """Returns octets, counted from 1."""
    return int.from_bytes(section[begin + octet - 1 : begin + octet - 1 + count], "big")


def level_of(attributes: Mapping[str, Any]) -> str:
    """Returns the MARS words for a level, as one text."""
    return "/".join(str(attributes.get(word, "")) for word in ("levtype", "levelist", "bottomLevel"))


def surfaces_of(header: Mapping[str, str], attributes: Mapping[str, Any]) -> tuple[tuple[str, int], ...]:
    """Returns the keys of the surfaces of a field, if its level is unchanged."""
    if header.get(LEVEL) != level_of(attributes):
        return ()
    return tuple((name, value) for name, value in keys_of(header).items() if name in _SURFACES)


def keys_of(header: Mapping[str, str]) -> Mapping[str, int]:
    """Returns the keys that a field has kept."""
    return _keys(header.get(KEYS, ""))


@functools.lru_cache(maxsize=256)
def _keys(said: str) -> Mapping[str, int]:
    pairs = (pair.partition("=") for pair in said.split(",") if pair)
    return MappingProxyType({name: int(value) for name, _, value in pairs})


def local_of(header: Mapping[str, str]) -> bytes:
    """Returns the local section that a field has kept; empty without one."""
    return bytes.fromhex(header.get(LOCAL, ""))


def with_local(message: bytes, local: bytes) -> bytes:
    """Returns a message of edition 2 with this local section instead of its own."""
    at = 16 + int.from_bytes(message[16:20], "big")
    has_own = message[at + 4] == 2
    behind = at + int.from_bytes(message[at : at + 4], "big") if has_own else at
    made = message[:at] + local + message[behind:]
    return made[:8] + len(made).to_bytes(8, "big") + made[16:]
