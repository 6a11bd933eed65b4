"""Recipes for products: what they mean, which files and inputs follow, and what every mistake is told."""

from __future__ import annotations

import contextlib
import copy
import datetime
import json
import pickle
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from broker_runs import BASE
from hypothesis import given, settings
from hypothesis import strategies as st
from recipe_texts import asked, recipe

import junctura
from junctura._document.located_yaml import Document, Wrong, documents
from junctura.products.__main__ import main
from junctura.products._recipe import recipe_schema
from junctura.products._recipe.definitions import load_all
from junctura.products._recipe.file_names import Template, file_name
from junctura.products._recipe.mars_words import Key, canonical, differing, selectors, values
from junctura.products._recipe.reading import recipe_of

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples/12_products/recipes"
FIXED = settings(derandomize=True, database=None, deadline=None, max_examples=100)
PUBLISHED = ROOT / "python/junctura/products/recipe.schema.json"

EVERYTHING = """\
product: t850-europe
from: {param: t, levelist: 850, step: 0/to/48/by/6, number: 1/to/6}
do:
  - grid: {type: regular_ll, resolution: 0.25}
  - crop: {north: 72, west: -25, south: 34, east: 45}
  - units: {t: degC}
  - mask: {below: -100}
  - fill: 0
  - mask: {where: "t < 0 and not t > 5"}
  - ensemble: [mean, spread, min, max, {probability: {above: 273.15}}, {percentile: [10, 50, 90]}]
  - statistics: {over: 24h, of: [mean, max]}
  - compute: {tk: {formula: "t + 273.15", units: K}}
  - keep: [t, tk]
to: {format: grib2, bits: 16, packing: ccsds, name: "t850_{step:03}.grib2"}
"""

# What every field of the schema has, whether a recipe asks for it or not.
REST = {word: value for word, value in BASE.items() if word not in ("levelist", "number")}


def test_everything_that_can_be_said_is_read() -> None:
    read = recipe(EVERYTHING)
    assert [operation.name for operation in read.operations] == [
        next(iter(item)) for item in yaml.safe_load(EVERYTHING)["do"]
    ]
    assert read.output.format == "grib2"
    assert dict(read.output.options) == {"bits": 16, "packing": "ccsds"}
    assert read.params == ("t", "tk")
    assert read.where == "dir/t.yaml:1"
    assert [operation.name for operation in read.rest] == [
        "mask",
        "ensemble",
        "statistics",
        "compute",
        "keep",
    ]


def test_by_default_each_step_level_and_member_is_a_file_with_all_parameters() -> None:
    read = asked(fields="param: [u, v], levelist: 850/500, step: 0/6, number: 1/2")
    files = list(read.wanted())
    assert [str(file.attributes) for file in files] == [
        f"levelist={level},number={number},product=p,step={step}"
        for step in (0, 6)
        for level in (850, 500)
        for number in (1, 2)
    ]
    assert files[0].inputs == tuple(Key(param=param, levelist=850, step=0, number=1) for param in "uv")
    assert [file.name() for file in files[:2]] == ["x_0_1_850", "x_0_2_850"]


@pytest.mark.parametrize(
    ("of", "form", "cause"),
    [
        ("[instant, sum]", "zarr", 'do.statistics.of: in zarr "instant" and "sum" would be one variable'),
        ("[accumulation, instant]", "netcdf", 'in netcdf "instant" and "accumulation" would be one variable'),
        ("[accumulation, instant]", "csv", ""),
        ("[mean, max, min, instant]", "netcdf", ""),
        ("[mean, max, min, accumulation]", "netcdf", ""),
    ],
)
def test_statistics_that_would_be_one_variable_are_refused(of: str, form: str, cause: str) -> None:
    refused = pytest.raises(junctura.InvalidArgument, match=cause) if cause else contextlib.nullcontext()
    with refused:
        asked(
            f"format: {form}, name: 'x{{step}}'", f"statistics: {{over: 6, of: {of}}}", "param: t, step: 0/to/12/by/6"
        )


def test_values_that_are_too_many_are_not_all_written_out() -> None:
    class Counted(list[Any]):
        read = 0

        def __iter__(self) -> Any:
            for item in super().__iter__():
                self.read += 1
                yield item

    given = Counted(f"{first}0000/to/{first}9999" for first in range(1, 99))
    with pytest.raises(Wrong, match="more than 10000 values"):
        values("step", given)
    assert given.read == 2
    assert len(values("step", Counted(["0/to/9999"]))) == 10_000


def test_an_ensemble_gathers_members() -> None:
    read = asked("format: grib2, name: 'x{step}.grib2'", "ensemble: [mean]")
    files = list(read.wanted())
    assert [file.attributes["step"] for file in files] == [0, 6, 12]
    assert "number" not in files[0].attributes
    assert [key["number"] for key in files[1].inputs] == [1, 2]


@pytest.mark.parametrize(
    ("grid", "name"), [("0.5", "0.5/0.5"), ("[0.5, 0.25]", "0.5/0.25"), ("[2, 3]", "2/3"), ("[1]", "1/1")]
)
def test_a_grid_may_be_given_by_its_degrees_as_in_mars(grid: str, name: str) -> None:
    """Columns first, then rows."""
    (made,), (named,) = (asked(do=f"regrid: {of}").operations for of in (grid, name))
    assert made.text == named.text


