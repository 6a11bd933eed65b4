"""GRIB2 that ecCodes reads back as what it was."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import shutil
import subprocess
from fractions import Fraction
from pathlib import Path
from typing import Any

import eccodes
import numpy as np
import pytest
from outputs_fields import PLACES, field, surface, with_gap, written

import junctura
from junctura.products._input.decoded_field import Field
from junctura.products._input.decoding import decode
from junctura.products._operations import Ensemble
from junctura.products._outputs import Output, grib2
from junctura.products._regrid.grids import spectral
from junctura.products._workers.make_product import FieldTransforms

MARS = {"class": "od", "stream": "enfo", "expver": "0001", "type": "pf"}


class Read:
    """The keys and values of a message, by a reader that knows nothing of the writer."""

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            self.handle = eccodes.codes_grib_new_from_file(file)
        eccodes.codes_set(self.handle, "missingValue", -9e99)
        values = eccodes.codes_get_values(self.handle)
        self.values = np.where(values == -9e99, np.nan, values)

    def __getitem__(self, key: str) -> Any:
        return eccodes.codes_get(self.handle, key)

    def __del__(self) -> None:
        eccodes.codes_release(self.handle)

    def having(self, **keys: Any) -> dict[str, Any]:
        return {key: self[key.replace("__", ".")] for key in keys}


def read(path: Path, one: Field, **to: Any) -> Read:
    return Read(written(Output("grib2", **to), path / "p.grib2", one))


@pytest.mark.parametrize(
    ("about", "fails"),
    [
        # Older tables have them only.
        ({"param": "10fg6", "paramId": 123, "units": "m s**-1", "step": "0-6", "stepType": "max"}, False),
        ({"param": "mx2t6", "step": "0-6", "stepType": "max"}, False),
        ({"param": "nosuch"}, True),
        ({"param": "t", "type": "nosuch", "class": "nosuch", "stream": "nosuch"}, True),
        ({"param": "2t"}, False),
    ],
)
def test_eccodes_writes_nothing_to_standard_error(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], about: dict[str, Any], fails: bool
) -> None:
    one = field(**{"levtype": "sfc", "levelist": None, **about} if "levelist" not in about else about)
    with pytest.raises(junctura.InvalidArgument) if fails else contextlib.nullcontext():
        read(tmp_path, one)
    assert capfd.readouterr().err == ""
    handle = eccodes.codes_grib_new_from_samples("GRIB2")
    with pytest.raises(eccodes.CodesInternalError):
        eccodes.codes_set(handle, "shortName", "nosuch")
    eccodes.codes_release(handle)
    # What others ask of it is not silenced.
    assert "no match for shortName=nosuch" in capfd.readouterr().err


@pytest.mark.parametrize(
    "on",
    ["1/1", "1/1@72/-25/34/45", "1.5/1", "0.25/0.5@10/350/-10/370", "F24", "F24@72/-25/34/45", "N32", "O24",
     f"R8:{','.join(map(str, [12, 20] * 8))}"],
)  # fmt: skip
def test_grids_are_where_they_were(tmp_path: Path, on: str) -> None:
    one = field(on)
    back = read(tmp_path, one)
    latitudes, longitudes = one.grid.points()
    found = eccodes.codes_get_array(back.handle, "longitudes")
    np.testing.assert_allclose(eccodes.codes_get_array(back.handle, "latitudes"), latitudes, atol=2e-6)
    np.testing.assert_allclose(np.mod(found - longitudes + 180, 360), 180, atol=2e-6)
    assert back["gridType"] == one.grid.kind


@pytest.mark.parametrize("packing", ["simple", "ccsds"])
@pytest.mark.parametrize("bits", [1, 8, 12, 16, 24])
def test_values_are_as_near_as_the_bits_say(tmp_path: Path, packing: str, bits: int) -> None:
    for one in (field(), with_gap(field()), field("N32"), field().having(field().values * 1e-6)):
        values = one.values.ravel()
        back = read(tmp_path, one, packing=packing, bits=bits)
        np.testing.assert_array_equal(np.isnan(back.values), np.isnan(values))
        reach = np.nanmax(values) - np.nanmin(values)
        # Half a step, which ecCodes makes a power of two, and what the single precision of the least value costs.
        assert np.nanmax(np.abs(back.values - values)) <= reach / (2**bits - 1) + np.nanmax(np.abs(values)) * 2.0**-23
        assert (back["packingType"], back["bitsPerValue"]) == (f"grid_{packing}", bits)


@pytest.mark.parametrize("packing", ["simple", "ccsds"])
def test_constant_and_missing_fields_stay_so(tmp_path: Path, packing: str) -> None:
    one = field()
    sevens, zeros, nothing = (one.having(np.full(one.grid.shape, value)) for value in (7.25, 0.0, np.nan))
    for same in (sevens, zeros, nothing, with_gap(sevens)):
        np.testing.assert_array_equal(read(tmp_path, same, packing=packing).values, same.values.ravel())


def test_an_infinite_value_is_refused(tmp_path: Path) -> None:
    one = field()
    with pytest.raises(junctura.errors.InvalidArgument, match="field t: a value is infinite"):
        read(tmp_path, one.having(np.full(one.grid.shape, np.inf)))


def tool(name: str, *arguments: str | Path) -> str:
    """What a program of ecCodes says: that of the wheel, or the machine's."""
    wheel = importlib.util.find_spec("eccodeslib")
    places = [str(Path(place) / "bin") for place in (wheel.submodule_search_locations if wheel else None) or []]
    program = shutil.which(name, path=":".join(places)) or shutil.which(name)
    if program is None:
        pytest.skip(f"no {name} here: neither in the wheel eccodeslib nor on the PATH")
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=True).stdout


