"""One story: the same programs in Python, Rust, C, C++, Fortran and shell, in pools of every kind, say the same."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
JUNCTURA = TARGET / os.environ.get("JUNCTURA_PROFILE", "ci") / "junctura"
# Compiled languages, by the end of their files.
SUFFIXES = {"c": ".c", "c++": ".cpp", "fortran": ".f90"}
LIBRARY = JUNCTURA.parent / "libjunctura_c.so"
STORIES = sorted(path.parent.name for path in (ROOT / "examples/story").glob("*/output.txt"))
# Further ones (tcp://...) are one line here: how to serve it, and what it is called then.
SERVED = ["unix:story", "unix:@story-{pid}", "tcp://127.0.0.1:0"]


@pytest.fixture
def environment() -> Iterator[dict[str, str]]:
    """Sockets apart from the user's; names of sockets are short, so the folders of tests are not for them."""
    with tempfile.TemporaryDirectory(prefix="story-") as folder:
        kept = "JUNCTURA_TEST_DETOUR"
        plain = {name: value for name, value in os.environ.items() if not name.startswith("JUNCTURA_") or name == kept}
        plain["JUNCTURA_TRANSPORTS"] = "tcp"
        yield {**plain, "XDG_RUNTIME_DIR": folder, "PATH": f"{JUNCTURA.parent}:{os.environ['PATH']}"}


@pytest.fixture
def address(request: pytest.FixtureRequest, environment: dict[str, str]) -> Iterator[list[str]]:
    """What a program is given: nothing, or where a pool is served."""
    if request.param is None:
        yield []
        return
    wanted = request.param.format(pid=os.getpid())
    command = [str(JUNCTURA), "pool", "serve", "--pool", wanted, "--announce"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        yield [server.stdout.readline().strip()]
        server.terminate()
        assert server.wait(timeout=60) == 0


@pytest.fixture(scope="session")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the C library, under the names of an installed one."""
    folder = tmp_path_factory.mktemp("story")
    for name in ("libjunctura.so", "libjunctura.so.0"):
        (folder / name).symlink_to(LIBRARY)
    return folder


def compiled(command: list[str], sources: list[Path], libraries: Path, folder: Path) -> None:
    """Compiles the story of one folder, strictly."""
    links = ["-L", str(libraries), "-ljunctura", f"-Wl,-rpath,{libraries}", "-lpthread"]
    strict = ["-Wall", "-Wextra", "-Werror", "-pedantic", "-I", str(ROOT / "c/include")]
    words = [*command, *strict, *map(str, sources), "-o", str(folder / sources[-1].parent.name), *links]
    subprocess.run(words, check=True)


@pytest.fixture(scope="session")
def native_programs(libraries: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of the stories in a compiled language; they are compiled with the first that is asked for."""
    folders: dict[str, Path] = {}

    def compile_all(language: str) -> Path:
        if language in folders:
            return folders[language]
        folder = folders[language] = tmp_path_factory.mktemp(language)
        stories = ROOT / "examples/story"
        common = [ROOT / "fortran/junctura.f90", stories / "forecast.f90"] if language == "fortran" else []
        commands = {
            "c": ["gcc", "-std=c11"],
            "c++": ["g++", "-std=c++17"],
            "fortran": ["gfortran", "-std=f2008", "-fopenmp", "-J", str(folder), "-I", str(folder)],
        }
        if shutil.which(commands[language][0]) is None:
            pytest.skip(f"{commands[language][0]} is not installed: tools/setup.sh dev")
        objects = []
        for source in common:
            made = folder / f"{source.stem}.o"
            subprocess.run([*commands[language], "-Wall", "-Werror", "-c", str(source), "-o", str(made)], check=True)
            objects.append(made)
        for story in STORIES:
            source = stories / story / f"main{SUFFIXES[language]}"
            compiled(commands[language], [*objects, source], libraries, folder)
        return folder

    return compile_all


def tell(command: list[str], environment: dict[str, str]) -> str:
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    assert done.stderr == ""
    return done.stdout


def command_of(story: str, language: str, rust_programs: Path, native_programs: Callable[[str], Path]) -> list[str]:
    folder = ROOT / "examples/story" / story
    if language in SUFFIXES:
        return [str(native_programs(language) / story)]
    return {
        "python": [sys.executable, str(folder / "main.py")],
        "rust": [str(rust_programs / f"story_{story}")],
        "shell": ["bash", str(folder / "main.sh")],
    }[language]


def test_there_are_five() -> None:
    assert [story[:2] for story in STORIES] == ["01", "02", "03", "04", "05"]


@pytest.mark.parametrize("address", [None, *SERVED], indirect=True, ids=["own", "named", "abstract", "tcp"])
@pytest.mark.parametrize("language", ["python", "rust", "c", "c++", "fortran", "shell"])
@pytest.mark.parametrize("story", STORIES)
def test_all_tell_the_same(
    story: str,
    language: str,
    address: list[str],
    environment: dict[str, str],
    rust_programs: Path,
    native_programs: Callable[[str], Path],
) -> None:
    expected = (ROOT / "examples/story" / story / "output.txt").read_text()
    assert tell([*command_of(story, language, rust_programs, native_programs), *address], environment) == expected