@pytest.mark.parametrize("grid", ["[0.5, 1, 2]", "[{latitude: 1, longitude: 2}, 0.5]"])
def test_a_list_of_degrees_has_two_numbers(grid: str) -> None:
    with pytest.raises(junctura.InvalidArgument, match=r"do.grid: expected places, or the degrees between columns"):
        asked(do=f"grid: {grid}")


def test_a_single_statistic_of_an_ensemble_needs_no_list() -> None:
    fields, to = "param: t, step: 0, number: 1/2", "format: csv, name: x"
    for one in ("mean", "{probability: {above: 1}}"):
        alone, listed = (asked(to, f"ensemble: {of}", fields) for of in (one, f"[{one}]"))
        assert [made.text for made in alone.operations] == [made.text for made in listed.operations]


@pytest.mark.parametrize(
    ("form", "remedy"),
    [("png", "write {number} in the name"), ("csv", "write {number} in the name, or gather: number")],
)
def test_two_files_of_one_name_are_told_apart_by_what_the_error_names(form: str, remedy: str) -> None:
    with pytest.raises(junctura.InvalidArgument, match=f'two files have the name "x": .*; {re.escape(remedy)}$'):
        asked(f"format: {form}, name: x", fields="param: t, step: 0, number: 1/2")


@pytest.mark.parametrize(
    ("param", "said"), [("t2m", "no parameter t2m; did you mean 2t?"), ("tq", "no parameter tq"), ("2t", ""), (167, "")]
)
def test_a_check_names_parameters_that_nobody_knows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], param: str | int, said: str
) -> None:
    (tmp_path / "a.yaml").write_text(f"{{product: a, from: {{param: {param}}}, to: {{format: csv, name: a}}}}")
    assert main([str(tmp_path / "a.yaml"), "--check"]) == 0
    out = capsys.readouterr().out
    assert said in out if said else "no parameter" not in out


def test_winds_are_asked_for_by_the_names_of_vorticity_and_divergence() -> None:
    with pytest.raises(junctura.InvalidArgument, match=r"do.wind: .* write vo and d"):
        asked(do="wind: {grid: 10/10}", fields="param: [138, 155], step: 0, number: 1, levelist: 850")


def test_files_come_in_the_order_in_which_they_can_be_complete() -> None:
    read = asked("format: csv, name: 'x{step}'", fields="param: t, step: 12/0/6-9/3-6")
    assert [file.attributes["step"] for file in read.wanted()] == [0, "3-6", "6-9", 12]


def test_steps_before_the_base_time_have_windows_and_names() -> None:
    read = asked(
        "format: grib2, name: 'x_{step:03}'", "statistics: {over: 3h, of: accumulation}", "param: t, step: -6/to/3/by/3"
    )
    files = list(read.wanted())
    assert [file.name() for file in files] == ["x_-06--03", "x_-03-000", "x_000-003"]
    assert [[key["step"] for key in file.inputs] for file in files] == [[-6, -3], [-3, 0], [3]]


def test_windows_gather_the_steps_behind_their_start() -> None:
    read = asked(
        "format: grib2, name: 'x_{step:02}'", "statistics: {over: 12h, of: mean}", "param: t, step: 0/to/24/by/6"
    )
    files = list(read.wanted())
    assert [file.attributes["step"] for file in files] == ["0-12", "12-24"]
    assert [[key["step"] for key in file.inputs] for file in files] == [[6, 12], [18, 24]]
    assert [file.name() for file in files] == ["x_00-12", "x_12-24"]
    assert read.sources() == ["step=6/12/18/24,param=t"]
    assert read.key({"param": "t", "step": "0"}) is None


def test_windows_may_be_of_minutes() -> None:
    to, fields = "format: grib2, name: 'x_{step:02}'", "param: t, step: 0/to/2h/by/15m"
    read = asked(to, "statistics: {over: 30m, of: [mean, accumulation]}", fields)
    files = list(read.wanted())
    assert [file.attributes["step"] for file in files] == ["0m-30m", "30m-60m", "60m-90m", "90m-120m"]
    assert [[key["step"] for key in file.inputs] for file in files] == [
        *(["15m", "30m"], ["30m", "45m", 1], [1, "75m", "90m"], ["90m", "105m", 2])
    ]
    assert [file.name() for file in files][:2] == ["x_00m-30m", "x_30m-60m"]
    assert (
        read.key({"param": "t", "step": "15m"})
        == read.key({"param": "t", "step": "900s"})
        == Key(param="t", step="15m")
    )
    with pytest.raises(junctura.InvalidArgument, match=r"the window 0m-75m lacks step 75m.*windows of 75m begin"):
        asked(to, "statistics: {over: 1h15m, of: mean}", "param: t, step: 0/to/2h/by/30m")
    assert asked(to, fields=fields).fingerprint != asked(to, fields="param: t, step: 0/to/2").fingerprint


def test_an_accumulation_needs_the_ends_of_its_window() -> None:
    read = asked(
        "format: grib2, name: 'x_{step}'", "statistics: {over: 12h, of: accumulation}", "param: tp, step: 0/to/36/by/6"
    )
    files = list(read.wanted())
    assert [[key["step"] for key in file.inputs] for file in files] == [[12], [12, 24], [24, 36]]
    assert [file.window.start for file in files if file.window] == [0, 12, 24]
    assert str(files[1].rest[0]).endswith("begin=12)")