def test_the_tools_of_eccodes_read_what_is_written(tmp_path: Path) -> None:
    fields = [
        field("1/1@72/-25/34/45", number=3, **MARS),
        field("N32", units="degC", step=12),
        surface("tp", "m", "F24", step="0-6", stepType="accum"),
        with_gap(field(statistic="percentile", percentile=10)),
    ]
    path = written(Output("grib2", bits=20), tmp_path / "p.grib2", *fields)
    keys = "shortName,typeOfLevel,level,stepRange,gridType,units,bitsPerValue,numberOfMissing"
    assert [line.split() for line in tool("grib_get", "-p", keys, path).splitlines()] == [
        ["t", "isobaricInhPa", "850", "6", "regular_ll", "K", "20", "0"],
        ["t", "isobaricInhPa", "850", "12", "reduced_gg", "K", "20", "0"],
        ["tp", "surface", "0", "0-6", "regular_gg", "m", "20", "0"],
        ["t", "isobaricInhPa", "850", "6", "regular_ll", "K", "20", str(np.isnan(fields[3].values).sum())],
    ]
    (listed,) = json.loads(tool("grib_ls", "-j", "-w", "number=3", "-p", "max,min,average,number", path))["messages"]
    values = fields[0].values
    assert listed["number"] == 3
    expected = [values.max(), values.min(), values.mean()]
    np.testing.assert_allclose([listed[key] for key in ("max", "min", "average")], expected, rtol=0, atol=1e-3)
    # The point of a row and a column, by its place.
    path = written(Output("grib2", bits=20), tmp_path / "one.grib2", fields[0])
    near = tool("grib_get", "-l", "50,8,1", path).split()
    at = np.flatnonzero(fields[0].grid.latitudes == 50)[0], np.flatnonzero(fields[0].grid.longitudes == 8)[0]
    assert float(near[0]) == pytest.approx(values[at], abs=1e-3)


INTERVAL = {"step": "0-6", "stepType": "max"}


@pytest.mark.parametrize("over", [{}, INTERVAL], ids=["at a time", "over steps"])
@pytest.mark.parametrize(
    ("statistic", "words"),
    [
        ("mean", ["em"]),
        ("spread", ["es"]),
        ("min", ["pb", "0:100"]),
        ("max", ["pb", "100:100"]),
        ({"percentile": 10}, ["pb", "10:100"]),
        ({"probability": {"above": 280}}, ["ep"]),
    ],
    ids=str,
)
def test_the_tools_of_eccodes_have_the_words_of_mars_for_each_statistic(
    tmp_path: Path, statistic: Any, words: list[str], over: dict[str, Any]
) -> None:
    members = [field(number=number, **{**MARS, **over}) for number in (1, 2)]
    path = written(Output("grib2"), tmp_path / "p.grib2", *Ensemble.read([statistic])(members, FieldTransforms()))
    said = tool("grib_get", "-m", path).split()
    assert {"od", "enfo", "0001", "20260801", "1200", "850", *words} <= set(said)
    names, values = tool("grib_ls", "-m", path).splitlines()[1:3]
    listed = dict(zip(names.split(), values.split(), strict=True))
    assert [listed["type"], *([listed["quantile"]] if "quantile" in listed else [])] == words


