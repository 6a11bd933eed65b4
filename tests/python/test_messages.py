"""GRIB messages before and around ecCodes: what is decoded here, what by another process, and what is refused."""

from __future__ import annotations

import os
import signal
import struct
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import junctura
from junctura import field
from junctura._grib import checked_messages, decoder_process
from junctura.errors import Corrupt, InvalidArgument, TooLarge

eccodes = pytest.importorskip("eccodes")


def made(sample: str, **keys: Any) -> bytes:
    handle = eccodes.codes_grib_new_from_samples(sample)
    try:
        for key, value in keys.items():
            eccodes.codes_set(handle, key, value)
        return bytes(eccodes.codes_get_message(handle))
    finally:
        eccodes.codes_release(handle)


def test_a_decoder_that_crashes_costs_its_message_only() -> None:
    for how in (signal.SIGSEGV, signal.SIGABRT, signal.SIGKILL):
        with pytest.raises(Corrupt, match=f"its decoder ended: {how.name}"):
            decoder_process.decoded(how, signal.raise_signal)  # type: ignore[arg-type]
        assert decoder_process.decoded(b"abc", len) == 3


def test_a_decoder_has_a_limit_of_memory() -> None:
    with pytest.raises(TooLarge, match="within 4096 MiB"):
        decoder_process.decoded(5 << 30, bytearray)  # type: ignore[arg-type]
    with pytest.raises(Corrupt, match="invalid literal"):
        decoder_process.decoded(b"x", int)


def test_no_limit_of_points_is_too_large_for_a_decoder(monkeypatch: pytest.MonkeyPatch) -> None:
    decoder_process._end()
    monkeypatch.setenv(checked_messages.POINTS_VARIABLE, str(10**18))
    assert decoder_process.decoded(b"abc", len) == 3
    decoder_process._end()


def test_a_decoder_that_takes_too_long_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoder_process, "_SECONDS_MAX", 0)
    with pytest.raises(Corrupt, match="more than 0 s"):
        decoder_process.decoded(3600, time.sleep)  # type: ignore[arg-type]
    monkeypatch.undo()
    assert decoder_process.decoded(b"abc", len) == 3


