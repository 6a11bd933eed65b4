"""The types say what is there."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import junctura

# Python itself shows these from 3.12 on; type checkers want to know them always.
ALLOWED = r"junctura\._native\.(Allocation|Object|_Payload)\.__(release_)?buffer__"
# Names and parameters are compared. Without the types of others, which `make lint` reads, it takes a twentieth.
SETTINGS = """
[mypy]
strict = true
follow_imports = skip

[mypy-numpy.*]
follow_imports = skip
follow_imports_for_stubs = true
"""


def test_the_stub_agrees_with_the_module(tmp_path: Path) -> None:
    allowed, settings = tmp_path / "allowed", tmp_path / "mypy.ini"
    allowed.write_text(ALLOWED)
    settings.write_text(SETTINGS)
    options = ["--ignore-disjoint-bases", "--ignore-unused-allowlist", f"--allowlist={allowed}"]
    options.append(f"--mypy-config-file={settings}")
    command = [sys.executable, "-m", "mypy.stubtest", "junctura._native", *options]
    checked = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_everything_public_is_documented() -> None:
    missing = []
    for name in junctura.__all__:
        thing = getattr(junctura, name)
        if isinstance(thing, type):
            missing += [name] if not thing.__doc__ else []
            missing += [
                f"{name}.{member}"
                for member, value in vars(thing).items()
                if not member.startswith("_")
                and (inspect.isroutine(value) or inspect.isdatadescriptor(value))
                and not value.__doc__
            ]
    assert missing == []
