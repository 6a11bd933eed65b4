"""What a header says that MARS has no words for is in a product of GRIB as it was in the message."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import eccodes
import numpy as np
import pytest
import xarray
from broker_runs import broker
from grib_messages import latlon, messages

import junctura
from junctura.products._input.decoding import decode, field_of
from junctura.products._operations import Compute, Ensemble, Fill
from junctura.products._outputs import Output, write
from junctura.products._plan._item import Item
from junctura.products._plan._sinks import Offer

pytestmark = pytest.mark.timeout(180)
ENDS = (90.0, 0.0, -90.0, 330.0)
VALUES = 280 + np.random.default_rng(2).normal(size=(7, 12))
ISSUED = ("centre", "subCentre", "typeOfGeneratingProcess", "backgroundProcess", "generatingProcessIdentifier")
SURFACES = tuple(
    f"{what}Of{which}FixedSurface" for which in ("First", "Second") for what in ("type", "scaleFactor", "scaledValue")
)
MEMBER = ("typeOfEnsembleForecast", "numberOfForecastsInEnsemble", "perturbationNumber")
NCEP = {"centre": "kwbc", "subCentre": 2, "backgroundProcess": 7, "generatingProcessIdentifier": 96, "step": 6}
# A layer between two sigma levels, of which MARS has no word.
SIGMA = dict(zip(SURFACES, (104, 2, 44, 104, 2, 100), strict=True))


def message(**keys: Any) -> bytes:
    return latlon(7, 12, ENDS, VALUES, **keys)


def keys_of(content: bytes, *keys: str) -> dict[str, Any]:
    handle = eccodes.codes_new_from_message(content)
    found = {
        key: eccodes.codes_get_string(handle, key) if eccodes.codes_is_defined(handle, key) else "" for key in keys
    }
    eccodes.codes_release(handle)
    return found


def local(content: bytes) -> bytes:
    """The local section of a message; empty without one."""
    at = 16 + int.from_bytes(content[16:20], "big")
    return content[at : at + int.from_bytes(content[at : at + 4], "big")] if content[at + 4] == 2 else b""


def product(folder: Path, *fields: Any) -> list[bytes]:
    write(fields, Output("grib2", bits=24), folder / "p", {"fingerprint": "f"})
    return list(messages(folder / "p"))


SETS: dict[str, dict[str, Any]] = {
    "ncep": {**NCEP, "shortName": "t"},
    "ncep member": {
        **NCEP, "productDefinitionTemplateNumber": 1, "typeOfEnsembleForecast": 3, "perturbationNumber": 4,
        "numberOfForecastsInEnsemble": 30, "shortName": "t",
    },
    "layer of sigma": {**NCEP, "shortName": "r", **SIGMA},
    "layer of heights": {**NCEP, "shortName": "r", **dict(zip(SURFACES, (103, 0, 3000, 103, 0, 0), strict=True))},
    "tropopause": {**NCEP, "typeOfLevel": "tropopause", "shortName": "t"},
    "mean sea level": {**NCEP, "typeOfLevel": "meanSea", "shortName": "prmsl"},
    "height": {**NCEP, "typeOfLevel": "heightAboveGround", "level": 80, "shortName": "t"},
    "dwd": {"centre": "edzw", "generatingProcessIdentifier": 1, "setLocalDefinition": 1, "shortName": "t"},
    "edition 1": {"edition": 1, "centre": "kwbc", "subCentre": 2, "generatingProcessIdentifier": 96, "shortName": "t"},
}  # fmt: skip


@pytest.mark.parametrize("name", SETS)
def test_a_message_keeps_its_header(tmp_path: Path, name: str) -> None:
    source = message(**SETS[name])
    field = decode(source)
    if "member" in name:
        field = field.having(field.values, number=4)
    (made,) = product(tmp_path, *Fill(0.0)([field], None))  # type: ignore[arg-type]
    keys: tuple[str, ...] = ISSUED if "edition" not in SETS[name] else ("centre", "subCentre", ISSUED[-1])
    keys += SURFACES if name.startswith(("layer", "tropopause", "mean sea", "height")) else ()
    keys += MEMBER if "member" in name else ()
    assert keys_of(made, "shortName", *keys) == keys_of(source, "shortName", *keys)
    assert local(made) == local(source) if name == "dwd" else True
    np.testing.assert_allclose(decode(made).values, decode(source).values, atol=1e-5)


@pytest.mark.parametrize("number", [1, 15, 26])
def test_local_sections_of_ecmwf_are_kept_with_the_words_that_a_field_has_now(tmp_path: Path, number: int) -> None:
    about = {"setLocalDefinition": 1, "grib2LocalSectionNumber": number, "class": "od", "stream": "mmsf", "type": "fc"}
    about |= {"productDefinitionTemplateNumber": 1, "perturbationNumber": 3, "shortName": "t", "expver": "0007"}
    about |= {"systemNumber": 5, "methodNumber": 1} if number == 15 else {}
    source = message(**about)
    words = ("mars.class", "mars.stream", "mars.type", "mars.expver", "grib2LocalSectionNumber")
    (made,) = product(tmp_path, decode(source))
    assert local(made) == local(source)
    assert keys_of(made, *words, "mars.system", "mars.method") == keys_of(source, *words, "mars.system", "mars.method")
    field = decode(source)
    mean = Ensemble.read(["mean"])([field, field.having(field.values + 2, number=4)], None)  # type: ignore[arg-type]
    (made,) = product(tmp_path, *(one.having(one.values, expver="0008") for one in mean))
    said = keys_of(made, *words)
    assert (said["mars.type"], said["mars.expver"], said["mars.stream"]) == ("em", "0008", "mmsf")
    assert said["grib2LocalSectionNumber"] == str(number)


def test_a_field_of_ecmwf_without_a_local_section_is_written_without_one(tmp_path: Path) -> None:
    """Its class in a store is the name of the centre, which is no class of MARS."""
    source = message(shortName="t")
    (tmp_path / "source.grib").write_bytes(source)
    (found,) = junctura.Store.from_grib(tmp_path / "store", tmp_path / "source.grib").list()
    assert found.attributes["class"] == "ecmf"
    field = decode(source, found.attributes)
    mean = Ensemble.read(["mean", {"percentile": 10}])([field.having(field.values, number=1)], None)  # type: ignore[arg-type]
    for made in product(tmp_path, field, *mean):
        assert keys_of(made, "centre", "shortName", "localUsePresent") == {
            "centre": "ecmf",
            "shortName": "t",
            "localUsePresent": "0",
        }


@pytest.mark.parametrize("codes", [(0, 1, 250), (10, 0, 200), (0, 1, 192)])
def test_parameters_without_a_name_keep_their_codes(tmp_path: Path, codes: tuple[int, int, int]) -> None:
    names = ("discipline", "parameterCategory", "parameterNumber")
    source = message(**NCEP, **dict(zip(names, codes, strict=True)))
    (tmp_path / "source.grib").write_bytes(source)
    (found,) = junctura.Store.from_grib(tmp_path / "store", tmp_path / "source.grib").list()
    field = decode(source, found.attributes)
    (made,) = product(tmp_path, field)
    assert keys_of(made, *names) == keys_of(source, *names)
    write([field], Output("netcdf"), tmp_path / "p.nc", {"fingerprint": "f"})
    with xarray.open_dataset(tmp_path / "p.nc") as data:
        (variable,) = data.data_vars.values()
        assert variable.attrs["mars_param"] == field.param and variable.attrs["long_name"]


def test_what_is_computed_is_made_by_whoever_made_the_first_field(tmp_path: Path) -> None:
    fields = [decode(message(**NCEP, shortName=name)) for name in ("u", "v")]
    made = Compute.read({"ws": {"formula": "hypot(u, v)", "units": "m/s"}})(fields, None)  # type: ignore[arg-type]
    *_, wind = product(tmp_path, *made)
    assert keys_of(wind, *ISSUED) == keys_of(message(**NCEP, shortName="u"), *ISSUED)


def test_the_header_goes_through_all_of_a_run(tmp_path: Path) -> None:
    """Through workers, which hand fields over in memory."""
    text = """product: a
