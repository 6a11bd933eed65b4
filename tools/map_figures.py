"""Maps to be looked at: 30 of made-up weather, of all default styles, areas, projections, themes and widths.

`make figures` writes each as `figures/maps/NN_*.png`, and all of them beside one another as `figures/maps.png`.
"""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from PIL import Image

from junctura.products import Field, Grid, grid, sheet
from junctura.products._map.picture import picture
from junctura.products._outputs import Output

Floats: TypeAlias = npt.NDArray[np.float64]
_WAVES = 160
_EUROPE, _ATLANTIC = "0.5/0.5@72/-25/34/45", "0.5/0.5@75/-80/15/30"
_PACIFIC, _ALPS = "0.5/0.5@65/120/-10/250", "0.1/0.1@49/5/43/15"
_SMALL = {"width": 400}
_LIGHT = {"theme": "light"}


@functools.lru_cache(maxsize=64)
def waves(name: str, seed: int, shortest: float = 12.0) -> Floats:
    """Smooth noise on a grid, about -3 to 3: waves in all directions, the long ones the highest."""
    random = np.random.default_rng(seed)
    lies = grid(name)
    assert isinstance(lies, Grid)
    north, east = map(np.radians, lies.points())
    places = np.stack([np.cos(north) * np.cos(east), np.cos(north) * np.sin(east), np.sin(north)])
    numbers = np.exp(random.uniform(np.log(3), np.log(360 / shortest), _WAVES))
    ways = random.normal(size=(_WAVES, 3))
    ways *= (numbers / np.linalg.norm(ways, axis=1))[:, None]
    heights = numbers**-0.6
    total = np.zeros(places.shape[1])
    for way, height, phase in zip(ways, heights, random.uniform(0, 2 * np.pi, _WAVES), strict=True):
        total += height * np.cos(way @ places + phase)
    made: Floats = total / np.sqrt((heights**2).sum() / 2)
    return made


def of(name: str, param: str, units: str, values: Callable[[Floats, Any], Floats], **attributes: Any) -> Field:
    """A field whose values are made of the sine of the latitude, and of noise."""
    lies = grid(name)
    assert isinstance(lies, Grid)
    sine = np.sin(np.radians(lies.points()[0]))
    found = values(sine, functools.partial(waves, name)).reshape(lies.shape)
    given = {"param": param, "date": "2026-11-27", "time": "00:00", "step": 48, "number": 7, **attributes}
    return Field(found, lies, {key: one for key, one in given.items() if one is not None}, units)


def temperature(name: str, level: int | None = None, lower: float = 0, **more: Any) -> Field:
    where = {"levtype": "sfc"} if level is None else {"levtype": "pl", "levelist": level}
    param = "2t" if level is None else "t"
    return of(name, param, "K", lambda sine, noise: 301 - lower - 48 * sine**2 + 5 * noise(1), **where, **more)


def height(name: str, level: int, mean: float, fall: float, **more: Any) -> Field:
    where = {"levtype": "pl", "levelist": level}
    return of(name, "gh", "gpm", lambda sine, noise: mean - fall * sine**2 + 0.09 * fall * noise(2), **where, **more)


def surface(name: str, param: str, units: str, values: Callable[[Floats, Any], Floats], **more: Any) -> Field:
    return of(name, param, units, values, levtype="sfc", **more)


def on_pressure(name: str, param: str, units: str, values: Callable[[Floats, Any], Floats], **more: Any) -> Field:
    return of(name, param, units, values, **{"levtype": "pl", "levelist": 500, **more})


def pressure(name: str) -> Field:
    return surface(name, "msl", "Pa", lambda sine, noise: 101300 - 1200 * sine**2 + 1100 * noise(3))


def rain(name: str, **more: Any) -> Field:
    def values(_: Floats, noise: Any) -> Floats:
        found: Floats = 0.006 * np.maximum(0, noise(14, 4.0) - 0.2) ** 2.5
        return found

    return surface(name, "tp", "m", values, step="24-48", stepType="accum", **more)


def masked(field: Field, where: Callable[[Floats], npt.NDArray[np.bool_]]) -> Field:
    return field.having(np.where(where(field.values), np.nan, field.values))


def within(field: Field, area: tuple[float, float, float, float]) -> Field:
    """Without values beyond north, west, south and east."""
    north, west, south, east = area
    latitudes, longitudes = (part.reshape(field.grid.shape) for part in field.grid.points())
    inside = (latitudes <= north) & (latitudes >= south) & ((longitudes - west) % 360 <= east - west)
    return field.having(np.where(inside, field.values, np.nan))