def test_the_tools_of_eccodes_have_the_words_of_mars_for_all_statistics_of_a_file(tmp_path: Path) -> None:
    statistics: list[Any] = ["mean", "spread", {"probability": {"above": 280}}, "min", {"percentile": [10, 90]}, "max"]
    made = Ensemble.read(statistics)([field(number=number, **MARS) for number in (1, 2)], FieldTransforms())
    path = written(Output("grib2"), tmp_path / "p.grib2", *made)
    assert [set(line.split()) & {"em", "es", "ep", "pb"} for line in tool("grib_get", "-m", path).splitlines()] == [
        {"em"}, {"es"}, {"ep"}, {"pb"}, {"pb"}, {"pb"}, {"pb"}
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("attributes", "keys"),
    [
        ({}, {"productDefinitionTemplateNumber": 0, "shortName": "t", "level": 850, "stepRange": "6"}),
        ({"step": "90m"}, {"stepRange": "90m", "validityTime": 1330}),
        ({"step": "60m-90m", "stepType": "avg"}, {"stepRange": "60m-90m", "validityTime": 1330}),
        ({"step": 3, "stepStart": "90m", "stepType": "max"}, {"stepRange": "90m-180m", "validityTime": 1500}),
        ({"time": 0, "date": 20260102}, {"dataDate": 20260102, "dataTime": 0}),
        ({"number": 3, "members": 6}, {"productDefinitionTemplateNumber": 1, "number": 3}),
        ({"number": 3, "members": 6}, {"numberOfForecastsInEnsemble": 6}),
        ({"number": 3, **INTERVAL}, {"productDefinitionTemplateNumber": 11, "perturbationNumber": 3}),
        ({**INTERVAL}, {"productDefinitionTemplateNumber": 8, "shortName": "max_t", "stepRange": "0-6"}),
        ({"step": "0-6", "stepType": "avg"}, {"stepType": "avg", "typeOfStatisticalProcessing": 0}),
        ({"step": "0-6", "stepType": "min"}, {"stepType": "min", "typeOfStatisticalProcessing": 3}),
        ({"step": "0-6", "stepType": "accum"}, {"stepType": "accum", "typeOfStatisticalProcessing": 1}),
        ({"statistic": "mean", "number": 1}, {"productDefinitionTemplateNumber": 2, "derivedForecast": 0}),
        ({"statistic": "spread"}, {"productDefinitionTemplateNumber": 2, "derivedForecast": 4}),
        ({"statistic": "min"}, {"productDefinitionTemplateNumber": 2, "derivedForecast": 8}),
        ({"statistic": "max", **INTERVAL}, {"productDefinitionTemplateNumber": 12, "derivedForecast": 9}),
        ({"statistic": "percentile", "percentile": 10}, {"productDefinitionTemplateNumber": 6, "percentileValue": 10}),
        ({"statistic": "percentile", "percentile": 0, **INTERVAL}, {"productDefinitionTemplateNumber": 10}),
        (
            {"statistic": "probability", "threshold": 273.15},
            {"productDefinitionTemplateNumber": 5, "probabilityType": 3, "lowerLimit": 273.15},
        ),
        (
            {"statistic": "probability", "threshold": -1.25e-5, "condition": "below", **INTERVAL},
            {"productDefinitionTemplateNumber": 9, "probabilityType": 4, "upperLimit": -1.25e-5},
        ),
        ({**MARS, "number": 3}, {"mars.class": "od", "mars.stream": "enfo", "mars.type": "pf", "mars.expver": "0001"}),
        ({**MARS, "statistic": "mean"}, {"mars.type": "em", "productDefinitionTemplateNumber": 2}),
        ({**MARS, "statistic": "spread"}, {"mars.type": "es"}),
        ({**MARS, "statistic": "max"}, {"productDefinitionTemplateNumber": 86, "mars.quantile": "100:100"}),
        ({**MARS, "statistic": "min", **INTERVAL}, {"productDefinitionTemplateNumber": 87, "mars.quantile": "0:100"}),
        (
            {**MARS, "statistic": "percentile", "percentile": 10},
            {"mars.type": "pb", "productDefinitionTemplateNumber": 86, "mars.quantile": "10:100"},
        ),
        (
            {**MARS, "statistic": "percentile", "percentile": 10, "centre": "edzw"},
            {"productDefinitionTemplateNumber": 6, "percentileValue": 10, "localUsePresent": 0},
        ),
        ({**MARS, "centre": "edzw"}, {"centre": "edzw", "localUsePresent": 0}),
        ({"levtype": "ml", "levelist": 137}, {"typeOfLevel": "hybrid", "level": 137}),
        ({"levtype": "pt", "levelist": 315, "param": "vo"}, {"typeOfLevel": "theta", "level": 315}),
        ({"levtype": "pv", "levelist": 2000, "param": "pt"}, {"typeOfLevel": "potentialVorticity", "level": 2000}),
        ({"levelist": 0.5}, {"typeOfLevel": "isobaricInPa", "level": 50}),
        ({"param": "130.128"}, {"shortName": "t"}),
        ({"param": "138"}, {"shortName": "vo"}),
        ({"param": "mine", "paramId": 131}, {"shortName": "u"}),
    ],
    ids=str,
)  # fmt: skip
def test_attributes_become_keys(tmp_path: Path, attributes: dict[str, Any], keys: dict[str, Any]) -> None:
    back = read(tmp_path, field(units="", **attributes))
    assert {key: back[key] for key in keys} == keys


