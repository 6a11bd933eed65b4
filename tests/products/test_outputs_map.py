"""Maps: colours where values are, coasts where land begins, nothing where there is nothing."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from outputs_fields import PLACES, field, with_gap, written
from PIL import Image

import junctura
from junctura.products._input.decoded_field import Field
from junctura.products._map.lettering import fitted, width
from junctura.products._map.lines import ink
from junctura.products._map.lines.coast import borders, coastlines
from junctura.products._map.lines.ink import BRIGHT, DARK, Ink
from junctura.products._map.page import Page
from junctura.products._map.picture import picture
from junctura.products._map.projection import View
from junctura.products._map.sampling import samples
from junctura.products._map.seen import view_of
from junctura.products._map.sheet import sheet
from junctura.products._map.styling import colours
from junctura.products._map.styling.scale import scale
from junctura.products._map.styling.themes import THEMES
from junctura.products._map.words import title
from junctura.products._outputs import Output, meaning
from junctura.products._outputs.png import encoded

GROUND = THEMES["dark"].ground
PROJECTIONS = ("cylindrical", "robinson", "globe")
VIEWS = [
    View("cylindrical", 400, (0, 0)),
    View("cylindrical", 400, (50, 10), (40, 70)),
    View("robinson", 400, (0, -150)),
    View("globe", 300, (40, -30)),
    View("globe", 300, (-90, 0)),
]


def pixels(one: Field, **to: Any) -> npt.NDArray[np.uint8]:
    return np.asarray(picture(one, Output("png", **{"width": 500, **to})))


def colour_at(one: Field, latitude: float, longitude: float, **to: Any) -> tuple[int, ...]:
    """Of the pixel in which a place lies."""
    output = Output("png", **{"width": 500, "coast": False, **to})
    page = Page.of(view_of(one.grid, output))
    x, y, seen = page.view.pixels(np.array([latitude]), np.array([longitude]))
    assert seen[0]
    found = np.asarray(picture(one, output))[page.corner[1] + int(y[0]), page.corner[0] + int(x[0])]
    return tuple(int(part) for part in found)


def is_near(one: tuple[int, ...], other: Any, within: int = 6) -> bool:
    return bool(np.abs(np.array(one) - np.array(other, int)).max() <= within)


@pytest.mark.parametrize("view", VIEWS, ids=str)
def test_pixels_come_back_to_themselves(view: View) -> None:
    latitudes, longitudes, seen = view.places()
    assert latitudes.shape == seen.shape == (view.height, view.width)
    assert np.abs(latitudes[seen]).max() <= 90
    x, y, back = view.pixels(latitudes[seen], longitudes[seen])
    rows, columns = np.nonzero(seen)
    # Beside the rim a rounding error may put it behind it.
    assert back.mean() > 0.999
    np.testing.assert_allclose(x[back], columns[back] + 0.5, atol=1e-3)
    np.testing.assert_allclose(y[back], rows[back] + 0.5, atol=1e-3)


def test_robinson_is_as_its_table_says() -> None:
    view = View("robinson", 1000, (0, 0))
    x, y, _ = view.pixels(np.array([0.0, 45.0, -90.0]), np.array([90.0, 90.0, 90.0]))
    np.testing.assert_allclose(x, [750, 500 + 250 * 0.8962, 500 + 250 * 0.5322])
    np.testing.assert_allclose(1 - y / (view.height / 2), [0, 0.5571, -1], atol=1e-9)
    assert view.height == 507


@pytest.mark.parametrize("on", ["1/1", "1/1@72/-25/34/45", "1/1@10/350/-10/370", "F24", "N32", "O24"])
@pytest.mark.parametrize("view", VIEWS, ids=str)
def test_a_smooth_field_is_sampled_smoothly(on: str, view: View) -> None:
    """Between values of a linear function it is that function, for every kind of rows."""
    one = field(on)
    north, _ = one.grid.points()
    made_of = samples(one.grid, view)
    latitudes = view.places()[0].ravel()[made_of.pixels]
    found = made_of.of(north.reshape(one.grid.shape))
    inside = np.abs(latitudes) < np.abs(north).max()
    if "@" in on:
        inside &= (latitudes < north.max()) & (latitudes > north.min())
    np.testing.assert_allclose(found[inside], latitudes[inside], atol=1e-3)
    if one.grid.is_global:
        assert len(made_of.pixels) == int(view.places()[2].sum())


def test_where_values_are_missing_the_nearest_counts() -> None:
    one = field("10/10")
    values = one.values.copy()
    values[9, 0] = np.nan
    view = View("cylindrical", 360, (0, 0))
    found = np.full(view.width * view.height, -1.0)
    made_of = samples(field("10/10").grid, view)
    found[made_of.pixels] = made_of.of(values)
    rows, columns = np.nonzero(np.isnan(found.reshape(view.height, view.width)))
    assert (rows.min(), rows.max(), columns.min(), columns.max()) == (85, 94, 175, 184)


@pytest.mark.parametrize("projection", PROJECTIONS)
def test_colours_are_those_of_the_values(projection: Any) -> None:
    one = field("1/1")
    north = one.grid.points()[0].reshape(one.grid.shape)
    given = {"projection": projection, "centre": (0.0, 0.0), "colours": "depth", "range": (-90.0, 90.0)}
    table = colours.table("depth").astype(int)
    for latitude in (-40.0, 3.0, 50.0):
        expected = table[int((latitude + 90) / 180 * colours.SIZE)]
        shade = 1.0
        if projection == "globe":
            depth = np.cos(np.radians(latitude)) * np.cos(np.radians(7.0))
            shade = 0.52 + 0.48 * depth**0.6
        assert is_near(colour_at(one.having(north), latitude, 7.0, **given), expected * shade)


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_missing_values_are_hatched(theme: Any) -> None:
    nothing = field().having(np.full(field().grid.shape, np.nan))
    found = pixels(nothing, coast=False, theme=theme)[110:200, 100:400].reshape(-1, 3)
    shades, counts = np.unique(found, axis=0, return_counts=True)
    common = {tuple(shade.tolist()) for shade in shades[counts > 1000]}
    assert common == set(THEMES[theme].missing)
    of_gap, of_rest = (colour_at(with_gap(field()), latitude, 20.0, theme=theme) for latitude in (80.0, -60.0))
    assert any(is_near(of_gap, shade, 16) for shade in THEMES[theme].missing)
    assert not any(is_near(of_rest, shade, 16) for shade in THEMES[theme].missing)


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_where_a_grid_does_not_reach_the_map_is_plain(theme: Any) -> None:
    one, outside = field("1/1@72/-25/34/45"), THEMES[theme].outside
    assert is_near(colour_at(one, -40.0, 100.0, projection="robinson", theme=theme), outside)
    assert not is_near(colour_at(one, 52.0, 7.0, projection="robinson", theme=theme), outside, 30)


@pytest.mark.parametrize("theme", ["dark", "light"])
@pytest.mark.parametrize("table", colours.NAMES)
def test_what_has_no_value_looks_like_no_value(table: str, theme: Any) -> None:
    """In OKLab, where 0.02 can just be seen beside each other."""
    around = THEMES[theme]
    shades = [*around.missing, around.outside]
    inks = colours.oklab(np.array([*shades, *colours.table(table)]) / 255)
    of_table = np.linalg.norm(inks[None, 3:] - inks[:3, None], axis=2).min(axis=1)
    # Of a hatch one shade may be near.
    assert of_table[:2].max() > 0.02 and of_table[2] > 0.02
    assert np.linalg.norm(inks[0] - inks[1]) > 0.02
    assert min(np.linalg.norm(inks[2] - inks[0]), np.linalg.norm(inks[2] - inks[1])) > 0.06


@pytest.mark.parametrize("projection", ["robinson", "globe"])
def test_beyond_the_map_is_the_ground(projection: Any) -> None:
    found = pixels(field(), projection=projection)
    assert tuple(found[60, 490]) == tuple(found[-60, 3]) == GROUND


def test_bands_have_one_colour_each_and_so_has_what_is_beyond_them() -> None:
    one = field("1/1", step=0)
    assert one.values.min() < 286 < 297 < one.values.max()
    given = {"levels": (286.0, 290.0, 294.0, 297.0), "coast": False, "projection": "robinson", "colours": "depth"}
    shades, counts = np.unique(pixels(one, **given)[92:300].reshape(-1, 3), axis=0, return_counts=True)
    # Those of the graticule are fewer.
    common = {tuple(shade) for shade in shades[np.argsort(counts)[-6:]].tolist()}
    table = colours.table("depth")
    stops = [min(round(number * colours.SIZE / 4), colours.SIZE - 1) for number in range(5)]
    assert common == {GROUND, *(tuple(table[stop].tolist()) for stop in stops)}


@pytest.mark.parametrize("kelvin", [250.0, 273.15, 310.0])
@pytest.mark.parametrize("theme", ["dark", "light"])
def test_coastlines_are_where_asked_for_and_have_contrast(kelvin: float, theme: Any) -> None:
    flat = field("1/1").having(np.full(field("1/1").grid.shape, kelvin))
    with_coast, without = (
        pixels(flat, coast=coast, width=1000, theme=theme, range=(233.15, 313.15)).astype(int)
        for coast in (True, False)
    )
    page = Page.of(view_of(flat.grid, Output("png", width=1000)))
    changed = np.abs(without - with_coast).sum(axis=2) > 60
    fine = coastlines("50m")
    latitudes = np.concatenate([line[0] for line in fine])
    longitudes = np.concatenate([line[1] for line in fine])
    x, y, seen = page.view.pixels(latitudes, longitudes)
    seen &= (x >= 1) & (x < page.view.width - 1) & (y >= 1) & (y < page.view.height - 1)
    rows, columns = page.corner[1] + y[seen].astype(int), page.corner[0] + x[seen].astype(int)
    # A line between pixels darkens both by half, on a halo that makes both lighter.
    assert changed[rows, columns].mean() > 0.8
    around = [changed[rows + down, columns + right] for down in (-1, 0, 1) for right in (-1, 0, 1)]
    assert np.any(around, axis=0).mean() > 0.99
    assert 0.01 < changed.mean() < 0.2


@pytest.mark.parametrize("grey", range(0, 256, 15))
def test_a_line_has_contrast_to_its_halo_on_every_grey(grey: int) -> None:
    """WCAG 2 wants 4.5 for letters and 3 for lines."""
    ground = np.full((2, 4), grey, np.uint8)
    line, halo = ink._COAST * np.array([1, 0], np.float32), ink._VEIL * ink._COAST * np.ones(2, np.float32)
    Ink(np.array([0, 1]), line.astype(np.float32), halo.astype(np.float32)).onto(ground, (DARK, BRIGHT))
    dark, light = _luminance(ground[0, :3]), _luminance(ground[1, :3])
    assert (light + 0.05) / (dark + 0.05) >= 3


def _luminance(colour: npt.NDArray[np.uint8]) -> float:
    part = colour / 255
    linear = np.where(part <= 0.04045, part / 12.92, ((part + 0.055) / 1.055) ** 2.4)
    return float(linear @ np.array([0.2126, 0.7152, 0.0722]))


@pytest.mark.parametrize(("scale", "points"), [("110m", 5000), ("50m", 60000)])
def test_coasts_are_all_there(scale: Any, points: int) -> None:
    lines = coastlines(scale)
    assert abs(sum(len(line[0]) for line in lines) - points) < points / 20
    latitudes, longitudes = (np.concatenate([line[axis] for line in lines]) for axis in (0, 1))
    assert -86 < latitudes.min() < -70 and 82 < latitudes.max() < 84
    for latitude, longitude in ((51.0, 1.4), (-34.4, 18.4), (71.1, 25.8), (-55.9, -67.3), (1.3, 104.0)):
        # Dover, Cape of Good Hope, North Cape, Cape Horn, Singapore.
        east = (longitudes - longitude + 180) % 360 - 180
        assert np.hypot(latitudes - latitude, east).min() < 1.5
    for one, other in lines:
        # No line along which the map was cut.
        assert max(np.abs(np.diff(one)).max(), np.abs(np.diff(other)).max()) < 15


def test_borders_are_drawn_where_asked_for() -> None:
    flat = field("1/1").having(np.full(field("1/1").grid.shape, 273.15))
    given = {"coast": False, "width": 1000, "range": (233.15, 313.15)}
    with_borders, without = (pixels(flat, borders=to, **given).astype(int) for to in (True, False))
    page = Page.of(view_of(flat.grid, Output("png", width=1000)))
    changed = (without - with_borders).sum(axis=2) > 30
    for latitude, longitude, is_border in (
        (49.0, -110.0, True),
        (26.0, 25.0, True),
        (26.0, 29.0, False),
        (0, -30, False),
    ):
        # The 49th parallel, and the meridian between Libya and Egypt.
        x, y, _ = page.view.pixels(np.array([latitude]), np.array([longitude]))
        row, column = page.corner[1] + int(y[0]), page.corner[0] + int(x[0])
        assert changed[row - 1 : row + 2, column - 1 : column + 2].any() == is_border
    assert 10 * sum(len(line[0]) for line in borders("110m")) > sum(len(line[0]) for line in borders("50m")) > 15_000


@pytest.mark.parametrize(
    ("on", "given", "size"),
    [
        ("0.1/0.1@80/0/-80/0.5", {"width": 1000}, "1000 x 320000 pixels"),
        ("3/3", {"width": 8000}, "8000 x 4000"),
        ("3/3", {"width": 4001, "projection": "globe"}, "4001 x 4001"),
    ],
)
def test_a_map_of_too_many_pixels_is_refused(on: str, given: dict[str, Any], size: str) -> None:
    with pytest.raises(junctura.errors.InvalidArgument, match=f"map: {size}.*at most 16000000 .* a smaller width"):
        pixels(field(on), **given)


def test_only_maps_need_pillow(tmp_path: Path) -> None:
    program = (
        "import sys; sys.modules['PIL'] = None\n"
        "import junctura.products as products\n"
        f"products.load_all([{str(tmp_path / 'p.yaml')!r}])\n"
        "try: products.sheet\n"
        "except ImportError as error: print(error)"
    )
    (tmp_path / "p.yaml").write_text("{product: p, from: {param: t}, do: [grid: 1/1], to: {format: png, name: p}}")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "junctura[products]" in done.stdout


def test_places_are_discs_of_their_colours() -> None:
    one = field(PLACES).having(np.array([0.0, 1.0, np.nan]))
    given = {"colours": "wind", "range": (0.0, 1.0)}
    table = colours.table("wind")
    assert is_near(colour_at(one, 50.1, 8.7, **given), table[0])
    assert is_near(colour_at(one, 48.2, 16.4, **given), table[-1])
    assert is_near(colour_at(one, -3.0, -60.0, **given), THEMES["dark"].missing[0])
    assert is_near(colour_at(one, 20.0, -20.0, **given), THEMES["dark"].blank)


@pytest.mark.parametrize("name", colours.NAMES)
def test_steps_of_a_table_look_alike(name: str) -> None:
    table = colours.table(name)
    assert table.shape == (colours.SIZE, 3) and table.dtype == np.uint8
    # Bytes are too coarse for neighbours.
    steps = np.linalg.norm(np.diff(colours.oklab(table[::64] / 255), axis=0), axis=1)
    half = len(steps) // 2
    parts = [steps[: half - 1], steps[half + 1 :]] if name in ("balance", "thermal") else [steps]
    for part in parts:
        assert part.max() < 1.15 * part.min()
    np.testing.assert_allclose(colours.srgb(colours.oklab(table / 255)) * 255, table, atol=1e-6)


@pytest.mark.parametrize("name", [name for name in colours.NAMES if name not in ("balance", "thermal")])
def test_sequential_tables_go_one_way(name: str) -> None:
    lightness = colours.oklab(colours.table(name)[::16] / 255)[:, 0]
    assert (np.diff(lightness) > 0).all() or (np.diff(lightness) < 0).all()


def test_an_unknown_table_is_named() -> None:
    with pytest.raises(junctura.errors.InvalidArgument, match=r"colours jet: not one of balance, .*"):
        pixels(field(), colours="jet")


@pytest.mark.parametrize(
    ("values", "units", "middle", "ends", "labels", "words"),
    [
        ([241.2, 304.9], "K", None, (240, 310), "240 250 260 270 280 290 300 310", "K"),
        ([-7.7e-5, 3e-5], "s**-1", 0.0, (-8e-5, 8e-5), "-8 -6 -4 -2 0 2 4 6 8", "10^{-5} s^{-1}"),
        ([98000, 104000], "Pa", None, (98000, 104000), "98 99 100 101 102 103 104", "10^{3} Pa"),
        ([5.0, 5.0], "m s**-1", None, (2.5, 7.5), "5", "m/s"),
        ([280.0, np.nextafter(280.0, 0)], "K", None, (140, 420), "280", "K"),
        ([0.0, 0.0], "m", 0.0, (-0.5, 0.5), "0", "m"),
        ([1e30, 1e30], "m", None, (5e29, 1.5e30), "1", "10^{30} m"),
        ([np.nan, np.nan], "1", None, (0, 1), "0 0.2 0.4 0.6 0.8 1", ""),
    ],
)
def test_bars_end_at_round_numbers(
    values: list[float], units: str, middle: float | None, ends: tuple[float, float], labels: str, words: str
) -> None:
    bar = scale(np.array(values), units, middle=middle)
    assert (bar.low, bar.high) == pytest.approx(ends)
    assert (" ".join(bar.labels), bar.units) == (labels, words)
    assert bar.is_own


@pytest.mark.parametrize("projection", PROJECTIONS)
@pytest.mark.parametrize("on", ["3/3", "1/1@72/-25/34/45", "F16", "O24", PLACES])
def test_every_grid_has_a_map(tmp_path: Path, on: str, projection: Any) -> None:
    size = 333
    path = written(Output("png", projection=projection, width=size, title="ß 東 10^{-5}"), tmp_path / "p", field(on))
    with Image.open(path) as found:
        found.load()
        assert (found.format, found.mode, found.width) == ("PNG", "RGB", size)
        assert len(found.getcolors(1 << 20) or []) > 50


def test_a_map_is_the_same_each_time() -> None:
    np.testing.assert_array_equal(pixels(field(), projection="globe"), pixels(field(), projection="globe"))


def test_a_map_is_of_one_field(tmp_path: Path) -> None:
    with pytest.raises(junctura.errors.InvalidArgument, match="map: of one field, not of 2"):
        written(Output("png"), tmp_path / "p", field(), field())


def test_pixels_are_in_the_file_as_they_were() -> None:
    given = np.random.default_rng(1).integers(0, 256, (7, 5, 3), np.uint8)
    np.testing.assert_array_equal(np.asarray(Image.open(io.BytesIO(encoded(given)))), given)


def test_words_that_are_too_long_are_cut() -> None:
    assert fitted("short", 20, 500) == "short"
    cut = fitted("a title that goes on and on", 20, 100)
    assert cut.endswith("…") and width(cut, 20) <= 100
    assert width("m s^{-1}", 20) < width("m s-1", 20)


def test_a_sheet_has_all_pictures_in_order() -> None:
    shades = [(200, 10 * number, 30) for number in range(5)]
    pictures = [Image.new("RGB", (100, 60 - number), shade) for number, shade in enumerate(shades)]
    found = sheet(pictures, 2, "All of them")
    colours_found = [tuple(one) for one in np.asarray(found).reshape(-1, 3).tolist()]
    assert list(dict.fromkeys(one for one in colours_found if one in shades)) == shades
    assert all(colours_found.count(shade) == 100 * (60 - number) for number, shade in enumerate(shades))
    assert found.getpixel((1, 1)) == GROUND
    assert sheet(pictures[:1], 3).width < found.width < sheet(pictures, 5).width


@pytest.mark.parametrize(("count", "columns"), [(0, 2), (1, 0)])
def test_a_sheet_of_nothing_is_refused(count: int, columns: int) -> None:
    with pytest.raises(junctura.errors.InvalidArgument, match="sheet"):
        sheet([Image.new("RGB", (9, 9))] * count, columns)


def test_the_title_of_a_probability_says_what_of() -> None:
    one = field(param="u", units="%", statistic="probability", threshold=15, thresholdUnits="m s**-1")
    assert title(one, meaning(one)) == "U component of wind, 850\u00a0hPa, probability above 15\u00a0m/s"
