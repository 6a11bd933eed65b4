"""Recipes that are refused as a whole: operations, formats and gathered fields that do not go together."""

from __future__ import annotations

from pathlib import Path

import pytest
from recipe_texts import asked

import junctura
from junctura.products import load_all
from junctura.products.__main__ import main


@pytest.mark.parametrize(
    ("do", "fields", "says"),
    [
        ("{wind: {}}", "param: [vo, d], step: 0", "do.wind: on which grid?"),
        ("{wind: {grid: 1/1}}", "param: [vo], step: 0", 'do.wind: "d" is no field here'),
        ("{wind: {grid: 1/1}}", "param: [vo, d, u], step: 0", 'do.wind: "u" and "v" are there already'),
        ("{grid: 1/1}, {wind: {grid: 1/1}}", "param: [vo, d], step: 0", "do.wind: vorticity and divergence must be"),
        (
            "{ensemble: [mean]}, {ensemble: [mean]}",
            "param: t, step: 0, number: 1",
            "do.ensemble: it stands there twice",
        ),
        ("{statistics: {over: 6, of: mean}}", "param: t", 'do.statistics: "step" is missing in from'),
        ("{keep: [t, t]}", "param: t, step: 0", "do.keep: a parameter stands there twice"),
    ],
)
def test_operations_that_do_not_go_together_are_refused(do: str, fields: str, says: str) -> None:
    with pytest.raises(junctura.InvalidArgument, match=r"dir/t\.yaml:3") as caught:
        asked("format: csv, name: x", do, fields)
    assert says in caught.value.cause


@pytest.mark.parametrize(
    ("to", "says"),
    [
        ("format: png, name: x, projection: robinsn", 'did you mean "robinson"?'),
        ("format: png, name: x, colours: deepth", 'to.colours: "deepth" is no table of colours; did you mean "depth"?'),
        ("format: png, name: x, range: [1]", "to.range: a list of 1, expected 2 to 2"),
        ("format: png, name: x, range: [2, 1]", "to.range: each number must be greater"),
        ("format: png, name: x, coast: no", 'to.coast: expected true or false, not "no"'),
        ("format: png, name: x, width: 9000", "to.width: expected a whole number from 160 to 8000"),
        ("format: csv, name: x, bits: 16", 'to.bits: "bits" is no key here'),
        ("format: zarr, name: x, compression: lz4", 'to.compression: "lz4" is no word'),
    ],
)
def test_options_of_another_format_are_refused(to: str, says: str) -> None:
    with pytest.raises(junctura.InvalidArgument, match=r"dir/t\.yaml:4") as caught:
        asked(to, fields="param: t, step: 0")
    assert says in caught.value.cause


@pytest.mark.parametrize(
    ("to", "do", "says"),
    [
        ("format: grib2, name: x", "{grid: points@50/8}", "to.format: GRIB has no grid of places"),
        ("format: grib2, name: x", "{wind: {grid: points@50/8}}", "to.format: GRIB has no grid of places"),
        ("format: png, name: x, width: 8000", "{wind: {grid: 1/1}}", "to.width: map: 8000 x 4000 pixels, at most"),
        (
            "format: png, name: x",
            "{grid: 0.1/0.1}, {crop: {north: 80, west: 0, south: -80, east: 0.5}}",
            "to: map: 1000 x 320000 pixels, at most 16000000 in all are possible: ask for a smaller width",
        ),
    ],
)
def test_what_a_format_cannot_have_is_refused_as_soon_as_it_is_known(to: str, do: str, says: str) -> None:
    with pytest.raises(junctura.InvalidArgument, match=r"dir/t\.yaml:4") as caught:
        asked(
            to, f"{do}, {{keep: u}}" if "wind" in do else do, "param: [vo, d], step: 0" if "wind" in do else "param: t"
        )
    assert says in caught.value.cause
    asked(to.replace("grib2", "csv").replace("width", "range: [0, 1], width").replace("8000", "800"), "", "param: t")


DAYS = "date: 20190301/20190302, time: 0/12"


