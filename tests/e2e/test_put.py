"""Files become objects: GRIB by its headers, anything else as it is described."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest
from e2e_grib import Field, message
from e2e_shell import Shell, key_of


def test_each_message_is_an_object_with_the_attributes_of_its_header(
    shell: Shell, file: Path, fields: dict[Field, bytes]
) -> None:
    summary = shell.text("put", file)
    assert summary.startswith(f"{len(fields)} objects, ")
    for field, data in fields.items():
        assert shell.run("get", field.selector()).stdout == data
    attributes = shell.documents("ls", "--json", Field().selector())[0]["attributes"]
    expected = {
        "class": "od", "stream": "enfo", "expver": "0001", "date": "20260101", "time": "0000", "type": "pf",
        "levtype": "pl", "step": "0", "number": 1, "levelist": 500, "param": "t", "units": "K",
        "centre": "ecmf", "edition": 2,
    }  # fmt: skip
    assert expected.items() <= attributes.items()


def test_from_a_pipe_objects_are_there_while_it_is_open(shell: Shell, fields: dict[Field, bytes]) -> None:
    put = shell.start("put", "-", "--json", stdin=subprocess.PIPE)
    for data in fields.values():
        put.write(data)
        told = put.document()
        assert told["bytes"] == len(data)
        assert shell.run("get", told["key"]).stdout == data
    status, out, _ = put.end()
    assert status == 0
    assert f'"objects":{len(fields)}' in out


def test_what_is_set_stands_before_the_header(shell: Shell, file: Path) -> None:
    shell.run("put", file, "--set", "class=rd", "--set", "experimentVersion=abcd", "--set", "name=air temperature")
    for document in shell.documents("ls", "--json"):
        attributes = document["attributes"]
        assert (attributes["class"], attributes["expver"], attributes["name"]) == ("rd", "abcd", "air temperature")


def test_any_file_is_one_object(shell: Shell, tmp_path: Path) -> None:
    contents = {"a.bin": b"\0\1\2" * 100_000, "b.txt": b"", "c c.txt": b"text"}
    for name, data in contents.items():
        (tmp_path / name).write_bytes(data)
    shell.run("put", "--schema", "free", "--set", "kind=test", *sorted(tmp_path.iterdir()))
    for name, data in contents.items():
        assert shell.run("get", "--schema", "free", "--key", f"name={name}").stdout == data
    assert {entry["attributes"]["kind"] for entry in shell.documents("ls", "--json", "space=default")} == {"test"}


def test_standard_input_is_one_object_when_it_is_no_grib(shell: Shell) -> None:
    data = bytes(range(256)) * 20_000
    shell.run("put", "-", "--schema", "free", "--set", "name=piped", stdin=data)
    assert shell.run("get", "name=piped").stdout == data
    shell.run("put", "-", "--schema", "free", "--set", "name=nothing")
    assert shell.run("get", "name=nothing").stdout == b""


def test_grib_can_be_put_as_plain_bytes(shell: Shell, file: Path) -> None:
    shell.run("put", "--format", "bytes", "--schema", "free", file)
    assert shell.run("get", "name=ensemble.grib2").stdout == file.read_bytes()


@pytest.mark.parametrize("points", [300_000, 3_000_000])
def test_a_large_message_comes_whole_from_a_file_and_from_a_pipe(shell: Shell, tmp_path: Path, points: int) -> None:
    messages = [message(Field(number=number, points=points), number) for number in (1, 2, 3)]
    path = tmp_path / "large.grib2"
    path.write_bytes(messages[0] + b"between" + messages[1])
    shell.run("put", path)
    shell.run("put", "-", stdin=b"before" + messages[2] + b"after")
    for number, data in enumerate(messages, start=1):
        assert shell.run("get", f"number={number}").stdout == data


def damaged() -> bytes:
    data = bytearray(message(Field(number=2)))
    data[-1] = ord("8")
    return bytes(data)


@pytest.mark.parametrize(
    ("bad", "what"), [(damaged(), "no 7777"), (message(Field(number=2))[:100], "100 are present"), (b"GRIB", "GRIB")]
)
def test_a_damaged_message_is_named_and_what_was_good_before_it_is_there(
    shell: Shell, tmp_path: Path, bad: bytes, what: str
) -> None:
    good = message(Field(number=1))
    path = tmp_path / "damaged.grib2"
    path.write_bytes(good + bad)
    done = shell.run("put", path, status=1)
    said = done.stderr.decode()
    assert "Corrupt" in said
    assert str(path) in said
    assert f"message 2 at byte {len(good)}" in said
    assert what in said
    assert done.stdout.startswith(b"1 object, ")
    assert shell.run("get", "param=t").stdout == good


def test_keep_going_puts_what_is_good_after_it_too(shell: Shell, tmp_path: Path) -> None:
    good = [message(Field(number=number)) for number in (1, 3)]
    path = tmp_path / "damaged.grib2"
    path.write_bytes(good[0] + damaged() + good[1])
    said = shell.error(1, "put", "--keep-going", path)
    assert "message 2" in said
    assert [shell.run("get", f"number={number}").stdout for number in (1, 3)] == good
    assert shell.text("ls", "--count") == "2\n"


def test_a_key_that_is_taken_is_refused_and_named(shell: Shell, file: Path, fields: dict[Field, bytes]) -> None:
    shell.run("put", file)
    said = shell.error(1, "put", file)
    assert "AlreadyExists" in said
    assert "message 1" in said
    assert "param=t" in said
    assert shell.text("ls", "--count") == f"{len(fields)}\n"


def test_an_object_can_stay_until_it_was_released(shell: Shell, file: Path, fields: dict[Field, bytes]) -> None:
    field, data = next(iter(fields.items()))
    shell.run("put", "--retention", "released:1", file)
    key = key_of(shell.documents("ls", "--json", field.selector())[0])
    assert shell.run("get", key).stdout == data
    assert "Gone" in shell.error(3, "get", key)
    assert shell.text("ls", "--count") == f"{len(fields) - 1}\n"


def test_objects_go_when_their_time_is_over(bare: Shell, tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text(
        "name: own\nretention: {for: 20ms}\nkey: {dataset: [name]}\nattributes: {name: {type: string}}\n"
    )
    bare.serve("--schema", str(tmp_path / "own.yaml"))
    assert "retention: {for: 20ms}\n" in bare.text("schema", "show", "own", "--pool", bare.pool)
    watch = bare.watch("--kind", "expired")
    put = ("put", "--quiet", "-", "--set")
    bare.run(*put, "name=kept", "--retention", "withdrawn", stdin=b"kept")
    bare.run(*put, "name=of-the-schema", stdin=b"gone")
    assert watch.document()["attributes"]["name"] == "of-the-schema"
    bare.run(*put, "name=of-the-offer", "--retain", "1ms", stdin=b"gone")
    assert watch.document()["attributes"]["name"] == "of-the-offer"
    bare.run(*put, "name=long", "--retention", "2d", stdin=b"there")
    assert [document["attributes"]["name"] for document in bare.documents("ls", "--json")] == ["kept", "long"]
    assert "expired" in bare.error(3, "get", "--key", "name=of-the-offer")
    assert bare.stat()["totals"]["expired"] == 2


def test_objects_stay_for_groups_that_are_still_to_come(shell: Shell) -> None:
    put = ("put", "--quiet", "-", "--schema", "free", "--retention", "released_by:archive,products", "--set")
    shell.run(*put, "name=a", stdin=b"payload")
    shell.run("pool", "require", "name=a", "--name", "archive", "--group")
    assert "the requirement products, which does not exist yet: 1 objects" in shell.text("pool", "stat")
    shell.run("pool", "require", "name=b", "--name", "products")
    assert shell.stat()["awaited"] == []
    shell.run(*put, "name=b", stdin=b"payload")
    shell.run(*put, "name=c", stdin=b"nobody wants it")
    assert [document["attributes"]["name"] for document in shell.documents("ls", "--json")] == ["a", "b"]
    shell.run("get", "--all", "--group", "archive")
    assert shell.text("ls", "--count") == "1\n"


def test_bad_input_is_named(shell: Shell, file: Path, tmp_path: Path) -> None:
    (tmp_path / "plain.txt").write_text("plain")
    assert "class" in shell.error(2, "put", tmp_path / "plain.txt")
    assert "--schema free" in shell.error(2, "put", tmp_path / "plain.txt")
    assert "no/such/file" in shell.error(1, "put", "no/such/file")
    assert "directory" in shell.error(2, "put", tmp_path)
    assert "levelist" in shell.error(2, "put", file, "--set", "levelist=high")
    assert "colour" in shell.error(2, "put", file, "--set", "colour=red")
    assert "NotFound: schema other" in shell.error(3, "put", file, "--schema", "other")
    assert "NAME=VALUE" in shell.error(2, "put", file, "--set", "class")
    assert "released:N" in shell.error(2, "put", file, "--retention", "2 days")
    assert shell.text("ls", "--count") == "0\n"


def test_a_full_pool_says_what_fills_it(bare: Shell, tmp_path: Path) -> None:
    bare.serve("--budget", "8MiB")
    for name in ("a", "b", "c"):
        (tmp_path / name).write_bytes(bytes(3 << 20))
    said = bare.error(6, "put", "--schema", "free", "--timeout", "0s", *(tmp_path / name for name in "abc"))
    assert "PoolFull" in said
    (tmp_path / "huge").write_bytes(bytes(9 << 20))
    assert "TooLarge" in bare.error(2, "put", "--schema", "free", tmp_path / "huge")


def test_a_full_pool_is_waited_for(bare: Shell, tmp_path: Path) -> None:
    bare.serve("--budget", "8MiB")
    for name in "abcdefgh":
        (tmp_path / name).write_bytes(name.encode() * (2 << 20))
    put = bare.start(
        "put", "-v", "--schema", "free", "--retention", "released:1", *(tmp_path / name for name in "abcdefgh")
    )
    for name in "abcdefgh":
        assert bare.run("get", "--wait", f"name={name}").stdout == name.encode() * (2 << 20)
    assert put.end()[0] == 0
    assert bare.stat()["objects"]["visible"] == 0


def test_a_wait_for_memory_is_reported_with_its_cause_and_its_remedy(bare: Shell) -> None:
    bare.serve("--budget", "1MiB", "--schema", "free")
    field = bytes(400_000)
    bare.run("put", "-", "--set", "name=a", stdin=field)
    bare.run("put", "-", "--set", "name=b", stdin=field)
    put = bare.start("put", "-", "--set", "name=c", stdin=subprocess.PIPE)
    put.write(field)
    assert put.popen.stdin is not None
    put.popen.stdin.close()
    put.popen.stdin = None
    assert put.said().startswith("junctura: put waits: memory is full, at most ")
    kept = "  most memory is kept by objects that stay until they are withdrawn: 2 objects, "
    assert put.said().startswith(kept)
    assert put.said().startswith("    for example {space=default}{}{name=a}")
    assert "`junctura pool withdraw-all SELECTOR` frees it" in put.said()
    bare.run("pool", "withdraw-all", "name=a")
    status, out, said = put.end()
    assert (status, said) == (0, "") and out.startswith("1 object, ")


def test_a_file_that_fails_keeps_no_other_from_the_pool(shell: Shell, file: Path, tmp_path: Path) -> None:
    names = ("a", "b", "c")
    for name in names:
        (tmp_path / name).write_bytes(name.encode())
    files = [tmp_path / "a", tmp_path / "missing", tmp_path / "b", tmp_path, tmp_path / "c"]
    said = shell.error(1, "put", "--schema", "free", *files)
    assert f"{tmp_path}/missing: No such file" in said
    assert f"{tmp_path}: is a directory" in said
    assert "(2 failed in all, 3 are there)" in said
    assert [entry["attributes"]["name"] for entry in shell.documents("ls", "--json")] == ["a", "b", "c"]
    # The first error decides: a key that is taken, then a damaged file.
    damaged = tmp_path / "damaged.grib"
    damaged.write_bytes(b"GRIB" + bytes([0, 0, 0, 2]) + bytes(100))
    said = shell.error(1, "put", tmp_path / "b", damaged, file, "--schema", "free", "--set", "name=b", "--strict")
    assert "AlreadyExists" in said
    # A store has all files of a command, or none.
    archive = ("store", "archive", "--create", "--store", tmp_path / "store", "--schema", "free")
    assert "missing: No such file" in shell.error(1, *archive, *files[:3])
    assert shell.text("ls", "--store", tmp_path / "store", "--count") == "0\n"
    # One file alone ends with its error.
    assert "failed in all" not in shell.error(1, "put", "--schema", "free", tmp_path / "missing")


def test_the_schema_that_applied_is_shown(shell: Shell, file: Path, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"text")
    assert (
        shell.text("put", "--verbose", tmp_path / "a.txt", "--schema", "free")
        .splitlines()[0]
        .endswith(" {space=default}{}{name=a.txt} (schema free)")
    )
    assert {one.get("schema") for one in shell.documents("put", "--json", file)[:-1]} == {"mars"}
    said = shell.error(2, "put", tmp_path / "a.txt", "--set", "step=six")
    assert '"six" is no step' in said
    assert "the schema is mars, the default of the pool" in said
    said = shell.error(2, "put", tmp_path / "a.txt")
    assert said.count("any attributes may be given") == 1
    assert "the schema is mars, the default of the pool; " in said
    assert "; with --schema free any attributes may be given" in said
    store = tmp_path / "store"
    said = shell.error(2, "store", "archive", "--create", "--store", store, tmp_path / "a.txt", "--set", "step=six")
    assert "the schema is mars, the first one, since --schema names none" in said


def test_a_schema_can_be_named_by_its_file(shell: Shell, tmp_path: Path) -> None:
    schema = tmp_path / "runs.yaml"
    key = "key: {dataset: [], collocation: [], element: [run]}"
    schema.write_text(f"name: runs\n{key}\nattributes:\n  run: {{type: integer}}\n")
    (tmp_path / "a").write_bytes(b"text")
    store = tmp_path / "store"
    shell.run("store", "create", "--store", store, "--quiet")
    archive = ("store", "archive", "--store", store, tmp_path / "a", "--set", "run=1", "--schema")
    said = shell.error(3, *archive, schema)
    add = shlex.join(["junctura", "schema", "set", str(schema), "--store", str(store)])
    assert f"schema runs of {schema}: the schema is not there yet; `{add}` adds it" in said
    shell.run(*shlex.split(add)[1:])
    assert shell.text(*archive, schema).startswith("1 object, ")
    schema.write_text(schema.read_text() + "  owner: {type: string}\n")
    assert "the schema of this name differs (attribute owner: here, but not there)" in shell.error(2, *archive, schema)
    said = shell.error(3, "put", tmp_path / "a", "--schema", schema)
    assert f"`junctura pool serve --schema {shlex.quote(str(schema))}`" in said


def test_an_attribute_is_set_once_and_is_no_option(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"text")
    put = ("put", tmp_path / "a", "--schema", "free", "--set")
    said = shell.error(2, *put, "name=a", "--set", "name=b")
    assert "InvalidArgument: name: the attribute is given twice: --set name=a and --set name=b" in said
    said = shell.error(2, "put", tmp_path / "a", "--set", "levelist=1", "--set", "level=2")
    assert "the attribute is given twice: --set levelist=1 and --set level=2" in said
    assert "the name before = is missing" in shell.error(2, *put, "=b")
    assert "there is no value: NAME=VALUE is expected, such as a=1" in shell.error(2, *put, "a")
    said = shell.run(*put, "retenton=archived").stderr.decode()
    assert "--set retenton=archived adds an attribute to the object; --retention is an option of its own" in said
    assert shell.documents("ls", "--json")[0]["attributes"]["retenton"] == "archived"


def test_objects_for_a_broken_requirement_are_not_lost_in_silence(bare: Shell, tmp_path: Path) -> None:
    bare.serve("--schema", "free", "--budget", "4MiB", "--stuck-after", "500ms")
    bare.run("pool", "require", "*", "--name", "archive")
    files = [tmp_path / f"{number}.bin" for number in range(6)]
    for file in files:
        file.write_bytes(bytes(1 << 20))
    # The fifth one waits until the requirement, which has no reader, is broken.
    said = bare.error(3, "put", *files, "--retention", "archived")
    assert "Gone: requirement archive: it is broken" in said
    # Objects with another retention stay.
    bare.run("put", files[0], "--set", "name=kept")
    assert bare.text("ls", "--count") == "1\n"
