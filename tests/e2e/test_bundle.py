"""Bundles from the shell: put together, opened, sealed, aborted and looked at by their paths."""

from __future__ import annotations

from pathlib import Path

from e2e_grib import Field
from e2e_shell import Shell


def test_what_is_put_together_is_seen_together(shell: Shell, file: Path, fields: dict[Field, bytes]) -> None:
    watch = shell.watch("--kind", "offered,completed", "--count", str(len(fields) + 1))
    *objects, summary = shell.documents("put", "--bundle", "run/step=6", "--about", "step=6", "--json", file)
    assert summary["objects"] == len(fields)
    sequences = sorted(int(each["version"].split(".")[1]) for each in objects)
    assert sequences == list(range(1, len(fields) + 1))
    events = [watch.document() for _ in range(len(fields) + 1)]
    assert [int(event["version"].split(".")[1]) for event in events[:-1]] == sequences
    assert events[-1]["bundle"] == {"path": "run/step=6", "members": len(fields), "declared": None}
    (bundle,) = shell.documents("bundle", "list", "step=6", "--json")
    assert (bundle["path"], bundle["state"], bundle["members"]) == ("run/step=6", "visible", len(fields))
    assert bundle["attributes"] == {"step": "6"}
    assert shell.text("bundle", "list", "step=7") == ""
    assert shell.text("ls", "--count", "--bundle", "run/step=6") == f"{len(fields)}\n"
    assert "complete" in shell.error(1, "put", "--bundle", "run/step=6", file)
    assert "nothing" in shell.error(3, "ls", "--bundle", "nothing")


def test_several_put_their_parts_and_one_waits(shell: Shell, tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / name).write_bytes(name.encode() * 10_000)
    watch = shell.watch("--kind", "completed")
    shell.run("bundle", "open", "b", "--members", "3")
    put = ["put", "--schema", "free", "--bundle", "b", "--members", "3"]
    waiting = shell.start(*put, "--wait", "--verbose", tmp_path / "c")
    done = shell.run(*put, "--verbose", tmp_path / "a")
    assert done.stdout.decode().startswith("staged {space=default}{}{name=a}")
    assert "not complete" in done.stderr.decode()
    assert "3 members, not 4" in shell.error(1, "bundle", "open", "b", "--members", "4")
    shell.run(*put, tmp_path / "b")
    assert watch.document()["bundle"] == {"path": "b", "members": 3, "declared": 3}
    status, out, _ = waiting.end()
    assert status == 0
    assert out.splitlines()[0].split()[0].endswith(".3")
    assert shell.text("ls", "--count") == "3\n"


def test_one_is_looked_into_sealed_and_another_aborted(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"payload")
    watch = shell.watch("--kind", "completed,aborted")
    shell.run("put", "--schema", "free", "--bundle", "run/one", "--open", tmp_path / "a")
    shell.run("put", "--schema", "free", "--bundle", "run/two", "--open", "--set", "name=b", tmp_path / "a")
    assert shell.text("ls") == ""
    staged = shell.documents("ls", "--incomplete", "--json")
    assert [(each["attributes"]["name"], each["version"]) for each in staged] == [("a", None), ("b", None)]
    tree = shell.text("bundle", "list", "--tree").splitlines()
    assert tree[0] == "run"
    assert tree[1].startswith("  one  open, 1 member, 7 B, open 0 times, aborted in ")
    assert shell.documents("bundle", "show", "run/two", "--json")[0]["staged_bytes"] == 7
    assert shell.text("bundle", "seal", "run/one") == "run/one is complete: 1 object\n"
    assert shell.text("bundle", "abort", "run/two") == "run/two is aborted: 1 object freed\n"
    shell.error(3, "bundle", "seal", "run/two")
    assert [(event["event"], event["bundle"]["path"]) for event in (watch.document(), watch.document())] == [
        ("completed", "run/one"),
        ("aborted", "run/two"),
    ]
    assert len(shell.text("ls").splitlines()) == 2
    assert "1 completed, 1 aborted" in shell.text("stat")


def test_what_fails_publishes_nothing(bare: Shell, file: Path) -> None:
    bare.serve("--orphan-timeout", "1ms")
    watch = bare.watch("--kind", "aborted")
    damaged = file.with_name("damaged.grib2")
    damaged.write_bytes(file.read_bytes()[:-10])
    bare.error(1, "put", "--bundle", "b", damaged)
    event = watch.document()
    assert (event["bundle"]["path"], event["reason"]) == ("b", "all its producers are gone")
    assert event["bundle"]["members"] > 0
    assert bare.text("ls") == ""