@pytest.mark.parametrize("form", ["netcdf", "zarr"])
@pytest.mark.parametrize(
    ("gather", "do", "fields", "says"),
    [
        ("type", "", "type: [an, fc]", 'has no axis for "type": leave it out, and put {type} into the name'),
        ("[step, expver]", "", "expver: ['0001', '0079'], step: 0/6", 'no axis for "expver"'),
        ("levtype", "", "levtype: [pl, ml], levelist: 1", 'no axis for "levtype"'),
        (
            "[date, time, step]", "", f"{DAYS}, step: 0/to/12/by/6",
            "date=20190301,time=0000,step=12 and date=20190301,time=1200,step=0 have one valid time",
        ),
        ("[date, step]", "", "date: 20190301/20190302, step: 0/24", "date=20190301,step=24 and date=20190302,step=0"),
        ("step", "", "step: [0-24, 12-24]", "step=0-24 and step=12-24 have one valid time"),
        (
            "[date, step]", "{statistics: {over: 24h, of: mean}}", "date: 20190301/20190302, step: 0/to/48/by/24",
            "date=20190301,step=24-48 and date=20190302,step=0-24",
        ),
    ],
)  # fmt: skip
def test_what_is_no_data_set_is_refused_before_anything_runs(
    form: str, gather: str, do: str, fields: str, says: str
) -> None:
    given = (do, f"param: t, {fields}")
    with pytest.raises(junctura.InvalidArgument, match=r"dir/t\.yaml:4: to\.gather") as caught:
        asked(f"format: {form}, gather: {gather}, name: x", *given)
    assert says in caught.value.cause and form in caught.value.cause
    asked(f"format: csv, gather: {gather}, name: x", *given)


@pytest.mark.parametrize(
    ("gather", "fields"),
    [
        ("[date, time]", f"{DAYS}, step: 6"),
        ("[date, time, step]", f"{DAYS}, step: 0/6"),
        ("time", DAYS),
        ("[levelist, number, step]", "levelist: 1/2, number: 0/1, step: 0/6"),
        ("[type, number]", "type: [cf, pf], number: 0/1"),
        ("step", "step: [0-12, 12-24]"),
        ("type", "type: fc"),
    ],
)
def test_what_is_one_data_set_is_not_refused(gather: str, fields: str) -> None:
    for form in ("netcdf", "zarr"):
        asked(f"format: {form}, gather: {gather}, name: 'x{'{date}' * (gather == 'time')}'", "", f"param: t, {fields}")


@pytest.mark.parametrize(
    ("to", "do", "fields", "count"),
    [
        ("", "", "param: [t, u], step: 0/6", 2),
        ("gather: step, ", "", "param: t, step: 0/6/12", 3),
        ("", "{ensemble: [mean, {percentile: [1, 2]}]}", "param: t, step: 0, number: 1/2", 3),
        ("gather: step, ", "{statistics: {over: 6, of: [min, max]}}", "param: t, step: 0/6/12", 4),
    ],
)
def test_a_map_has_one_field(to: str, do: str, fields: str, count: int) -> None:
    with pytest.raises(junctura.InvalidArgument, match=f"to.format: a map has one field, .* would have {count}"):
        asked(f"format: png, {to}name: 'x{{step}}'", do, fields)
    one_field = asked("format: png, name: 'x{step}'", "{ensemble: [mean]}", "param: t, step: 0/6, number: 1/2")
    assert len(list(one_field.files())) == 2


def test_all_errors_are_reported_at_once(tmp_path: Path) -> None:
    """Those of form, and those of meaning in all parts that have the right form."""
    (tmp_path / "all.yaml").write_text(
        "product: p\n"
        "from:\n"
        "  param: t\n"
        "  step: 0/to/6/by/0\n"
        "  levelst: 850\n"
        "do:\n"
        "  - grid: 1/1/1\n"
        "  - crop: {north: 10, west: 0, south: 20, east: 5}\n"
        "  - unitss: K\n"
        "  - units: parsec\n"
        "to:\n"
        "  format: png\n"
        "  range: [2, 1]\n"
        "  styles: none.yaml\n"
        "  widht: 100\n"
    )
    told: list[junctura.errors.Error] = []
    assert load_all([tmp_path / "all.yaml"], told.append) == []
    found = [str(one).partition("all.yaml:")[2].split(": ")[:2] for one in told]
    assert found == [
        ["4", "from.step"],
        ["5", "from.levelst"],
        ["7", "do.grid"],
        ["8", "do.crop"],
        ["9", "do"],
        ["10", "do.units"],
        ["13", "to.range"],
        ["14", "to.styles"],
        ["15", "to.widht"],
    ]


