"""A map of a field as a picture; see `page` for what is around the map.

Places where a value is missing are hatched; where the grid does not reach, a globe or a world map has one plain color.
"""

from __future__ import annotations

import functools
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw

from junctura._native import _dim, _shade
from junctura.products._input.decoded_field import Field
from junctura.products._map.lines import ink, isolines
from junctura.products._map.page import Page, draw_bar, letter_edges, letter_head, samples_of
from junctura.products._map.projection import View
from junctura.products._map.sampling import samples
from junctura.products._map.seen import view_of
from junctura.products._map.styling import colours as tables
from junctura.products._map.styling.looks import Look, look_of
from junctura.products._map.styling.scale import Scale
from junctura.products._map.styling.themes import THEMES
from junctura.products._map.words import legend, title, when
from junctura.products._outputs._meaning import meaning
from junctura.products._outputs._output import Output, Theme
from junctura.products._regrid.grids import Grid

Pixels: TypeAlias = npt.NDArray[np.uint8]
_Singles: TypeAlias = npt.NDArray[np.float32]
# The distance of the lines of a hatch along a row, and their width, in pixels.
_HATCH, _NO_HATCH = (8, 3), (1, 0)
# One of this many pixels is sampled to determine whether a map is dark: a number that does not divide map widths.
_SAMPLED = 61
# After the colors of a table: the colors of pixels without a value.
_AT_MISSING, _AT_HATCH, _AT_OUTSIDE, _AT_GROUND, _AT_BLANK = range(tables.SIZE, tables.SIZE + 5)
_PAGES = {"page": Page.of, "map": Page.of_map, "bar": Page.of_bar}


def picture(field: Field, to: Output) -> Image.Image:
    """A map of a field.

    Raises
    ------
    InvalidArgument
        The field is spectral, or no header states where its points are; the map would have too many pixels, or there
        are no such colours, or units.

    """
    is_what = meaning(field)
    look, theme = look_of(field, is_what, to), THEMES[to.theme]
    page = _PAGES[to.part](view_of(field.grid, to, field.values), to.text)
    palette = _palette(look.table, to.theme)
    whole = Image.new("RGB", (page.width, page.height), theme.ground)
    if to.part != "bar":
        whole.paste(_map(field.grid, page, look, palette, to), page.corner)
    if to.part != "map":
        shown = _colours(samples_of(look.bar), look.bar, palette)[:, :3]
        draw_bar(whole, page, theme, look.bar, shown, legend(is_what, look.bar))
    if to.part == "page":
        draw = ImageDraw.Draw(whole)
        letter_head(draw, page, theme, to.title or title(field, is_what), when(is_what))
        if page.view.projection == "cylindrical":
            letter_edges(draw, page, theme)
    return whole


def prepare(field: Field, to: Output) -> None:
    """Makes what maps of such fields have in common, whatever their values are."""
    is_what = meaning(field)
    theme = THEMES[to.theme]
    page = _PAGES[to.part](view_of(field.grid, to, field.values), to.text)
    look = look_of(field, is_what, to)
    _palette(look.table, to.theme)
    if to.part != "bar":
        _background(page.view)
        if field.grid.kind != "points":
            samples(field.grid, page.view)
        _ink(page, look, to)
        ink.rim(page.view, page.unit)
        if page.view.projection == "globe":
            _light(page.view, to.theme)
    if to.part != "map":
        draw = ImageDraw.Draw(Image.new("RGB", (page.width, page.height)))
        letter_head(draw, page, theme, to.title or title(field, is_what), when(is_what))


def _ink(page: Page, look: Look, to: Output) -> ink.Ink:
    drawn = {"with_coast": to.coast, "with_borders": to.borders, "is_faint": bool(look.isolines)}
    return ink.ink(page.view, page.unit, **drawn)


@functools.lru_cache(maxsize=32)
def _palette(table: str, theme: Theme) -> npt.NDArray[np.uint32]:
    """The colours of a table and of what has no value, each as the four bytes of a pixel."""
    around = THEMES[theme]
    extra = np.array([*around.missing, around.outside, around.ground, around.blank], np.uint8)
    rgb = np.concatenate([tables.table(table), extra])
    return np.ascontiguousarray(np.pad(rgb, ((0, 0), (0, 1)), constant_values=255)).view(np.uint32)[:, 0]