def test_a_decoder_imports_nothing_from_the_folder_it_is_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("junctura", "numpy", "selectors"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit(77)")
    decoder_process._end()
    monkeypatch.chdir(tmp_path)
    assert decoder_process.decoded(b"abc", len) == 3


def test_a_forked_process_has_a_decoder_of_its_own() -> None:
    # Where the link is read, it names the process that reads it.
    ours = decoder_process.decoded(b"/proc/self", os.readlink)
    if (child := os.fork()) == 0:
        os._exit(decoder_process.decoded(b"/proc/self", os.readlink) == ours)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert decoder_process.decoded(b"/proc/self", os.readlink) == ours


@pytest.mark.parametrize("packing", ["grid_jpeg", "grid_second_order"])
def test_what_nobody_can_check_is_decoded_elsewhere(packing: str) -> None:
    values = 280 + np.sin(np.arange(496) / 9)
    handle = eccodes.codes_new_from_message(made("regular_ll_pl_grib2", bitsPerValue=16))
    eccodes.codes_set_values(handle, values)
    eccodes.codes_set(handle, "packingType", packing)
    message, theirs = bytes(eccodes.codes_get_message(handle)), eccodes.codes_get_values(handle)
    eccodes.codes_release(handle)
    assert not checked_messages.announced(message).is_proven
    found, layout = field.decoded(message, field.arranged, has_places=True)
    assert np.array_equal(found.reshape(-1), theirs)
    assert layout.dims == ("latitude", "longitude")
    assert {name: len(places) for name, (_, places) in layout.coords.items()} == {"latitude": 31, "longitude": 16}
    # Its values are cut off: whatever its decoder does, this process gets an error with a name.
    cut = message[:8] + struct.pack(">Q", len(message) - 300) + message[16:-304] + b"7777"
    with pytest.raises(Corrupt):
        field.decoded(cut, field.values_of)


def test_points_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    message = made("regular_ll_pl_grib2")
    monkeypatch.setenv(checked_messages.POINTS_VARIABLE, "495")
    with pytest.raises(TooLarge, match=r"496 points: at most 495 .*JUNCTURA_GRIB_POINTS_MAX"):
        field.decoded(message, field.values_of)
    monkeypatch.setenv(checked_messages.POINTS_VARIABLE, "496")
    assert len(field.decoded(message, field.values_of)) == 496
    monkeypatch.setenv(checked_messages.POINTS_VARIABLE, "many")
    with pytest.raises(InvalidArgument, match="expected a number"):
        field.decoded(message, field.values_of)


# EcCodes places the values of a Gaussian grid row by row, whatever the message says.
@pytest.mark.parametrize(
    ("sample", "j_first"),
    [
        ("regular_ll_pl_grib2", 0),
        ("regular_ll_pl_grib2", 1),
        ("regular_ll_pl_grib1", 0),
        ("regular_ll_pl_grib1", 1),
        ("regular_gg_pl_grib2", 0),
    ],
)
@pytest.mark.parametrize(("north_last", "west_last"), [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_axes_are_those_that_eccodes_has_for_all_points(
    sample: str, j_first: int, north_last: int, west_last: int
) -> None:
    whole = made(sample)
    ends = [_asked(whole, f"{of}GridPointInDegrees", "codes_get") for of in _ENDS]
    keys: dict[str, Any] = {"jScansPositively": north_last, "iScansNegatively": west_last}
    if north_last:
        ends[:2] = ends[1::-1]
    if west_last:
        ends[2:] = ends[:1:-1]
    keys |= {f"{of}GridPointInDegrees": end for of, end in zip(_ENDS, ends, strict=True)}
    message = made(sample, **keys, jPointsAreConsecutive=j_first)
    layout = field.decoded(message, field.layout_of, has_places=True)
    assert layout.dims == ("latitude", "longitude")
    axes = (layout.coords[dim][1] for dim in layout.dims)
    for name, mesh in zip(layout.dims, np.meshgrid(*axes, indexing="ij"), strict=True):
        theirs = _asked(message, f"{name}s", "codes_get_array")
        ours = (mesh.T if j_first else mesh).reshape(-1)
        assert np.allclose((ours - theirs + 180) % 360, 180, rtol=0, atol=2e-3)


_ENDS = ("latitudeOfFirst", "latitudeOfLast", "longitudeOfFirst", "longitudeOfLast")


@pytest.mark.parametrize(("west", "east", "expected"), [(350, 10, [-10, 0, 10]), (300, 0, [300, 330, 360])])
def test_longitudes_do_not_jump_at_the_prime_meridian(west: float, east: float, expected: list[float]) -> None:
    keys = {"longitudeOfFirstGridPointInDegrees": west, "longitudeOfLastGridPointInDegrees": east}
    handle = eccodes.codes_new_from_message(made("regular_ll_pl_grib2", Ni=3, Nj=2, **keys))
    eccodes.codes_set_values(handle, np.arange(6.0))
    message = bytes(eccodes.codes_get_message(handle))
    eccodes.codes_release(handle)
    layout = field.decoded(message, field.layout_of, has_places=True)
    assert layout.coords["longitude"][1].tolist() == expected


def test_a_message_whose_sections_are_shorter_than_their_templates_is_refused() -> None:
    message = made("regular_ll_pl_grib2", setLocalDefinition=1)
    section = 16 + 21
    length = int.from_bytes(message[section : section + 4], "big")
    short = message[:section] + struct.pack(">I", length - 4) + message[section + 4 : section + length - 4]
    short += message[section + length :]
    short = short[:8] + struct.pack(">Q", len(short)) + short[16:]
    with pytest.raises(Corrupt, match="does not find section 3 at byte 50"):
        field.decoded(short, field.values_of)


def _asked(message: bytes, key: str, get: str) -> Any:
    handle = eccodes.codes_new_from_message(message)
    try:
        return getattr(eccodes, get)(handle, key)
    finally:
        eccodes.codes_release(handle)


def test_errors_of_messages_are_errors_of_this_package() -> None:
    message = made("regular_ll_pl_grib2")
    with junctura.Pool(schema="free") as pool:
        pool.offer(message[:-8] + b"7777", name="cut")
        with pytest.raises(Corrupt):
            pool.demand(name="cut").to_xarray()
