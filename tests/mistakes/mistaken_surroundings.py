"""Where mistakes are made: a folder with files, a pool that is served, a store."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType

from typing_extensions import Self

ROOT = Path(__file__).resolve().parents[2]
BUILT = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / os.environ.get("JUNCTURA_PROFILE", "ci")
PROGRAMS = Path(__file__).parent / "programs"
FIELD = {
    "class": "od",
    "expver": "0001",
    "stream": "oper",
    "date": "20260101",
    "time": "0000",
    "type": "fc",
    "levtype": "pl",
    "step": 6,
    "levelist": 500,
    "param": "t",
}
WORKFLOW = 'workflow: right\ntasks:\n  one: {run: ["true"]}\n'
# A Python that finds no installed package.
BARE = '#!/bin/sh\nexec /usr/bin/env -u PYTHONPATH python3 -I -S "$@"\n'


class Surroundings:
    """A context: sockets apart from the user's, and one server for all mistakes."""

    def __init__(self) -> None:
        # Names of sockets are short, so the folders of tests are not for them.
        self._root = Path(tempfile.mkdtemp(prefix="mistakes-"))
        self.folder = self._root / "work"
        self._count = 0
        self._told: dict[str, dict[str, str]] = {}
        plain = {name: value for name, value in os.environ.items() if not name.startswith("JUNCTURA_")}
        path = f"{BUILT}:{Path(sys.executable).parent}:{plain['PATH']}"
        self._environment = {**plain, "XDG_RUNTIME_DIR": str(self._root), "PATH": path, "NO_COLOR": "1"}
        self._before = dict(os.environ)

    def __enter__(self) -> Self:
        os.environ.update(self._environment)
        self.folder.mkdir()
        self._fill()
        command = ["junctura", "pool", "serve", "--pool", "unix:model", "--budget", "1MiB", "--announce"]
        self._server = subprocess.Popen(command, env=self._environment, stdout=subprocess.PIPE, text=True)
        assert self._server.stdout is not None
        self._server.stdout.readline()
        self._environment["JUNCTURA_POOL"] = "unix:model"
        self._offer()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.terminate()
        self._server.communicate()
        os.environ.clear()
        os.environ.update(self._before)
        shutil.rmtree(self._root, ignore_errors=True)

    def _fill(self) -> None:
        (self.folder / "notes.txt").write_text("a note\n")
        (self.folder / "damaged.grib").write_bytes(b"GRIB" + bytes([0, 0, 0, 2]) + bytes(100))
        (self.folder / "right.yaml").write_text(WORKFLOW)
        (self.folder / "plain").mkdir()
        (self.folder / "plain/notes.txt").write_text("a note\n")
        bare = self.folder / "bare-python"
        bare.write_text(BARE)
        bare.chmod(0o755)

    def _offer(self) -> None:
        import junctura

        with junctura.Pool("unix:model") as pool:
            for name in ("a", "b"):
                pool.offer(b"a note", schema="free", name=name)
            pool.offer(b"a field", FIELD, schema="mars")
        with junctura.Store.create(self.folder / "archive") as store:
            store.archive(b"a note", schema="free", name="a")
            store.archive(b"a field", FIELD, schema="mars")

    def shell(self, command: str, folder: Path) -> subprocess.CompletedProcess[str]:
        """Runs a command line of a shell."""
        return subprocess.run(
            ["bash", "-c", command],
            cwd=folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def empty_folder(self) -> Path:
        """Returns a new folder."""
        self._count += 1
        folder = self._root / f"empty-{self._count}"
        folder.mkdir()
        return folder

    def without_places(self, message: str) -> str:
        """Returns a message without the paths of this run."""
        return message.replace(str(self._root), "/tmp/mistakes")

    def told(self, table: str) -> dict[str, str]:
        """Returns the messages of a program that makes all mistakes of a table, by the name of the call."""
        if table not in self._told:
            program = BUILT / "examples/mistakes" if table == "rust" else self._compiled()
            done = subprocess.run(
                [program, "unix:model"],
                cwd=self.folder,
                env=self._environment,
                capture_output=True,
                text=True,
                check=True,
            )
            lines = [line.partition("\t") for line in done.stdout.splitlines()]
            self._told[table] = {call: message.replace("\\n", "\n") for call, _, message in lines}
        return self._told[table]

    def _compiled(self) -> Path:
        """Compiles the program of C."""
        program = self._root / "mistakes"
        for name in ("libjunctura.so", "libjunctura.so.0"):
            (self._root / name).symlink_to(BUILT / "libjunctura_c.so")
        links = ["-L", str(self._root), "-ljunctura", f"-Wl,-rpath,{self._root}"]
        strict = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic"]
        source = str(PROGRAMS / "mistakes.c")
        subprocess.run(["gcc", *strict, "-I", str(ROOT / "c/include"), source, "-o", str(program), *links], check=True)
        return program
