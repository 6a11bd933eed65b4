"""The made-up forecast: fields that look like weather, repeatable from member and step alone.

Waves travel around the globe at middle latitudes, cyclones move along the storm tracks, and each member's phases and
tracks drift away from the others' with time, so that the ensemble's spread grows from the first step on and is largest
where the weather is. Nothing here is a model of the atmosphere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import eccodes
import numpy as np
import numpy.typing as npt

Field = npt.NDArray[np.float64]

PARAMS = ("2t", "msl")
SELECTOR = "class=rd,expver=demo,stream=enfo,type=pf"


@dataclass(frozen=True)
class Forecast:
    """What all processes of the demo agree on; it fits on a command line."""

    date: int = 20261120
    members: int = 10
    steps: int = 24
    step_h: int = 3
    grid_deg: float = 0.5

    @property
    def count(self) -> int:
        """How many fields all members make together."""
        return self.members * self.steps * len(PARAMS)

    @property
    def hours(self) -> range:
        """The forecast steps, in hours."""
        return range(0, self.steps * self.step_h, self.step_h)

    def arguments(self) -> list[str]:
        """For a command line that `parse` reads."""
        return [f"{self.date},{self.members},{self.steps},{self.step_h},{self.grid_deg}"]

    @classmethod
    def parse(cls, text: str) -> Forecast:
        """Reads what `arguments` wrote."""
        date, members, steps, step_h, grid_deg = text.split(",")
        return cls(int(date), int(members), int(steps), int(step_h), float(grid_deg))


class Weather:
    """The fields of all members, on one grid."""

    def __init__(self, forecast: Forecast) -> None:
        rows, columns = round(180 / forecast.grid_deg) + 1, round(360 / forecast.grid_deg)
        self.shape = (rows, columns)
        self.latitude = np.radians(np.linspace(90, -90, rows))[:, None]
        self.longitude = np.radians(np.arange(columns) * forecast.grid_deg)[None, :]
        self._tracks = self._storm_tracks()
        self._means = {"2t": self._mean_temperature(), "msl": self._mean_pressure()}
        self._latest: tuple[tuple[int, int], Field, Field] | None = None

    def field(self, param: str, member: int, hour: int) -> Field:
        """One field: kelvin for 2t, pascal for msl; from north to south, from 0 degrees eastward."""
        waves, lows = self._weather(member, hour)
        if param == "2t":
            return self._means["2t"] + 4.8 * waves - 0.25 * lows + self._day(hour)
        return 100.0 * (self._means["msl"] + 5.5 * np.roll(waves, self.shape[1] // 16, axis=1) + lows)

    def _weather(self, member: int, hour: int) -> tuple[Field, Field]:
        """Waves and cyclones, kept for the other parameter of the same step."""
        if self._latest is None or self._latest[0] != (member, hour):
            self._latest = ((member, hour), self._waves(member, hour), self._cyclones(member, hour))
        return self._latest[1], self._latest[2]

    def _waves(self, member: int, hour: int) -> Field:
        """Sums cos(number * longitude + phase(latitude)), by the addition theorem from rows and columns."""
        chance, drift = np.random.default_rng(2), np.random.default_rng([3, member])
        waves = np.zeros(self.shape)
        for number in (3, 4, 5, 6, 8, 11, 15, 19):
            tropical = number > 11
            size = 0.22 if tropical else 2.2 / number**0.5
            speed = -1.2 if tropical else chance.uniform(0.3, 0.9)
            apart = drift.normal() * _growth(hour) * (0.6 if tropical else 0.35)
            phase = (1.7 if tropical else -2.2) * np.abs(self.latitude) - chance.uniform(0, 2 * np.pi)
            phase = phase - apart - number * np.radians(speed * hour)
            phase = phase if tropical else phase + np.tanh(5 * self.latitude) * number
            band = np.exp(-((np.degrees(self.latitude) / 16.0) ** 2)) if tropical else self._middle_latitudes()
            waves += size * band * np.cos(phase) * np.cos(number * self.longitude)
            waves -= size * band * np.sin(phase) * np.sin(number * self.longitude)
        return waves * self._tracks

    def _middle_latitudes(self) -> Field:
        degrees = np.degrees(self.latitude)
        band: Field = np.exp(-(((degrees - 48) / 17.0) ** 2)) + np.exp(-(((degrees + 52) / 17.0) ** 2))
        return band

    def _storm_tracks(self) -> Field:
        """Where there is more weather than elsewhere: downstream of the continents' east coasts, so to say."""
        north = 1.0 + 0.45 * np.cos(self.longitude - 5.5) + 0.3 * np.cos(2 * self.longitude - 5.2)
        south = 1.0 + 0.35 * np.cos(self.longitude - 1.2)
        weight = 0.5 + 0.5 * np.tanh(3 * self.latitude)
        tracks: Field = weight * north + (1 - weight) * south
        return tracks

    def _cyclones(self, member: int, hour: int) -> Field:
        chance, drift = np.random.default_rng(5), np.random.default_rng([7, member])
        growth, lows = _growth(hour), np.zeros(self.shape)
        for number in range(16):
            hemisphere = 1 if number % 2 else -1
            lat, lon = hemisphere * chance.uniform(34, 60), chance.uniform(0, 360)
            speed, depth, width = chance.uniform(0.3, 0.8), chance.uniform(9, 24), chance.uniform(5, 9)
            off_track, off_depth, off_pole = drift.normal(size=3) * growth
            depth *= (0.55 + 0.45 * np.sin(hour / 30 + lon)) * (1 + 0.07 * off_depth)
            self._dig(
                lows, lat + hemisphere * 0.05 * hour + 0.7 * off_pole, lon + speed * hour + off_track, depth, width
            )
        return lows

    def _dig(self, lows: Field, lat: float, lon: float, depth: float, width_deg: float) -> None:
        """Lowers the pressure around a place; only the rows near it are touched."""
        first, last = (
            np.searchsorted(-np.degrees(self.latitude[:, 0]), -lat + off) for off in (-4 * width_deg, 4 * width_deg)
        )
        rows, there = self.latitude[first:last], np.radians(lat)
        cosine = np.sin(rows) * np.sin(there) + np.cos(rows) * np.cos(there) * np.cos(self.longitude - np.radians(lon))
        lows[first:last] -= depth * np.exp((cosine - 1) * 2 / np.radians(width_deg) ** 2)

    def _mean_temperature(self) -> Field:
        poleward = np.sin(self.latitude) ** 2
        ground = np.cos(2 * self.longitude + 0.6) * np.cos(self.latitude) * np.sin(2 * self.latitude + 0.4)
        field: Field = 301.0 - 46.0 * poleward - 8.0 * poleward * np.sin(self.latitude) + 3.0 * ground
        return field

    def _mean_pressure(self) -> Field:
        belts = 8.0 * np.cos(6 * self.latitude) * np.cos(self.latitude) - 5.0 * np.sin(self.latitude) ** 4
        field: Field = 1013.0 - belts + 2.0 * np.cos(self.latitude) * np.cos(3 * self.longitude)
        return field

    def _day(self, hour: int) -> Field:
        """Warmer where it is afternoon."""
        field: Field = 2.5 * np.cos(self.latitude) * np.cos(self.longitude + np.radians(15.0 * (hour - 14)))
        return field


