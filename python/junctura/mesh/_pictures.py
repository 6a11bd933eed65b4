"""Pictures of meshes, without a display: PyVista.

A picture carries the version of the objects that it is of, in a text chunk of the PNG file. So a viewer that is
started again draws what is missing, and what has changed, and leaves the rest. Another chunk names the mesh, so that a
movie has the pictures of one mesh only.
"""

from __future__ import annotations

import ctypes
import glob
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from junctura import _forks
from junctura.errors import InvalidArgument, Unsupported
from junctura.mesh._model import Array, MeshField, MeshStep
from junctura.mesh._vtk import MeshSurfaces, check_field

# Names of the text chunks.
_VERSION = "junctura"
_SERIES = "junctura mesh"
# Beside the mesh, on the right.
_BAR = {
    "vertical": True,
    "position_x": 0.86,
    "position_y": 0.15,
    "height": 0.7,
    "width": 0.06,
    "title_font_size": 14,
    "label_font_size": 12,
    "fmt": "{:.4g}",
}
Direction = Literal["iso", "xy", "xz", "yz"]


@dataclass(frozen=True)
class PictureStyle:
    """How a mesh is drawn.

    Attributes
    ----------
    field
        The field that colors it; of a vector its magnitude.
    size
        Width and height in pixels.
    limits
        The values at the ends of the color scale; None takes the least and the greatest value of each picture.
    direction
        From where: ``iso``, or a plane of axes.
    colors
        A color map of Matplotlib.
    with_edges
        Whether edges of elements are drawn.

    """

    field: str
    size: tuple[int, int] = (800, 600)
    limits: tuple[float, float] | None = None
    direction: Direction = "iso"
    colors: str = "viridis"
    with_edges: bool = False


def has_egl() -> bool:
    """Whether pictures can be drawn without a display. VTK would end the process if it found neither."""
    try:
        ctypes.CDLL("libEGL.so.1")
    except OSError:
        return False
    return True