def test_windows_begin_at_the_first_step() -> None:
    read = asked(
        "format: grib2, name: 'x_{step}'", "statistics: {over: 6, of: instant}", "param: t, step: 3/to/15/by/3"
    )
    assert [file.attributes["step"] for file in read.wanted()] == [9, 15]


def test_what_is_gathered_is_one_file() -> None:
    read = asked("format: netcdf, gather: [step, levelist], name: 'x_{number}.nc'")
    files = list(read.wanted())
    assert [str(file.attributes) for file in files] == [
        f"levelist=850,number={number},param=t,product=p" for number in (1, 2)
    ]
    assert [key["step"] for key in files[0].inputs] == [0, 6, 12]
    windows = asked(
        "format: netcdf, gather: step, name: x.nc",
        "statistics: {over: 6, of: accumulation}",
        "param: t, step: 0/to/12/by/6",
    )
    (file,) = windows.wanted()
    assert [key["step"] for key in file.inputs] == [6, 12]
    assert file.rest == windows.rest


def test_an_arriving_field_is_known_by_its_attributes() -> None:
    read = asked()
    said = {"param": "t", "levelist": "850", "step": "6", "number": 2.0, "class": "od", "date": "20261120"}
    key = read.key(said)
    assert key == Key(param="t", levelist=850, step=6, number=2)
    assert key in {key for file in read.wanted() for key in file.inputs}
    for word, value in (("step", "7"), ("step", "90m"), ("number", None), ("param", "u"), ("levelist", "850hPa")):
        assert read.key({**said, word: value}) is None
    assert read.key({word: value for word, value in said.items() if word != "number"}) is None


def test_selectors_find_the_inputs_and_no_others() -> None:
    read = asked(fields="param: t/2t, class: od, levelist: 850/0.5, step: 0/6/6-12, number: 1/2, date: 2026-11-20")
    assert read.sources() == ["class=od,date=20261120,levelist=850/0.5,step=0/6/6-12,number=1/2,param=t/2t"]
    selector = junctura.Selector(read.sources()[0], "mars")
    inputs = {key for file in read.wanted() for key in file.inputs}
    assert len(inputs) == 24
    for key in inputs:
        assert selector.matches({**REST, **key})


def test_fields_are_asked_for_by_every_keyword_that_tells_messages_apart() -> None:
    read = asked(
        "format: csv, name: x", fields="param: tp, step: 6, stattype: accum, probability: '1::0.0127', process: 2-96"
    )
    (selector,) = read.sources()
    said = {"param": "tp", "step": "6", "stattype": "accum", "probability": "1::0.0127", "process": "2-96"}
    assert junctura.Selector(selector, "mars").matches({**REST, **said})
    assert read.key(said) in {key for file in read.wanted() for key in file.inputs}
    assert read.key({**said, "stattype": "avg"}) is None


def test_a_question_that_is_too_long_becomes_several() -> None:
    words: dict[str, tuple[str | int | float, ...]] = {"param": ("t",), "levelist": tuple(range(100))}
    words["step"] = tuple(range(9950))
    found = [junctura.Selector(text, "mars") for text in selectors(words)]
    field = {**REST, "param": "t", "levelist": 7, "step": 9000}
    assert [selector.matches(field) for selector in found] == [False, True]
    assert len(selectors({"param": tuple(f"{index:0200}" for index in range(1000))})) == 4


def test_words_of_the_selector_are_quoted() -> None:
    read = asked("format: csv, name: '{param}'", fields='param: ["to"], domain: "a b\\"c"')
    (selector,) = read.sources()
    assert junctura.Selector(selector, "mars").matches({**REST, "param": "to", "domain": 'a b"c'})


def test_prefixes_are_what_products_share() -> None:
    first = "{wind: {grid: 1/1}}, {units: {u: kt}}, {crop: {north: 9, west: 0, south: 0, east: 9}}"
    behind = "{compute: {w: {formula: u+v, units: kt}}}, {units: {w: km/h}}"
    read = asked("format: csv, name: 'x{step}'", f"{first}, {behind}", "param: [vo, d, t], step: 0/6")
    prefix = {
        param: [operation.name for operation in read.prefix(Key(param=param, step=0))] for param in ("vo", "d", "t")
    }
    assert prefix == {"vo": ["wind", "units", "crop"], "d": ["wind", "units", "crop"], "t": ["crop"]}
    assert [operation.name for operation in read.rest] == ["compute", "units"]
    texts = [operation.text for operation in read.prefix({"param": "vo"})]
    assert texts == [
        '{"wind":{"grid":"1/1"}}',
        '{"units":{"to":[["u","kt"]]}}',
        '{"crop":{"east":9.0,"north":9.0,"south":0.0,"west":0.0}}',
    ]


