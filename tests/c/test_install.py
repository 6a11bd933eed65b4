"""What is installed for C, C++ and Fortran, as pkg-config and CMake find it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from c_programs import BUILT, PROGRAMS, ROOT, has


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("installed") / "prefix"
    subprocess.run([ROOT / "tools/install_c.sh", folder, BUILT], check=True)
    return folder


def output(*command: str | Path, **environment: str) -> str:
    everything = {**os.environ, **environment}
    return subprocess.run(command, env=everything, capture_output=True, text=True, check=True).stdout


HELLO = {
    "C": """
#include <junctura.h>
#include <stdio.h>
int main(void) {
    jct_pool_t *pool;
    if (jct_pool_open("", "schema=free", &pool))
        return 1;
    puts("hello");
    jct_pool_close(pool);
    return 0;
}
""",
    "CXX": """
#include <iostream>
#include <junctura.hpp>
int main() {
    junctura::Pool pool("", "schema=free");
    pool.offer({{"name", "greeting"}}, std::string("hello"));
    std::cout << pool.demand("name=greeting").text() << std::endl;
}
""",
    "Fortran": """
program hello
  use junctura
  implicit none
  type(pool_t) :: pool
  type(attributes_t) :: key
  type(object_t) :: object
  call pool%open(options='schema=free')
  call key%set('name', 'greeting')
  call pool%offer(key, 'hello')
  call pool%demand('name=greeting', object)
  print '(a)', object%text()
end program
""",
}
FILES = {"C": "hello.c", "CXX": "hello.cpp", "Fortran": "hello.f90"}
COMPILERS = {"C": "gcc", "CXX": "g++", "Fortran": "gfortran"}
TARGETS = {"C": "Junctura::junctura", "CXX": "Junctura::cpp", "Fortran": "Junctura::fortran"}


@pytest.fixture(params=sorted(HELLO))
def language(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A language whose compiler is here; its program is in the folder of the test."""
    language = str(request.param)
    if not has(COMPILERS[language]):
        pytest.skip(f"{COMPILERS[language]} is not installed: tools/setup.sh dev")
    (tmp_path / FILES[language]).write_text(HELLO[language])
    return language


@pytest.mark.skipif(not has("pkg-config"), reason="pkg-config is not installed")
def test_pkg_config_finds_it(language: str, prefix: Path, tmp_path: Path) -> None:
    found = {"PKG_CONFIG_PATH": str(prefix / "lib/pkgconfig")}
    words = output("pkg-config", "--cflags", "--libs", "junctura", **found).split()
    module = output("pkg-config", "--variable=fortran", "junctura", **found).split() if language == "Fortran" else []
    program = tmp_path / "hello"
    modules: list[str | Path] = ["-J", tmp_path] if language == "Fortran" else []
    output(COMPILERS[language], *modules, *module, tmp_path / FILES[language], "-o", program, *words)
    assert output(program) == "hello\n"


@pytest.mark.skipif(not has("cmake"), reason="CMake is not installed")
def test_cmake_finds_it(language: str, prefix: Path, tmp_path: Path) -> None:
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.16)\n"
        f"project(user {language})\n"
        "find_package(Junctura 0.1 REQUIRED)\n"
        f"add_executable(hello {FILES[language]})\n"
        f"target_link_libraries(hello PRIVATE {TARGETS[language]})\n"
    )
    output("cmake", "-S", tmp_path, "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={prefix}")
    output("cmake", "--build", tmp_path / "build")
    assert output(tmp_path / "build/hello") == "hello\n"


def test_the_program_of_every_function_is_built_from_it(prefix: Path, tmp_path: Path) -> None:
    links: list[str | Path] = ["-I", prefix / "include", "-L", prefix / "lib", f"-Wl,-rpath,{prefix}/lib", "-ljunctura"]
    output("gcc", PROGRAMS / "functions.c", "-o", tmp_path / "functions", *links)
    assert output(tmp_path / "functions") == "done\n"