def test_what_depends_on_a_wrong_part_is_not_reported(tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text(
        "product: p\nfrom: {param: t, step: 0/to/6, number: [1, x y]}\n"
        "do: [{grid: 1/1}, {ensemble: mean}]\nto: {format: png, name: '{step}'}\n"
    )
    told: list[junctura.errors.Error] = []
    load_all([tmp_path / "one.yaml"], told.append)
    assert [str(one).count("from.number") for one in told] == [1]


@pytest.mark.parametrize(
    ("param", "do", "to", "says"),
    [
        ("2t", "units: mm", "csv", "2t cannot be converted to mm: 'K' is of another quantity; possible are K, degC"),
        ("[2t, tp]", "units: {2t: degC, tp: degC}", "csv", "tp cannot be converted to degC: 'm' is of another"),
        ("2t", "grid: 10/10", "png, units: hPa", "2t cannot be converted to hPa"),
        ("2t", "compute: {x: {formula: '1', units: m}}; units: {x: Pa}", "csv", "x cannot be converted to Pa"),
        ("tp", "units: mm; compute: {x: {formula: tp, units: m}}; units: {x: cm, tp: m}", "csv", ""),
        ("[tcc, 10u, msl, z, sd, 2t]", "units: {tcc: '%', 10u: kt, msl: hPa, z: gpdm, sd: mm, 2t: degF}", "csv", ""),
        ("[tcc, 10u, msl, z, sd, 2t]", "units: {2t: K}", "csv", ""),
        ("2t", "ensemble: [{probability: {above: 280}}]; units: '1'", "csv", ""),
        ("tp", "compute: {2t: {formula: tp, units: m}}", "grib2", "2t cannot be converted to K: 'm' is of another"),
        ("2t", "units: degC; compute: {mx2t: {formula: 2t, units: degC}}", "grib2", ""),
    ],
)
def test_a_check_names_units_that_a_parameter_cannot_have(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], param: str, do: str, to: str, says: str
) -> None:
    steps = "".join(f"  - {one}\n" for one in do.split("; "))
    text = f"product: a\nfrom: {{param: {param}, number: 1/2}}\ndo:\n{steps}to: {{format: {to}, name: 'a{{number}}'}}\n"
    (tmp_path / "a.yaml").write_text(text.replace("a{number}", "a") if "ensemble" in do else text)
    assert main([str(tmp_path / "a.yaml"), "--check"]) == 0
    out = capsys.readouterr().out
    assert says in out if says else "converted" not in out


@pytest.mark.parametrize("format_", ["csv", "zarr"])
def test_a_file_of_one_product_is_no_folder_of_another(tmp_path: Path, format_: str) -> None:
    text = "product: {}\nfrom: {{param: t, step: 0/6}}\nto: {{format: {}, name: '{}'}}\n"
    one, other = text.format("one", format_, "a/{step}"), text.format("other", format_, "a/6/{step}")
    (tmp_path / "a.yaml").write_text(f"{one}---\n{other}")
    with pytest.raises(junctura.AlreadyExists, match=r'yaml:5: to.name: a/6 is no folder, but a file of "one"'):
        load_all([tmp_path / "a.yaml"])
    (tmp_path / "a.yaml").write_text(f"{other}---\n{one}")
    with pytest.raises(junctura.AlreadyExists, match=r'yaml:5: to.name: a/6 is a folder, of the files of "other"'):
        load_all([tmp_path / "a.yaml"])


def test_an_area_across_the_date_line_is_told(tmp_path: Path) -> None:
    text = "product: a\nfrom: {param: t, step: 0}\ndo: [crop: 10/175/-10/-170]\nto: {format: csv, name: a}\n"
    (tmp_path / "a.yaml").write_text(text)
    with pytest.raises(junctura.InvalidArgument, match=r"west \+ 360: across the date line east is 190$"):
        load_all([tmp_path / "a.yaml"])
    (tmp_path / "a.yaml").write_text(text.replace("-170", "190"))
    load_all([tmp_path / "a.yaml"])