def test_a_wind_goes_to_the_grid_behind_it() -> None:
    do = "{wind: {}}, {grid: {type: regular_gg, n: 48}}"
    read = asked("format: csv, name: 'x{step}'", do, "param: [vo, d], step: 0")
    assert read.operations[0].text == '{"wind":{"grid":"F48"}}'
    assert read.params == ("u", "v")


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("0.25/0.25", "0.25/0.25"),
        ("F48", "F48"),
        ("O96", "O96"),
        ("1/1@72/-25/34/45", "1/1@72/-25/34/45"),
        ("{name: O96, method: nearest}", "O96"),
        ("{type: regular_ll, resolution: 0.25}", "0.25/0.25"),
        ("{type: regular_ll, resolution: [1, 0.5]}", "1/0.5"),
        ("{type: regular_gg, n: 48, method: bilinear}", "F48"),
        ("{type: reduced_gg, n: 48}", "N48"),
        ("[{name: Bonn, latitude: 50.7, longitude: 7.1}]", "points@50.7/7.1"),
        ("{type: points, points: [{latitude: 50.7, longitude: 7.1}]}", "points@50.7/7.1"),
    ],
)
def test_grids_are_named_in_several_ways(said: str, name: str) -> None:
    (operation,) = asked("format: csv, name: '{step}_{number}'", f"{{grid: {said}}}").operations
    assert json.loads(operation.text)["grid"]["grid"] == name


PLACES = "[{name: Bonn, latitude: 50.7, longitude: 7.1}]"
AREA = "{north: 72, west: -25, south: 34, east: 45}"


@pytest.mark.parametrize(
    ("alias", "operation"),
    [
        ("{regrid: 0.25/0.25}", "{grid: 0.25/0.25}"),
        ("{interpolate: {name: O96, method: nearest}}", "{grid: {name: O96, method: nearest}}"),
        (f"{{stations: {PLACES}}}", f"{{grid: {PLACES}}}"),
        (
            f"{{points: {{points: {PLACES}, method: nearest}}}}",
            f"{{grid: {{type: points, points: {PLACES}, method: nearest}}}}",
        ),
        (f"{{grid: 1/1}}, {{area: {AREA}}}", f"{{grid: 1/1}}, {{crop: {AREA}}}"),
        (f"{{regrid: 1/1}}, {{subset: {AREA}}}", f"{{grid: 1/1}}, {{crop: {AREA}}}"),
        ("{grid: 1/1}, {area: 72/-25/34.0/45}", f"{{grid: 1/1}}, {{crop: {AREA}}}"),
        ("{grid: 1/1}, {crop: 72/-25/34/45}", f"{{grid: 1/1}}, {{crop: {AREA}}}"),
    ],
)
def test_an_alias_is_the_operation(alias: str, operation: str) -> None:
    to = "format: csv, name: '{step}_{number}'"
    written, meant = asked(to, alias), asked(to, operation)
    assert written == meant and written.fingerprint == meant.fingerprint
    assert [one.text for one in written.operations] == [one.text for one in meant.operations]
    assert recipe_schema.ALIASES.keys() == recipe_schema.OF_ALIASES.keys()
    VALIDATOR.validate(yaml.safe_load(f"{{product: p, from: {{param: t}}, do: [{alias}], to: {{{to}}}}}"))


def test_a_wind_goes_to_the_grid_behind_it_by_any_name() -> None:
    do = "{wind: {}}, {regrid: {type: regular_gg, n: 48}}"
    read = asked("format: csv, name: 'x{step}'", do, "param: [vo, d], step: 0")
    assert read.operations[0].text == '{"wind":{"grid":"F48"}}'


def test_the_fingerprint_is_of_the_meaning() -> None:
    first = asked(do="{grid: 0.25/0.25}, {units: m/s}").fingerprint
    written = """
to: {name: 'x_{step}_{number}_{levelist}', format: "grib2"}   # a remark
do:
- grid: {resolution: 0.250, type: regular_ll, method: linear}
- units: m s**-1
from: {number: [1, 2], step: 0/to/12/by/6, levelist: 850.0, param: [t]}
product: p
"""
    assert recipe(written).fingerprint == first
    assert len(first) == 64
    changes = [
        asked(do="{grid: 0.25/0.25}, {units: kt}"),
        asked(do="{units: m/s}, {grid: 0.25/0.25}"),
        asked(do="{grid: 0.25/0.25}, {units: m/s}", fields="param: t, levelist: 850, step: 0/6, number: 1/2"),
        asked("format: grib2, bits: 12, name: 'x_{step}_{number}'", "{grid: 0.25/0.25}, {units: m/s}"),
    ]
    assert len({first, *(change.fingerprint for change in changes)}) == 5


def test_recipes_and_what_is_wanted_go_to_other_processes() -> None:
    read = recipe(EVERYTHING)
    again = pickle.loads(pickle.dumps(read))
    assert again == read and again.fingerprint == read.fingerprint
    assert pickle.loads(pickle.dumps(list(read.wanted()))) == list(read.wanted())


def test_a_file_may_have_several_and_patterns_find_files(tmp_path: Path) -> None:
    for product in "ab":
        text = f"product: {product}{{}}\nfrom: {{param: t, step: 0}}\nto: {{format: csv, name: {product}{{}}.csv}}\n"
        text = "---\n".join(text.replace("{}", str(index)) for index in range(2))
        (tmp_path / f"{product}.yaml").write_text(text)
    assert [read.product for read in load_all([tmp_path / "a.yaml"])] == ["a0", "a1"]
    found = load_all([tmp_path / "*.yaml"])
    assert [read.product for read in found] == ["a0", "a1", "b0", "b1"]
    assert [read.where for read in found[:2]] == [f"{tmp_path}/a.yaml:1", f"{tmp_path}/a.yaml:5"]
    with pytest.raises(
        junctura.AlreadyExists, match=r'a\.yaml:1: product: "a0" is the name of a recipe in .*a\.yaml:1'
    ):
        load_all([tmp_path / "a.yaml", tmp_path / "a.yaml"])
    with pytest.raises(junctura.NotFound, match="no file is found"):
        load_all([tmp_path / "*.yml"])
    with pytest.raises(junctura.NotFound):
        load_all([tmp_path / "c.yaml"])