class PicturePainter:
    """Draws meshes of a series.

    Raises
    ------
    ImportError
        Without PyVista: ``pip install 'junctura[mesh]'``.
    Unsupported
        There is neither a display nor the library EGL, which draws without one.

    """

    def __init__(self, style: PictureStyle) -> None:
        if not os.environ.get("DISPLAY"):
            if not has_egl():
                cause = "libEGL.so.1 is not installed here, and there is no DISPLAY: apt-get install libegl1"
                raise Unsupported("pictures", cause)
            # VTK would look for a display first, and warn.
            os.environ.setdefault("VTK_DEFAULT_OPENGL_WINDOW", "vtkEGLRenderWindow")
        self._pyvista = _forks.needed("pyvista", "mesh")
        self._style = style
        self._surfaces = MeshSurfaces()
        self._plotter: Any = None
        self._mappers: dict[str, Any] = {}

    def __enter__(self) -> PicturePainter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Releases the invisible window."""
        if self._plotter is not None:
            self._plotter.close()
            self._plotter = None

    def pixels(self, mesh: MeshStep) -> Any:
        """Returns the picture of a mesh, as an array of rows, columns and three colors.

        Raises
        ------
        InvalidArgument
            The mesh has no such field.

        """
        check_field(mesh, self._style.field)
        if self._plotter is None:
            self._plotter = self._pyvista.Plotter(off_screen=True, window_size=list(self._style.size))
        # PyVista would draw after each call.
        self._plotter.suppress_rendering = True
        blocks = dict(self._colored(mesh))
        limits = self._style.limits or _limits(mesh, self._style.field)
        if list(blocks) == list(self._mappers):
            # The window, its camera and its color scale stay.
            for name, block in blocks.items():
                self._mappers[name].dataset = block
                self._mappers[name].scalar_range = limits
        else:
            self._begin(blocks, limits)
        time = f"step {mesh.step}" + ("" if mesh.time is None else f", time {mesh.time:.6g}")
        self._plotter.add_text(time, font_size=10, name="time")
        self._plotter.suppress_rendering = False
        self._plotter.render()
        return self._plotter.screenshot(None, return_img=True)

    def _begin(self, blocks: dict[str, Any], limits: tuple[float, float]) -> None:
        style, plotter = self._style, self._plotter
        plotter.clear_actors()
        self._mappers = {}
        for name, block in blocks.items():
            actor = plotter.add_mesh(
                block,
                scalars=style.field,
                clim=limits,
                cmap=style.colors,
                show_edges=style.with_edges,
                show_scalar_bar=not self._mappers,
                scalar_bar_args=_BAR | {"title": style.field},
                ambient=0.3,
                copy_mesh=False,
            )
            self._mappers[name] = actor.mapper
        if style.direction == "iso":
            plotter.view_isometric()
        else:
            getattr(plotter, f"view_{style.direction}")()

    def _colored(self, mesh: MeshStep) -> Iterator[tuple[str, Any]]:
        """Yields the blocks that have the field, each with it alone; a vector becomes its magnitude."""
        for name, grid in self._surfaces.blocks(mesh, _scalars(mesh, self._style.field)).items():
            block = self._pyvista.wrap(grid)
            block.set_active_scalars(self._style.field)
            yield name, block


def _scalars(mesh: MeshStep, field: str) -> tuple[MeshField, ...]:
    chosen = [one for one in mesh.fields if one.name == field and one.association != "set"]
    return tuple(one if "" in one.values else replace(one, values={"": _magnitude(one)}) for one in chosen)


def _magnitude(one: MeshField) -> Array:
    found: Array = np.sqrt(sum(part.astype(float) ** 2 for part in one.values.values()))
    return found


def _limits(mesh: MeshStep, field: str) -> tuple[float, float]:
    """Returns the least and the greatest finite value of a field, of a vector of its magnitude."""
    low, high = np.inf, -np.inf
    for one in mesh.fields:
        if one.name == field and one.association != "set":
            values = one.values[""] if "" in one.values else _magnitude(one)
            values = values[np.isfinite(values)]
            if values.size:
                low, high = min(low, float(values.min())), max(high, float(values.max()))
    return (low, high) if low <= high else (0.0, 1.0)


class PictureFiles:
    """The files of the pictures of a series.

    Parameters
    ----------
    pattern
        Their path, with the place of the step's number: ``pic-%04d.png``.

    Raises
    ------
    InvalidArgument
        The pattern has not exactly one number, or another ending.

    """

    def __init__(self, pattern: str | os.PathLike[str]) -> None:
        self._pattern = os.fspath(pattern)
        found = list(re.finditer(r"%(?:%|0?\d{0,2}d|.?)", self._pattern))
        numbers = [word for word in found if word[0].endswith("d")]
        others = {word[0] for word in found if word not in numbers} - {"%%"}
        if len(numbers) != 1 or others or Path(self._pattern).suffix.lower() != ".png":
            raise InvalidArgument(self._pattern, "name PNG files with the step's number: pic-%04d.png")
        self._number = numbers[0][0]
        self._before, self._after = self._pattern[: numbers[0].start()], self._pattern[numbers[0].end() :]

    def path(self, step: int) -> Path:
        """Returns the path of a picture."""
        return Path(self._pattern % step)

    def has(self, step: int, version: str) -> bool:
        """Whether the picture of these objects exists."""
        return self._chunk(self.path(step), _VERSION) == version

    def of(self, series: str) -> list[Path]:
        """Returns the pictures of a mesh that exist, in the order of their steps."""
        before, after = (part.replace("%%", "%") for part in (self._before, self._after))
        found = []
        for path in glob.glob(f"{glob.escape(before)}*{glob.escape(after)}"):  # noqa: PTH207 (an absolute pattern)
            digits = path[len(before) : len(path) - len(after)]
            if digits.isdecimal() and self._number % int(digits) == digits and self._chunk(path, _SERIES) == series:
                found.append((int(digits), Path(path)))
        return [path for _, path in sorted(found)]

    @staticmethod
    def _chunk(path: str | Path, name: str) -> str | None:
        images = _forks.needed("PIL.Image", "mesh")
        try:
            with images.open(path) as image:
                found: str | None = image.info.get(name)
        except OSError:
            return None
        return found

    def write(self, step: int, version: str, series: str, pixels: Any) -> Path:
        """Writes the picture of a step of a mesh; it appears complete."""
        images = _forks.needed("PIL.Image", "mesh")
        chunks = _forks.needed("PIL.PngImagePlugin", "mesh").PngInfo()
        chunks.add_text(_VERSION, version)
        chunks.add_text(_SERIES, series)
        path = self.path(step)
        partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
        try:
            images.fromarray(pixels).save(partial, format="PNG", pnginfo=chunks)
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
        return path