def _growth(hour: int) -> float:
    """How far members are apart: little at first, then doubling each day and a half, then slower."""
    return float(4.0 * np.tanh(0.06 * 2 ** (hour / 36.0)) + 0.08)


class Encoder:
    """Fields as GRIB2 messages; the same field gives the same bytes in every process."""

    def __init__(self, forecast: Forecast) -> None:
        self._weather = Weather(forecast)
        rows, columns = self._weather.shape
        self._template: Any = eccodes.codes_grib_new_from_samples("regular_ll_sfc_grib2")
        for name, value in {
            "tablesVersion": 32,
            "productDefinitionTemplateNumber": 1,
            "setLocalDefinition": 1,
            "class": "rd",
            "expver": "demo",
            "stream": "enfo",
            "type": "pf",
            "numberOfForecastsInEnsemble": forecast.members,
            "dataDate": forecast.date,
            "dataTime": 0,
            "Ni": columns,
            "Nj": rows,
            "latitudeOfFirstGridPointInDegrees": 90,
            "longitudeOfFirstGridPointInDegrees": 0,
            "latitudeOfLastGridPointInDegrees": -90,
            "longitudeOfLastGridPointInDegrees": 360 - forecast.grid_deg,
            "iDirectionIncrementInDegrees": forecast.grid_deg,
            "jDirectionIncrementInDegrees": forecast.grid_deg,
            "bitsPerValue": 16,
        }.items():
            eccodes.codes_set(self._template, name, value)

    def message(self, param: str, member: int, hour: int) -> bytes:
        """One GRIB2 message."""
        # A handle remembers how it packed its last values: each message starts from a copy that has packed nothing.
        handle = eccodes.codes_clone(self._template)
        try:
            eccodes.codes_set(handle, "shortName", param)
            eccodes.codes_set(handle, "number", member)
            eccodes.codes_set(handle, "step", hour)
            eccodes.codes_set_values(handle, self._weather.field(param, member, hour).ravel())
            message: bytes = eccodes.codes_get_message(handle)
        finally:
            eccodes.codes_release(handle)
        return message


def decode(message: bytes, shape: tuple[int, int]) -> Field:
    """The values of a GRIB2 message."""
    handle = eccodes.codes_new_from_message(message)
    try:
        values: Field = eccodes.codes_get_values(handle)
    finally:
        eccodes.codes_release(handle)
    return values.reshape(shape)
