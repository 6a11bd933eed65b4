"""Payloads out of the pool: one, all, into files, down a pipe, now or when they come."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest
from e2e_grib import Field, message, split
from e2e_shell import JUNCTURA, Shell

import junctura


@pytest.fixture
def full(shell: Shell, file: Path) -> Shell:
    """A pool with the ensemble."""
    shell.run("put", file)
    return shell


def test_all_in_one_file_or_pipe(full: Shell, fields: dict[Field, bytes], tmp_path: Path) -> None:
    full.run("get", "--all", "-o", tmp_path / "all.grib2")
    assert sorted(split((tmp_path / "all.grib2").read_bytes())) == sorted(fields.values())
    wanted = [data for field, data in fields.items() if field.param == "u" and field.levelist == 850]
    assert sorted(split(full.run("get", "--all", "param=u", "levelist>500").stdout)) == sorted(wanted)


def test_a_file_each_named_by_attributes(full: Shell, fields: dict[Field, bytes], tmp_path: Path) -> None:
    full.run("get", "--all", "-o", tmp_path / "by", "--template", "{param}/{levelist}-{step}-{number}{ext}")
    for field, data in fields.items():
        path = tmp_path / "by" / field.param / f"{field.levelist}-{field.step}-{field.number}.grib"
        assert path.read_bytes() == data
    lines = full.documents("get", "--all", "--json", "-o", f"{tmp_path}/keys/")
    files = {Path(line["file"]).read_bytes() for line in lines[:-1]}
    assert files == set(fields.values())
    assert lines[-1]["objects"] == len(fields)
    assert len(list((tmp_path / "keys").iterdir())) == len(fields)


def test_two_objects_are_not_written_to_one_file(full: Shell, tmp_path: Path) -> None:
    assert "--template" in full.error(1, "get", "--all", "-o", tmp_path, "--template", "{param}")
    assert "below the folder" in full.error(2, "get", "--all", "--template", "../{param}")


def test_the_newest_that_matches(full: Shell, fields: dict[Field, bytes]) -> None:
    assert full.run("get", "param=u").stdout == list(fields.values())[-1]


def test_values_of_others_do_not_leave_the_folder(shell: Shell, tmp_path: Path) -> None:
    shell.run("put", "-", "--schema", "free", "--set", "name=../../escaped", stdin=b"x")
    inside = tmp_path / "a" / "b"
    shell.run("get", "--all", "-o", f"{inside}/", "--template", "{name}")
    assert [path.name for path in inside.iterdir()] == ["%2E.%2F..%2Fescaped"]


def test_a_get_waits_for_what_is_not_there_yet(shell: Shell, file: Path, fields: dict[Field, bytes]) -> None:
    joined = shell.watch("--kind", "joined")
    waiting = {field: shell.start("get", "--wait", field.selector()) for field in list(fields)[:3]}
    for _ in waiting:
        assert joined.document()["client"]["name"] == "junctura get"
    shell.run("put", file)
    for field, process in waiting.items():
        assert process.popen.communicate(timeout=60)[0] == fields[field]


def test_count_goes_on_until_all_came(shell: Shell, fields: dict[Field, bytes]) -> None:
    data = list(fields.values())
    shell.run("put", "-", stdin=data[0])
    get = shell.start("get", "--all", "--count", str(len(data)), "param=t/u", "-o", "-")
    assert get.popen.stdout is not None
    # Flushed, though more is to come.
    assert get.popen.stdout.read(len(data[0])) == data[0]
    shell.run("put", "-", stdin=b"".join(data[1:]))
    assert split(get.popen.communicate(timeout=60)[0]) == data[1:]
    said = shell.error(4, "get", "--all", "--count", "1000", "--timeout", "10ms", "-o", "/dev/null")
    assert f"{len(data)} of 1000" in said


def test_what_is_not_there_has_its_exit_status(full: Shell, tmp_path: Path) -> None:
    assert "NotFound" in full.error(3, "get", "param=z")
    assert "NotFound" in full.error(3, "get", "--all", "param=z")
    assert "Timeout" in full.error(4, "get", "param=z", "--timeout", "10ms")
    assert "required" in full.error(2, "get")
    out = tmp_path / "kept"
    out.write_text("old")
    full.error(3, "get", "--all", "param=z", "-o", out)
    assert out.read_text() == "old"
    assert {path.name for path in tmp_path.iterdir()} == {"kept", "ensemble.grib2"}


@pytest.mark.parametrize("command", ["get", "ls", "watch", "pool withdraw-all"])
def test_an_error_in_a_selector_points_at_the_character(full: Shell, command: str) -> None:
    said = full.error(2, *command.split(), "param=t,step=0/to").splitlines()
    assert "InvalidSelector" in said[-3]
    assert said[-2] == "  param=t,step=0/to"
    assert said[-1].endswith("^")


def test_a_mars_request_is_a_selector(full: Shell, fields: dict[Field, bytes]) -> None:
    got = full.run("get", "--all", "retrieve,class=OD,param=T,levelist=500/to/850/by/350,step=6").stdout
    wanted = [data for field, data in fields.items() if field.param == "t" and field.step == 6]
    assert sorted(split(got)) == sorted(wanted)


def test_a_reader_who_has_enough_is_no_failure(full: Shell) -> None:
    for command in (["ls"], ["ls", "--json"], ["get", "--all", "-o", "-"], ["schema", "show", "mars"]):
        reader, writer = os.pipe()
        os.close(reader)
        process = subprocess.run(
            [str(JUNCTURA), *command], env=full.environment, stdout=writer, stderr=subprocess.PIPE, check=False
        )
        os.close(writer)
        assert process.returncode == 0, process.stderr
        assert b"panicked" not in process.stderr
        assert b"pipe" not in process.stderr


def test_ctrl_c_ends_a_wait(shell: Shell, tmp_path: Path) -> None:
    joined = shell.watch("--kind", "joined")
    get = shell.start("get", "--wait", "param=t", "-o", tmp_path / "never")
    joined.document()
    get.signal(signal.SIGINT)
    status, _, said = get.end()
    assert status == 130
    assert "Interrupted" in said
    assert list(tmp_path.iterdir()) == []
    joined.signal(signal.SIGINT)
    assert joined.end()[0] == 130


def test_ctrl_c_ends_a_put_that_waits_for_its_pipe(shell: Shell) -> None:
    put = shell.start("put", "-", "-v", stdin=subprocess.PIPE)
    put.write(message(Field()))
    assert "param=t" in put.line()
    put.signal(signal.SIGINT)
    assert put.popen.wait(timeout=60) == 130
    assert shell.text("ls", "--count") == "1\n"


def test_follow_gives_what_is_there_and_what_comes(shell: Shell, tmp_path: Path) -> None:
    def put(name: str) -> None:
        shell.run("put", "-", "--schema", "free", "--set", f"name={name}", stdin=name.encode())

    put("early")
    get = shell.start("get", "--follow", "space=default", "--json", "-o", f"{tmp_path}/", "--template", "{name}")
    assert get.document()["file"] == f"{tmp_path}/early"
    put("late")
    # Each is there at once, and so is the line that says so.
    assert get.document()["attributes"]["name"] == "late"
    assert (tmp_path / "late").read_bytes() == b"late"
    get.signal(signal.SIGINT)
    status, _, said = get.end()
    assert status == 130
    assert "Interrupted" in said
    piped = shell.start("get", "--follow", "name=later", "--count", "1")
    put("later")
    assert piped.end()[:2] == (0, "later")


def test_follow_ends_as_it_was_told(shell: Shell, tmp_path: Path) -> None:
    shell.run("get", "--follow", "name=x", "--timeout", "10ms", "-o", f"{tmp_path}/")
    shell.error(4, "get", "--follow", "name=x", "--count", "1", "--timeout", "10ms", "-o", f"{tmp_path}/")
    joined = shell.watch("--kind", "joined")
    get = shell.start("get", "--follow", "name=x", "-o", "-")
    joined.document()
    shell.run("pool", "stop", "--now")
    status, _, said = get.end()
    assert status == 0
    assert "Closed" not in said and "the server has ended in order" in said
    assert "never be whole" in shell.error(2, "get", "--follow", "name=x", "-o", tmp_path / "one")
    for option in (["--count", "1"], ["--group", "g"], ["--sort", "name"]):
        assert "--all or --follow" in shell.error(2, "get", "name=x", *option)


STATES = """
name: states
same_key: supersede
key: {dataset: [], collocation: [], element: [name]}
attributes: {name: {type: string}}
"""


def test_a_newer_version_takes_the_place_of_the_one_before(bare: Shell, tmp_path: Path) -> None:
    (tmp_path / "states.yaml").write_text(STATES)
    bare.serve("--schema", str(tmp_path / "states.yaml"))
    get = bare.start("get", "--follow", "name=a", "--json", "-o", f"{tmp_path}/", "--template", "{name}")
    for state in (b"1", b"2"):
        bare.run("put", "-", "--set", "name=a", stdin=state)
        get.document()
        assert (tmp_path / "a").read_bytes() == state
    # Another version of what was counted is no other object.
    assert "1 of 2" in bare.error(4, "wait-for", "name=a", "--count", "2", "--timeout", "0s")
    # Copied, each is a version there, too.
    other = bare.start("pool", "serve", "--pool", "unix:other", "--schema", str(tmp_path / "states.yaml"))
    assert "serving" in other.said()
    copy = bare.start("cp", "unix:test", "unix:other", "name=a", "--follow", "--count", "2", "--json")
    first = copy.document()["version"]
    bare.run("put", "-", "--set", "name=a", stdin=b"3")
    assert copy.document()["version"] > first
    assert copy.end()[0] == 0
    assert bare.run("get", "name=a", "-o", "-", "--pool", "unix:other").stdout == b"3"


def test_an_object_that_no_file_can_be_named_after_keeps_no_other_from_its_file(bare: Shell, tmp_path: Path) -> None:
    bare.serve("--schema", "free")
    with junctura.Pool(f"unix:{bare.folder}/junctura/test.sock") as pool:
        for name in ("a", "x" * 1000, "z"):
            pool.offer(name.encode(), name=name)
        for space in ("one", "two"):
            pool.offer(b"taken", name="taken", space=space)
        get = ("get", "--all", "*", "-o", tmp_path / "out", "--template", "{name}")
        done = bare.run(*get, "--json", status=1)
        assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["a", "taken", "z"]
        assert done.stderr.decode().count("not written: ") == 2
        assert json.loads(done.stdout.splitlines()[-1])["not_written"] == 2
        # A member of a group leaves it to others.
        said = bare.error(1, *get, "--group", "workers")
        assert "not written: " not in said