def maps() -> dict[str, tuple[Field, dict[str, Any]]]:
    """All of them, by name."""
    half = "0.5/0.5"
    places = "points@" + ",".join(f"{lat}/{lon}" for lat in range(38, 66, 4) for lon in range(-8, 32, 5))
    made: dict[str, tuple[Field, dict[str, Any]]] = {
        "temperature_2m": (temperature(half), {}),
        "temperature_2m_europe": (temperature(_EUROPE), {"borders": True, **_LIGHT}),
        "temperature_500_robinson": (temperature("O160", 500, 36), {"projection": "robinson"}),
        "temperature_850_area_of_globe": (within(temperature(half, 850, 12), (75, -80, 15, 30)), {"isolines": 5}),
        "temperature_alps_small": (temperature(_ALPS), {"width": 300, "borders": True}),
        "temperature_mild": (temperature(_EUROPE).having(temperature(_EUROPE).values * 0.15 + 239.0), {}),
        "sea_temperature": (
            masked(temperature(half), lambda values: values < 272).having(
                masked(temperature(half), lambda values: values < 272).values, param="sst"
            ),
            {"projection": "robinson", **_LIGHT},
        ),
        "pressure_atlantic": (pressure(_ATLANTIC), {}),
        "pressure_light_3000": (pressure(_EUROPE), {"width": 3000, **_LIGHT}),
        "pressure_globe": (pressure(half), {"projection": "globe"}),
        "height_500": (height(half, 500, 5850, 760), {"projection": "robinson"}),
        "height_500_pacific": (height(_PACIFIC, 500, 5850, 760), _LIGHT),
        "height_850_south_pole": (height(half, 850, 1520, 330), {"projection": "globe", "centre": (-90, 0), **_LIGHT}),
        "height_spread": (
            height(half, 500, 90, 60, statistic="spread", number=None),
            {"projection": "robinson", **_LIGHT},
        ),
        "geopotential_300": (
            on_pressure(
                half, "z", "m**2 s**-2", lambda sine, noise: 93500 - 12000 * sine**2 + 900 * noise(2), levelist=300
            ),
            {"width": 640},
        ),
        "rain_europe": (rain(_EUROPE), {}),
        "rain_world": (rain(half), {"projection": "robinson", **_LIGHT}),
        "rain_masked": (masked(rain(half), lambda values: values < 0.0001), {}),
        "rain_log": (rain(_ATLANTIC), {"scale": "log", "range": (0.0001, 0.1), **_LIGHT}),
        "rain_levels": (
            rain(_ALPS),
            {"units": "mm", "levels": (1.0, 2.0, 5.0, 10.0, 20.0), "colours": "depth", **_SMALL},
        ),
        "cloud": (surface(half, "tcc", "(0 - 1)", lambda _, noise: np.clip(0.5 + 0.5 * noise(5, 5.0), 0, 1)), {}),
        "cloud_light": (
            surface(_EUROPE, "tcc", "(0 - 1)", lambda _, noise: np.clip(0.5 + 0.5 * noise(5, 5.0), 0, 1)),
            {**_SMALL, **_LIGHT},
        ),
        "wind_component": (on_pressure(half, "u", "m s**-1", lambda sine, noise: 30 * sine**2 + 14 * noise(6)), {}),
        "wind_speed_atlantic": (
            surface(_ATLANTIC, "10si", "m s**-1", lambda _, noise: np.abs(8 + 6 * noise(7))),
            {"levels": (5.0, 10.0, 15.0, 20.0, 25.0), "colours": "wind"},
        ),
        "waves": (surface(_PACIFIC, "swh", "m", lambda _, noise: np.maximum(0, 3 + 2 * noise(8))), _LIGHT),
        "vorticity_globe": (
            on_pressure(half, "vo", "s**-1", lambda _, noise: 5e-5 * noise(9, 6.0)),
            {"projection": "globe", "centre": (50, -60)},
        ),
        "probability": (
            surface(
                half,
                "10fg",
                "%",
                lambda _, noise: np.clip(40 + 40 * noise(10), 0, 100),
                statistic="probability",
                threshold=25,
                thresholdUnits="m s**-1",
                number=None,
            ),
            {"projection": "robinson"},
        ),
        "constant": (on_pressure(half, "papt", "K", lambda sine, _: np.full(sine.shape, 280.0)), _SMALL),
        "area_on_globe": (temperature(_EUROPE, 850, 12), {"projection": "globe", "width": 600}),
        "places": (temperature(places), {"width": 800, **_LIGHT}),
    }
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("figures"), metavar="FOLDER")
    parser.add_argument("--only", default="", help="maps whose name has this in it")
    given = parser.parse_args()
    folder = given.out / "maps"
    folder.mkdir(parents=True, exist_ok=True)
    small = []
    for number, (name, (field, options)) in enumerate(maps().items(), 1):
        if given.only in name:
            made = picture(field, Output("png", **options))
            made.save(folder / f"{number:02}_{name}.png")
            made.thumbnail((560, 460), Image.Resampling.LANCZOS)
            small.append(made)
    sheet(small, 5, "Maps of made-up weather: the default styles").save(given.out / "maps.png")
    print(f"maps: {folder}, {given.out / 'maps.png'}")


if __name__ == "__main__":
    main()
