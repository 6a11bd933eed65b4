"""Pictures of a step: the ensemble's mean and spread on the whole globe.

The globe is drawn in Hammer's equal-area projection by looking up, for each point of the picture, where on the grid it
lies. That is worked out once and makes a picture a matter of indexing.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import numpy.typing as npt
from fields import Field, Forecast
from matplotlib.axes import Axes
from PIL import Image

plt.switch_backend("Agg")

ROWS, COLUMNS = 420, 840
NAMES = {"2t": "2 m temperature", "msl": "pressure at mean sea level"}
UNITS = {"2t": "°C", "msl": "hPa"}
# Colours and their range are the same in all pictures, so that steps can be compared.
MEAN = {"2t": ("RdYlBu_r", -30.0, 40.0), "msl": ("PuOr_r", 980.0, 1046.0)}
SPREAD = {"2t": ("magma_r", 0.0, 6.0), "msl": ("magma_r", 0.0, 9.0)}


class Globe:
    """The projection, and pictures drawn with it."""

    def __init__(self, forecast: Forecast) -> None:
        self.forecast = forecast
        y, x = np.meshgrid(np.linspace(1, -1, ROWS), np.linspace(-2, 2, COLUMNS), indexing="ij")
        inside = (x / 2) ** 2 + y**2 <= 1
        x, y = x * np.sqrt(2), y * np.sqrt(2)
        z = np.sqrt(np.where(inside, 1 - (x / 4) ** 2 - (y / 2) ** 2, 1))
        latitude = np.degrees(np.arcsin(np.clip(np.where(inside, z * y, 0), -1, 1)))
        longitude = np.degrees(2 * np.arctan2(z * x, 2 * (2 * z**2 - 1)))
        self.outside = ~inside
        self.row = np.rint((90 - latitude) / forecast.grid_deg).astype(int)
        self.column = np.rint(longitude / forecast.grid_deg).astype(int) % round(360 / forecast.grid_deg)

    def draw(self, step: int, mean: dict[str, Field], spread: dict[str, Field], path: Path) -> None:
        """One picture with four maps."""
        figure, panels = plt.subplots(2, 2, figsize=(13, 7.2), layout="constrained")
        day = f"{self.forecast.date}"
        begin = f"{day[:4]}-{day[4:6]}-{day[6:]} 00 UTC"
        figure.suptitle(f"Made-up ensemble of {self.forecast.members} members from {begin}, step {step} h", fontsize=14)
        for column, param in enumerate(mean):
            self._map(panels[0, column], f"Mean of {NAMES[param]}", _in_units(param, mean[param]), MEAN[param], param)
            widths = spread[param] / (1 if param == "2t" else 100)
            self._map(panels[1, column], f"Spread of {NAMES[param]}", widths, SPREAD[param], param)
        figure.savefig(path, dpi=100)
        plt.close(figure)

    def _map(self, axes: Axes, title: str, field: Field, colours: tuple[str, float, float], param: str) -> None:
        name, low, high = colours
        seen = np.ma.array(field[self.row, self.column], mask=self.outside)
        image = axes.imshow(seen, extent=(-2, 2, -1, 1), cmap=name, vmin=low, vmax=high, interpolation="bilinear")
        if param == "msl" and title.startswith("Mean"):
            axes.contour(seen[::-1], np.arange(low, high, 6), extent=(-2, 2, -1, 1), colors="#40304080", linewidths=0.6)
        for line in _graticule():
            axes.plot(*line, color="#00000038", linewidth=0.6)
        edge = np.linspace(0, 2 * np.pi, 400)
        axes.plot(2 * np.cos(edge), np.sin(edge), color="#333333", linewidth=1.0)
        axes.set(title=title, xlim=(-2.01, 2.01), ylim=(-1.01, 1.01))
        axes.set_axis_off()
        plt.colorbar(image, ax=axes, shrink=0.72, extend="max" if low == 0 else "both", label=UNITS[param])


def _in_units(param: str, field: Field) -> Field:
    return field - 273.15 if param == "2t" else field / 100


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
    frames[0].save(path, save_all=True, append_images=frames[1:], duration=450, loop=0)