def _map(lies: Grid, page: Page, look: Look, palette: npt.NDArray[np.uint32], to: Output) -> Image.Image:
    view, theme = page.view, THEMES[to.theme]
    background = _background(view)
    sampled = None
    if lies.kind == "points":
        colours = palette[np.where(background == _AT_OUTSIDE, _AT_BLANK, background)]
    else:
        made_of = samples(lies, view)
        sampled = made_of.of(look.values)
        is_full = len(made_of.pixels) == background.size
        colours = np.empty(background.shape, np.uint32) if is_full else palette[background]
        _paint(colours, view.width, sampled, None if is_full else made_of.pixels, look.bar, palette, _HATCH)
    pixels = colours.view(np.uint8).reshape(-1, 4)
    if view.projection == "globe":
        _darken(pixels, view, to.theme)
    without_ink = pixels.copy() if look.isolines else pixels
    _ink(page, look, to).onto(pixels, ink.inks_on(pixels[::_SAMPLED, :3]))
    labels: list[isolines.Label] = []
    if sampled is not None and look.isolines:
        nothing = np.full(view.height * view.width, np.nan, np.float32)
        rows = _spread(sampled, made_of.pixels, nothing).reshape(view.height, view.width)
        below = _colours(np.array(look.isolines, np.float32), look.bar, palette)[:, :3]
        lines = [(level, ink.inks_on(colour)) for level, colour in zip(look.isolines, below, strict=True)]
        labels = isolines.draw(pixels, rows, lines, look.bar.power, page.unit)
    for label in labels:
        covered = label.pixels(view.height, view.width)
        pixels[covered] = without_ink[covered]
    ink.rim(view, page.unit).onto(pixels, (theme.dim, theme.dim))
    made = Image.frombuffer("RGBX", (view.width, view.height), pixels, "raw", "RGBX", 0, 1).convert("RGB")
    for label in labels:
        label.onto(made)
    if lies.kind == "points":
        _draw_places(made, lies, look, view, palette)
    return made


def _spread(values: _Singles, pixels: npt.NDArray[np.intp], onto: _Singles) -> _Singles:
    """Values in their pixels, among those of all others."""
    if len(pixels) == onto.size:
        return values
    onto[pixels] = values
    return onto


def _paint(
    colours: npt.NDArray[np.uint32],
    wide: int,
    values: _Singles,
    pixels: npt.NDArray[np.intp] | None,
    bar: Scale,
    palette: npt.NDArray[np.uint32],
    hatch: tuple[int, int],
) -> None:
    """Puts the colors of values into their pixels, in rows of `wide`; missing ones are hatched."""
    with_missing = palette[: _AT_HATCH + 1]
    _shade(colours, wide, (bar.evenly(values), pixels), bar.shading(tables.SIZE), with_missing, hatch)


def _colours(values: _Singles, bar: Scale, palette: npt.NDArray[np.uint32]) -> Pixels:
    """The colors of values, red, green, blue and one byte more each."""
    made = np.empty(values.shape, np.uint32)
    _paint(made, max(values.size, 1), values, None, bar, palette, _NO_HATCH)
    return made.view(np.uint8).reshape(-1, 4)


@functools.lru_cache(maxsize=8)
def _background(view: View) -> npt.NDArray[np.uint16]:
    _, _, seen = view.places()
    return np.where(seen, _AT_OUTSIDE, _AT_GROUND).astype(np.uint16).ravel()


def _darken(pixels: Pixels, view: View, theme: Theme) -> None:
    light, edge, ground = _light(view, theme)
    _dim(pixels, light)
    pixels[edge, :3] += ground


@functools.lru_cache(maxsize=4)
def _light(view: View, theme: Theme) -> tuple[npt.NDArray[np.uint16], npt.NDArray[np.intp], Pixels]:
    """How bright a pixel of the globe is, of 256, less towards the limb, and the ground seen beside its edge."""
    x = (np.arange(view.width) + 0.5) * (2 / view.width) - 1
    radius = np.hypot(x, x[:, None]).ravel()
    depth = np.sqrt(np.maximum(0, 1 - radius**2))
    covered = np.clip((1 - radius) * view.width / 2, 0, 1)
    light = np.round((0.52 + 0.48 * depth**0.6) * covered * 256).astype(np.uint16)
    edge = np.flatnonzero(covered < 1)
    return light, edge, ((1 - covered[edge])[:, None] * np.array(THEMES[theme].ground)).astype(np.uint8)


def _draw_places(made: Image.Image, lies: Grid, look: Look, view: View, palette: npt.NDArray[np.uint32]) -> None:
    """A disc for each place, drawn large and made small for smooth edges."""
    x, y, seen = view.pixels(lies.latitudes, lies.longitudes)
    fills = _colours(look.values.astype(np.float32), look.bar, palette)
    radius = max(4.0, view.width / 110)
    size = round(4 * (2 * radius + 2))
    for column, row, is_seen, fill in zip(x, y, seen, fills, strict=True):
        if is_seen:
            disc = Image.new("RGBA", (size, size))
            edge = round(4 * radius * 0.22)
            ImageDraw.Draw(disc).ellipse((4, 4, size - 5, size - 5), tuple(fill), (14, 18, 26, 255), edge)
            small = disc.reduce(4)
            made.paste(small, (round(column - small.width / 2), round(row - small.height / 2)), small)
