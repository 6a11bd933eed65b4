"""A store from the shell: files in, objects out by meaning, and errors that say what is wrong."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import subprocess
from pathlib import Path

import pytest
from e2e_grib import Field, message
from e2e_shell import DATA, Shell, key_of

Fields = dict[Field, bytes]


@pytest.fixture
def store(tmp_path: Path) -> list[str]:
    return ["--store", str(tmp_path / "archive")]


@pytest.fixture
def filled(bare: Shell, store: list[str], file: Path) -> list[str]:
    """A store with the ensemble."""
    bare.run("store", "archive", *store, "--create", file)
    return store


def test_messages_go_in_by_their_headers_and_come_out_byte_for_byte(
    bare: Shell, filled: list[str], fields: Fields, tmp_path: Path
) -> None:
    """D: archive, list and retrieve by the keys of a schema."""
    assert bare.text("ls", *filled, "--count") == f"{len(fields)}\n"
    for field, bytes_of_it in fields.items():
        bare.run("store", "retrieve", *filled, field.selector(), "-o", tmp_path / "one", "-q")
        assert (tmp_path / "one").read_bytes() == bytes_of_it
    everything = bare.run("store", "retrieve", *filled, "class=od", "-o", "-").stdout
    assert everything == b"".join(fields.values()), "in the order in which they were archived"


def test_all_of_a_command_becomes_visible_at_once(bare: Shell, filled: list[str], file: Path) -> None:
    told = bare.documents("store", "archive", *filled, "--json", file)
    summary = told.pop()
    assert {line["version"] for line in told} == {"2"}, "one commit"
    assert (summary["objects"], summary["failed"]) == (len(told), 0)
    assert bare.documents("ls", *filled, "--json", "--count")[0]["objects"] == len(told), "newer ones mask"
    assert bare.text("ls", *filled, "--all-versions", "--count") == f"{2 * len(told)}\n"
    assert bare.text("ls", *filled, "--all-versions", "--after", "1", "--count") == f"{len(told)}\n"
    assert {line["commit"] for line in bare.documents("store", "inspect", *filled, "--after", "1", "--json")} == {2}
    assert "nothing matches" in bare.error(3, "store", "inspect", *filled, "--after", "2")


def test_a_retrieval_waits_until_nothing_is_missing(bare: Shell, tmp_path: Path) -> None:
    store = ["--store", str(tmp_path / "waits")]
    bare.run("store", "create", *store, "--schema", "free", "--quiet")
    assert "missing: {name=a}" in bare.error(4, "store", "retrieve", *store, "name=a/b", "--timeout", "10ms", "-o", "-")
    waits = bare.start("store", "retrieve", *store, "name=a/b", "--wait", "-o", "-")
    for name in "ab":
        bare.run("store", "archive", *store, "-", "--schema", "free", "--set", f"name={name}", stdin=name.encode())
    assert waits.end()[:2] == (0, "ab")


def test_what_is_committed_is_told_as_it_comes(bare: Shell, tmp_path: Path) -> None:
    store = ["--store", str(tmp_path / "follows")]
    bare.run("store", "create", *store, "--schema", "free", "--quiet")
    told = bare.start("store", "inspect", *store, "name=a/c", "--follow", "--count", "2", "--json")
    for name in "abc":
        bare.run("store", "archive", *store, "-", "--schema", "free", "--set", f"name={name}", stdin=name.encode())
    status, lines, _ = told.end()
    assert status == 0
    found = [json.loads(line) for line in lines.splitlines()]
    assert [(line["key"], line["commit"]) for line in found] == [
        ("{space=default}{}{name=a}", 1),
        ("{space=default}{}{name=c}", 3),
    ]
    assert bare.text("store", "inspect", *store, "--after", "2", "--follow", "--timeout", "1ms").endswith("{name=c}\n")
    assert "1 more were expected" in bare.error(
        4, "store", "inspect", *store, "--follow", "--count", "4", "--timeout", "1ms"
    )


def test_what_is_damaged_leaves_nothing_behind(bare: Shell, filled: list[str], file: Path, tmp_path: Path) -> None:
    before = bare.text("ls", *filled, "--all-versions", "--count")
    damaged = tmp_path / "damaged.grib2"
    damaged.write_bytes(file.read_bytes()[:-3])
    assert "damaged.grib2: GRIB message" in bare.error(1, "store", "archive", *filled, damaged)
    assert bare.text("ls", *filled, "--all-versions", "--count") == before
    said = bare.error(1, "store", "archive", *filled, "--keep-going", damaged)
    assert "1 failed in all" in said


def test_a_pipe_is_flushed_every_so_often(bare: Shell, store: list[str], fields: Fields) -> None:
    messages = list(fields.values())[:7]
    archive = bare.start("store", "archive", *store, "--create", "--every", "3", "-v", "-", stdin=subprocess.PIPE)
    archive.write(b"".join(messages))
    seen = [archive.line() for _ in range(6)]
    assert [line.split()[0] for line in seen] == ["1", "1", "1", "2", "2", "2"]
    assert bare.text("ls", *store, "--count") == "6\n"
    status, out, _ = archive.end()
    assert (status, out.split()[0]) == (0, "3")


def test_ctrl_c_leaves_nothing_that_is_not_flushed(bare: Shell, store: list[str], fields: Fields) -> None:
    archive = bare.start("store", "archive", *store, "--create", "-v", "--every", "1", "-", stdin=subprocess.PIPE)
    archive.write(next(iter(fields.values())))
    assert archive.line().startswith("1 ")
    archive.signal(signal.SIGINT)
    assert archive.end()[0] == 130
    assert bare.text("ls", *store, "--count") == "1\n"


def test_other_files_are_described_by_the_user(bare: Shell, store: list[str], tmp_path: Path) -> None:
    picture = tmp_path / "plume.png"
    picture.write_bytes(b"\x89PNG picture")
    bare.run("store", "create", *store, "--schema", "free")
    bare.run("store", "archive", *store, picture, "--set", "run=7")
    (line,) = bare.documents("ls", *store, "--json")
    assert (line["schema"], line["attributes"]["run"], line["commit"]) == ("free", "7", 1)
    assert bare.run("store", "retrieve", *store, "name=plume.png", "-o", "-").stdout == b"\x89PNG picture"


def test_lists_are_ordered_by_key_or_by_an_attribute(bare: Shell, filled: list[str], fields: Fields) -> None:
    by_key = [line["attributes"] for line in bare.documents("ls", *filled, "--json")]
    place = [(line["step"], line["number"], line["levelist"]) for line in by_key]
    assert place == sorted(place)
    levels = [line["attributes"]["levelist"] for line in bare.documents("ls", *filled, "--json", "--sort", "levelist")]
    assert levels == sorted(levels)
    assert "no schema here has colour" in bare.error(2, "ls", *filled, "--sort", "colour", "param=t")
    tree = bare.documents("ls", *filled, "--tree", "--json")
    assert sum(line["objects"] for line in tree) == len(fields)
    assert "commit 1" in bare.text("ls", *filled, "--long")


def test_axes_are_the_cube(bare: Shell, filled: list[str], fields: Fields) -> None:
    (axes,) = bare.documents("store", "axes", *filled, "--json")
    assert axes["levelist"] == [str(level) for level in sorted({field.levelist for field in fields})]
    assert axes["param"] == sorted({field.param for field in fields})
    (part,) = bare.documents("store", "axes", *filled, "--json", "param=t,step=0")
    assert (part["param"], part["step"]) == (["t"], ["0"])
    assert "levelist=" in bare.text("store", "axes", *filled)


def test_what_is_missing_is_named(bare: Shell, filled: list[str], tmp_path: Path) -> None:
    said = bare.error(
        3, "store", "retrieve", *filled, "param=t,levelist=500,number=1,step=0/77/88", "-o", tmp_path / "no"
    )
    assert "step=77" in said and "step=88" in said and "step=0," not in said
    assert not (tmp_path / "no").exists()
    partial = bare.run("store", "retrieve", *filled, "--partial", "step=0/77,number=1", "-o", tmp_path / "some")
    assert "missing {step=77" in partial.stderr.decode()
    assert (tmp_path / "some").read_bytes()
    assert "nothing matches" in bare.error(3, "store", "inspect", *filled, "param=zz")
    request = "retrieve,class=od,param=t,levelist=500,step=0,number=1"
    assert bare.run("store", "retrieve", *filled, request, "-o", "-").stdout.startswith(b"GRIB")
    assert "at byte" in bare.error(2, "store", "retrieve", *filled, "param=t,step=0/to", "-o", "-")


def test_other_programs_read_what_inspect_shows(bare: Shell, filled: list[str], fields: Fields) -> None:
    lines = bare.documents("store", "inspect", *filled, "--json")
    found = set()
    for line in lines:
        path = Path(line["uri"].removeprefix("file://"))
        found.add(path.read_bytes()[line["offset"] :][: line["bytes"]])
    assert found == set(fields.values())
    first = bare.text("store", "inspect", *filled).splitlines()[0].split(" ", 3)
    assert (first[0], first[3]) == (lines[0]["uri"], key_of(lines[0]))


def test_damage_is_found_and_named(bare: Shell, store: list[str], tmp_path: Path) -> None:
    filled, fields = store, [Field(param=param, points=40_000) for param in "tuvq"]
    (tmp_path / "large.grib2").write_bytes(b"".join(map(message, fields)))
    bare.run("store", "archive", *store, "--create", tmp_path / "large.grib2")
    (summary,) = bare.documents("store", "check", *filled, "--json")
    assert (summary["objects"], summary["damaged"], summary["unnamed"]) == (len(fields), 0, [])
    (sample,) = bare.documents("store", "check", *filled, "--json", "--sample", "3")
    assert sample["objects"] == 3
    victim = bare.documents("store", "inspect", *filled, "--json", "param=t,levelist=500,step=0,number=1")[0]
    path = Path(victim["uri"].removeprefix("file://"))
    content = bytearray(path.read_bytes())
    content[victim["offset"] + 20] ^= 1
    path.write_bytes(content)
    done = bare.run("store", "check", *filled, status=1)
    assert victim["key"] in done.stdout.decode() and "1 of" in done.stderr.decode()
    assert "Corrupt" in bare.error(1, "store", "retrieve", *filled, "param=t,levelist=500,step=0,number=1", "-o", "-")
    # Everything else is still there.
    bare.run("store", "retrieve", *filled, "param=u", "-o", "-")


def test_checkpoints_and_compaction(bare: Shell, filled: list[str], file: Path, fields: Fields) -> None:
    bare.run("store", "archive", *filled, file)
    (checkpoint,) = bare.documents("store", "checkpoint", *filled, "--json")
    assert (checkpoint["commit"], checkpoint["rows"]) == (2, 2 * len(fields))
    assert bare.documents("store", "compact", *filled, "--json", "--dry-run") == [{"would_remove": []}]
    assert "removed 0 files" in bare.text("store", "compact", *filled)


def test_purge_removes_what_is_masked(bare: Shell, filled: list[str], file: Path, fields: Fields) -> None:
    bare.run("store", "archive", *filled, file)
    (would,) = bare.documents("store", "purge", *filled, "--json", "--dry-run")[-1:]
    assert (would["objects"], would["commit"]) == (len(fields), None)
    assert bare.text("ls", *filled, "--all-versions", "--count") == f"{2 * len(fields)}\n"
    removed = bare.documents("store", "purge", *filled, "--json")
    assert (len(removed) - 1, removed[-1]["commit"]) == (len(fields), 3)
    assert {line["commit"] for line in removed[:-1]} == {1}, "the older ones"
    assert bare.text("ls", *filled, "--all-versions", "--count") == f"{len(fields)}\n"
    assert bare.text("store", "purge", *filled).startswith("removed 0 objects")


def test_stat_says_how_much_there_is(bare: Shell, filled: list[str], file: Path, fields: Fields) -> None:
    bare.run("store", "archive", *filled, file)
    (stat,) = bare.documents("store", "stat", *filled, "--json")
    size = sum(map(len, fields.values()))
    assert (stat["objects"], stat["bytes"], stat["masked"]) == (len(fields), size, len(fields))
    mars = next(schema for schema in stat["schemas"] if schema["name"] == "mars")
    assert (mars["objects"], mars["datasets"], mars["masked_bytes"]) == (len(fields), 1, size)
    assert (stat["commit"], stat["commits"]["files"], stat["segments"]["files"]) == (2, 1, 0)
    on_disk = [path.stat().st_size for path in Path(filled[1], "data").glob("*/*")]
    assert (stat["data"]["files"], stat["data"]["bytes"]) == (len(on_disk), sum(on_disk))
    assert stat["data"]["used_bytes"] <= sum(on_disk) and stat["unneeded"] == {"files": 0, "bytes": 0}
    bare.run("store", "checkpoint", *filled)
    assert f"{len(fields)} masked versions" in bare.text("store", "stat", *filled)
    assert "checkpoint    at commit 2: 1 file" in bare.text("store", "stat", *filled)


def test_stores_are_compared(bare: Shell, filled: list[str], fields: Fields, tmp_path: Path) -> None:
    other = tmp_path / "other"
    same = bare.run("store", "compare", *filled, "--with", filled[1]).stdout.decode()
    assert same.startswith(f"{len(fields)} keys in both: 0 with other bytes")
    messages = list(fields.values())
    (tmp_path / "most.grib2").write_bytes(b"".join(messages[1:]))
    bare.run("store", "archive", "--store", other, "--create", tmp_path / "most.grib2")
    (tmp_path / "notes").write_text("notes")
    bare.run("store", "archive", "--store", other, tmp_path / "notes", "--schema", "free")
    done = bare.run("store", "compare", *filled, "--with", other, "--json", status=1)
    *differences, summary = map(json.loads, done.stdout.splitlines())
    assert [one["difference"] for one in differences] == ["only_first", "only_second"]
    assert (summary["both"], summary["only_first"], summary["only_second"]) == (len(fields) - 1, 1, 1)
    assert b"there are differences" in done.stderr
    assert "no object has" in bare.error(2, "store", "compare", *filled, "--with", other, "--ignore", "colour")
    bare.error(2, "store", "compare", *filled)


def test_experiments_in_one_store_are_compared(bare: Shell, store: list[str], fields: Fields, tmp_path: Path) -> None:
    messages = list(fields.values())[:4]
    for expver, some in (("1", messages), ("2", messages[:3])):
        (tmp_path / expver).write_bytes(b"".join(some))
        bare.run(
            "store",
            "archive",
            *store,
            "--create",
            tmp_path / expver,
            "--set",
            f"expver={expver}",
            "--set",
            f"units={expver}",
        )
    how = ["store", "compare", *store, "expver=1", "--to", "expver=2"]
    assert "4 in the first only, 3 in the second only" in bare.run(*how, "-q", status=1).stdout.decode()
    lines = bare.run(*how, "--ignore", "expver", status=1).stdout.decode().splitlines()
    assert [line.split(": ")[-1] for line in lines[:-1] if "units" in line] == ["units < 1 > 2"] * 3
    assert lines[-1].startswith("3 keys in both: 0 with other bytes, 3 with other attributes; 1 in the first only")
    documents = bare.run(*how, "--ignore", "expver,units", "--json", status=1).stdout.splitlines()
    assert [json.loads(line).get("difference") for line in documents] == ["only_first", None]
    said = bare.error(2, "store", "compare", *store, "--with", store[1], "--ignore", "number,step,param,levelist")
    assert "several objects have this key without number" in said


def test_a_wipe_has_to_be_meant(bare: Shell, filled: list[str], fields: Fields) -> None:
    count = sum(field.param == "t" for field in fields)
    assert f"would remove {count} objects" in bare.error(2, "store", "wipe", *filled, "param=t").replace("it w", "w")
    *keys, last = bare.text("store", "wipe", *filled, "param=t", "--dry-run").splitlines()
    assert f"would remove {count} objects" in last
    assert len(keys) == min(count, 21) and keys[0].startswith("commit ") and "param=t" in keys[0]
    assert len(bare.text("store", "wipe", *filled, "param=t", "--dry-run", "-v").splitlines()) == count + 1
    every = bare.text("store", "wipe", *filled, "*", "--dry-run").splitlines()
    assert len(every) == min(len(fields), 21) + 1
    assert len(fields) <= 20 or every[20] == f"and {len(fields) - 20} more: --verbose prints all"
    assert bare.text("ls", *filled, "--count") == f"{len(fields)}\n"
    assert len(bare.text("store", "wipe", *filled, "param=t", "--yes", "-v").splitlines()) == count + 1
    assert bare.text("ls", *filled, "--count") == f"{len(fields) - count}\n"
    assert "nothing matches" in bare.error(3, "store", "wipe", *filled, "param=t", "--yes")
    (axes,) = bare.documents("store", "axes", *filled, "--json")
    assert "t" not in axes["param"]


def test_a_store_is_made_once_and_opened_where_it_is(bare: Shell, store: list[str], tmp_path: Path) -> None:
    assert "junctura store create" in bare.error(3, "ls", *store)
    assert "a store for mars" in bare.run("store", "create", *store).stderr.decode()
    assert "AlreadyExists" in bare.error(1, "store", "create", *store)
    assert bare.text("ls", *store, "--count") == "0\n"
    assert bare.run("ls", "--store", f"file:{store[1]}", "--count").stdout == b"0\n"
    assert bare.run("store", "axes", JUNCTURA_STORE=store[1]).stdout == b""
    (tmp_path / "archive/store.json").write_text('{"format":"another","version":1}')
    assert "Corrupt" in bare.error(1, "ls", *store)
    folder = tmp_path / "other"
    folder.mkdir()
    assert "no store here" in bare.error(3, "ls", "--store", folder)
    shutil.rmtree(tmp_path / "archive")


def test_what_is_about_pools_is_refused(bare: Shell, filled: list[str], shell: Shell) -> None:
    assert "no bundles" in bare.error(2, "ls", *filled, "--incomplete")
    assert "about a store" in shell.error(2, "ls", "--all-versions")
    assert "about a store" in shell.error(2, "ls", "--after", "1")


def test_values_of_any_length_and_unicode(bare: Shell, store: list[str]) -> None:
    """From what is set to what is found, listed and shown, in a commit and in a segment."""
    values = ["", 'it\'s "quoted"', "two\nlines\r\t", "a=b,c={d}/e;*?%", "\\", "or", "\U0001f30d", "日本語"]
    values += ["x" * 1024, "\U0001f30d" * 256]
    bare.run("store", "create", *store, "--schema", "free", "--quiet")
    for value in values:
        more = ["--set", f"name={value}", "--set", f"note={value}"]
        bare.run("store", "archive", *store, "--schema", "free", *more, "-", stdin=value.encode())
    for _ in range(2):
        lines = bare.documents("ls", *store, "--json")
        assert sorted(line["attributes"]["name"] for line in lines) == sorted(values)
        assert all(line["attributes"]["note"] == line["attributes"]["name"] for line in lines)
        for line in lines:
            value = line["attributes"]["name"]
            name = line["key"].partition("{name=")[2][:-1]
            # As a key has it, so a selector does, and no line is broken.
            assert "\n" not in line["key"]
            for selector in (f"name={name}", f"note={name}"):
                assert bare.run("store", "retrieve", *store, selector, "-o", "-").stdout == value.encode(), selector
        (axes,) = bare.documents("store", "axes", *store, "--json")
        assert sorted(axes["name"]) == sorted(axes["note"]) == sorted(values)
        assert len(bare.text("ls", *store).splitlines()) == 1 + len(values)
        bare.run("store", "checkpoint", *store)


@pytest.mark.skipif(not DATA.is_dir(), reason="no ../shared/data")
def test_real_fields(bare: Shell, store: list[str]) -> None:
    bare.run("store", "create", *store)
    for path in sorted(DATA.glob("*.grib*")):
        if "corrupted" in path.name:
            assert path.name in bare.error(1, "store", "archive", *store, path)
            continue
        told = bare.documents("store", "archive", *store, "--json", "--keep-messages", path)[:-1]
        wanted = path.read_bytes()
        keys = {line["key"] for line in told}
        assert len(keys) == len(told) > 0, "no message of it masks another"
        (commit,) = {line["version"] for line in told}
        lines = [
            line
            for line in bare.documents("store", "inspect", *store, "--all-versions", "--json")
            if line["commit"] == int(commit)
        ]
        pieces = [
            Path(line["uri"].removeprefix("file://")).read_bytes()[line["offset"] :][: line["bytes"]] for line in lines
        ]
        assert sorted(keys) == sorted(map(key_of, lines))
        assert all(piece in wanted for piece in pieces)
        assert sum(map(len, pieces)) <= len(wanted)
    (summary,) = bare.documents("store", "check", *store, "--json")
    assert summary["damaged"] == 0 and summary["objects"] > 300


def test_packed_objects_are_told_and_come_back(bare: Shell, tmp_path: Path) -> None:
    store = ["--store", str(tmp_path / "packed")]
    bare.run(
        "store",
        "create",
        *store,
        "-q",
        "--schema",
        "free",
        "--compression",
        "zstd:9 space=small",
        "--compression",
        "lz4",
    )
    payload = bytes(range(100)) * 1000
    for space in ("small", "other"):
        (tmp_path / space).write_bytes(payload)
        bare.run("store", "archive", *store, "--set", f"space={space}", tmp_path / space)
    lines = {line["codec"]: line for line in bare.documents("store", "inspect", *store, "--json")}
    assert lines.keys() == {"zstd", "lz4"}
    for line in lines.values():
        assert line["bytes"] < len(payload) == line["unpacked_bytes"]
    assert f"{lines['zstd']['bytes']}(zstd) " in bare.text("store", "inspect", *store, "space=small")
    assert bare.run("store", "retrieve", *store, "space=small", "-o", "-").stdout == payload
    assert "zstd:LEVEL" in bare.error(2, "store", "create", "--store", tmp_path / "no", "--compression", "gzip")


def test_a_store_is_given_a_schema_that_gains_an_attribute(bare: Shell, tmp_path: Path) -> None:
    store, file, payload = ["--store", str(tmp_path / "results")], tmp_path / "results.yaml", tmp_path / "payload"
    text = "name: results\nkey: {dataset: [], collocation: [], element: [run]}\nattributes:\n  run: {type: integer}\n"
    file.write_text(text)
    payload.write_bytes(b"payload")

    def set_schema() -> str:
        return bare.run("schema", "set", *store, file).stderr.decode()

    bare.run("store", "create", *store, "-q", "--schema", file)
    bare.run("store", "archive", *store, "--set", "run=1", payload)
    assert set_schema().endswith("schema results is as it was\n")
    file.write_text(f"{text}  owner: {{type: string}}\n")
    assert set_schema().endswith("schema results has changed\n")
    bare.run("store", "archive", *store, "--set", "run=2", "--set", "owner=ada", payload)
    assert bare.text("ls", *store, "--count", "") == "2\n"
    assert bare.text("ls", *store, "--count", "owner=ada") == "1\n"
    assert "owner" in bare.text("schema", "show", *store, "results")
    names = [line["name"] for line in bare.documents("schema", "list", *store, "--json")]
    assert names[0] == "results"
    file.write_text(text.replace("results", "others"))
    assert set_schema().endswith("schema others is new\n")
    file.write_text(text.replace("integer", "string"))
    assert "the key has to stay" in bare.error(2, "schema", "set", *store, file)


def test_objects_are_moved_between_tiers(bare: Shell, filled: list[str], tmp_path: Path) -> None:
    """D: migration between tiers."""
    store, cold = filled, str(tmp_path / "cold")
    bare.run("store", "tier", *store, "cold", cold)
    assert bare.documents("store", "tier", *store, "--json") == [{"name": "cold", "place": cold}]
    before = bare.run("store", "retrieve", *store, "param=t", "-o", "-").stdout
    assert bare.text("store", "move", *store, "--to", "cold", "param=t", "--dry-run").startswith("would move ")
    (moved,) = bare.documents("store", "move", *store, "--to", "cold", "param=t", "--json")
    count = int(bare.text("ls", *store, "--count", "param=t"))
    assert (moved["objects"], moved["damaged"]) == (count, 0)
    for line in bare.documents("store", "inspect", *store, "--json", "param=t"):
        assert line["uri"].startswith(f"file://{cold}/tiers/cold/")
    assert bare.run("store", "retrieve", *store, "param=t", "-o", "-").stdout == before
    assert f"cold        {count} objects, " in bare.text("store", "stat", *store)
    assert bare.text("store", "check", *store).endswith("0 damaged\n")
    assert bare.text("store", "move", *store, "--to", "cold", "param=t") == "moved 0 objects, 0 B\n"
    assert "it has cold, data" in bare.error(3, "store", "move", *store, "--to", "warm", "param=t")
    assert "another place" in bare.error(2, "store", "tier", *store, "other", "relative")
    assert bare.text("store", "compact", *store, "--gather").startswith("gathered 0 objects")


S3 = {"AWS_ACCESS_KEY_ID": "test-key-id", "AWS_SECRET_ACCESS_KEY": "test-secret"}


def test_a_store_that_cannot_be_reached_is_named(bare: Shell) -> None:
    bare.environment |= S3
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"s3://bucket/x?endpoint=http://127.0.0.1:{closed.getsockname()[1]}&region=nowhere"
        said = bare.error(5, "ls", "--store", url)
    assert f"Unavailable: store {url}: store.json: cannot be read: the object store does not answer: " in said
    assert "Connection refused" in said and "check its endpoint, the network and proxies" in said


def test_a_store_that_is_silent_is_named_while_it_is_waited_for(bare: Shell) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"s3://bucket/x?endpoint=http://127.0.0.1:{silent.getsockname()[1]}&region=nowhere"
        bare.environment |= S3
        waits = bare.start("ls", "--store", url)
        assert waits.said() == f"junctura: waiting for the store {url}, which has not answered for 5 s"
        waits.kill()