@pytest.mark.parametrize("level", [0.001, 0.005, 0.0001, 0.01, 0.3, 0.7, 2.5, 12.345, 850.5, 1013.25])
def test_a_level_of_thin_air_is_exact(tmp_path: Path, level: float) -> None:
    back = read(tmp_path, field(levelist=level))
    surface_keys = [back[f"{key}OfFirstFixedSurface"] for key in ("scaledValue", "scaleFactor")]
    # Code table 4.5: type 100 is in Pa; the value is scaled by a power of ten.
    assert back["typeOfFirstFixedSurface"] in (100, "pl")
    assert Fraction(surface_keys[0], 10 ** surface_keys[1]) == Fraction(str(level)) * 100


@pytest.mark.parametrize(
    ("param", "step", "keys"),
    [
        ("2t", 6, {"typeOfLevel": "heightAboveGround", "level": 2}),
        ("10u", 6, {"typeOfLevel": "heightAboveGround", "level": 10}),
        ("sp", 6, {"typeOfLevel": "surface"}),
        ("msl", 6, {"typeOfLevel": "meanSea"}),
        ("tp", "0-6", {"stepType": "accum", "stepRange": "0-6"}),
        ("sst", 6, {"paramId": 34, "units": "K", "discipline": 10}),
        ("ssr", "0-6", {"paramId": 176, "stepType": "accum", "discipline": 0}),
    ],
)
def test_surface_fields_have_the_level_of_their_parameter(
    tmp_path: Path, param: str, step: Any, keys: dict[str, Any]
) -> None:
    back = read(tmp_path, surface(param, "", step=step))
    assert {key: back[key] for key in keys} == keys and back["shortName"] == param


@pytest.mark.parametrize(("param", "kind", "start"), [("mx2t6", "max", 6), ("mn2t6", "min", 6), ("tp", "accum", 0)])
def test_ranges_that_fields_came_with_come_back(tmp_path: Path, param: str, kind: str, start: int) -> None:
    one = surface(param, "", step=12, stepType=kind, stepStart=start)
    path = written(Output("grib2"), tmp_path / "p", one)
    back = decode(path.read_bytes()).attributes
    assert (back["param"], back["step"], back["stepType"], back["stepStart"]) == (param, 12, kind, str(start))


@pytest.mark.parametrize(
    ("units", "attributes", "factor", "shift"),
    [
        ("degC", {}, 1, 273.15),
        ("degC", {"statistic": "mean"}, 1, 273.15),
        ("degC", {"statistic": "spread"}, 1, 0),
        ("gpdm", {"param": "gh"}, 10, 0),
        ("gpm", {"param": "z"}, 9.80665, 0),
        ("km/h", {"param": "u"}, 1 / 3.6, 0),
        ("%", {"param": "tcc", "levtype": "sfc", "levelist": None}, 0.01, 0),
    ],
)
def test_values_are_in_the_unit_that_grib_has_for_them(
    tmp_path: Path, units: str, attributes: dict[str, Any], factor: float, shift: float
) -> None:
    one = field(units=units, **attributes)
    expected = one.values.ravel() * factor + shift
    np.testing.assert_allclose(read(tmp_path, one, bits=24).values, expected, rtol=1e-5)


