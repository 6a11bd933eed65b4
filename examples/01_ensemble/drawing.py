"""Pictures of a step: the ensemble's mean and spread on the whole globe.

The globe is drawn in Hammer's equal-area projection by looking up, for each point of the picture, where on the grid it
lies. That is worked out once and makes a picture a matter of indexing.
"""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias

import matplotlib.pyplot as plt
import numpy as np
import numpy.typing as npt
from fields import Field, Forecast
from matplotlib.axes import Axes
from matplotlib.contour import QuadContourSet
from matplotlib.image import AxesImage
from PIL import Image

plt.switch_backend("Agg")

Masked: TypeAlias = "np.ma.MaskedArray[tuple[int, ...], np.dtype[np.float64]]"

ROWS, COLUMNS = 280, 560
EXTENT = (-2.0, 2.0, -1.0, 1.0)
NAMES = {"2t": "2 m temperature", "msl": "pressure at mean sea level"}
UNITS = {"2t": "°C", "msl": "hPa"}
# Colours and their range are the same in all pictures, so that steps can be compared.
MEAN = {"2t": ("RdYlBu_r", -30.0, 40.0), "msl": ("PuOr_r", 980.0, 1046.0)}
SPREAD = {"2t": ("magma_r", 0.0, 6.0), "msl": ("magma_r", 0.0, 9.0)}


class Globe:
    """The projection, and the figure, which is set up once and drawn anew for each step."""

    def __init__(self, forecast: Forecast) -> None:
        self._look_up(forecast)
        day = f"{forecast.date}"
        self._title = f"Made-up ensemble of {forecast.members} members from {day[:4]}-{day[4:6]}-{day[6:]} 00 UTC"
        self._figure, panels = plt.subplots(2, 2, figsize=(13, 7.2), layout="constrained")
        self._figure.suptitle(self._title, fontsize=14)
        self._images = {}
        for column, param in enumerate(NAMES):
            for row, (what, colours) in enumerate((("Mean", MEAN[param]), ("Spread", SPREAD[param]))):
                axes = panels[row, column]
                self._images[what, param] = self._empty_map(axes, f"{what} of {NAMES[param]}", colours, UNITS[param])
        self._isobars: QuadContourSet | None = None
        self._figure.canvas.draw()
        self._figure.set_layout_engine("none")

    def _look_up(self, forecast: Forecast) -> None:
        y, x = np.meshgrid(np.linspace(1, -1, ROWS), np.linspace(-2, 2, COLUMNS), indexing="ij")
        inside = (x / 2) ** 2 + y**2 <= 1
        x, y = x * np.sqrt(2), y * np.sqrt(2)
        z = np.sqrt(np.where(inside, 1 - (x / 4) ** 2 - (y / 2) ** 2, 1))
        latitude = np.degrees(np.arcsin(np.clip(np.where(inside, z * y, 0), -1, 1)))
        longitude = np.degrees(2 * np.arctan2(z * x, 2 * (2 * z**2 - 1)))
        self._outside = ~inside
        self._row = np.rint((90 - latitude) / forecast.grid_deg).astype(int)
        self._column = np.rint(longitude / forecast.grid_deg).astype(int) % round(360 / forecast.grid_deg)

    def draw(self, step: int, mean: dict[str, Field], spread: dict[str, Field], path: Path) -> None:
        """One picture with four maps."""
        self._figure.suptitle(f"{self._title}, step {step} h", fontsize=14)
        for param in NAMES:
            celsius = param == "2t"
            middle = self._seen(mean[param] - 273.15 if celsius else mean[param] / 100)
            self._images["Mean", param].set_data(middle)
            self._images["Spread", param].set_data(self._seen(spread[param] if celsius else spread[param] / 100))
            if not celsius:
                self._draw_isobars(self._images["Mean", param].axes, middle)
        self._figure.savefig(path, dpi=100, pil_kwargs={"compress_level": 3})

    def _seen(self, field: Field) -> Masked:
        return np.ma.array(field[self._row, self._column], mask=self._outside)

    def _draw_isobars(self, axes: Axes, seen: Masked) -> None:
        if self._isobars is not None:
            self._isobars.remove()
        levels = np.arange(980, 1048, 6)
        self._isobars = axes.contour(seen[::-2, ::2], levels, extent=EXTENT, colors="#40304080", linewidths=0.6)

    def _empty_map(self, axes: Axes, title: str, colours: tuple[str, float, float], unit: str) -> AxesImage:
        name, low, high = colours
        nothing = self._seen(np.zeros((self._row.max() + 1, self._column.max() + 1)))
        image = axes.imshow(nothing, extent=EXTENT, cmap=name, vmin=low, vmax=high, interpolation="bilinear")
        for line in _graticule():
            axes.plot(*line, color="#00000038", linewidth=0.6)
        edge = np.linspace(0, 2 * np.pi, 400)
        axes.plot(2 * np.cos(edge), np.sin(edge), color="#333333", linewidth=1.0)
        axes.set(title=title, xlim=(-2.01, 2.01), ylim=(-1.01, 1.01))
        axes.set_axis_off()
        plt.colorbar(image, ax=axes, shrink=0.72, extend="max" if low == 0 else "both", label=unit)
        return image


def _graticule() -> list[tuple[Field, Field]]:
    """Meridians and parallels each 30 degrees, in the picture's plane."""
    along = np.linspace(-1, 1, 181)
    lines = [_project(np.full(181, lon), 90 * along) for lon in range(-150, 180, 30)]
    lines += [_project(180 * along, np.full(181, lat)) for lat in range(-60, 90, 30)]
    return lines


def _project(longitude: npt.NDArray[np.float64], latitude: npt.NDArray[np.float64]) -> tuple[Field, Field]:
    half, phi = np.radians(longitude) / 2, np.radians(latitude)
    scale = np.sqrt(1 + np.cos(phi) * np.cos(half))
    return 2 * np.cos(phi) * np.sin(half) / scale, np.sin(phi) / scale


def animate(pictures: list[Path], path: Path) -> None:
    """The pictures of all steps, one after the other, as a GIF."""
    frames = [Image.open(picture).convert("RGB").resize((1040, 576)).quantize(128) for picture in pictures]
    frames[0].save(path, save_all=True, append_images=frames[1:], duration=250, loop=0)
