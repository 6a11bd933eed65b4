"""A store that may only be read, or whose disk is full: errors say what is wrong, and all that is there is served."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from e2e_grib import Field
from e2e_shell import JUNCTURA, Shell

# To root, permissions are nothing without this.
BOUND = ["setpriv", "--bounding-set=-dac_override", "--inh-caps=-dac_override"] if os.geteuid() == 0 else []
# Mounts of its own, for a disk that is small.
NAMESPACES = (["unshare", "-m"], ["unshare", "-r", "-m"])

FULL = r"""
set -eu
mount -t tmpfs -o size=1m none "$room"
put() { "$junctura" store archive --store "$room/store" --schema free --set "name=$1" "$2" > "$told" 2>&1; }
fails() { if put "$1" "$2"; then echo "$1 was taken"; exit 9; fi; tr '\n' ' ' < "$told"; echo; }
got() { "$junctura" store retrieve --store "$room/store" "name=$1" -o - | cmp - "$2"; }
"$junctura" store create --store "$room/store" --schema free --quiet
put one "$small"
fails large "$large"
# What the failed archive had written is gone again: something else fills the disk.
head -c 2M /dev/zero > "$room/filler" 2> /dev/null && exit 8
fails two "$small"
got one "$small"
"$junctura" ls --store "$room/store" --count
mount -o remount,size=16m "$room"
put two "$small"
put large "$large"
got one "$small"
got two "$small"
got large "$large"
"$junctura" store check --store "$room/store" --json
"""


def bound(shell: Shell, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [*BOUND, str(JUNCTURA), *map(str, arguments)]
    return subprocess.run(command, env=shell.environment, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.skipif(bool(BOUND) and shutil.which("setpriv") is None, reason="no setpriv")
@pytest.mark.parametrize("commits", ["appended", "exclusive"])
def test_what_may_only_be_read_is_read(
    bare: Shell, tmp_path: Path, file: Path, fields: dict[Field, bytes], commits: str
) -> None:
    folder = tmp_path / "archive"
    store = ["--store", str(folder)]
    bare.run("store", "create", *store, "--schema", "mars", "--commits", commits, "--quiet")
    bare.run("store", "archive", *store, file)
    bare.run("store", "checkpoint", *store)
    bare.run("store", "archive", *store, file)
    (tmp_path / "large").write_bytes(bytes(1 << 20))
    key = "class=od,expver=1,stream=oper,date=20260101,time=0,type=fc,levtype=sfc,step=0,param=2t"
    large = [argument for pair in key.split(",") for argument in ("--set", pair)]
    everything = [folder, *folder.rglob("*")]
    for path in everything:
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        assert bound(bare, "ls", *store, "--count").stdout == f"{len(fields)}\n"
        for field, message in list(fields.items())[:3]:
            out = tmp_path / "one"
            assert bound(bare, "store", "retrieve", *store, field.selector(), "-o", out, "-q").returncode == 0
            assert out.read_bytes() == message
        assert bound(bare, "store", "check", *store).returncode == 0
        commit = "log/00000000000000000001" if commits == "appended" else "commits/"
        refused: list[tuple[list[str], str]] = [
            (["store", "archive", *store, str(file)], commit),
            (["store", "archive", *store, "--schema", "mars", *large, str(tmp_path / "large")], "data/"),
            (["store", "wipe", *store, "--yes", "param=t"], commit),
            (["store", "compact", *store], "segments/"),
            (["store", "checkpoint", *store], "segments/"),
        ]
        for arguments, named in refused:
            done = bound(bare, *arguments)
            assert done.returncode == 1, (arguments, done.stderr)
            assert "Denied" in done.stderr and named in done.stderr, (arguments, done.stderr)
        assert sorted([folder, *folder.rglob("*")]) == sorted(everything), "nothing is left of what was refused"
    finally:
        for path in everything:
            path.chmod(0o755 if path.is_dir() else 0o644)
    bare.run("store", "compact", *store)
    assert bare.text("ls", *store, "--all-versions", "--count") == f"{2 * len(fields)}\n"


def test_a_full_disk_is_told_and_written_on_when_there_is_room(bare: Shell, tmp_path: Path) -> None:
    room = tmp_path / "room"
    room.mkdir()
    mounts = ["sh", "-c", f"mount -t tmpfs none '{room}'"]
    able = [prefix for prefix in NAMESPACES if subprocess.run([*prefix, *mounts], check=False).returncode == 0]
    if not able:
        pytest.skip("no mounts for tests here")
    (tmp_path / "small").write_bytes(os.urandom(20_000))
    (tmp_path / "large").write_bytes(os.urandom(3 << 20))
    paths = {name: str(tmp_path / name) for name in ("room", "small", "large", "told")}
    environment = {**bare.environment, **paths, "junctura": str(JUNCTURA)}
    done = subprocess.run(
        [*able[0], "sh", "-c", FULL], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, (done.stdout, done.stderr)
    large, two, count, checked = done.stdout.splitlines()
    assert "data/" in large and "No space left" in large
    assert "log/00000000000000000001" in two and "No space left" in two
    assert count == "1"
    assert '"damaged":0' in checked.replace(" ", "")
