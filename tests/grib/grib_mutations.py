"""Messages that announce something else than they have: samples of ecCodes in every packing, changed by a seed.

A change keeps the lengths of the message and of its sections consistent most of the time: otherwise the first check
of the lengths would end each case.
"""

from __future__ import annotations

import functools
import random
import struct

import eccodes
import numpy as np

# Packings that ecCodes writes; None: as in the sample.
PACKINGS = [
    None,
    "grid_simple",
    "grid_ccsds",
    "grid_complex",
    "grid_complex_spatial_differencing",
    "grid_second_order",
    "grid_ieee",
    "grid_jpeg",
    "grid_png",
    "grid_simple_log_preprocessing",
    "grid_run_length",
    "spectral_simple",
]
SAMPLES = [
    "regular_ll_pl_grib2",
    "regular_gg_pl_grib2",
    "reduced_gg_pl_32_grib2",
    "rotated_ll_pl_grib2",
    "sh_pl_grib2",
    "polar_stereographic_pl_grib2",
    "regular_ll_pl_grib1",
    "regular_gg_pl_grib1",
    "reduced_gg_pl_32_grib1",
    "rotated_ll_pl_grib1",
    "sh_pl_grib1",
    "polar_stereographic_pl_grib1",
]
_SHORT = [0, 1, 2, 3, 7, 8, 31, 32, 33, 63, 64, 65, 127, 128, 200, 254, 255]
_INTERESTING = [0, 1, 2, 255, 256, 4095, 4096, 65535, 1 << 16, (1 << 31) - 1, 1 << 31, (1 << 32) - 1]


@functools.cache
def whole() -> list[bytes]:
    """The messages that are changed; each is sound."""
    made: list[bytes] = []
    for sample in SAMPLES:
        for packing in PACKINGS:
            for has_bitmap in (False, True):
                message = _made(sample, packing, has_bitmap, is_local=len(made) % 2 == 1)
                if message is not None and message not in made:
                    made.append(message)
    return made


def _made(sample: str, packing: str | None, has_bitmap: bool, is_local: bool) -> bytes | None:
    handle = eccodes.codes_grib_new_from_samples(sample)
    try:
        if sample.endswith("2"):
            template = 11 if has_bitmap else 1 if is_local else 0
            eccodes.codes_set(handle, "productDefinitionTemplateNumber", template)
            if is_local:
                eccodes.codes_set(handle, "setLocalDefinition", 1)
        if not eccodes.codes_get(handle, "gridType").endswith("sh"):
            if "reduced" not in sample and "gg" not in sample:
                for key, value in (("Ni", 16), ("Nj", 31)):
                    eccodes.codes_set(handle, key, value)
            size = eccodes.codes_get_size(handle, "values")
            values = 280 + 20 * np.sin(np.arange(size) / 10) + np.random.default_rng(size).normal(size=size)
            if has_bitmap:
                eccodes.codes_set(handle, "bitmapPresent", 1)
                values[::7] = eccodes.codes_get(handle, "missingValue")
            eccodes.codes_set(handle, "bitsPerValue", 12)
            eccodes.codes_set_values(handle, values)
        elif has_bitmap or (packing is not None and not packing.startswith("spectral")):
            return None
        if packing is not None:
            eccodes.codes_set(handle, "packingType", packing)
        return bytes(eccodes.codes_get_message(handle))
    except eccodes.CodesInternalError:
        return None
    finally:
        eccodes.codes_release(handle)


def mutated(seed: int) -> bytes:
    """A message with one to three changes, by its seed."""
    chance = random.Random(seed)
    message = chance.choice(whole())
    for _ in range(chance.choice([1, 1, 1, 2, 3])):
        message = chance.choice(_CHANGES)(chance, message)
    return message


def _sections(message: bytes) -> list[tuple[int, int, int]]:
    """Number, start and end of each section, as far as lengths make sense."""
    if len(message) < 8:
        return []
    return _sections2(message) if message[7] == 2 else _sections1(message)


