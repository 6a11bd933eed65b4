"""A forecast's fields as GRIB2 messages, with the attributes that they are offered with.

| param | as | what |
|---|---|---|
| vo, d, z | spherical harmonics T`truncation`, complex packing | vorticity, divergence, geopotential |
| u, v, gh | regular Gaussian grid F`n`, simple packing | wind towards east and north, geopotential height |

Two fields of one meaning would have one key, as the schema `mars` does not tell grids apart. So the depth of the layer
goes out once as geopotential in coefficients and once as height on the grid: two parameters, each by its own name. The
layer stands for the troposphere's middle, and its fields are labelled as those of 500 hPa.

Members have type pf and a number; member 0 is the control, which has type cf and no number, as in MARS.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import eccodes
import numpy as np
from harmonics import Floats, Harmonics
from shallow_water import Gridded, Model, State

LEVEL_HPA = 500
SPECTRAL, GRIDDED = ("vo", "d", "z"), ("u", "v", "gh")
BITS = 16
# Coefficients up to this n and m are kept in single precision, not packed.
_UNPACKED = 20


class Message(NamedTuple):
    """One field, ready to be handed over."""

    attributes: dict[str, Any]
    data: bytes


class Encoder:
    """Makes the messages of one member."""

    def __init__(self, harmonics: Harmonics, member: int, date: int, expver: str) -> None:
        self._harmonics = harmonics
        self._common: dict[str, Any] = {"class": "rd", "expver": expver, "stream": "enfo", "date": date, "time": 0}
        self._common |= {"levtype": "pl", "levelist": LEVEL_HPA, "type": "pf", "number": member}
        if member == 0:
            del self._common["number"]
            self._common["type"] = "cf"
        header = _header(member, date, expver)
        # What a handle's values were packed with stays in it, so that templates never get values themselves.
        templates = {param: _template("sh_pl_grib2", param, header | _triangle(harmonics)) for param in SPECTRAL}
        self._templates = templates | {
            param: _template("regular_gg_pl_grib2", param, header | _gaussian(harmonics)) for param in GRIDDED
        }

    def messages(self, model: Model, gridded: Gridded) -> Iterator[Message]:
        """All fields of the latest time level, which is at a full hour."""
        hour = round(model.hour)
        yield from self.spectral(hour, model.now)
        yield from self.gridded(hour, gridded)

    def spectral(self, hour: int, state: State) -> Iterator[Message]:
        """Those of coefficients."""
        for param, spectrum in zip(SPECTRAL, state.spectra, strict=True):
            yield self._message(param, hour, self._harmonics.to_grib(spectrum))

    def gridded(self, hour: int, gridded: Gridded) -> Iterator[Message]:
        """Those of values on the whole grid."""
        for param, values in zip(GRIDDED, gridded, strict=True):
            yield self._message(param, hour, values.ravel())

    def attributes(self, param: str, hour: int) -> dict[str, Any]:
        """What one field means."""
        return self._common | {"step": hour, "param": param}

    def _message(self, param: str, hour: int, values: Floats) -> Message:
        handle = eccodes.codes_clone(self._templates[param])
        try:
            eccodes.codes_set(handle, "step", hour)
            eccodes.codes_set_values(handle, values)
            data: bytes = eccodes.codes_get_message(handle)
        finally:
            eccodes.codes_release(handle)
        return Message(self.attributes(param, hour), data)


def _template(sample: str, param: str, keys: dict[str, Any]) -> Any:
    handle = eccodes.codes_grib_new_from_samples(sample)
    for name, value in keys.items():
        eccodes.codes_set(handle, name, value)
    eccodes.codes_set(handle, "shortName", param)
    return handle


def _header(member: int, date: int, expver: str) -> dict[str, Any]:
    return {
        "tablesVersion": 32,
        "productDefinitionTemplateNumber": 1,
        "setLocalDefinition": 1,
        "class": "rd",
        "expver": expver,
        "stream": "enfo",
        "type": "pf" if member else "cf",
        "number": member,
        "dataDate": date,
        "dataTime": 0,
        "level": LEVEL_HPA,
        "bitsPerValue": BITS,
    }


def _triangle(harmonics: Harmonics) -> dict[str, Any]:
    unpacked = min(_UNPACKED, harmonics.truncation)
    return {
        **dict.fromkeys(("J", "K", "M"), harmonics.truncation),
        **dict.fromkeys(("subSetJ", "subSetK", "subSetM"), unpacked),
    }


def _gaussian(harmonics: Harmonics) -> dict[str, Any]:
    rows, columns = harmonics.shape
    north = float(np.degrees(np.arcsin(harmonics.sine[0])))
    return {
        "N": harmonics.n,
        "Ni": columns,
        "Nj": rows,
        "iDirectionIncrementInDegrees": 360 / columns,
        "latitudeOfFirstGridPointInDegrees": north,
        "longitudeOfFirstGridPointInDegrees": 0,
        "latitudeOfLastGridPointInDegrees": -north,
        "longitudeOfLastGridPointInDegrees": 360 - 360 / columns,
    }
