"""The contents of a step that another program has written: what they claim is checked before it costs memory."""

from __future__ import annotations

import resource
import subprocess
from pathlib import Path

import pytest
from c_programs import ROOT
from conftest import PROGRAMS

HEADER = b"junctura-adios2 1\n"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("contents") / "contents"
    folder = ROOT / "c/adios2"
    sources = [PROGRAMS / "contents.cpp", folder / "step_contents.cpp"]
    flags = ["-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", f"-I{folder}"]
    subprocess.run(["g++", *flags, *map(str, sources), "-o", str(made)], check=True)
    return made


def told(program: Path, text: bytes) -> str:
    limit = 768 << 20
    done = subprocess.run(
        [program],
        input=text,
        stdout=subprocess.PIPE,
        check=False,
        timeout=120,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
    )
    assert done.returncode == 0
    return done.stdout.decode()


def test_contents_are_read(program: Path) -> None:
    text = HEADER + b"array\tf8\theat\t32x32x1000000000000\nattribute\tstring\ta\\tb\tc\nlocal\tu1\tx\t0x7\n"
    assert told(program, text) == "3\n"
    assert told(program, HEADER) == "0\n"
    assert told(program, HEADER + b"array\tf8\tT\t4\nblock\t0\t18446744073709551615\t2\n") == "1\n"


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (b"", "does not contain"),
        (HEADER[:-1], "does not contain"),
        (HEADER + b"array\tf8\theat\t1", "does not contain"),
        (HEADER + b"\n", "the entry"),
        (HEADER + b"array\tf8\n", "the entry"),
        (HEADER + b"\x1b[2Jarray\tf8\n" + b"x" * 100_000 + b"\n", 'the entry "?[2Jarray"'),
        (HEADER + b"array\tf8\theat\t\n", "the shape"),
        (HEADER + b"array\tf8\theat\t-1\n", "the shape"),
        (HEADER + b"array\tf8\theat\t99999999999999999999\n", "the shape"),
        # Its product would be 2.
        (HEADER + b"array\tf8\theat\t9223372036854775809x2\n", "the shape"),
        (HEADER + b"local\tf8\theat\t4294967296x4294967296\n", "the shape"),
        (HEADER + b"block\t0\t0\t1\n", "block"),
        (HEADER + b"array\tf8\tT\t4\nblock\t0\t0x0\t1\n", "block"),
        (HEADER + b"array\tf8\tT\t4\nblock\t\t0\t1\n", "the shape"),
        (HEADER + b"array\tf8\theat\t" + b"1x" * 32 + b"1\n", "the shape"),
        (HEADER + b"array\tf8\theat\t" + b"1" * 10_000_000 + b"\n", "the shape"),
        (HEADER + b"value\tf8\ta" + b"\t" * 30_000_000 + b"\n", "too many values"),
        (HEADER + b"value\tf8\ta\t1\n" * 1_000_001, "too many"),
    ],
)
def test_other_texts_are_refused(text: bytes, cause: str, program: Path) -> None:
    found = told(program, text)
    assert found.startswith("refused: ")
    assert cause in found
    assert len(found) < 250
