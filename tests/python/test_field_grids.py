"""Fields of one name on different grids are refused; one grid that is written in two ways is one grid."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import junctura
from junctura import field
from junctura.dask import from_selector

eccodes = pytest.importorskip("eccodes")
xarray = pytest.importorskip("xarray")

from field_messages import grid_keys, message, scanned  # noqa: E402


def _grid(content: bytes) -> field.Grid:
    return field.decoded(content, field.grid_of)


def _at(kind: str = "regular_ll", mode: int = 0, level: int = 500, **more: Any) -> bytes:
    return scanned(kind, mode, typeOfFirstFixedSurface=100, level=level, **more)


_ELSEWHERE: dict[str, Any] = {"longitudeOfFirstGridPointInDegrees": 185, "longitudeOfLastGridPointInDegrees": 225}
_NORTH: dict[str, Any] = {"latitudeOfFirstGridPointInDegrees": 70, "latitudeOfLastGridPointInDegrees": 40}
# Grids of as many points as the first, which differ in one thing.
_OTHERS = {
    "rows from the south": lambda: _at(mode=0b0100, level=850),
    "rows from the east": lambda: _at(mode=0b1000, level=850),
    "another area": lambda: _at(level=850, **_ELSEWHERE),
    "other latitudes": lambda: _at(level=850, **_NORTH),
    "columns for rows": lambda: _at(level=850, Ni=4, Nj=5),
    "another kind": lambda: _at("rotated_ll", level=850),
    "a projection": lambda: _at("lambert", level=850),
    "a Gaussian grid": lambda: _at("regular_gg", level=850),
}


def _stored(path: Path, *messages: bytes) -> junctura.Store:
    file = path / "fields.grib"
    file.write_bytes(b"".join(messages))
    return junctura.Store.from_grib(path / "store", file)


@pytest.mark.parametrize("case", _OTHERS)
def test_fields_on_different_grids_are_refused(tmp_path: Path, case: str) -> None:
    store = _stored(tmp_path, _at(), _OTHERS[case]())
    for open_ in (
        lambda: xarray.open_dataset(store.path, engine="junctura"),
        lambda: from_selector(store=store, as_="xarray"),
        lambda: from_selector(store=store, as_="array"),
    ):
        with pytest.raises(junctura.InvalidArgument) as raised:
            open_()
        first, other = (str(_grid(content)) for content in (_at(), _OTHERS[case]()))
        assert first in raised.value.cause and other in raised.value.cause
        assert "levelist=500 or levelist=850" in raised.value.cause
    for level in (500, 850):
        assert xarray.open_dataset(store.path, engine="junctura", selector=f"levelist={level}").data_vars


# Which of three steps is on another grid, not at an end of their axis.
_MIDDLE = r"different grids, .* 5 and 45 and .* 185 and 225.*step=0 or step=6"


def _with_one_elsewhere(path: Path) -> junctura.Store:
    return _stored(path, *(_at(step=step, **(_ELSEWHERE if step == 6 else {})) for step in (0, 6, 12)))


def test_a_field_in_the_middle_of_an_axis_is_refused(tmp_path: Path) -> None:
    store = _with_one_elsewhere(tmp_path)
    with pytest.raises(junctura.InvalidArgument, match=_MIDDLE):
        xarray.open_dataset(store.path, engine="junctura")
    for as_ in ("xarray", "array"):
        with pytest.raises(junctura.InvalidArgument, match=_MIDDLE):
            from_selector(store=store, as_=as_)
    with junctura.Pool(schema="mars") as pool:
        for obj in store.list():
            pool.offer(bytes(obj), obj.attributes)
        with pytest.raises(junctura.InvalidArgument, match=_MIDDLE):
            from_selector(pool=pool, as_="xarray")


def test_without_its_fingerprint_it_is_refused_when_it_is_read(tmp_path: Path) -> None:
    plain = junctura.Store.create(tmp_path / "plain", schema="mars")
    with plain:
        for obj in _with_one_elsewhere(tmp_path).list():
            about = {name: value for name, value in obj.attributes.items() if name != "md5GridSection"}
            plain.archive(bytes(obj), about)
    for data in (
        xarray.open_dataset(plain.path, engine="junctura"),
        from_selector(store=plain, as_="xarray"),
    ):
        array = data[next(iter(data.data_vars))]
        assert np.isfinite(array.isel(step=[0, 2]).values).all()
        with pytest.raises(junctura.InvalidArgument, match=_MIDDLE):
            array.isel(step=1).load()


@pytest.mark.parametrize("kind", ["regular_ll", "regular_gg", "lambert"])
@pytest.mark.parametrize("edition", [1, 2])
def test_the_fingerprint_of_an_archived_grid_is_that_of_eccodes(tmp_path: Path, kind: str, edition: int) -> None:
    content = scanned(kind, 0, edition)
    handle = eccodes.codes_new_from_message(content)
    assert _stored(tmp_path, content).list()[0]["md5GridSection"] == eccodes.codes_get(handle, "md5GridSection")
    eccodes.codes_release(handle)


def test_variables_that_share_a_dimension_are_on_one_grid(tmp_path: Path) -> None:
    store = _stored(tmp_path, _at(shortName="t"), _at(shortName="u", **_ELSEWHERE))
    with pytest.raises(junctura.InvalidArgument, match=r"t and u have different grids, .* 5 and 45 .* 185 and 225"):
        xarray.open_dataset(store.path, engine="junctura")


def test_unstructured_grids_differ_by_their_numbers(tmp_path: Path) -> None:
    kind: dict[str, Any] = {"gridType": "unstructured_grid", "numberOfDataPoints": 20}
    made = [
        message("GRIB2", np.arange(20.0), **kind, numberOfGridUsed=grid, typeOfFirstFixedSurface=100, level=level)
        for grid, level in ((26, 500), (27, 850))
    ]
    store = _stored(tmp_path, *made)
    with pytest.raises(junctura.InvalidArgument, match=r"numberOfGridUsed=26.*numberOfGridUsed=27"):
        xarray.open_dataset(store.path, engine="junctura")


@pytest.mark.parametrize("mode", [1, 2, 3])
def test_the_order_of_points_does_not_make_another_grid(tmp_path: Path, mode: int) -> None:
    plain, turned = _at(), _at(mode=mode, level=850)
    assert _grid(plain).is_same(_grid(turned)) and _grid(plain).fingerprint == _grid(turned).fingerprint
    store = _stored(tmp_path, plain, turned)
    data = xarray.open_dataset(store.path, engine="junctura")
    for level, content in ((500, plain), (850, turned)):
        array = data[next(iter(data.data_vars))].sel(level=level)
        np.testing.assert_array_equal(array.values, field.field_of(content).values)


@pytest.mark.parametrize(
    "kind", ["regular_ll", "regular_gg", "rotated_ll", "lambert", "polar_stereographic", "mercator"]
)
def test_both_editions_state_the_same_grid(kind: str) -> None:
    more: dict[str, Any] = {"LaDInDegrees": 60.0} if kind == "polar_stereographic" else {}
    one, two = _grid(scanned(kind, 4, 1)), _grid(scanned(kind, 4, 2, **more))
    assert one.is_same(two) and not one.differing(two)
    assert one.fingerprint == two.fingerprint
    reduced = [_grid(message(f"reduced_gg_pl_32_grib{edition}")) for edition in (1, 2)]
    assert reduced[0].is_same(reduced[1])


def test_flags_and_octets_that_do_not_place_points_make_no_other_grid() -> None:
    plain, wind = scanned("regular_ll", 0), scanned("regular_ll", 0, uvRelativeToGrid=1)
    assert field.octets_of(plain) != field.octets_of(wind)
    assert _grid(plain).is_same(_grid(wind))


def test_the_parts_of_a_pool_are_compared_too() -> None:
    about = {"class": "od", "expver": "0001", "stream": "oper", "date": "20260101", "time": "0000", "type": "fc"}
    with junctura.Pool(schema="mars") as mars:
        for level, content in ((500, _at()), (850, _OTHERS["another area"]())):
            mars.offer(content, {**about, "levtype": "pl", "levelist": level, "step": 0, "param": "t"})
        with pytest.raises(junctura.InvalidArgument, match="levelist=500 or levelist=850"):
            from_selector("param=t", pool=mars, as_="xarray")


def test_fields_on_different_grids_differ_in_a_comparison(tmp_path: Path) -> None:
    stores = []
    for name, content in (
        ("one", scanned("regular_ll", 0)),
        ("elsewhere", scanned("regular_ll", 0, **_ELSEWHERE)),
        ("turned", scanned("regular_ll", 1)),
        ("by column", scanned("regular_ll", 2)),
        ("edition 1", scanned("regular_ll", 0, 1)),
    ):
        (tmp_path / name).mkdir()
        stores.append(_stored(tmp_path / name, content))
    one, elsewhere, turned, by_column, edition_1 = (store.list() for store in stores)
    how: dict[str, Any] = {"ignore": ["edition"], "atol": 1e-3}
    assert list((junctura.compare(one, elsewhere, **how).values or {}).values()) == [np.inf]
    # The same numbers, in another order: value 5 of the message is at the last point of the second row.
    assert list((junctura.compare(one, turned, **how).values or {}).values()) == [4.0]
    # The last row and the first column: 15 row by row, 3 column by column.
    assert list((junctura.compare(one, by_column, **how).values or {}).values()) == [12.0]
    values = junctura.compare(one, edition_1, ignore=["edition", "class", "expver", "stream", "type"], atol=1e-3).values
    assert values == {}


def test_a_grid_is_named_by_its_rows_and_ends() -> None:
    text = str(_grid(scanned("regular_ll", 0)))
    assert text == "regular_ll of 4 rows of 5 points between latitude 60 and 30 between longitude 5 and 45"
    assert str(_grid(message("reduced_gg_pl_32_grib2"))).startswith("reduced_gg of 6114 points")
    assert "Ni" in grid_keys("regular_ll", 2, False, False)
