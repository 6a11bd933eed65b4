"""How maps look: color bars, styles of parameters, lines, titles that fit."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from broker_runs import BASE, broker
from map_reference import places
from outputs_fields import field, surface
from PIL import Image

import junctura
from junctura.products import Field, load_all
from junctura.products.__main__ import _in_words, document, main
from junctura.products._map.lettering import width
from junctura.products._map.lines import isolines
from junctura.products._map.lines.ink import BRIGHT, DARK
from junctura.products._map.page import Page, samples_of
from junctura.products._map.picture import picture
from junctura.products._map.projection import View
from junctura.products._map.seen import view_of
from junctura.products._map.styling import colours, styles
from junctura.products._map.styling.looks import Look, look_of
from junctura.products._map.styling.scale import printed, scale
from junctura.products._map.styling.themes import THEMES
from junctura.products._map.words import title, when
from junctura.products._operations import Units
from junctura.products._outputs import Output, meaning

NOTHING = np.array([np.nan])


def look(one: Field, **to: Any) -> Look:
    return look_of(one, meaning(one), Output("png", **to))


def placed(bar: Any, *values: float) -> list[float]:
    return [float(place) for place in places(bar, np.array(values, np.float32))]


# Color bars.


def test_classes_are_boxes_of_one_width() -> None:
    levels = (0.1, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
    bar = scale(NOTHING, "mm", levels=levels)
    np.testing.assert_allclose([bar.along(level) for level in levels], np.arange(8) / 7)
    assert bar.labels == ("0.1", "1", "2", "5", "10", "20", "50", "100")
    found = placed(bar, 0.05, 0.1, 0.9, 1.0, 99, 100, 101)
    assert found == pytest.approx([0, 1 / 8, 1 / 8, 2 / 8, 7 / 8, 7 / 8, 1])
    assert np.isnan(placed(bar, np.nan)[0])


@pytest.mark.parametrize(
    ("values", "given", "arrows"),
    [
        ([1, 5], {"given": (0.0, 6.0)}, (False, False)),
        ([-1, 5], {"given": (0.0, 6.0)}, (True, False)),
        ([1, 7], {"levels": (0.0, 3.0, 6.0)}, (False, True)),
        ([-1e-5, 6.0001], {"given": (0.0, 6.0)}, (False, False)),
        ([0, 20], {"given": (0.1, 10.0), "is_log": True}, (True, True)),
        ([np.nan, np.nan], {"given": (0.0, 6.0)}, (False, False)),
    ],
)
def test_arrows_are_for_values_beyond_the_ends(
    values: list[float], given: dict[str, Any], arrows: tuple[bool, bool]
) -> None:
    assert scale(np.array(values, float), "m", **given).arrows == arrows


def test_an_arrow_has_the_color_of_what_is_beyond() -> None:
    one = surface("tp", "mm", stepType="accum").having(np.linspace(-5, 30, 61 * 120).reshape(61, 120))
    made = np.asarray(picture(one, Output("png", levels=(0.0, 10.0, 20.0), colours="rain", coast=False)))
    row = made[-48 + 6]
    table = colours.table("rain")
    assert tuple(row[-36]) == tuple(table[-1])
    assert tuple(row[482]) == tuple(table[0])


def test_equal_ratios_look_alike_on_a_logarithmic_scale() -> None:
    bar = scale(NOTHING, "m", (0.1, 1000.0), is_log=True)
    assert placed(bar, 0.1, 1, 10, 100, 1000) == pytest.approx([0, 0.25, 0.5, 0.75, 1])
    assert placed(bar, 0, -5, 0.01, 1e6) == [0, 0, 0, 1]
    assert bar.labels == ("0.1", "1", "10", "100", "1000")
    assert [bar.along(tick) for tick in bar.ticks] == pytest.approx([0, 0.25, 0.5, 0.75, 1])
    own = scale(np.array([0.0, 0.3, 70.0]), "m", is_log=True)
    assert (own.low, own.high, own.labels) == (
        0.1,
        100.0,
        ("0.1", "0.2", "0.5", "1", "2", "5", "10", "20", "50", "100"),
    )
    assert scale(NOTHING, "m", (1e-6, 1e-2), is_log=True).labels == ("10^{-6}", "10^{-5}", "10^{-4}", "0.001", "0.01")


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (-40, 40, {-40: 0.0, 0: 0.5, 40: 1.0}),
        (-30, 10, {-30: 0.0, 0: 0.5, 10: 0.5 + 10 / 60}),
        (0, 20, {0: 0.5, 20: 1.0}),
        (4, 12, {4: 0.56, 12: 1.0}),
        (-12, -4, {-12: 0.0, -4: 0.44}),
    ],
)
def test_the_middle_of_a_diverging_table_is_where_it_is_said(
    low: float, high: float, expected: dict[float, float]
) -> None:
    bar = scale(NOTHING, "degC", (float(low), float(high)), middle=0.0)
    assert placed(bar, *expected) == pytest.approx(list(expected.values()))


@pytest.mark.parametrize(
    ("levels", "middle", "expected"),
    [
        ((-10.0, 0.0, 10.0), 0.0, [0, 1 / 3, 2 / 3, 1]),
        ((-1.0, 1.0, 5.0), 0.0, [1 / 4, 1 / 2, 3 / 4, 1]),
        ((5.0, 10.0), 0.0, [0.5, 0.75, 1]),
    ],
)
def test_classes_of_a_diverging_table_lie_on_both_sides_of_its_middle(
    levels: tuple[float, ...], middle: float, expected: list[float]
) -> None:
    assert scale(NOTHING, "K", levels=levels, middle=middle).colours == pytest.approx(expected)


def test_an_amount_has_no_class_below_0_and_a_share_none_above_all() -> None:
    assert scale(NOTHING, "%", levels=(0.0, 50.0, 100.0)).colours == pytest.approx([0, 0, 1, 1])
    assert scale(NOTHING, "mm", levels=(0.0, 50.0, 100.0)).colours == pytest.approx([0, 0, 0.5, 1])


@pytest.mark.parametrize(
    "kind", [{"given": (1.0, 9.0)}, {"levels": (1.0, 3.0, 9.0)}, {"given": (1.0, 9.0), "is_log": True}]
)
def test_the_bar_shows_what_is_below_and_above_it(kind: dict[str, Any]) -> None:
    bar = scale(NOTHING, "m", **kind)
    shown = samples_of(bar)
    assert shown[0] < bar.low and shown[-1] > bar.high and (shown[1:-1] >= bar.low).all()


@pytest.mark.parametrize(
    ("units", "words"),
    [
        ("degC", "°C"),
        ("m s**-1", "m/s"),
        ("km h**-1", "km/h"),
        ("kg m**-2", "kg/m^{2}"),
        ("s**-1", "s^{-1}"),
        ("K m**2 kg**-1 s**-1", "K m^{2} kg^{-1} s^{-1}"),
        ("(0 - 1)", ""),
        ("%", "%"),
    ],
)
def test_units_are_printed_as_people_write_them(units: str, words: str) -> None:
    assert printed(units) == words


# Styles.


@pytest.mark.parametrize(
    ("one", "table", "ends", "units", "middle"),
    [
        (surface("2t", "K"), "thermal", (-40, 40), "°C", 0),
        (field(units="degC", levelist=500), "thermal", (-60, 10), "°C", 0),
        (surface("tp", "m", stepType="accum"), "rain", (0, 200), "mm", None),
        (surface("tcc", "(0 - 1)"), "cloud", (0, 100), "%", None),
        (surface("10u", "m s**-1"), "balance", (-25, 25), "m/s", 0),
        (surface("msl", "Pa"), "depth", (960, 1050), "hPa", None),
        (field(param="z", units="m**2 s**-2", levelist=500), "depth", (480, 600), "gpdm", None),
        (field(param="vo", units="s**-1"), "balance", (-2e-4, 2e-4), "10^{-4} s^{-1}", 0),
        (field(param="ws", units="m s**-1"), "wind", (0, 80), "m/s", None),
    ],
)
def test_parameters_have_styles(
    one: Field, table: str, ends: tuple[float, float], units: str, middle: float | None
) -> None:
    found = look(one)
    assert (found.table, found.bar.units, found.bar.is_own) == (table, units, False)
    assert (found.bar.low, found.bar.high) == pytest.approx(ends)
    if middle is not None:
        table_at = placed(found.bar, middle)
        assert table_at == pytest.approx([0.5])


def test_all_maps_of_a_product_have_one_range() -> None:
    warm, cold = field(), field().having(field().values - 60)
    assert look(warm).bar.shading(8) == look(cold).bar.shading(8)
    assert (look(warm).bar.low, look(warm).bar.colours) == (look(cold).bar.low, look(cold).bar.colours)
    unknown = field(param="my_own", units="K")
    assert look(unknown).bar.is_own and not look(unknown, range=(0.0, 300.0)).bar.is_own


def test_what_is_stated_counts_in_the_units_of_the_field() -> None:
    kelvins = look(surface("2t", "K"), range=(253.15, 293.15))
    assert (kelvins.bar.low, kelvins.bar.high, kelvins.bar.units) == (253.15, 293.15, "K")
    assert placed(kelvins.bar, 273.15) == pytest.approx([0.5])
    celsius = look(surface("2t", "K"), range=(-20.0, 20.0), units="degC")
    assert celsius.bar.units == "°C" and placed(celsius.bar, 0) == pytest.approx([0.5])
    np.testing.assert_allclose(celsius.values, surface("2t", "K").values - 273.15)
    stated = look(surface("2t", "K"), units="K")
    assert (stated.bar.low, stated.bar.high) == pytest.approx((233.15, 313.15))


def test_a_converted_field_keeps_its_units() -> None:
    """Feet are not what GRIB has, so somebody wants them."""
    assert look(surface("2t", "degF")).bar.units == "°F"
    assert placed(look(surface("2t", "degF")).bar, 32.0) == pytest.approx([0.5])


def test_units_that_are_stated_stay_where_nothing_is_converted() -> None:
    """Of a field in K the operation `units: K` makes a map in K, and not in °C as without it."""
    (stated,) = Units.read("K")([surface("2t", "K")], None)  # type: ignore[arg-type]
    assert look(stated).bar.units == "K" and look(surface("2t", "K")).bar.units == "°C"
    assert look(stated, units="degF").bar.units == "°F"
    # What is computed of it has a unit of its own.
    again = stated.having(stated.values, None, "m")
    assert look(again).bar.units == look(surface("2t", "m")).bar.units


@pytest.mark.parametrize("do", ["units: K", "units: {2t: K}, grid: 90/90"])
def test_a_run_keeps_the_units_that_its_recipe_states(tmp_path: Path, do: str) -> None:
    """Through workers, as the option `units` of the map does."""
    text = "product: {0}\nfrom: {{param: 2t, step: 6}}\ndo: [{1}]\nto: {{format: png, {2}width: 200, name: {0}}}\n"
    recipe = "---\n".join(
        text.format(*words) for words in (("a", do, ""), ("b", "grid: 90/90", "units: K, "), ("c", "grid: 90/90", ""))
    )
    about = {**BASE, "levtype": "sfc", "param": "2t", "grid": "90/90", "units": "K"}
    del about["number"], about["levelist"]
    with junctura.Pool(schema="mars") as pool:
        pool.offer(np.linspace(250, 300, 12).reshape(3, 4), {**about, "step": 6})
        report = broker(tmp_path, pool, recipe).run()
    assert not report.failed, report.failed
    a, b, c = ((tmp_path / "out" / name).read_bytes() for name in "abc")
    assert a == b != c


def test_a_style_of_other_units_gives_its_colors_only() -> None:
    found = look(surface("tp", "K"))
    assert (found.table, found.bar.is_own, found.bar.units) == ("rain", True, "K")


def test_a_spread_begins_at_0_and_its_degrees_are_differences() -> None:
    spread = surface("2t", "K", statistic="spread").having(np.linspace(0, 9, 7320).reshape(61, 120))
    found = look(spread)
    assert (found.table, found.bar.units, found.bar.low, found.bar.high) == ("wind", "K", 0, 8)
    np.testing.assert_array_equal(found.values, spread.values)
    assert found.bar.arrows == (False, True)


def test_a_probability_has_classes() -> None:
    one = surface("2t", "%", statistic="probability", threshold=280, thresholdUnits="K")
    found = look(one)
    assert (found.table, found.bar.levels, found.bar.units) == ("chance", tuple(map(float, range(0, 101, 10))), "%")


def test_every_style_can_be_drawn() -> None:
    for only, style in styles._entries(""):
        params = only["param"] if isinstance(only["param"], list) else [only["param"]]
        assert style.has_range and style.colours in colours.NAMES
        levels = only.get("levelist", 850)
        level = levels[0] if isinstance(levels, list) else levels
        where = {"levtype": only.get("levtype", "pl"), "levelist": level}
        found = look(field(param=params[0], units=style.units, **where))
        assert not found.bar.is_own and found.table == style.colours


def test_a_file_of_styles_comes_first(tmp_path: Path) -> None:
    (tmp_path / "styles.yaml").write_text(
        "- {for: {param: 2t}, units: degF, colours: depth, range: [0, 100]}\n- {for: {param: q9}, levels: [1, 2]}\n"
    )
    own = styles.load(tmp_path / "styles.yaml")
    found = look(surface("2t", "K"), styles=own)
    assert (found.table, found.bar.units, found.bar.low, found.bar.high) == ("depth", "°F", 0, 100)
    assert look(surface("q9", "m"), styles=own).bar.levels == (1, 2)
    assert look(surface("10u", "m s**-1"), styles=own).bar.high == 25


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("- {for: {param: t}, range: [2, 1]}", r"styles.yaml:1: range: each number must be greater"),
        ("- {for: {param: t}, colors: rain}", r'styles.yaml:1: colors: "colors" is no key.*; did you mean "colours"\?'),
        ("- {for: {param: t}, colours: jet}", r'styles.yaml:1: colours: "jet" is no table of colours'),
        ("- {for: {param: t}, units: parsec}", r'styles.yaml:1: units: .*"parsec" is no unit'),
        ("- {for: {param: t}, isolines: 0}", r"styles.yaml:1: isolines: a distance is greater than 0"),
        ("- {for: {param: t}, scale: log, range: [0, 1]}", r'styles.yaml:1: scale: "log" needs a range above 0'),
        ("- {colours: rain}", r'styles.yaml:1: "for" is missing'),
    ],
)
def test_a_wrong_style_is_named(tmp_path: Path, text: str, cause: str) -> None:
    (tmp_path / "styles.yaml").write_text(f"{text}\n")
    with pytest.raises(junctura.errors.InvalidArgument, match=cause):
        styles.load(tmp_path / "styles.yaml")


def test_a_recipe_names_its_styles_and_they_are_part_of_it(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(
        "{product: p, from: {param: t}, do: [grid: 1/1], to: {format: png, styles: my.yaml, name: p}}"
    )
    prints = []
    for end in (10, 20):
        (tmp_path / "my.yaml").write_text(f"- {{for: {{param: t}}, range: [0, {end}]}}\n")
        (recipe,) = load_all([tmp_path / "p.yaml"])
        prints.append(recipe.fingerprint)
        assert look(field(), **dict(recipe.output.options)).bar.high == end
    assert prints[0] != prints[1]
    (tmp_path / "my.yaml").unlink()
    with pytest.raises(junctura.errors.Error, match=r"my\.yaml"):
        load_all([tmp_path / "p.yaml"])


@pytest.mark.parametrize(
    ("said", "is_told"),
    [
        ("from: {param: t, levelist: [850, 500]}, to: {format: png, name: 'p{levelist}'}", False),
        ("from: {param: gh, levelist: [850, 70]}, to: {format: png, name: 'p{levelist}'}", True),
        ("from: {param: q9}, to: {format: png, name: p}", True),
        ("from: {param: q9}, to: {format: png, range: [0, 1], name: p}", False),
        ("from: {param: q9}, to: {format: png, styles: my.yaml, name: p}", False),
        ("from: {param: q9}, to: {format: netcdf, name: p}", False),
        (
            "from: {param: q9, number: [1, 2]}, do: [ensemble: [probability: {above: 1}]], to: {format: png, name: p}",
            False,
        ),
        ("from: {param: q9, number: [1, 2]}, do: [ensemble: [mean]], to: {format: png, name: p}", True),
        ("from: {param: 2t, number: [1, 2]}, do: [ensemble: [spread]], to: {format: png, name: p}", False),
    ],
)
def test_a_product_without_one_range_is_told_when_it_is_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], said: str, is_told: bool
) -> None:
    (tmp_path / "my.yaml").write_text("- {for: {param: q9}, range: [0, 1]}\n")
    (tmp_path / "p.yaml").write_text(f"{{product: p, {said}}}")
    assert main([str(tmp_path / "p.yaml"), "--check"]) == 0
    assert ("each map has a range of colors of its own" in capsys.readouterr().out) == is_told


@pytest.mark.parametrize(
    ("said", "doubt"),
    [
        ("{param: 2t}; ; range: [-10, 10]", "range from -10 to 10 is in K, the units of 2t, .* units: degC beside"),
        ("{param: 2t}; ; range: [263, 283]", ""),
        ("{param: 2t}; ; 'range: [-10, 10], units: degC'", ""),
        ("{param: 2t}; units: degC; range: [-10, 10]", ""),
        ("{param: 2t}; units: {2t: degF}; range: [-10, 10]", ""),
        ("{param: [t, u], levelist: 850}; keep: t; range: [-10, 10]", "is in K, the units of t,"),
        ("{param: msl}; ; levels: [980, 1000, 1020]", "levels from 980 to 1020 is in Pa, .* units: hPa beside"),
        ("{param: msl}; ; range: [98000, 102000]", ""),
        ("{param: tp}; ; range: [0, 50]", "is in m, the units of tp, .* units: mm beside"),
        ("{param: tp}; ; range: [0, 0.05]", ""),
        ("{param: gh, levelist: 500}; ; range: [500, 600]", "is in gpm, the units of gh, .* units: gpdm beside"),
        ("{param: gh, levelist: 1000}; ; range: [-40, 40]", ""),
        ("{param: 2t, number: [1, 2]}; ensemble: spread; range: [0, 4]", ""),
        ("{param: 2t, number: [1, 2]}; 'ensemble: {probability: {above: 1}}'; range: [0, 40]", ""),
        ("{param: tp}; 'compute: {tp: {formula: tp * 1000, units: mm}}'; range: [0, 50]", ""),
        ("{param: q9}; ; range: [0, 50]", ""),
    ],
)
def test_a_range_in_the_units_of_the_style_is_doubted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], said: str, doubt: str
) -> None:
    """Without `units` it is in those of the field, of which such a map would have one color."""
    source, do, to = (part.strip().strip("'") for part in said.split(";"))
    text = f"{{product: p, from: {source}, do: [{do}], to: {{format: png, {to}, name: p}}}}"
    (tmp_path / "p.yaml").write_text(text)
    assert main([str(tmp_path / "p.yaml"), "--check"]) == 0
    found = capsys.readouterr().out
    assert re.search(doubt, found) if doubt else "the units of" not in found


def test_a_run_reports_a_doubtful_range_before_it_begins(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "{product: p, from: {param: 2t}, to: {format: png, range: [-10, 10], name: p}}"
    (tmp_path / "p.yaml").write_text(text)
    with junctura.Pool(schema="mars") as pool:
        status = main([str(tmp_path / "p.yaml"), "--pool", pool.url, "--now", "--out", str(tmp_path / "out")])
    assert status == 1
    assert re.search(r"junctura: .*p\.yaml:1: range from -10 to 10 is in K, the units of 2t", capsys.readouterr().err)


@pytest.mark.parametrize(
    ("do", "to", "stated"),
    [
        ("", "", {"p": (-20, 100)}),
        ("units: cm", "", {"p": (-2000, 10000)}),
        ("", "units: km, ", {"p": (-0.02, 0.1)}),
        ("", "range: [0, 1], ", {}),
    ],
)
def test_a_run_states_the_range_that_all_maps_of_a_product_would_have(
    tmp_path: Path, do: str, to: str, stated: dict[str, tuple[float, float]]
) -> None:
    """Of a parameter without a style: whoever writes it into the recipe gets maps that can be compared."""
    to = f"format: png, width: 200, {to}name: 'p{{step}}'"
    text = f"product: p\nfrom: {{param: q9, step: 0/6}}\ndo: [{do}]\nto: {{{to}}}\n"
    about = {**BASE, "levtype": "sfc", "param": "q9", "grid": "90/90", "units": "m"}
    del about["number"], about["levelist"]
    with junctura.Pool(schema="mars") as pool:
        for step, values in ((0, np.linspace(-12.5, 3, 12)), (6, np.linspace(0, 93, 12))):
            pool.offer(values.reshape(3, 4), {**about, "step": step})
        report = broker(tmp_path, pool, text).run()
    assert not report.failed, report.failed
    assert document(report)["ranges"] == stated
    said = "p: each map has a range of colors of its own; for one range of all write range: "
    assert (said in _in_words(report, tmp_path)) == bool(stated)


@pytest.mark.parametrize(
    ("said", "cause"),
    [
        ("theme: grey", r'to.theme: "grey" is no theme'),
        ("units: parsec", r'to.units: .*"parsec" is no unit'),
        ("isolines: -4", r"to: output isolines: expected a distance greater than 0"),
        ("scale: log, range: [0, 1]", r"to: output range: a logarithmic scale needs values above 0"),
        ("text: 4", r"to.text: expected a whole number from 6 to 100"),
    ],
)
def test_a_wrong_map_is_named(tmp_path: Path, said: str, cause: str) -> None:
    (tmp_path / "p.yaml").write_text(f"{{product: p, from: {{param: t}}, to: {{format: png, {said}, name: p}}}}")
    with pytest.raises(junctura.errors.InvalidArgument, match=cause):
        load_all([tmp_path / "p.yaml"])


def test_colors_follow_logarithms_only_where_there_is_no_middle() -> None:
    assert look(surface("2t", "K"), scale="log", range=(1.0, 400.0)).table == colours.NEUTRAL


# Lines.


def test_lines_are_where_the_field_has_their_value() -> None:
    """Of a cone: circles, whose length says how many pixels they cover."""
    y, x = np.mgrid[-200:201, -200:201]
    values = np.hypot(x, y).astype(np.float32)
    pixels = np.full((values.size, 4), BRIGHT[0], np.uint8)
    labels = isolines.draw(pixels, values, [(level, (DARK, BRIGHT)) for level in (50.0, 100.0, 150.0)], 0, 0.5)
    # On its own color the halo is not seen, but for rounding.
    cover = (BRIGHT[0] - pixels[:, 0].astype(float)) / (BRIGHT[0] - DARK[0])
    radius = values.ravel()[cover > 0.02]
    nearest = np.array([50, 100, 150])[np.argmin(np.abs(radius[:, None] - [50, 100, 150]), axis=1)]
    assert np.abs(radius - nearest).max() < 1.2
    covered = cover.sum() / isolines._STRENGTH
    assert covered == pytest.approx(1.2 * 2 * np.pi * (50 + 100 + 150), rel=0.05)
    assert {label.words for label in labels} <= {"50", "100", "150"} and labels
    for label in labels:
        away = np.hypot(label.x - 200, label.y - 200)
        assert away == pytest.approx(float(label.words), abs=1)
        # Along the circle: at right angles to the radius.
        turn = np.radians(label.angle)
        assert abs((label.x - 200) * np.cos(turn) - (label.y - 200) * np.sin(turn)) < 0.1 * away


@pytest.mark.parametrize("values", [np.full((50, 60), 5.0), np.full((50, 60), np.nan), np.zeros((1, 60))])
def test_a_field_without_slope_has_no_lines(values: Any) -> None:
    pixels = np.zeros((values.size, 4), np.uint8)
    labels = isolines.draw(pixels, values.astype(np.float32), [(level, (DARK, BRIGHT)) for level in (0.0, 5.0)], 0, 1.0)
    assert not pixels.any() and not labels


def test_lines_are_those_of_the_style_or_as_stated() -> None:
    one = surface("msl", "Pa").having(np.linspace(98760, 102340, 7320).reshape(61, 120))
    assert look(one).isolines == (990, 995, 1000, 1005, 1010, 1015, 1020)
    assert look(one, isolines=False).isolines == ()
    assert look(one, isolines=10.0).isolines == (990, 1000, 1010, 1020)
    assert look(one, isolines=(1000.0, 2000.0)).isolines == (1000,)
    assert look(surface("2t", "K"), isolines=True).isolines == (10, 20)
    with_lines, without = (np.asarray(picture(one, Output("png", isolines=to))) for to in (True, False))
    assert (with_lines != without).any()


# Areas.


@pytest.mark.parametrize(
    ("area", "on"),
    [((72, 34, -25, 45), "1/1"), ((10, -40, 100, 160), "2/2"), ((60, 20, 170, 230), "1/1"), ((90, 0, 0, 120), "F32")],
)
def test_a_map_of_an_area_on_a_whole_grid_ends_where_its_values_do(area: tuple[float, ...], on: str) -> None:
    north, south, west, east = area
    one = field(on)
    latitudes, longitudes = one.grid.points()
    inside = (latitudes <= north) & (latitudes >= south) & ((longitudes - west) % 360 <= east - west)
    inside = inside.reshape(one.grid.shape)
    cut = one.having(np.where(inside, one.values, np.nan))
    view = view_of(cut.grid, Output("png"), cut.values)
    apart = abs(one.grid.latitudes[1] - one.grid.latitudes[0])
    edges = [view.centre[0] + view.spans[0] / 2, view.centre[0] - view.spans[0] / 2]
    edges += [view.centre[1] - view.spans[1] / 2, view.centre[1] + view.spans[1] / 2]
    np.testing.assert_allclose((np.array(edges) - area + 180) % 360 - 180, 0, atol=apart)
    assert colour_of_all(cut) and view_of(cut.grid, Output("png", projection="globe"), cut.values).centre == view.centre


@pytest.mark.parametrize("projection", ["cylindrical", "robinson", "globe"])
@pytest.mark.parametrize("rows", [(0, 181), (0, 170), (20, 160)])
@pytest.mark.parametrize(
    "on", ["1/1", "1/1@90/-180/-90/179", "1/1@90/0/-90/359", "1/1@90/74/-90/433", "2/1@80/0/-70/359"]
)
def test_a_map_around_the_globe_has_greenwich_in_the_middle(on: str, rows: tuple[int, int], projection: Any) -> None:
    """From whichever meridian its columns are counted, also where rows at the poles have no values."""
    one = field(on)
    values = np.full(one.grid.shape, np.nan)
    values[slice(*rows)] = one.values[slice(*rows)]
    view = view_of(one.grid, Output("png", projection=projection), values)
    # The globe of all latitudes is seen from the north-east.
    assert view.centre[1] == (10 if projection == "globe" and on == "1/1" and rows == (0, 181) else 0)
    if projection == "cylindrical":
        assert view.spans[1] == 360
        assert colour_of_all(one.having(values)) or np.isnan(values[:, 0]).any()
    assert view_of(one.grid, Output("png", projection=projection, centre=(0, 180)), values).centre == (0, 180)


def colour_of_all(one: Field) -> bool:
    """Whether no pixel of the map is missing or outside."""
    page = Page.of(view_of(one.grid, Output("png"), one.values))
    made = np.asarray(picture(one, Output("png", coast=False)))
    (left, top), view, around = page.corner, page.view, THEMES["dark"]
    shown = made[top : top + view.height, left : left + view.width].reshape(-1, 3)
    return not any((shown == shade).all(axis=1).any() for shade in (*around.missing, around.outside))


@pytest.mark.parametrize("mask", ["none", "all", "sea", "circle", "three points"])
def test_what_is_masked_otherwise_leaves_the_map_as_it_is(mask: str) -> None:
    one = field("2/2")
    north, east = (part.reshape(one.grid.shape) for part in one.grid.points())
    known = {
        "none": np.ones(one.grid.shape, bool),
        "all": np.zeros(one.grid.shape, bool),
        "sea": np.sin(np.radians(3 * east)) * np.cos(np.radians(2 * north)) > 0,
        "circle": np.hypot(north - 20, east - 100) < 30,
        "three points": (np.abs(north) < 1) & (np.abs(east - 50) < 3),
    }[mask]
    masked = one.having(np.where(known, one.values, np.nan))
    for to in (Output("png"), Output("png", projection="globe")):
        assert view_of(masked.grid, to, masked.values) == view_of(masked.grid, to)


# Pages.


@pytest.mark.parametrize("width_px", [160, 300, 500, 1000, 3000])
@pytest.mark.parametrize("projection", ["cylindrical", "robinson", "globe"])
def test_letters_are_never_too_small(width_px: int, projection: Any) -> None:
    page = Page.of(View(projection, width_px, (0, 0)))
    assert 12.5 * page.unit >= 11
    assert page.view.width > width_px / 3
    assert Page.of(View(projection, width_px, (0, 0)), 25).unit == 2


def test_parts_of_a_page_can_be_had_alone() -> None:
    one = field()
    on: dict[str, Any] = {"projection": "globe", "width": 400}
    map_alone, bar = (np.asarray(picture(one, Output("png", part=part, **on))) for part in ("map", "bar"))
    assert map_alone.shape == (400, 400, 3) and bar.shape[1] == 400 and bar.shape[0] < 80
    table = colours.table("thermal")
    ends = [16 * 0.88 + 14, 400 - 16 * 0.88 - 14]
    for place, shade in zip(ends, (table[0], table[-1]), strict=True):
        np.testing.assert_allclose(bar[bar.shape[0] - 36, round(place)], shade, atol=8)
    page = Page.of(view_of(one.grid, Output("png", **{**on, "width": 428})))
    whole = np.asarray(picture(one, Output("png", **{**on, "width": 428})))
    assert page.view.width == 400
    (left, top) = page.corner
    np.testing.assert_array_equal(whole[top : top + 400, left : left + 400], map_alone)


def test_pages_of_a_product_have_one_size() -> None:
    sizes = set()
    for number, step in ((1, 0), (50, 240)):
        one = field(number=number, step=step)
        sizes.add(picture(one, Output("png", width=300, title="Height " * number)).size)
    assert len(sizes) == 1


def test_a_long_title_gets_smaller_then_two_lines_and_then_an_end() -> None:
    """Seen by how far right its letters reach, and how high they are."""
    for count in (2, 14, 40):
        made = np.asarray(picture(field(), Output("png", title="Temperature " * count)).convert("L")).astype(int)
        head = made[:56] > 100
        assert not head[:, :20].any() and not head[:, -24:].any()
        rows = np.flatnonzero(head.any(axis=1))
        lines = 1 + int((np.diff(rows) > 1).sum())
        assert lines == {2: 1, 14: 2, 40: 2}[count]


def test_the_theme_is_that_of_the_page() -> None:
    for theme, is_light in (("light", True), ("dark", False)):
        made: Image.Image = picture(field(), Output("png", theme=theme))  # type: ignore[arg-type]
        assert (np.asarray(made)[:5].min() > 240) == is_light


def test_a_title_has_level_member_and_valid_time() -> None:
    one = field(number=3)
    assert title(one, meaning(one)) == "Temperature, 850\u00a0hPa"
    assert when(meaning(one)) == ["2026-08-01 12:00 UTC", "+6 h", "valid 2026-08-01 18:00 UTC", "member 3"]
    for level, words in ((2000, "2\u00a0PVU"), (2147485648, "-2\u00a0PVU")):
        aloft = field(levtype="pv", levelist=level)
        assert title(aloft, meaning(aloft)).endswith(words)
    nameless = field(param="mass_mixrat_9")
    assert title(nameless, meaning(nameless)).startswith("mass_mixrat_9, ")


def test_numbers_of_the_bar_do_not_touch() -> None:
    from junctura.products._map.page import _every, _have_room

    at, wide = [0, 20, 40, 60, 80, 100, 120], [30.0] * 7
    every = _every(at, wide, 7)
    assert _have_room(at[::every], wide[::every], 7) and every == 2
    assert _every([0, 10, 20, 30, 40, 50, 60], [15.0] * 7, 7) == 3
    assert width("100", 13) > 0
