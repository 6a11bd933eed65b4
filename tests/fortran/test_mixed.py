"""An array goes from C to Fortran, Python and the command, which is in Rust, and back; its bits stay the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from c_programs import PROGRAMS, compile_c, prepare
from fortran_programs import COMPILERS, compiler

import junctura

Compile = Callable[..., Path]
Run = Callable[..., str]

EXPECTED = ((np.arange(35, dtype="u8") + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)).reshape(5, 7).view("f8")


@pytest.fixture(scope="session")
def ends(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program of C at both ends of the chain."""
    folder = tmp_path_factory.mktemp("mixed")
    return compile_c(PROGRAMS / "mixed.c", folder / "mixed", prepare(folder / "libraries"))


def same_bits(one: np.ndarray, other: np.ndarray) -> bool:
    return np.array_equal(np.ascontiguousarray(one).view("u8"), np.ascontiguousarray(other).view("u8"))


@pytest.mark.parametrize("order", ["C", "F"])
def test_an_array_keeps_its_bits_through_all_languages(
    order: Literal["C", "F"],
    ends: Path,
    compiled: Compile,
    pool: str,
    run: Run,
    tmp_path: Path,
    environment: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", environment["XDG_RUNTIME_DIR"])
    middle = compiled("mixed")
    assert run(ends, pool, "offer", "of_c") == "done\n"
    assert run(middle, pool, "of_c", "of_fortran") == "done\n"
    with junctura.Pool(pool) as python:
        whole = python.demand_array(name="of_fortran", timeout=60)
        assert same_bits(whole, EXPECTED)
        python.offer_piece(np.array(whole, order=order), f"shape=5x7 order={order}", 0, name="of_python")
        # As one object, which the command writes and reads as bytes.
        python.offer(np.ascontiguousarray(python.demand_array(name="of_python", timeout=60)), name="as_bytes")
    payload = tmp_path / "payload"
    run("junctura", "get", "name=as_bytes", "--pool", pool, "--out", payload)
    assert payload.read_bytes() == EXPECTED.tobytes()
    run("junctura", "put", payload, "--pool", pool, "--set", "name=of_rust")
    assert run(middle, pool, "of_rust", "back_by_fortran", "bytes") == "done\n"
    assert run(ends, pool, "check", "back_by_fortran") == "done\n"


def test_programs_of_two_compilers_exchange_an_array(
    compiler_of: Callable[[str], Compile], ends: Path, pool: str, run: Run
) -> None:
    missing = [name for name in COMPILERS if compiler(name) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} is not installed: tools/setup.sh dev")
    assert run(ends, pool, "offer", "of_c") == "done\n"
    assert run(compiler_of("gfortran")("mixed"), pool, "of_c", "of_gfortran") == "done\n"
    assert run(compiler_of("flang")("mixed"), pool, "of_gfortran", "of_flang") == "done\n"
    assert run(ends, pool, "check", "of_flang") == "done\n"