def test_files_of_two_products_have_two_names(tmp_path: Path) -> None:
    text = "product: {}\nfrom: {{param: t, step: 0/6}}\nto: {{format: csv, name: '{{step}}.csv'}}\n"
    (tmp_path / "a.yaml").write_text(text.format("one") + "---\n" + text.format("other"))
    with pytest.raises(
        junctura.AlreadyExists, match=r'a\.yaml:5: to.name: files of "other" and "one" are both named 0'
    ):
        load_all([tmp_path / "a.yaml"])


def test_an_empty_file_has_no_recipe(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("# nothing\n")
    with pytest.raises(junctura.InvalidArgument, match="there is no recipe in it"):
        load_all([tmp_path / "a.yaml"])


# Each with the text that it stands for in EVERYTHING, what stands there instead, the line, and what is said.
EDGES = "crop: {north: 72, west: -25, south: 34, east: 45}"
MISTAKES = [
    ("product: t850-europe", "produkt: t850", 1, '"produkt" is no key here; did you mean "product"?'),
    ("product: t850-europe\n", "", 1, '"product" is missing'),
    ("product: t850-europe", "product: a/b", 1, 'product: expected a name of letters, digits, . _ and -, not "a/b"'),
    ("product: t850-europe", "product: 7", 1, "not 7"),
    ("product: t850-europe", "product:", 1, "not nothing"),
    ("levelist: 850", "level: 850", 2, 'from.level: "level" is no key here; did you mean "levelist"?'),
    ("param: t,", "", 2, 'from: "param" is missing'),
    ("param: t,", "param: [],", 2, "from.param: a list of 0"),
    ("param: t,", "param: {t: 1},", 2, "from.param: expected"),
    ("param: t,", f"param: {'t' * 201},", 2, "is not a text of 1 to 200 characters"),
    ("levelist: 850", "levelist: high", 2, 'from.levelist: "high" is not a level'),
    ("levelist: 850", "levelist: 850/850", 2, "from.levelist: 850 stands there twice"),
    ("levelist: 850", "levelist: '*'", 2, "every value must be named"),
    ("0/to/48/by/6", "0/to/48/by/0", 2, 'from.step: "0" is no number above 0'),
    ("0/to/48/by/6", "0/to/48/6", 2, "a range is a/to/b or a/to/b/by/c"),
    ("0/to/48/by/6", "0/to/999999/by/1", 2, "at most 10000"),
    ("0/to/48/by/6", "90x", 2, 'from.step: "90x" is not a step'),
    ("0/to/48/by/6", "0-24/to/48", 2, "the ends of a range are single steps"),
    ("0/to/48/by/6", "12-6", 2, '"12-6" is not a step'),
    ("number: 1/to/6", "number: -1", 2, "from.number: -1 is not a member"),
    ("number: 1/to/6", "date: 20261399", 2, "from.date: 20261399 is not a day"),
    ("number: 1/to/6", "time: '25'", 2, 'from.time: "25" is not a time'),
    ("number: 1/to/6", "type: a/to/b", 2, "type has no ranges"),
    ("number: 1/to/6", "number: 1/to/9000, date: 20260101/to/20261231", 2, "fields, at most 1000000"),
    ("param: t, levelist: 850, step: 0/to/48/by/6, number: 1/to/6", "param: t, step: 0/6", 10, '"number" is missing'),
    ("  - crop:", "  - krop:", 5, 'do: "krop" is no operation; did you mean "crop"?'),
    ("crop: {north: 72", "area: {north: 30", 5, "do.area: area 30/-25/34/45: expected north/west/south/east"),
    (EDGES, "area: 72/-25/34", 5, "do.area: expected an area as north/west/south/east in degrees, not"),
    (EDGES, "area: N72/-25/34/45", 5, "do.area: expected an area as north/west/south/east in degrees, not"),
    (EDGES, "area: 72/-25/34/45/", 5, "do.area: expected an area as north/west/south/east in degrees, not"),
    (EDGES, "area: 92/-25/34/45", 5, "do.area.north: expected a number from -90 to 90, not 92"),
    (EDGES, "area: 34/-25/72/45", 5, "do.area: area 34/-25/72/45: expected north/west/south/east"),
    (EDGES, "area: 72/45/34/-25", 5, "do.area: area 72/45/34/-25: expected north/west/south/east"),
    (EDGES, "area: [72, -25, 34, 45]", 5, "do.area: expected a mapping or an area as north/west/south/east"),
    ("crop: {north: 72", "subset: {nort: 72", 5, 'do.subset.nort: "nort" is no key here; did you mean "north"?'),
    ("crop: {north: 72", "subste: {north: 72", 5, 'do: "subste" is no operation; did you mean "subset"?'),
    ("grid: {type: regular_ll", "regrd: {type: regular_ll", 4, 'do: "regrd" is no operation; did you mean "regrid"?'),
    ("grid: {type: regular_ll, resolution: 0.25}", "stations: O96", 4, "do.stations: expected a list or a mapping"),
    ("ensemble: [", "ensembel: [", 10, 'do: "ensembel" is no operation; did you mean "ensemble"?'),
    ("  - fill: 0", "  - fill", 8, 'do: expected a mapping with one key, not "fill"'),
    ("  - fill: 0", "  - {fill: 0, units: K}", 8, "not 2 (fill, units)"),
    ("  - fill: 0", "  - fill: zero", 8, 'do.fill: expected a number, not "zero"'),
    ("  - fill: 0", "  - fill: true", 8, "do.fill: expected a number, not true"),
    ("resolution: 0.25", "resolution: 0.7", 4, "do.grid: grid 0.7/0.7: 0.7 degrees do not divide 360"),
    ("resolution: 0.25", "resolution: 0", 4, "do.grid.resolution: expected a number from 0.001 to 360, not 0"),
    ("resolution: 0.25", "resolution: 0.25, metod: linear", 4, 'did you mean "method"?'),
    ("resolution: 0.25", "resolution: 0.25, method: cubic", 4, '"cubic" is no method; known are linear, bilinear'),
    ("type: regular_ll", "type: regular_l", 4, 'do.grid.type: "regular_l" is no type; did you mean "regular_ll"?'),
    ("type: regular_ll, ", "", 4, 'do.grid: "type" is missing'),
    (
        "{type: regular_ll, resolution: 0.25}",
        "N17",
        4,
        "do.grid: grid N17: of the classical reduced grids ecCodes knows",
    ),
    ("{type: regular_ll, resolution: 0.25}", "T63", 4, "do.grid: grid T63: fields are brought to grids"),
    ("{type: regular_ll, resolution: 0.25}", "nonsense", 4, "do.grid: grid nonsense: names of grids are like"),
    (
        "{type: regular_ll, resolution: 0.25}",
        "[{latitude: 91, longitude: 0}]",
        4,
        "do.grid.latitude: expected a number from -90 to 90, not 91",
    ),
    (
        "{type: regular_ll, resolution: 0.25}",
        "[{name: a, latitude: 1, longitude: 0}, {name: a, latitude: 2, longitude: 0}]",
        4,
        'do.grid: two places have the name "a"',
    ),
    (
        "{type: regular_ll, resolution: 0.25}",
        "O96",
        5,
        "do.crop: grid O96: it has no rows of equal length: bring it to a grid first",
    ),
    ("north: 72", "north: 30", 5, "do.crop: area 30/-25/34/45: expected north/west/south/east"),
    ("north: 72, ", "", 5, 'do.crop: "north" is missing'),
    ("{t: degC}", "{t: degX}", 6, "do.units: unit 'degX': \"degX\" is no unit; did you mean"),
    ("{t: degC}", "{u: degC}", 6, 'do.units: "u" is no field here; known are t'),
    ("{below: -100}", "{under: 0}", 7, 'do.mask: "under" is no condition'),
    ('"t < 0 and not t > 5"', '"t < 0 and not u > 5"', 9, 'do.mask: "u" is no field here'),
    ('"t < 0 and not t > 5"', '"t < "', 9, 'do.mask: "t < " is no formula'),
    ("spread", "sprad", 10, 'do.ensemble: "sprad" is no statistic; did you mean "spread"?'),
    ("{above: 273.15}", "{over: 273.15}", 10, 'do.ensemble.probability: "over" is no comparison'),
    ("[10, 50, 90]", "[10, 101]", 10, "do.ensemble.percentile: expected a whole number from 0 to 100, not 101"),
    ("over: 24h", "over: 24y", 11, 'do.statistics.over: expected a length as 24h or 30m, day or month, not "24y"'),
    ("over: 24h", "over: 20h", 11, "do.statistics: the window 0-20 lacks step 20"),
    ("over: 24h", "over: 36h", 11, "do.statistics: the window 36-72 lacks step 72"),
    ("[mean, max]", "[mean, median]", 11, 'do.statistics.of: "median" is no statistic'),
    ("[mean, max]", "[sum, mean, accumulation]", 11, 'do.statistics.of: in a file "sum" and "accumulation" are both'),
    ("0/to/48/by/6", "0-24/24-48", 11, "do.statistics: steps are ranges already"),
    ("0/to/48/by/6", "24", 11, "do.statistics: the steps fill no window of 24 hours"),
    ("t + 273.15", "temp + 1", 12, 'do.compute: "temp" is no field here'),
    ("t + 273.15", "sqr(t)", 12, 'do.compute: "sqr" is no function; did you mean "sqrt"?'),
    ("t + 273.15", "t.real", 12, 'do.compute: "t.real" has no meaning in a formula'),
    (", units: K}", "}", 12, 'do.compute.tk: "units" is missing'),
    ("tk: {", "t-k: {", 12, '"t-k" is not a name of letters, digits and _'),
    ("keep: [t, tk]", "keep: [t, ws]", 13, 'do.keep: "ws" is no field here'),
    ("format: grib2", "format: grib", 14, 'to.format: "grib" is no format; did you mean "grib2"?'),
    ("format: grib2, ", "", 14, 'to: "format" is missing'),
    ("bits: 16", "bits: 33", 14, "to.bits: expected a whole number from 1 to 32, not 33"),
    ("bits: 16", "bits: 1.5", 14, "to.bits: expected a whole number from 1 to 32, not 1.5"),
    ("bits: 16", "width: 16", 14, 'to.width: "width" is no key here'),
    ("bits: 16", "gather: [param]", 14, '"param" is no word of `from`'),
    ("bits: 16", "gather: [date]", 14, 'to.gather: "date" is not in from'),
    ("{step:03}", "", 14, 'two files have the name "t850_.grib2": that of step 0-24, and that of step 24-48'),
    ("{step:03}", "{stepp}", 14, 'to.name: "{stepp}" is no word of a file; did you mean "step"?'),
    ("{step:03}", "{step}{number}", 14, '"{number}" has no single value: a file has all of them'),
    ("{step:03}", "{step}{param}", 14, '"{param}" has no single value: a file has t and tk'),
    ("{step:03}", "{step.real}", 14, 'to.name: "{step.real}": in braces stands a word such as step'),
    ("{step:03}", "{step[0]}", 14, "in braces stands a word"),
    ("{step:03}", "{}", 14, "in braces stands a word"),
    ("{step:03}", "{step!r}", 14, "behind the colon stands a width"),
    ("{step:03}", "{step:{step}}", 14, "behind the colon stands a width"),
    ("{step:03}", "{step:9999999}", 14, "behind the colon stands a width"),
    ("{step:03}", "{step", 14, "to.name"),
    ("{step:03}", "{product:03}{step}", 14, '"{product:03}" is for whole numbers, and product is t850-europe'),
    ('"t850_{step:03}.grib2"', '"{step}.provenance.json"', 14, "would be the provenance of another file"),
    ('"t850_{step:03}.grib2"', '"../{step}"', 14, 'to.name: "../0-24" is no name below a folder'),
    ('"t850_{step:03}.grib2"', '"/tmp/{step}"', 14, "is no name below a folder"),
    ('"t850_{step:03}.grib2"', '"a/./{step}"', 14, "is no name below a folder"),
    ('"t850_{step:03}.grib2"', '"a//{step}"', 14, "is no name below a folder"),
    ('"t850_{step:03}.grib2"', '"a\\n{step}"', 14, "is no file's name"),
    ('"t850_{step:03}.grib2"', '"{step}' + "x" * 255 + '"', 14, "more than 220 bytes"),
]


@pytest.mark.parametrize(("there", "instead", "line", "says"), MISTAKES)
def test_a_mistake_names_file_line_and_word(there: str, instead: str, line: int, says: str) -> None:
    assert EVERYTHING.count(there) == 1
    with pytest.raises(junctura.InvalidArgument) as caught:
        recipe(EVERYTHING.replace(there, instead))
    assert caught.value.subject == f"dir/t.yaml:{line}"
    assert says in caught.value.cause


def test_a_name_may_have_what_only_fields_tell() -> None:
    (file,) = asked("format: csv, name: '{date}/{time}_{step:03}.csv'", fields="param: t, step: 6").wanted()
    assert file.name(date="20261120", time="0000") == "20261120/0000_006.csv"
    with pytest.raises(junctura.InvalidArgument, match="date"):
        file.name(time="0000")
    with pytest.raises(junctura.InvalidArgument, match="below a folder"):
        file.name(date="..", time="0000")


def test_a_title_is_filled_in() -> None:
    read = asked("format: png, name: x, width: 500, range: [1, 2], title: '{param} {date}'", fields="param: t, step: 6")
    (file,) = read.wanted()
    assert file.options(date="20261120") == {"width": 500, "range": (1, 2), "title": "t 20261120"}
    with pytest.raises(junctura.InvalidArgument, match=r'to.title: "{stepp}" is no word of a file'):
        asked("format: png, name: x, title: '{stepp}'", fields="param: t, step: 6")


def test_templates_know_their_words() -> None:
    assert Template("a{{b}}_{step:03}_{number}{step}").words == ("step", "number")
    assert file_name(Template("a{{b}}_{step:03}"), {"step": 6}) == "a{b}_006"


@pytest.mark.parametrize(
    ("word", "given", "found"),
    [
        ("step", "0/to/12/by/6", (0, 6, 12)),
        ("step", "12/to/0/by/6", (12, 6, 0)),
        ("step", "0/TO/12/BY/6h", (0, 6, 12)),
        ("step", "0/to/13/by/6", (0, 6, 12)),
        ("step", "6h", (6,)),
        ("step", [0, "6/12", "12-24"], (0, 6, 12, "12-24")),
        ("step", datetime.timedelta(hours=6), (6,)),
        ("step", datetime.timedelta(minutes=75), ("75m",)),
        ("step", "0/to/1h/by/20m", (0, "20m", "40m", 1)),
        ("step", "0/to/1/by/0.5", (0, "30m", 1)),
        ("step", "90m/to/30m/by/30m", ("90m", 1, "30m")),
        ("step", "60m/1h30m/1d/45s", (1, "90m", 24, "45s")),
        ("step", "0-90m/60m-90m", ("0m-90m", "60m-90m")),
        ("step", "1h-90m", ("60m-90m",)),
        # Before the base time.
        ("step", "-6/to/3/by/3", (-6, -3, 0, 3)),
        ("step", -1, (-1,)),
        ("step", ["-1h30m", "-6--3", "-3-0", "-90m-30m"], ("-90m", "-6--3", "-3-0", "-90m-30m")),
        ("step", "0-24h", ("0-24",)),
        ("time", "0/to/18/by/6", ("0000", "0600", "1200", "1800")),
        ("time", "0000/to/0200/by/30m", ("0000", "0030", "0100", "0130", "0200")),
        ("time", "2200/to/2300", ("2200", "2300")),
        ("levelist", "0/to/1/by/0.25", (0, 0.25, 0.5, 0.75, 1)),
        ("levelist", 850.0, (850,)),
        ("number", "1/to/3", (1, 2, 3)),
        ("date", "20261130/to/20261202", ("20261130", "20261201", "20261202")),
        ("date", datetime.date(2026, 11, 20), ("20261120",)),
        ("date", "2026-11-20", ("20261120",)),
        ("time", "0600", ("0600",)),
        ("hdate", "20030615/to/20030616", ("20030615", "20030616")),
        ("hdate", datetime.date(2003, 6, 15), ("20030615",)),
        ("direction", "1/to/3", (1, 2, 3)),
        ("bottomLevel", "0.07", (0.07,)),
        ("time", 6, ("0600",)),
        ("time", 0, ("0000",)),
        ("time", "6:30", ("0630",)),
        ("time", datetime.time(12, 30), ("1230",)),
        ("expver", "0001", ("0001",)),
        ("param", "t / 2t", ("t", "2t")),
        ("param", 130, ("130",)),
    ],
)
def test_values_are_written_out_in_one_form(word: str, given: Any, found: tuple[Any, ...]) -> None:
    assert values(word, given) == found
    assert all(canonical(word, value) == value for value in found)


@pytest.mark.parametrize(
    "given",
    [
        "",
        "1/",
        "/",
        "to",
        "to/1",
        "0/by/6",
        "0/to",
        "a/to/b",
        [["0"]],
        None,
        True,
        "--1",
        "1-",
        "-3--6",
        "-6/to/0/by/-3",
    ],
)
def test_what_is_no_value_is_refused(given: Any) -> None:
    with pytest.raises(Wrong):
        values("step", given)


def test_words_in_which_keys_differ_are_named() -> None:
    one = '{class=od,date=20261127}{levtype=pl}{levelist=500,param=t,text="a,b={c}\\""}'
    assert differing(one, one) == []
    assert differing(one, one.replace("500", "850")) == ["levelist"]
    assert differing(one, one.replace("levelist=500,", "")) == ["levelist"]
    assert differing(one, one.replace("a,b={c}", "a,b={d}").replace("od", "ea")) == ["class", "text"]


def test_keys_are_never_changed_and_compare_by_their_items() -> None:
    key = Key(step=6, param="t")
    assert key == Key({"param": "t"}, step=6) and hash(key) == hash(Key(param="t", step=6))
    assert key != Key(step=6) and key != {"step": 6, "param": "t"}
    assert dict(key) == {"param": "t", "step": 6} and len(key) == 2
    assert repr(key) == "Key(param=t,step=6)"
    assert copy.copy(key) == pickle.loads(pickle.dumps(key)) == key


def test_the_published_schema_is_valid_and_what_is_checked() -> None:
    assert PUBLISHED.read_text() == recipe_schema.text(), (
        "python -m junctura.products._recipe.recipe_schema > .../recipe.schema.json"
    )
    jsonschema.Draft202012Validator.check_schema(recipe_schema.schema())


VALIDATOR = jsonschema.Draft202012Validator(recipe_schema.schema())


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.stem)
def test_the_examples_are_read(path: Path) -> None:
    read = load_all([path])
    # A color bar is that of all maps.
    counts = {recipe.product: len(list(recipe.wanted())) for recipe in read}
    assert counts and counts.pop("vorticity-bar", 1) == 1 and min(counts.values()) >= 5
    for document in documents(path.read_bytes(), str(path)):
        VALIDATOR.validate(document.value)