from: {param: t, step: 6}
do: [grid: 45/45, units: degC]
to: {format: grib2, bits: 24, name: a.grib2}
---
product: b
from: {param: t, step: 6}
do: [grid: 45/45, compute: {t: {formula: "t + 0", units: K}}]
to: {format: grib2, bits: 24, name: b.grib2}
"""
    source = message(**SETS["ncep"])
    (tmp_path / "source.grib").write_bytes(source)
    junctura.Store.from_grib(tmp_path / "store", tmp_path / "source.grib")
    with junctura.Pool(schema="mars") as pool:
        report = broker(tmp_path, pool, text, store=str(tmp_path / "store")).run()
    assert not report.failed, report.failed
    for name in ("a", "b"):
        (made,) = messages(tmp_path / f"out/{name}.grib2")
        assert keys_of(made, *ISSUED) == keys_of(source, *ISSUED)


@pytest.mark.parametrize("schemas", ["mars", ["mars", "free"], "free"])
def test_a_field_that_is_offered_as_an_array_keeps_what_only_decoding_tells(schemas: str | list[str]) -> None:
    """Where a range of steps begins, and that winds are along their grid, which the schema of MARS has no words for."""
    about = {"class": "od", "expver": "1", "stream": "oper", "date": "20260101", "time": "0000", "type": "fc"}
    about |= {"levtype": "sfc", "step": "12", "param": "mx2t6"}
    field = decode(message(shortName="mx2t6", stepRange="6-12"), about)
    tags = [] if schemas == "free" else ["mine"]
    field = field.having(field.values, uvRelativeToGrid=-1, tags=tags or None)
    with junctura.Pool(schema=schemas) as pool:
        Offer(pool, {"name": "x"} if schemas == "free" else {}).take(Item(field.attributes, field=field))
        found = pool.demand("param=mx2t6", timeout=10)
        again = field_of(found, found.attributes).attributes
        assert (again["stepStart"], again["stepType"], int(again["uvRelativeToGrid"])) == ("6", "max", -1)
        assert list(again.get("tags", ())) == tags