def _sections2(message: bytes) -> list[tuple[int, int, int]]:
    found, at = [], 16
    while at + 5 < len(message) - 4:
        length = int.from_bytes(message[at : at + 4], "big")
        if length < 5 or at + length > len(message) - 4:
            break
        found.append((message[at + 4], at, at + length))
        at += length
    return found


def _sections1(message: bytes) -> list[tuple[int, int, int]]:
    found, at = [], 8
    numbers = [1, *([2] if message[15] & 0x80 else []), *([3] if message[15] & 0x40 else []), 4]
    for number in numbers:
        length = int.from_bytes(message[at : at + 3], "big")
        if length < 3 or at + length > len(message) - 4:
            break
        found.append((number, at, at + length))
        at += length
    return found


def _resized(message: bytes, section: tuple[int, int, int], body: bytes) -> bytes:
    """The message with other contents of one section, and the lengths that this gives."""
    _, start, end = section
    if message[7] == 2:
        changed = message[:start] + struct.pack(">I", 4 + len(body)) + body + message[end:]
        return changed[:8] + struct.pack(">Q", len(changed)) + changed[16:]
    changed = message[:start] + (3 + len(body)).to_bytes(3, "big") + body + message[end:]
    return changed[:4] + len(changed).to_bytes(3, "big") + changed[7:]


def _cut(chance: random.Random, message: bytes) -> bytes:
    """A section loses its end."""
    sections = [section for section in _sections(message) if section[2] - section[1] > 12]
    if not sections:
        return message
    section = chance.choice([*sections, *sections[-2:]])
    head = 4 if message[7] == 2 else 3
    body = message[section[1] + head : section[2]]
    return _resized(message, section, body[: chance.choice([chance.randrange(len(body)), len(body) - 1, 7])])


def _grown(chance: random.Random, message: bytes) -> bytes:
    """A section gets bytes that nobody expects."""
    sections = _sections(message)
    if not sections:
        return message
    section = chance.choice(sections)
    head = 4 if message[7] == 2 else 3
    more = chance.choice([b"\0", b"\xff", chance.randbytes(5), bytes(100)])
    return _resized(message, section, message[section[1] + head : section[2]] + more)


def _field(chance: random.Random, message: bytes) -> bytes:
    """A number of the header becomes an unlikely one, or a little larger or smaller."""
    width = chance.choice([1, 1, 2, 4, 4, 8])
    at = _place(chance, message)
    if at + width > len(message):
        return message
    old = int.from_bytes(message[at : at + width], "big")
    numbers = _SHORT if width == 1 else _INTERESTING
    new = chance.choice([chance.choice(numbers), old + chance.choice([-2, -1, 1, 2, 100]), old * 2, old // 2])
    return message[:at] + (new % (1 << 8 * width)).to_bytes(width, "big") + message[at + width :]


def _bits(chance: random.Random, message: bytes) -> bytes:
    changed = bytearray(message)
    for _ in range(chance.choice([1, 2, 8])):
        changed[_place(chance, message)] ^= 1 << chance.randrange(8)
    return bytes(changed)


def _place(chance: random.Random, message: bytes) -> int:
    """A byte, most often of a header rather than of values."""
    sections = _sections(message)
    if not sections or chance.random() < 0.1:
        return chance.randrange(len(message))
    _, start, end = chance.choice(sections)
    return chance.randrange(start, min(end, start + 90))


def _swapped(chance: random.Random, message: bytes) -> bytes:
    """A section of another message."""
    sections = _sections(message)
    others = [other for other in (chance.choice(whole()) for _ in range(8)) if other[7] == message[7]]
    if not sections or not others:
        return message
    section = chance.choice(sections)
    donor = chance.choice(others)
    same = [found for found in _sections(donor) if found[0] == section[0]]
    if not same:
        return message
    head = 4 if message[7] == 2 else 3
    return _resized(message, section, donor[same[0][1] + head : same[0][2]])


_CHANGES = [_cut, _cut, _grown, _field, _field, _field, _field, _bits, _bits, _swapped, _swapped]
