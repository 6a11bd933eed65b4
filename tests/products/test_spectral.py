"""Sums of spherical harmonics against what they are on paper, against pyshtools and against MIR."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import grib_messages
import numpy as np
import pytest

from junctura.errors import InvalidArgument, Unsupported
from junctura.products._input.decoded_field import Field
from junctura.products._input.decoding import decode
from junctura.products._regrid import harmonics, legendre
from junctura.products._regrid.grids import Grid, Spectral, grid, spectral
from junctura.products._regrid.harmonics import EARTH_RADIUS_M, synthesis, warm, wind

_GRIDS = [
    "2/2",
    "2/2@72/-24/-34/44",
    "2/2@-20/100/-60/200",
    "2/2@90/-180/-90/178",
    "30/10",
    "90/90",
    "F32",
    "F32@72/-25/34/45",
    "N32",
    "O32",
    "R2:8,12,12,8",
    "points@50.1/8.7,-48.2/16.4,90/20,-90/-30,0/-360",
]


def _on(name: str) -> Grid:
    named = grid(name)
    assert isinstance(named, Grid)
    return named


def _field(coefficients: dict[tuple[int, int], complex], truncation: int = 21, **attributes: Any) -> Field:
    """By n and m."""
    values = np.zeros(spectral(truncation).size)
    for (n, m), coefficient in coefficients.items():
        at = m * (truncation + 1) - m * (m - 1) // 2 + n - m
        values[2 * at : 2 * at + 2] = complex(coefficient).real, complex(coefficient).imag
    return Field(values, spectral(truncation), {"param": "vo", "step": 6, **attributes}, "s**-1")


def _random(truncation: int, seed: int = 1) -> Field:
    rng = np.random.default_rng(seed)
    values = rng.normal(size=spectral(truncation).size)
    values[1 : 2 * truncation + 2 : 2] = 0
    values[0] = 0
    return Field(values, spectral(truncation), {"param": "t"}, "K")


def _paper(on: Grid) -> Any:
    """The sum of the five functions below with weights 1 to 5, from their formulas."""
    latitudes, longitudes = (np.radians(of).reshape(on.shape) for of in on.points())
    s, c = np.sin(latitudes), np.cos(latitudes)
    return (
        1
        + 2 * math.sqrt(3) * s
        + 3 * math.sqrt(5) / 2 * (3 * s * s - 1)
        + 4 * 2 * math.sqrt(1.5) * c * np.cos(longitudes)
        - 5 * 2 * math.sqrt(7.5) * s * c * np.sin(longitudes)
    )


@pytest.mark.parametrize("name", _GRIDS)
def test_low_harmonics_are_what_they_are_on_paper(name: str) -> None:
    field = _field({(0, 0): 1, (1, 0): 2, (2, 0): 3, (1, 1): 4, (2, 1): 5j})
    made = synthesis(field, _on(name))
    assert made.values.shape == made.on.shape and made.attributes == field.attributes
    assert np.allclose(made.values, _paper(_on(name)), rtol=0, atol=1e-12)


@pytest.mark.parametrize("truncation", [1, 2, 31, 63])
def test_sums_are_those_of_pyshtools(truncation: int) -> None:
    pyshtools = pytest.importorskip("pyshtools")
    field, on = _random(truncation), _on("15/15")
    cosines_and_sines, at = np.zeros((2, truncation + 1, truncation + 1)), 0
    coefficients = field.values.view(np.complex128)
    for m in range(truncation + 1):
        many = truncation + 1 - m
        scale = 1 if m == 0 else math.sqrt(2)
        cosines_and_sines[0, m:, m] = scale * coefficients[at : at + many].real
        cosines_and_sines[1, m:, m] = -scale * coefficients[at : at + many].imag
        at += many
    theirs = pyshtools.SHCoeffs.from_array(cosines_and_sines, normalization="4pi", csphase=1)
    latitudes, longitudes = on.points()
    expected = theirs.expand(lat=latitudes, lon=longitudes)
    assert np.allclose(synthesis(field, on).values.ravel(), expected, rtol=0, atol=1e-11)


def test_functions_are_orthonormal_up_to_high_degrees() -> None:
    n = 200
    on = _on(f"F{n}")
    half = np.sin(np.radians(on.latitudes[:n]))
    _, weights = np.polynomial.legendre.leggauss(2 * n)
    for batch in legendre.batches("orthonormal", 2 * n - 1, half):
        for functions in (batch.even, batch.odd):
            products = np.einsum("mkl,ml,l->mk", functions, functions[:, functions.shape[1] // 3], weights[:n])
            there = functions.any(axis=2)
            expected = np.zeros_like(products)
            expected[:, functions.shape[1] // 3] = 1
            assert np.allclose(products[there], (expected * there)[there], rtol=0, atol=1e-10)


@pytest.mark.parametrize("name", _GRIDS)
def test_every_grid_has_the_values_of_its_points(name: str) -> None:
    field, on = _random(63), _on(name)
    latitudes, longitudes = on.points()
    # Points have a way of their own.
    some = slice(None, None, max(1, on.size // 50))
    places = [f"{lat!r}/{lon!r}" for lat, lon in zip(latitudes[some].tolist(), longitudes[some].tolist(), strict=True)]
    expected = synthesis(field, _on(f"points@{','.join(places)}")).values
    assert np.allclose(synthesis(field, on).values.ravel()[some], expected, rtol=0, atol=1e-6)


def test_an_area_has_the_bits_of_the_whole() -> None:
    field, whole, area = _random(63), _on("2/2"), _on("2/2@72/-24/-34/44")
    cut = synthesis(field, whole).values[np.ix_(*whole.rows_and_columns(area))]
    assert np.allclose(synthesis(field, area).values, cut, rtol=0, atol=1e-12)


def test_matrices_that_are_not_kept_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    field, on = _random(63), _on("3/3")
    kept = synthesis(field, on).values
    monkeypatch.setattr(legendre, "_KEPT_BYTES_MAX", 1000)
    assert (synthesis(field, on).values == kept).all()


def test_what_is_warm_is_not_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    on = _on("4.5/4.5")
    warm(47, on)
    monkeypatch.setattr(legendre, "_made", lambda *_: pytest.fail("made again"))
    synthesis(_random(47), on)
    synthesis(_random(47), _on("4.5/4.5@45/0/-9/90"))


@pytest.mark.parametrize("truncation", [1, 63, 639, 1279, 1900])
def test_parts_of_points_have_room_whatever_the_truncation(truncation: int) -> None:
    of_a_point = 8 * (truncation + 1) * (truncation + 2) // 2
    assert 1 <= harmonics._points_at_once(truncation) <= 4096
    assert harmonics._points_at_once(truncation) * of_a_point <= 64 << 20


def test_many_points_are_taken_in_parts() -> None:
    field = _random(5)
    rng = np.random.default_rng(1)
    places = [
        f"{lat:.2f}/{lon:.2f}" for lat, lon in zip(rng.uniform(-90, 90, 5000), rng.uniform(0, 360, 5000), strict=True)
    ]
    values = synthesis(field, _on(f"points@{','.join(places)}")).values
    assert np.allclose(values[-3:], synthesis(field, _on(f"points@{','.join(places[-3:])}")).values, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", _GRIDS)
def test_a_turning_sphere_has_the_wind_of_a_solid_body(name: str) -> None:
    on, speed = _on(name), 30.0
    # u = U cos(latitude): vorticity 2 U / a sin(latitude).
    vo = _field({(1, 0): 2 * speed / EARTH_RADIUS_M / math.sqrt(3)}, paramId=138, shortName="vo")
    u, v = wind(vo, _field({}), on)
    expected = speed * np.cos(np.radians(on.points()[0])).reshape(on.shape)
    assert np.allclose(u.values, expected, rtol=0, atol=1e-9) and np.allclose(v.values, 0, atol=1e-9)
    assert (u.attributes["param"], v.attributes["param"], u.units) == ("u", "v", "m s**-1")
    assert u.attributes == {"param": "u", "step": 6, "paramId": 131} and v.attributes["paramId"] == 132


def test_winds_of_archived_fields_have_no_words_of_vorticity() -> None:
    # As `put` and `archive` describe fields; some names are those of parameters of functions, too.
    said: dict[str, Any] = {
        "units": "s**-1",
        "name": "Vorticity (relative)",
        "cfName": "atmosphere_relative_vorticity",
        "values": 1,
    }
    vo, d = _field({(1, 0): 1e-5}, **said, on="sh"), _field({}, **said, on="sh", param="d")
    for component in wind(vo, d, _on("5/5")):
        assert component.units == "m s**-1"
        assert component.attributes.keys() & {"units", "name", "cfName"} == set()
        assert (component.attributes["values"], component.attributes["on"]) == (1, "sh")


@pytest.mark.parametrize("name", _GRIDS)
def test_a_sphere_turning_over_the_poles_has_wind_there(name: str) -> None:
    on, speed = _on(name), 20.0
    # About the axis through the equator at the prime meridian: u = -U sin(lat) cos(lon), v = U sin(lon).
    amplitude = 2 * speed / EARTH_RADIUS_M
    vo = _field({(1, 1): amplitude / (2 * math.sqrt(1.5))})
    u, v = wind(vo, _field({}), on)
    latitudes, longitudes = (np.radians(of).reshape(on.shape) for of in on.points())
    assert np.allclose(u.values, -speed * np.sin(latitudes) * np.cos(longitudes), rtol=0, atol=1e-9)
    assert np.allclose(v.values, speed * np.sin(longitudes), rtol=0, atol=1e-9)


def test_a_potential_has_the_wind_of_its_slope() -> None:
    on = _on("5/5")
    # The potential X sin(latitude) has the divergence -2 X / a^2 sin(latitude) and the wind v = X / a cos(latitude).
    strength = 1e8
    d = _field({(1, 0): -2 * strength / EARTH_RADIUS_M**2 / math.sqrt(3)}, param="d")
    u, v = wind(_field({}), d, on)
    expected = strength / EARTH_RADIUS_M * np.cos(np.radians(on.points()[0])).reshape(on.shape)
    assert np.allclose(v.values, expected, rtol=0, atol=1e-9) and np.allclose(u.values, 0, atol=1e-9)


def test_winds_of_vorticity_alone_have_no_divergence() -> None:
    n, truncation = 48, 31
    u, v = wind(_random(truncation, 3), Field(np.zeros(spectral(truncation).size), spectral(truncation)), _on(f"F{n}"))
    # The flow through each parallel is zero.
    assert np.allclose(v.values.mean(axis=1), 0, atol=1e-12 * np.abs(v.values).max())
    assert np.abs(u.values.mean(axis=1)).max() > 1


def test_values_are_those_of_mir(by_mir: Callable[..., list[Any]]) -> None:
    coefficients = _random(63)
    # MIR leaves out the last one (n = m = 63), for whatever reason; packing leaves some of it.
    coefficients.values[-2:] = 0
    message = grib_messages.harmonics(63, coefficients.values)
    field = decode(message)
    names = ["2/2", "F32", "2/2@72/-24/34/44"]
    asked: list[dict[str, str]] = [{"grid": "2/2"}, {"grid": "F32"}]
    asked.append({"grid": "2/2", "area": "72/-24/34/44"})
    made = by_mir(*[([message], {**options, "intgrid": "none"}) for options in asked])
    scale = np.abs(made[0]).max()
    for name, theirs in zip(names, made, strict=True):
        # At a pole MIR takes a place beside it.
        errors = np.abs(synthesis(field, _on(name)).values.ravel() - theirs)
        assert errors.max() < 1e-7 * scale


def test_winds_are_those_of_mir(by_mir: Callable[..., list[Any]]) -> None:
    rng = np.random.default_rng(5)
    parts = []
    for number in (138, 155):
        values = _random(42, number).values * 1e-5 * rng.uniform(0.9, 1.1)
        parts.append(grib_messages.harmonics(42, values, paramId=number))
    (theirs,) = by_mir((parts, {"grid": "F32", "intgrid": "none", "packing": "ieee"}))
    u, v = wind(decode(parts[0]), decode(parts[1]), _on("F32"))
    scale = np.abs(u.values).max()
    assert np.abs(np.array([u.values.ravel(), v.values.ravel()]) - theirs).max() < 1e-4 * scale


def test_what_does_not_fit_is_refused() -> None:
    on_grid = synthesis(_field({}), _on("30/30"))
    with pytest.raises(InvalidArgument, match="expected a spectral field"):
        synthesis(on_grid, _on("30/30"))
    with pytest.raises(InvalidArgument, match=r"T21.*T42"):
        wind(_field({}), _field({}, 42), _on("30/30"))
    with pytest.raises(Unsupported, match="T1901"):
        synthesis(Field(np.zeros(spectral(1901).size), Spectral(1901)), _on("30/30"))