def test_thresholds_are_in_the_unit_that_grib_has_for_them(tmp_path: Path) -> None:
    members = [field(units="degC", number=number) for number in (1, 2)]
    (one,) = Ensemble.read([{"probability": {"above": 0.5}}])(members, FieldTransforms())
    assert read(tmp_path, one)["lowerLimit"] == pytest.approx(273.65)


def test_probabilities_are_in_percent(tmp_path: Path) -> None:
    one = field(statistic="probability", threshold=273.15)
    half = one.having(np.linspace(0, 1, one.grid.size).reshape(one.grid.shape), None, "1")
    np.testing.assert_allclose(read(tmp_path, half).values, half.values.ravel() * 100, atol=1e-3)
    percents = half.having(half.values, None, "%")
    np.testing.assert_allclose(read(tmp_path, percents).values, half.values.ravel(), atol=1e-4)


def test_messages_stand_one_behind_another(tmp_path: Path) -> None:
    path = written(Output("grib2"), tmp_path / "p", *(field(step=step) for step in (0, 6, 12)))
    steps = []
    with path.open("rb") as file:
        while (message := eccodes.codes_grib_new_from_file(file)) is not None:
            steps.append(eccodes.codes_get(message, "step"))
            eccodes.codes_release(message)
    assert steps == [0, 6, 12]


@pytest.mark.parametrize(
    ("one", "named"),
    [
        (field(PLACES), "field t: GRIB2 has no grid of places"),
        (Field(np.zeros(spectral(3).size), spectral(3), {"param": "t"}), "field t: it is spectral"),
        (field(param="bogus"), "field bogus: ecCodes has no parameter of this shortName in GRIB2: state its number"),
        (field(paramId=999999), "field 999999: ecCodes has no parameter of this paramId in GRIB2: write netcdf"),
        (field(levtype="xx"), "field t: levtype 'xx' is not one of sfc, pl, ml, pt, pv"),
        (field(levtype="ml", levelist=1.5), "field t: levelist is 1.5"),
        (field(levelist=0.1 + 0.2), "field t: GRIB2 cannot say levelist = 0.30000000000000004 hPa exactly"),
        (field(units="m s**-1"), "field t: it is in 'm s\\*\\*-1', and in GRIB2 in 'K' .*of another quantity"),
        (field(units="furlong"), "field t: it is in 'furlong', and in GRIB2 in 'K' .*no unit"),
        (field(step="0-6"), "field t: step 0-6: say what happens over it by stepType"),
        (field(**{**MARS, "class": "zz"}), "field t: GRIB2 cannot say marsClass = 'zz'"),
    ],
)
def test_what_cannot_be_said_is_refused_by_name(tmp_path: Path, one: Field, named: str) -> None:
    with pytest.raises(junctura.errors.InvalidArgument, match=named):
        written(Output("grib2"), tmp_path / "p", one)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kept", [{}, {"stepType": "avg"}])
def test_a_step_is_the_same_after_any_other(kept: dict[str, Any]) -> None:
    range_of = (lambda step: f"0-{step}") if kept else str
    fields = [field(step=range_of(step), **kept) for step in ("6", "7", "30m", "0", "240", "90m", "70000", "12")]
    one_after_the_other = [grib2.made([one], Output("grib2")) for one in [*fields, *reversed(fields)]]
    alone = []
    for one in fields:
        grib2._template.cache_clear()
        alone.append(grib2.made([one], Output("grib2")))
    assert one_after_the_other == [*alone, *reversed(alone)]


def test_the_end_of_a_range_is_that_of_its_own_base_time() -> None:
    """ecCodes has this parameter over a range of steps only."""
    for day in ("2005-01-01", "2005-02-01", "2005-01-01"):
        one = surface("aco2rec", "kg m**-2", paramId=228082, date=day, step=0)
        message = eccodes.codes_new_from_message(grib2.made([one], Output("grib2")))
        said = [eccodes.codes_get_long(message, key) for key in ("productDefinitionTemplateNumber", "validityDate")]
        eccodes.codes_release(message)
        assert said == [42, int(day.replace("-", ""))]
