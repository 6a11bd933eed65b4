"""An FDB in a folder, as tests fill it and ask it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

SIDE = Path(__file__).parent / "fdb_side.py"


class Fdb:
    """An FDB in a folder: `schema`, and the data in `root`."""

    def __init__(self, root: Path) -> None:
        home = os.environ.get("JUNCTURA_TEST_FDB")
        if home is None:
            pytest.skip("needs FDB: tests/run.py fdb")
        self.home = Path(home)
        self.python = self.home / "bin/python"
        self.root = root
        root.mkdir()

    def config(self) -> dict[str, Any]:
        """As FDB is configured."""
        spaces = [{"handler": "Default", "roots": [{"path": str(self.root / "root")}]}]
        return {"type": "local", "engine": "toc", "schema": str(self.root / "schema"), "spaces": spaces}

    def write(self, *fields: dict[str, Any] | None) -> None:
        """Archives fields; None is a flush."""
        self._side("write", "".join(json.dumps(field) + "\n" for field in fields))

    def fields(self) -> dict[str, bytes]:
        """What FDB has, by the key that it prints."""
        lines = map(json.loads, self._side("list").splitlines())
        return {printed(line["key"]): bytes.fromhex(line["bytes"]) for line in lines}

    def tool(self, name: str, *arguments: str) -> str:
        """What a program of FDB's prints."""
        program = next(self.home.glob(f"lib/python*/site-packages/fdb5lib/bin/{name}"))
        environment = {**os.environ, "FDB5_CONFIG": json.dumps(self.config())}
        return subprocess.run([program, *arguments], env=environment, capture_output=True, text=True, check=True).stdout

    def _side(self, what: str, given: str = "") -> str:
        command = [str(self.python), str(SIDE), what, str(self.root)]
        done = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout


def printed(key: list[dict[str, str]]) -> str:
    """A key of which only the order of the names is not FDB's."""
    levels = [",".join(f"{name}={text}" for name, text in sorted(level.items()) if text) for level in key]
    return "".join(f"{{{level}}}" for level in levels)


def in_order(key: str) -> str:
    """The same of a key that FDB or we have printed."""
    return printed([dict(pair.split("=", 1) for pair in level.split(",")) for level in key[1:-1].split("}{")])