def both_agree(value: Any) -> None:
    said = ""
    try:
        recipe_schema.RECIPE.check(value)
    except Wrong as wrong:
        said = str(wrong)
    assert VALIDATOR.is_valid(value) is not bool(said), said


@pytest.mark.parametrize(("there", "instead"), [mistake[:2] for mistake in MISTAKES])
def test_schema_and_check_agree_about_mistakes(there: str, instead: str) -> None:
    both_agree(documents(EVERYTHING.replace(there, instead).encode(), "f")[0].value)


def places(value: Any, place: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place, *(found for key, item in inner for found in places(item, (*place, key)))]


WHOLE = documents(EVERYTHING.encode(), "f")[0].value
ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-1000, 1000),
    st.sampled_from([0.5, -0.5, 1e9]),
    st.sampled_from(["", "t", "grid", "mean", "24h", "x\n", "grib2", "../x"]),
    st.lists(st.sampled_from([1, "t", {}]), max_size=3),
    st.dictionaries(st.sampled_from(["grid", "type", "name", "u", "x y"]), st.sampled_from([1, "t", []]), max_size=2),
)


@FIXED
@given(st.sampled_from(places(WHOLE)[1:]), ODD)
def test_schema_and_check_agree_about_anything(place: tuple[Any, ...], odd: Any) -> None:
    value = copy.deepcopy(WHOLE)
    inner = value
    for step in place[:-1]:
        inner = inner[step]
    inner[place[-1]] = odd
    both_agree(value)
    with contextlib.suppress(junctura.Error):
        recipe_of(Document(value, "f", {(): 1}))


@FIXED
@given(st.data())
def test_damaged_files_raise_nothing_but_what_is_said(data: st.DataObject) -> None:
    content = bytearray(EVERYTHING.encode())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content) - 1))
        content[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=2))
    with contextlib.suppress(junctura.Error):
        for document in documents(bytes(content), "f"):
            recipe_of(document)
