"""A store in an object store, from the shell: the story of one in a folder, and what can be wrong with the place."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from e2e_grib import Field
from e2e_shell import Shell

Fields = dict[Field, bytes]


def test_a_store_in_a_bucket_is_as_one_in_a_folder(
    bare: Shell, url: str, file: Path, fields: Fields, tmp_path: Path
) -> None:
    store = ["--store", url]
    assert "no store here" in bare.error(3, "ls", *store)
    assert "a store for mars" in bare.run("store", "create", *store).stderr.decode()
    assert "AlreadyExists" in bare.error(1, "store", "create", *store)
    *_, summary = bare.documents("store", "archive", *store, "--json", file)
    assert (summary["objects"], summary["failed"]) == (len(fields), 0)
    # Larger than what goes along with the commit.
    large = tmp_path / "large"
    large.write_bytes(bytes(range(256)) * 40_000)
    bare.run("store", "archive", *store, "--schema", "free", large)
    assert bare.text("ls", *store, "--count") == f"{len(fields) + 1}\n"
    everything = bare.run("store", "retrieve", *store, "class=od", "-o", "-").stdout
    assert everything == b"".join(fields.values()), "in the order in which they were archived"
    assert bare.run("store", "retrieve", *store, "name=large", "-o", "-").stdout == large.read_bytes()
    (axes,) = bare.documents("store", "axes", *store, "--json", "class=od")
    assert axes["param"] == sorted({field.param for field in fields})
    assert {line["uri"].split("/")[2] for line in bare.documents("store", "inspect", *store, "--json")} == {"fields"}

    bare.run("store", "archive", *store, "--quiet", file)
    assert bare.text("store", "purge", *store).startswith(f"removed {len(fields)} objects")
    bare.run("store", "wipe", *store, "class=od", "--yes")
    assert bare.text("ls", *store, "--count") == "1\n"
    (checked,) = bare.documents("store", "check", *store, "--json")
    assert (checked["objects"], checked["damaged"], checked["unnamed"]) == (1, 0, [])
    bare.run("store", "compact", *store)
    assert bare.run("store", "retrieve", *store, "name=large", "-o", "-").stdout == large.read_bytes()


def test_only_the_data_lie_in_a_bucket(bare: Shell, url: str, tmp_path: Path) -> None:
    store = ["--store", str(tmp_path / "catalogue")]
    bare.run("store", "create", *store, "--data", url, "--schema", "free")
    large = tmp_path / "large"
    large.write_bytes(b"large" * 100_000)
    bare.run("store", "archive", *store, large)
    assert not (tmp_path / "catalogue/data").exists()
    assert bare.run("store", "retrieve", *store, "name=large", "-o", "-").stdout == large.read_bytes()


@pytest.mark.parametrize("pattern", ["a", "b"])
def test_a_bucket_is_loaded_as_a_folder_is(bare: Shell, url: str, pattern: str) -> None:
    words = ["--writers", "2", "--pattern", pattern, "--size", "10KiB", "--scale", "0.02", "--json"]
    (row,) = bare.documents("load", "store", "--store", url, *words)
    assert (row["lost"], row["damaged"]) == (0, 0)
    assert row["write_per_s"] > 0 and row["read_per_s"] > 0 and row["limit_write_per_s"] > 0
    assert int(bare.text("ls", "--store", url, "--count")) == row["run"]["objects"]


def test_commands_at_once_lose_nothing(bare: Shell, url: str, tmp_path: Path) -> None:
    store = ["--store", url]
    bare.run("store", "create", *store, "--schema", "free")
    names = [f"{number}" for number in range(8)]
    for name in names:
        (tmp_path / name).write_text(name)
    archiving = [
        bare.start("store", "archive", *store, tmp_path / name, "--schema", "free", stdin=subprocess.DEVNULL)
        for name in names
    ]
    assert [command.end()[0] for command in archiving] == [0] * len(names)
    found = bare.documents("ls", *store, "--json")
    assert sorted(line["attributes"]["name"] for line in found) == names
    assert sorted(int(line["commit"]) for line in found) == list(range(1, len(names) + 1))


def test_what_is_wrong_with_the_place_is_said_without_secrets(bare: Shell, url: str) -> None:
    secret = os.environ["AWS_SECRET_ACCESS_KEY"]
    said = [
        bare.error(2, "store", "create", "--store", url, "--commits", "appended"),
        bare.error(3, "store", "create", "--store", url.replace("s3://fields", "s3://nonesuch")),
        bare.error(2, "ls", "--store", f"s3://key:{secret}@fields/a"),
        bare.run("store", "create", "--store", url, status=1, AWS_SECRET_ACCESS_KEY="guessed").stderr.decode(),
    ]
    for cause, text in zip(["exclusive", "no such bucket", "AWS_ACCESS_KEY_ID", "Denied"], said, strict=True):
        assert cause in text and secret not in text and "guessed" not in text
