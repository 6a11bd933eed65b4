"""Two fields are one object if and only if the keys that identify them in ecCodes agree.

Random headers of both editions, of a centre whose fields MARS does not describe and of ECMWF, go into a store. What is
visible there is compared with what ecCodes' keys distinguish.
"""

from __future__ import annotations

import os
import random
import re
from fractions import Fraction
from pathlib import Path

import pytest

import junctura

eccodes = pytest.importorskip("eccodes")

HEADERS = int(os.environ.get("JUNCTURA_IDENTITY_HEADERS", "400"))
ECMWF = 98
HOURS = {0: Fraction(1, 60), 1: Fraction(1), 10: Fraction(3), 11: Fraction(6), 12: Fraction(12), 2: Fraction(24)}

# Each template with the keys that it may vary, and values among which two headers often agree.
MEMBER = {"typeOfEnsembleForecast": [1, 3, 4], "perturbationNumber": [0, 1, 2, 3]}
DERIVED = {"derivedForecast": [0, 1, 2, 4]}
LIMITS = {
    "probabilityType": [0, 1, 2, 3, 4],
    "scaleFactorOfLowerLimit": [0, 1],
    "scaledValueOfLowerLimit": [0, 5, 27315],
    "scaleFactorOfUpperLimit": [0, 2],
    "scaledValueOfUpperLimit": [1, 500],
}
PERCENTILE = {"percentileValue": [5, 10, 50]}
RANGE = {
    "typeOfStatisticalProcessing": [0, 1, 2, 3, 6],
    "lengthOfTimeRange": [1, 3, 6],
    "indicatorOfUnitForTimeRange": [0, 1],
    "typeOfTimeIncrement": [1, 2],
}
TEMPLATES = {
    0: {},
    1: MEMBER,
    2: DERIVED,
    5: LIMITS,
    6: PERCENTILE,
    8: RANGE,
    9: LIMITS | RANGE,
    10: PERCENTILE | RANGE,
    11: MEMBER | RANGE,
    12: DERIVED | RANGE,
    15: {"statisticalProcess": [0, 2], "spatialProcessing": [0, 1], "numberOfPointsUsed": [1, 4]},
    40: {"constituentType": [0, 5, 20]},
    48: {
        "aerosolType": [62000, 62001],
        "scaledValueOfFirstWavelength": [340, 550],
        "scaleFactorOfFirstWavelength": [9],
    },
    99: {"waveDirectionNumber": [1, 2], "waveFrequencyNumber": [1, 2]},
}
SURFACES = {
    "typeOfFirstFixedSurface": [1, 7, 10, 100, 101, 102, 103, 103, 104, 105, 106, 107, 109, 111],
    "scaleFactorOfFirstFixedSurface": [0, 1, 2],
    "scaledValueOfFirstFixedSurface": [0, 2, 20, 33, 44],
    "typeOfSecondFixedSurface": [255, 255, 255, 8, 100, 103, 104, 106],
    "scaleFactorOfSecondFixedSurface": [0, 2],
    "scaledValueOfSecondFixedSurface": [10, 1000],
}
COMMON = {
    "forecastTime": [0, 3, 6],
    "indicatorOfUnitOfTimeRange": [0, 1],
    "typeOfGeneratingProcess": [0, 2],
    "generatingProcessIdentifier": [81, 96],
    "second": [0, 0, 0, 30],
}
PARAMETERS = [(0, 0, 0), (0, 2, 2), (0, 1, 1), (0, 19, 233)]


def put(handle: int, keys: dict[str, int]) -> dict[str, int]:
    for key, value in keys.items():
        eccodes.codes_set(handle, key, value)
    return keys


def edition2(choose: random.Random, centre: int) -> tuple[bytes, tuple[object, ...]]:
    """A message and what identifies its field."""
    handle = eccodes.codes_grib_new_from_samples("GRIB2")
    template = choose.choice(list(TEMPLATES))

    def pick(keys: dict[str, list[int]]) -> dict[str, int]:
        return {key: choose.choice(values) for key, values in keys.items()}

    if centre == ECMWF:
        template = choose.choice([0, 1, 2, 5, 6, 15, 40, 48])
        put(handle, {"setLocalDefinition": 1, "localDefinitionNumber": 1})
    put(handle, {"centre": centre, "tablesVersion": 31, "productDefinitionTemplateNumber": template})
    discipline, category, number = choose.choice(PARAMETERS)
    put(handle, {"discipline": discipline, "parameterCategory": category, "parameterNumber": number})
    put(handle, pick(COMMON))
    put(handle, pick(TEMPLATES[template]))
    surfaces = pick(SURFACES)
    if template != 99:
        if surfaces["typeOfFirstFixedSurface"] in (1, 7, 10, 101, 111) and surfaces["typeOfSecondFixedSurface"] in (
            8,
            255,
        ):
            surfaces = {key: surfaces[key] for key in surfaces if key.startswith("type")}
        elif surfaces["typeOfSecondFixedSurface"] in (8, 255):
            surfaces = {key: surfaces[key] for key in surfaces if not re.search("Second.*Surface", key)} | {
                "typeOfSecondFixedSurface": surfaces["typeOfSecondFixedSurface"]
            }
        put(handle, surfaces)
    message = eccodes.codes_get_message(handle)
    eccodes.codes_release(handle)
    return message, identity2(message, is_of_mars=centre == ECMWF)


