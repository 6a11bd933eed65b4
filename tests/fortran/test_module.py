"""The Fortran module: its text, every procedure by every compiler, and how errors end a program."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from c_programs import ROOT, has
from fortran_programs import MODULE, compiler

Compile = Callable[..., Path]
Run = Callable[..., str]


def test_the_module_is_that_of_the_header_and_the_parts(tmp_path: Path) -> None:
    made = tmp_path / "junctura.f90"
    subprocess.run([sys.executable, ROOT / "fortran/generate.py", made], check=True)
    assert made.read_text() == MODULE.read_text(), "run `make fortran`"


def test_the_module_calls_every_function_of_the_library() -> None:
    symbols = (ROOT / "c/abi/symbols.txt").read_text().split()
    procedures = MODULE.read_text().split("\ncontains\n", 1)[1]
    # A program of Fortran does not load the library by itself.
    assert [name for name in symbols if f"c_{name}(" not in procedures] == ["jct_abi"]


def test_every_public_procedure_is_documented_and_has_stat_where_it_can_fail() -> None:
    text = MODULE.read_text()
    named = re.findall(r"^ +procedure :: \w+ => (\w+)$", text, re.M)
    named += re.findall(r"^ +procedure, private :: (\w+_i1(?:_0)?),", text, re.M)
    for name in named:
        found = re.search(rf"((?: *!.*\n)+)  (?:subroutine|function) {name}\((.*)\)", text)
        assert found is not None, f"{name} has no comment"
        body = text[found.end() : text.index("\n  end ", found.end())]
        assert "stat, errmsg" not in body or "stat, errmsg" in found[2], name


def test_the_module_compiles_without_finalizers(family: str, tmp_path: Path) -> None:
    lines = MODULE.read_text().splitlines(keepends=True)
    without = tmp_path / "junctura.f90"
    without.write_text("".join(line for line in lines if not line.startswith("    final ::")))
    # Procedures are unused then, which is no error by default.
    name = compiler(family)
    assert name is not None
    subprocess.run([name, "-c", without, "-o", tmp_path / "module.o"], cwd=tmp_path, check=True)


@pytest.mark.parametrize("served", [True, False], ids=["served", "private"])
def test_every_procedure(served: bool, compiled: Compile, pool: str, run: Run) -> None:
    assert run(compiled("functions"), *([pool] if served else [])) == "done\n"


def test_without_stat_an_error_stops_the_program(compiled: Compile, environment: dict[str, str]) -> None:
    done = subprocess.run([compiled("stop")], env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0 and done.stdout == ""
    assert "NotFound: " in done.stderr


def test_an_assignment_of_what_owns_a_handle_stops_the_program(compiled: Compile, environment: dict[str, str]) -> None:
    done = subprocess.run(
        [compiled("assign")], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode != 0 and done.stdout == ""
    assert "was assigned to another" in done.stderr


@pytest.mark.skipif(not has("valgrind"), reason="valgrind is not installed")
def test_valgrind_reports_nothing(family: str, compiled: Compile, pool: str, run: Run, valgrind: list[str]) -> None:
    if family == "flang":
        pytest.skip("the runtime of flang keeps memory of its own")
    assert run(*valgrind, compiled("functions"), pool) == "done\n"
