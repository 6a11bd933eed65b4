"""Winds of vorticity and divergence, however these come; flows with a closed form judge them.

A stream function psi and a velocity potential chi give u = -psi_phi / a + chi_lambda / (a cos phi) and
v = psi_lambda / (a cos phi) + chi_phi / a; vorticity and divergence are their Laplacians. Of degree 1, the Laplacian of
a function is the function times -2 / a**2.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray
from broker_runs import BASE, broker
from grib_messages import harmonics

import junctura

pytestmark = pytest.mark.timeout(180)
A = 6371229.0
TRUNCATION = 21
# m/s: of a solid rotation, of one about an axis in the equator, and of a flow towards the pole.
ROTATION, TILTED, POLEWARD = 20.0, 7.0, 3.0
STEPS = (0, 6)

Come = Callable[[Path, junctura.Pool], dict[str, Any]]


def coefficients(zonal: float, wave: float) -> list[float]:
    """Of ``zonal * sin(phi) + wave * cos(phi) * cos(lambda)``, as GRIB orders and normalizes them."""
    found = []
    for m in range(TRUNCATION + 1):
        for n in range(m, TRUNCATION + 1):
            value = {(1, 0): zonal / np.sqrt(3), (1, 1): wave / np.sqrt(6)}.get((n, m), 0.0)
            found += [value, 0.0]
    return found


def spectral(step: int) -> dict[str, list[float]]:
    """Vorticity and divergence: twice as strong at the later step."""
    strength = 1 + step / 6
    # psi = -a ROTATION sin(phi) + a TILTED cos(phi) cos(lambda), chi = a POLEWARD sin(phi)
    scale = -2 / A * strength
    return {"vo": coefficients(-scale * ROTATION, scale * TILTED), "d": coefficients(scale * POLEWARD, 0.0)}


def exact(latitude: Any, longitude: Any, step: int) -> tuple[Any, Any]:
    phi, lam = np.radians(latitude)[:, None], np.radians(longitude)[None, :]
    strength = 1 + step / 6
    u = ROTATION * np.cos(phi) + TILTED * np.sin(phi) * np.cos(lam)
    v = -TILTED * np.sin(lam) + POLEWARD * np.cos(phi)
    return strength * u, strength * v


def file_of(folder: Path) -> Path:
    about = {"setLocalDefinition": 1, "class": "od", "stream": "oper", "type": "fc", "date": 20261120, "level": 850}
    parts = [
        harmonics(TRUNCATION, values, **about, shortName=param, step=step)
        for step in STEPS
        for param, values in spectral(step).items()
    ]
    path = folder / "winds.grib"
    path.write_bytes(b"".join(parts))
    return path


def by_put(folder: Path, pool: junctura.Pool) -> dict[str, Any]:
    command = [sys.executable, "-m", "junctura", "put", str(file_of(folder)), "--pool", pool.url, "--quiet"]
    subprocess.run(command, check=True)
    return {}


def by_archive(folder: Path, pool: junctura.Pool) -> dict[str, Any]:  # noqa: ARG001 - the pool has none of them
    junctura.Store.from_grib(folder / "store", file_of(folder))
    return {"store": str(folder / "store")}


def by_model(folder: Path, pool: junctura.Pool) -> dict[str, Any]:  # noqa: ARG001 - it needs no folder
    """Coefficients in memory, with and without units."""
    about = {word: value for word, value in BASE.items() if word != "number"} | {"type": "fc", "grid": f"T{TRUNCATION}"}
    for step in STEPS:
        for param, values in spectral(step).items():
            units = {"units": "s**-1"} if step else {}
            pool.offer(np.array(values), {**about, **units, "param": param, "step": step})
    return {}


@pytest.mark.parametrize("come", [by_put, by_archive, by_model])
@pytest.mark.parametrize("on", ["10/10", "F16"])
def test_winds_are_those_of_the_flow_however_the_fields_come(tmp_path: Path, come: Come, on: str) -> None:
    text = f"""product: wind
from: {{param: [vo, d], levelist: 850, step: 0/6}}
do: [wind: {{grid: {on}}}, compute: {{ws: {{formula: "hypot(u, v)", units: m/s}}}}]
to: {{format: netcdf, gather: step, name: wind.nc}}
"""
    with junctura.Pool(schema="mars") as pool:
        report = broker(tmp_path, pool, text, **come(tmp_path, pool)).run()
    assert not report.failed, report.failed
    with xarray.open_dataset(tmp_path / "out/wind.nc") as data:
        for number, step in enumerate(STEPS):
            u, v = exact(data.latitude.values, data.longitude.values, step)
            np.testing.assert_allclose(data.u[number], u, atol=2e-5)
            np.testing.assert_allclose(data.v[number], v, atol=2e-5)
            np.testing.assert_allclose(data.ws[number], np.hypot(u, v), atol=2e-5)
        assert data.u.attrs["units"] == data.v.attrs["units"] == data.ws.attrs["units"] == "m s-1"