def surface(handle: int, which: str) -> tuple[object, ...]:
    kind = eccodes.codes_get(handle, f"typeOf{which}FixedSurface", int)
    if kind == 255 or eccodes.codes_is_missing(handle, f"scaledValueOf{which}FixedSurface"):
        return (kind,)
    factor = 0
    if not eccodes.codes_is_missing(handle, f"scaleFactorOf{which}FixedSurface"):
        factor = eccodes.codes_get(handle, f"scaleFactorOf{which}FixedSurface", int)
    value = eccodes.codes_get(handle, f"scaledValueOf{which}FixedSurface", int)
    return kind, Fraction(value) / Fraction(10) ** factor


def limit(handle: int, which: str) -> Fraction:
    value = eccodes.codes_get(handle, f"scaledValueOf{which}Limit", int)
    factor = int(eccodes.codes_get(handle, f"scaleFactorOf{which}Limit", int))
    return Fraction(Fraction(value) / Fraction(10) ** factor)


def identity2(message: bytes, *, is_of_mars: bool) -> tuple[object, ...]:
    handle = eccodes.codes_new_from_message(message)

    def get(key: str) -> int:
        return int(eccodes.codes_get(handle, key, int))

    template = get("productDefinitionTemplateNumber")
    found: list[object] = [get(key) for key in ("discipline", "parameterCategory", "parameterNumber")]
    # Of a field that has a class, MARS does not distinguish the process.
    process = () if is_of_mars else ("typeOfGeneratingProcess", "generatingProcessIdentifier")
    found += [get(key) for key in (*process, "dataDate", "hour", "minute", "second")]
    start = get("forecastTime") * HOURS[get("indicatorOfUnitOfTimeRange")]
    found.append(start)
    if template != 99:
        found += [*surface(handle, "First"), *surface(handle, "Second")]
    for key in TEMPLATES[template]:
        if (key.startswith("scale") and "Limit" in key) or key in ("lengthOfTimeRange", "indicatorOfUnitForTimeRange"):
            continue
        if is_of_mars and key == "typeOfEnsembleForecast":
            continue
        found.append((key, get(key)))
    if TEMPLATES[template].keys() >= LIMITS.keys():
        found += [limit(handle, "Lower"), limit(handle, "Upper")]
    if TEMPLATES[template].keys() >= RANGE.keys():
        found.append(get("lengthOfTimeRange") * HOURS[get("indicatorOfUnitForTimeRange")])
    eccodes.codes_release(handle)
    return tuple(found)


KINDS1 = [1, 4, 7, 100, 102, 103, 104, 105, 106, 107, 108, 109, 111, 112, 116, 200]
RANGES1 = [0, 1, 2, 3, 4, 5, 10, 113, 123]


def edition1(choose: random.Random) -> tuple[bytes, tuple[object, ...]]:
    handle = eccodes.codes_grib_new_from_samples("GRIB1")
    kind = choose.choice(KINDS1)
    keys = {
        "centre": 7,
        "generatingProcessIdentifier": choose.choice([81, 96]),
        "table2Version": 2,
        "indicatorOfParameter": choose.choice([11, 33, 61]),
        "indicatorOfTypeOfLevel": kind,
        "timeRangeIndicator": choose.choice(RANGES1),
        "indicatorOfUnitOfTimeRange": 1,
        "P1": choose.choice([0, 3]),
        "P2": choose.choice([6, 12]),
    }
    layer = kind in (101, 104, 106, 108, 110, 112, 114, 116, 120, 121, 128, 141)
    octets = [choose.choice([0, 10, 30]), choose.choice([40, 100])] if layer else [0, choose.choice([2, 10, 80])]
    if kind in (1, 4, 7, 102, 200):
        octets = [0, 0]
    put(handle, keys)
    message = bytearray(eccodes.codes_get_message(handle))
    eccodes.codes_release(handle)
    message[8 + 10], message[8 + 11] = octets
    indicator, start, end = keys["timeRangeIndicator"], keys["P1"], keys["P2"]
    times: tuple[int, ...] = {0: (start,), 1: (start,), 10: (start * 256 + end,)}.get(indicator, (start, end))
    found = [keys[key] for key in ("generatingProcessIdentifier", "indicatorOfParameter", "indicatorOfTypeOfLevel")]
    process = 0 if indicator == 10 else indicator
    return bytes(message), (*found, *octets, process, *times)


def check(folder: Path, fields: list[tuple[bytes, tuple[object, ...]]]) -> None:
    """What is visible of these fields is one of each identity."""
    path = folder / "fields.grib"
    path.write_bytes(b"".join(message for message, _ in fields))
    store = junctura.Store.from_grib(folder / "store", path)
    identities = dict(fields)
    visible = [(str(found.key), identities[bytes(found.read())]) for found in store.list()]
    by_key = dict(visible)
    wanted = {identity for _, identity in fields}
    assert len(by_key) == len(visible)
    twice = sorted({str(one) for one in by_key.values() if list(by_key.values()).count(one) > 1})
    assert not twice, f"one field under several keys: {twice[:3]}"
    lost = wanted - set(by_key.values())
    assert not lost, f"{len(lost)} of {len(wanted)} fields are hidden by others: {sorted(map(str, lost))[:3]}"


@pytest.mark.parametrize("seed", range(3))
def test_fields_of_edition_2_without_a_class(tmp_path: Path, seed: int) -> None:
    choose = random.Random(seed)
    check(tmp_path, [edition2(choose, 7) for _ in range(HEADERS)])


@pytest.mark.parametrize("seed", range(3))
def test_fields_of_edition_2_with_a_class(tmp_path: Path, seed: int) -> None:
    choose = random.Random(seed)
    check(tmp_path, [edition2(choose, ECMWF) for _ in range(HEADERS)])


@pytest.mark.parametrize("seed", range(3))
def test_fields_of_edition_1_without_a_class(tmp_path: Path, seed: int) -> None:
    choose = random.Random(seed)
    check(tmp_path, [edition1(choose) for _ in range(HEADERS)])
