"""Programs in C and Fortran, on one rank and on several, behave under the preload library as without it."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from netcdf_files import all_builds, assert_same, generate
from netcdf_programs import AS_ROOT, MPIRUN, ROOT, need, run

API = ROOT / "c/intercept/netcdf/netcdf_api.h"
CLASSIC, OFFSET_64, DATA_64, NETCDF4, NETCDF4_CLASSIC = 0, 0x200, 0x20, 0x1000, 0x1100
# Not in netcdf.h: a macro of ours, and numbers of the header for MPI.
OF_OTHER_HEADERS = {"NC_LONG_IN_MEMORY", "NC_COLLECTIVE", "NC_INDEPENDENT"}
ACCESS = ["collective", "independent"]


def without_preload(environment: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name != "LD_PRELOAD"}


@pytest.mark.parametrize("mode", ["pool", "tee", "file"])
@pytest.mark.parametrize("form", [CLASSIC, OFFSET_64, DATA_64, NETCDF4, NETCDF4_CLASSIC])
def test_every_form_has_the_status_and_values_of_the_real_library(
    form: int, mode: str, compiled: Callable[..., Path], intercepted: dict[str, str], tmp_path: Path
) -> None:
    program = compiled("forms.c")
    for name in ("real", "preloaded"):
        (tmp_path / name).mkdir()
    rules = {**intercepted, "JUNCTURA_NETCDF": f"pool*.nc={mode}"}
    plain = without_preload(rules)
    expected = run(program, "pool.nc", form, folder=tmp_path / "real", environment=plain)
    assert run(program, "pool.nc", form, folder=tmp_path / "preloaded", environment=rules) == expected
    assert (tmp_path / "preloaded/pool.nc").exists() == (mode != "pool")
    if mode == "pool":
        run("nccopy", "pool.nc", "out.nc", folder=tmp_path / "preloaded", environment=rules)
        assert_same(tmp_path / "real/pool.nc", tmp_path / "preloaded/out.nc")
    else:
        assert_same(tmp_path / "real/pool.nc", tmp_path / "preloaded/pool.nc")


def test_a_program_in_fortran(compiled: Callable[..., Path], intercepted: dict[str, str], tmp_path: Path) -> None:
    program = compiled("history.f90")
    expected = run(program, "file.nc", 3, folder=tmp_path, environment=without_preload(intercepted))
    assert run(program, "pool.nc", 3, folder=tmp_path, environment=intercepted) == expected
    run("nccopy", "pool.nc", "out.nc", folder=tmp_path, environment=intercepted)
    assert_same(tmp_path / "file.nc", tmp_path / "out.nc")


@pytest.mark.parametrize("access", ACCESS)
@pytest.mark.parametrize("mode", ["pool", "tee"])
@pytest.mark.parametrize("ranks", [1, 3])
def test_ranks_write_and_others_read(
    access: str, ranks: int, mode: str, compiled: Callable[..., Path], intercepted: dict[str, str], tmp_path: Path
) -> None:
    need(MPIRUN[0])
    program = compiled("parallel_writer.c")
    plain = {**without_preload(intercepted), **AS_ROOT}
    preload = ("-x", f"LD_PRELOAD={intercepted['LD_PRELOAD']}")
    run(*MPIRUN, "-n", ranks, program, "file.nc", 3, access, 0, folder=tmp_path, environment=plain)
    writing = {**plain, "JUNCTURA_NETCDF": f"pool*.nc={mode}"}
    run(*MPIRUN, "-n", ranks, *preload, program, "pool.nc", 3, access, 0, folder=tmp_path, environment=writing)
    run(*MPIRUN, "-n", 2, *preload, program, "pool.nc", 3, access, 1, folder=tmp_path, environment=plain)
    run("nccopy", "pool.nc", "out.nc", folder=tmp_path, environment=intercepted)
    assert_same(tmp_path / "file.nc", tmp_path / "out.nc")
    assert (tmp_path / "pool.nc").exists() == (mode == "tee")
    if mode == "tee":
        assert_same(tmp_path / "file.nc", tmp_path / "pool.nc")


def test_values_of_which_one_rank_has_all_are_no_parallel_writes(
    compiled: Callable[..., Path], intercepted: dict[str, str], tmp_path: Path
) -> None:
    """They would be lost: each rank has definitions of its own."""
    need(MPIRUN[0])
    plain = {**without_preload(intercepted), **AS_ROOT}
    preload = ("-x", f"LD_PRELOAD={intercepted['LD_PRELOAD']}")
    words = [*MPIRUN, "-n", 2, *preload, compiled("parallel_private.c"), "pool.nc"]
    told = run(*words, folder=tmp_path, environment=plain).splitlines()
    assert sorted(told) == [f"{name} of {rank}" for name in ("clouds", "texts") for rank in (0, 1)]


def test_the_declarations_are_those_of_the_library(tmp_path: Path) -> None:
    """The real header, its numbers and its functions, beside ours: the compiler compares them."""
    need("nc-config")
    text = API.read_text()
    numbers = sorted(set(re.findall(r"\bNC_\w+", text)) - OF_OTHER_HEADERS)
    ours, real = tmp_path / "ours.c", tmp_path / "real.c"
    body = "".join(f'printf("{name} %d\\n", (int){name});' for name in numbers)
    main = f"#include <stdio.h>\nint main(void) {{ {body} return 0; }}\n"
    ours.write_text(f'#include "{API}"\n{main}')
    real.write_text(f"#include <netcdf.h>\n{main}")
    printed = []
    for source in (ours, real):
        program = source.with_suffix("")
        subprocess.run(["gcc", str(source), "-o", str(program)], check=True)
        printed.append(subprocess.run([str(program)], capture_output=True, text=True, check=True).stdout)
    assert printed[0] == printed[1]
    functions = re.sub(r"enum \{.*?\};", "", text, flags=re.DOTALL)
    functions = re.sub(r"typedef size_t MpiHandle;.*", "#endif", functions, flags=re.DOTALL)
    both = tmp_path / "both.c"
    both.write_text(f"#include <netcdf.h>\n{functions}\nint main(void) {{ return 0; }}\n")
    subprocess.run(["gcc", "-std=c11", "-Werror", str(both), "-o", str(tmp_path / "both")], check=True)


def test_a_process_reports_what_it_did(
    compiled: Callable[..., Path], intercepted: dict[str, str], tmp_path: Path
) -> None:
    reports = tmp_path / "reports"
    reports.mkdir()
    reporting = {**intercepted, "JUNCTURA_INTERCEPT_REPORT": str(reports)}
    run(compiled("steps.c"), "write", "pool.nc", 2, 1000, folder=tmp_path, environment=reporting)
    run("ncdump", "-h", "pool.nc", folder=tmp_path, environment=reporting)
    found = [json.loads(path.read_text()) for path in reports.iterdir()]
    programs = {Path(one["program"]).name: one for one in found}
    assert set(programs) == {"ncdump", "steps"}
    (written,) = programs["steps"]["files"]
    # Definitions, a variable without records, and three variables of two steps.
    assert (written["path"], written["mode"], written["offered"]) == ("pool.nc", "pool", 8)
    assert programs["steps"]["fallen_through"] == []


def test_files_that_match_no_rule_are_left_alone(
    compiled: Callable[..., Path], intercepted: dict[str, str], tmp_path: Path
) -> None:
    """Without a pool, too: nothing is loaded before the first file that matches."""
    nowhere = {**intercepted, "JUNCTURA_POOL": "unix:nowhere"}
    run(compiled("steps.c"), "write", "other.nc", 2, 1000, folder=tmp_path, environment=nowhere)
    assert (tmp_path / "other.nc").exists()


@pytest.mark.parametrize("rules", ["pool*.nc", "pool*.nc=both", "=pool"])
def test_a_rule_that_cannot_be_read_is_named(rules: str, intercepted: dict[str, str], tmp_path: Path) -> None:
    need("ncgen")
    (tmp_path / "a.cdl").write_text("netcdf a { dimensions: x = 1; }\n")
    done = subprocess.run(
        ["ncgen", "-o", "pool.nc", "a.cdl"],
        cwd=tmp_path,
        env={**intercepted, "JUNCTURA_NETCDF": rules},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert f'junctura-netcdf: JUNCTURA_NETCDF: cannot read "{rules}"' in done.stderr
    assert (tmp_path / "pool.nc").exists()


def test_user_types_are_in_the_file_only_and_said_once(
    intercepted: dict[str, str], pool: str, environment: dict[str, str], tmp_path: Path
) -> None:
    need("ncgen", "nccopy")
    (tmp_path / "a.cdl").write_text(
        "netcdf a { types: compound point { float x; int y; };\n"
        "dimensions: n = 2; variables: point p(n); float f(n); data: p = {1, 2}, {3, 4}; f = 5, 6; }\n"
    )
    both = {**intercepted, "JUNCTURA_NETCDF": "pool*.nc=tee"}
    run("ncgen", "-4", "-o", "pool.nc", "a.cdl", folder=tmp_path, environment=both)
    listed = run("junctura", "ls", "--pool", pool, folder=tmp_path, environment=environment)
    assert " f " in listed
    assert " p " not in listed


@pytest.mark.parametrize("name", ["texts", "unlimited", "gaps-3_classic"])
def test_memory_is_used_correctly_and_freed(name: str, intercepted: dict[str, str], tmp_path: Path) -> None:
    need("valgrind", "nccopy")
    generate(tmp_path / "file.nc", *all_builds()[name])
    valgrind = ["valgrind", "--quiet", "--leak-check=full", "--show-leak-kinds=definite"]
    valgrind += ["--errors-for-leak-kinds=definite", "--error-exitcode=9"]
    run(*valgrind, "nccopy", "file.nc", "pool.nc", folder=tmp_path, environment=intercepted)
    run(*valgrind, "nccopy", "pool.nc", "out.nc", folder=tmp_path, environment=intercepted)


def test_a_child_that_exits_does_not_end_the_file(
    compiled: Callable[..., Path], intercepted: dict[str, str], tmp_path: Path
) -> None:
    program = compiled("fork.c")
    assert run(program, "pool.nc", folder=tmp_path, environment=intercepted) == "0 1 2 3\n"
    run("nccopy", "pool.nc", "out.nc", folder=tmp_path, environment=intercepted)
    run(program, "file.nc", folder=tmp_path, environment=without_preload(intercepted))
    assert_same(tmp_path / "file.nc", tmp_path / "out.nc")
