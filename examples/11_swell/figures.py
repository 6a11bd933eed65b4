"""The picture of this example: the vorticity of the jet after six days, as the paper shows it and as a globe.

Galewsky, Scott and Polvani (2004) show relative vorticity as contours on a map of the northern hemisphere, from 10 to
80 degrees north: the strip at the bottom is that picture again. Above it is the same field seen from over the pole.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any, TypeAlias

import jet
import matplotlib.pyplot as plt
import numpy as np
import numpy.typing as npt
import scipy.fft
from harmonics import Coefficients, Floats, Harmonics, legendre
from matplotlib.colors import LinearSegmentedColormap, to_rgb
from matplotlib.figure import Figure
from scipy.ndimage import map_coordinates
from shallow_water import RADIUS_M, Budget, Model

plt.switch_backend("Agg")

Pixels: TypeAlias = npt.NDArray[np.float64]

WIDTH_PX, HEIGHT_PX, DPI = 2400, 1640, 150
GROUND, INK, FAINT = "#080b12", "#ece6da", "#8f96a3"
# In 1e-5 per second: where colours end, and the distance of contours.
RANGE, CONTOURS = 13.0, 2.0
# A globe's radius in its square picture; where its middle is, in radians: latitude and longitude.
RADIUS = 0.48
UNDER, TOWARDS = np.radians(62.0), np.radians(-90.0)
DAYS = (3, 4, 5, 6)
COLOURS = LinearSegmentedColormap.from_list(
    "jet at night",
    [
        (0.00, "#e9fbff"),
        (0.10, "#9fe0f2"),
        (0.22, "#3fa3d6"),
        (0.36, "#1b5799"),
        (0.46, "#13294d"),
        (0.50, "#131722"),
        (0.54, "#3b1a22"),
        (0.64, "#9c2f23"),
        (0.78, "#ea7a27"),
        (0.90, "#fdc65b"),
        (1.00, "#fff6d6"),
    ],
    N=1024,
)
RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
# The fine grid on which the coefficients are evaluated: all that is seen from over the pole, in degrees.
LATITUDES, COLUMNS = np.linspace(-30, 90, 1201), 4096


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("swell-out"), metavar="FOLDER", help="for jet.png (swell-out)")
    parser.add_argument("--truncation", type=int, default=170, metavar="T", help="of the forecast (170)")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    harmonics = Harmonics(given.truncation, RADIUS_M)
    fields, change = forecast(harmonics)
    path = given.out / "jet.png"
    draw(harmonics, fields, change, path)
    print(f"picture: {path}")
    return 0


def forecast(harmonics: Harmonics) -> tuple[list[Floats], str]:
    """The vorticity on the fine grid at the ends of some days, 1e-5/s, and what was conserved, in words."""
    model = Model(harmonics, jet.jet(harmonics, jet.bump_of(0)))
    first, begin, fields = model.budget(), time.monotonic(), []
    for day in range(1, DAYS[-1] + 1):
        while model.hour < 24 * day:
            model.step()
        print(f"T{harmonics.truncation}, day {day} of {DAYS[-1]}, {time.monotonic() - begin:.0f} s", flush=True)
        if day in DAYS:
            fields.append(1e5 * on_fine_grid(harmonics, model.now.vorticity))
    return fields, _conserved(first, model.budget())


def on_fine_grid(harmonics: Harmonics, coefficients: Coefficients) -> Floats:
    """The exact values of a field, from south to north and once around."""
    waves = np.zeros((len(LATITUDES), COLUMNS // 2 + 1), np.complex128)
    sines = np.sin(np.radians(LATITUDES))
    # A piece at a time: the functions of all rows at once would be large.
    for rows in np.array_split(np.arange(len(sines)), 32):
        functions = legendre(sines[rows], harmonics.truncation)
        waves[rows, : harmonics.truncation + 1] = np.einsum("rmk,mk->rm", functions, coefficients)
    values: Floats = scipy.fft.irfft(waves, COLUMNS, norm="forward")
    return values


def draw(harmonics: Harmonics, fields: list[Floats], change: str, path: Path) -> None:
    figure = plt.figure(figsize=(WIDTH_PX / DPI, HEIGHT_PX / DPI), dpi=DPI, facecolor=GROUND)
    _globe(figure, fields[-1], (40, 500, 1110))
    for number, (day, field) in enumerate(zip(DAYS[:-1], fields[:-1], strict=True)):
        left, bottom, size = 1232 + 370 * number, 660, 310
        _globe(figure, field, (left, bottom, size))
        _write(figure, left + size / 2, bottom - 8, f"day {day}", size=10, colour=FAINT, ha="center")
    _strip(figure, fields[-1], (120, 100, 2220, 2220 * 70 // 360 * 4 // 5))
    _legend(figure, harmonics, change)
    figure.savefig(path, facecolor=GROUND)
    plt.close(figure)


def _globe(figure: Figure, field: Floats, box: tuple[int, int, int]) -> None:
    """The hemisphere seen from afar, with light from the upper left where the field is steep."""
    left, bottom, size = box
    latitude, longitude, distance, facing = _from_afar(size)
    inside = distance < 1
    seen = _sample(field, latitude, longitude)
    colours = COLOURS((np.clip(seen, -RANGE, RANGE) + RANGE) / (2 * RANGE))[..., :3]
    rows, columns = np.gradient(np.where(inside, seen, 0.0) * (size / 270))
    light = 1 + 0.28 * np.tanh((columns + rows) * 0.9)
    limb = 0.25 + 0.75 * facing**0.55
    colours *= (light * limb)[..., None]
    colours += 0.12 * (_graticule(latitude, longitude, size) * limb)[..., None]
    beyond = np.clip(distance - 1, 0, None)[..., None]
    ground = np.array(to_rgb(GROUND)) + 0.35 * np.exp(-beyond / 0.018) * np.array(to_rgb("#466ea5"))
    # The edge is a pixel wide.
    edge = np.clip((1 - distance) * RADIUS * size + 0.5, 0, 1)[..., None]
    figure.figimage(np.clip(edge * colours + (1 - edge) * ground, 0, 1), left, bottom, origin="upper")


def _from_afar(size: int) -> tuple[Pixels, Pixels, Pixels, Pixels]:
    """Of each pixel: latitude, longitude, distance from the middle in radii, and how much the globe faces us there."""
    line = (np.arange(size) + 0.5 - size / 2) / (RADIUS * size)
    x, y = line[None, :], -line[:, None]
    distance = np.hypot(x, y)
    z = np.sqrt(np.clip(1 - distance**2, 0, None))
    latitude = np.arcsin(np.clip(y * np.cos(UNDER) + z * np.sin(UNDER), -1, 1))
    longitude = TOWARDS + np.arctan2(x, z * np.cos(UNDER) - y * np.sin(UNDER))
    return latitude, longitude, distance, z


def _sample(field: Floats, latitude: Pixels, longitude: Pixels) -> Pixels:
    """A field of the fine grid at places."""
    row = (np.degrees(latitude) - LATITUDES[0]) / (LATITUDES[1] - LATITUDES[0])
    column = np.mod(longitude, 2 * np.pi) * (COLUMNS / (2 * np.pi))
    around = np.concatenate([field, field[:, :1]], axis=1)
    values: Pixels = map_coordinates(around, [row, column], order=1, mode="nearest")
    return values


def _graticule(latitude: Pixels, longitude: Pixels, size: int) -> Pixels:
    """How much of a thin line there is in each pixel: parallels and meridians each 30 degrees."""
    width = 1.6 / size
    apart = np.pi / 6
    parallels = np.abs(np.mod(latitude + apart / 2, apart) - apart / 2)
    meridians = np.abs(np.mod(longitude + apart / 2, apart) - apart / 2) * np.cos(latitude)
    line: Pixels = np.exp(-((np.minimum(parallels, meridians) / width) ** 2))
    return line


def _strip(figure: Figure, field: Floats, box: tuple[int, int, int, int]) -> None:
    """The paper's view: contours of vorticity from 10 to 80 degrees north. Negative ones are dashed, none is zero."""
    left, bottom, width, height = box
    axes = figure.add_axes((left / WIDTH_PX, bottom / HEIGHT_PX, width / WIDTH_PX, height / HEIGHT_PX))
    shown = LATITUDES >= 10
    field = np.roll(field[shown], COLUMNS // 2, axis=1)[::2, ::4]
    field = np.concatenate([field, field[:, :1]], axis=1)
    longitudes, latitudes = np.linspace(-180, 180, field.shape[1]), LATITUDES[shown][::2]
    axes.set_facecolor(GROUND)
    axes.imshow(
        field,
        extent=(-180, 180, 10, 90),
        origin="lower",
        cmap=COLOURS,
        vmin=-RANGE,
        vmax=RANGE,
        alpha=0.42,
        aspect="auto",
        interpolation="bilinear",
    )
    levels = CONTOURS * np.arange(1, 7)
    axes.contour(longitudes, latitudes, field, levels=levels, colors="#ffd9a0", linewidths=0.75)
    axes.contour(longitudes, latitudes, field, levels=-levels[::-1], colors="#9fdcf2", linewidths=0.75, linestyles="--")
    axes.set(xlim=(-180, 180), ylim=(10, 80), xticks=range(-180, 181, 30), yticks=range(20, 81, 20))
    axes.set_xticklabels([_longitude(degrees) for degrees in range(-180, 181, 30)])
    axes.set_yticklabels([f"{degrees}°N" for degrees in range(20, 81, 20)])
    axes.tick_params(colors=FAINT, labelsize=9, length=3)
    for side in axes.spines.values():
        side.set_color("#39404d")


def _legend(figure: Figure, harmonics: Harmonics, change: str) -> None:
    left = 1240
    _write(figure, left, 1590, "Six days of a jet", size=36, family="DejaVu Serif")
    text = (
        "A jet of 80 m/s circles an idealised planet at 45°N, in balance with\n"
        "the depth of the fluid. A bump of 120 m, little more than a hundredth\n"
        "of that depth, is all that disturbs it. Gravity waves leave it within\n"
        "hours; for three days the jet hardly changes. Then it buckles, and by\n"
        "the sixth day its two bands of shear have rolled up into vortices,\n"
        "with thin filaments and steep fronts of vorticity between them."
    )
    _write(figure, left, 1460, text, size=13, linespacing=1.6)
    text = (
        f"Shallow water on the sphere, spherical harmonics to T{harmonics.truncation}. {change}\n"
        "Initial state: Galewsky, Scott and Polvani (2004), Tellus A 56, 429-440.\n"
        "Below, the paper's view, from 10°N to 80°N: contours every 2 · 10⁻⁵ s⁻¹, negative dashed."
    )
    _write(figure, left, 1150, text, size=9.5, colour=FAINT, linespacing=1.7)
    bar = figure.add_axes((left / WIDTH_PX, 545 / HEIGHT_PX, 640 / WIDTH_PX, 20 / HEIGHT_PX))
    bar.imshow(np.linspace(-RANGE, RANGE, 512)[None, :], aspect="auto", cmap=COLOURS, extent=(-RANGE, RANGE, 0, 1))
    bar.set(yticks=[], xticks=[-10, -5, 0, 5, 10])
    bar.tick_params(colors=FAINT, labelsize=9, length=3)
    for side in bar.spines.values():
        side.set_visible(False)
    _write(figure, left + 665, 569, "relative vorticity, 10⁻⁵ s⁻¹", size=10)


def _write(figure: Figure, x: float, y: float, text: str, *, size: float, colour: str = INK, **style: Any) -> None:
    """Text whose upper edge is there, in pixels from the lower left corner."""
    options = {"va": "top", "fontsize": size, "color": colour, **style}
    figure.text(x / WIDTH_PX, y / HEIGHT_PX, text, **options)


def _longitude(degrees: int) -> str:
    return f"{abs(degrees)}°{'' if degrees % 180 == 0 else 'W' if degrees < 0 else 'E'}"


def _conserved(first: Budget, last: Budget) -> str:
    lost = f"{1 - last.energy / first.energy:.0e}"
    number, exponent = lost.split("e-")
    return (
        f"Since the start it\nhas lost {number} · 10⁻{exponent.lstrip('0').translate(RAISED)} of its energy, "
        f"{100 * (1 - last.enstrophy / first.enstrophy):.1f} % of its potential enstrophy, "
        f"{_mass_lost(first, last)}."
    )


def _mass_lost(first: Budget, last: Budget) -> str:
    return "and no mass" if first.mass == last.mass else f"and {1 - last.mass / first.mass:.0e} of its mass"


if __name__ == "__main__":
    sys.exit(main())
