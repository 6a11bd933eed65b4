"""One story: the same programs in Python, Rust, C and shell, in pools of every kind, say the same."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
JUNCTURA = TARGET / os.environ.get("JUNCTURA_PROFILE", "ci") / "junctura"
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
    command = [str(JUNCTURA), "serve", wanted, "--announce"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        yield [server.stdout.readline().strip()]
        server.terminate()
        assert server.wait(timeout=60) == 0


@pytest.fixture(scope="session")
def c_programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the stories in C, which are compiled here."""
    folder = tmp_path_factory.mktemp("story")
    for name in ("libjunctura.so", "libjunctura.so.0"):
        (folder / name).symlink_to(LIBRARY)
    strict = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic", "-I", str(ROOT / "c/include")]
    links = ["-L", str(folder), "-ljunctura", f"-Wl,-rpath,{folder}", "-lpthread"]
    for story in STORIES:
        source = ROOT / "examples/story" / story / "main.c"
        subprocess.run(["gcc", *strict, str(source), "-o", str(folder / story), *links], check=True)
    return folder


def tell(command: list[str], environment: dict[str, str]) -> str:
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    assert done.stderr == ""
    return done.stdout


def command_of(story: str, language: str, rust_programs: Path, c_programs: Path) -> list[str]:
    folder = ROOT / "examples/story" / story
    return {
        "python": [sys.executable, str(folder / "main.py")],
        "rust": [str(rust_programs / f"story_{story}")],
        "c": [str(c_programs / story)],
        "shell": ["bash", str(folder / "main.sh")],
    }[language]


def test_there_are_five() -> None:
    assert [story[:2] for story in STORIES] == ["01", "02", "03", "04", "05"]


@pytest.mark.parametrize("address", [None, *SERVED], indirect=True, ids=["own", "named", "abstract", "tcp"])
@pytest.mark.parametrize("language", ["python", "rust", "c", "shell"])
@pytest.mark.parametrize("story", STORIES)
def test_all_tell_the_same(
    story: str,
    language: str,
    address: list[str],
    environment: dict[str, str],
    rust_programs: Path,
    c_programs: Path,
) -> None:
    expected = (ROOT / "examples/story" / story / "output.txt").read_text()
    assert tell([*command_of(story, language, rust_programs, c_programs), *address], environment) == expected
