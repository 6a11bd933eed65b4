"""Consumer groups from the shell: made, shared, looked at, removed."""

from __future__ import annotations

import json
from pathlib import Path

from e2e_shell import Shell

import junctura


def put(shell: Shell, *names: str) -> None:
    for name in names:
        shell.run("put", "--quiet", "-", "--schema", "free", "--set", f"name={name}", stdin=b"payload")


def connect(shell: Shell) -> junctura.Pool:
    return junctura.Pool(f"unix:{shell.folder}/junctura/test.sock", name="a member", schema="free")


def test_a_group_is_made_listed_shown_and_removed(shell: Shell) -> None:
    assert shell.text("pool", "group", "list") == "no groups\n"
    assert shell.documents("pool", "group", "list", "--json") == []
    shell.run("pool", "require", "name=a/b/c", "--name", "workers", "--group", "--ttl", "1h")
    shell.run("pool", "require", "name=a", "--name", "plain")
    put(shell, "a", "b", "c")
    with connect(shell) as pool, pool.follow(group="workers", window=2) as follow:
        held = [follow.next(), follow.next()]
        [group] = shell.documents("pool", "group", "list", "--json")
        assert (group["name"], group["owed"], group["in_flight"]) == ("workers", 3, 2)
        assert group["group"]["waiting"] == 1
        assert group["group"]["members"][0]["name"] == "a member"
        assert shell.documents("pool", "group", "show", "workers", "--json")[0]["owed"] == 3
        listed = shell.text("pool", "group", "list")
        assert "workers" in listed
        assert "plain" not in listed
        shown = shell.text("pool", "group", "show", "workers")
        assert "a member" in shown
        assert "1 members" in shell.text("pool", "stat")
        assert len(held) == 2
    assert "NotFound" in shell.error(3, "pool", "group", "show", "plain")
    assert "NotFound" in shell.error(3, "pool", "group", "remove", "plain")
    assert shell.text("pool", "group", "remove", "workers") == "workers removed; it was still owed 3 objects\n"
    assert shell.text("pool", "group", "list") == "no groups\n"


def test_get_takes_a_share_and_makes_the_group_if_need_be(shell: Shell, tmp_path: Path) -> None:
    put(shell, "a", "b", "c")
    first = tmp_path / "first"
    shell.run(
        "get", "--all", "name=a/b/c", "--group", "workers", "--count", "2", "-o", f"{first}/", "--template", "{name}"
    )
    assert sorted(path.name for path in first.iterdir()) == ["a", "b"]
    rest = tmp_path / "rest"
    shell.run("get", "--all", "--group", "workers", "-o", f"{rest}/", "--template", "{name}")
    assert [path.name for path in rest.iterdir()] == ["c"]
    shell.run("get", "--all", "--group", "workers", "-o", f"{rest}/", "--template", "{name}")
    assert "Conflict" in shell.error(1, "get", "--all", "name=a", "--group", "workers", "-o", f"{rest}/")
    assert "NotFound" in shell.error(3, "get", "--all", "--group", "none", "-o", f"{rest}/")
    assert shell.documents("pool", "group", "remove", "workers", "--json") == [{"name": "workers", "owed": 0}]


def test_a_file_says_that_it_is_a_group(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "requirements.yaml"
    file.write_text("requirements:\n  workers: {selector: name=a, group: true}\n")
    shell.run("pool", "require", "-f", str(file))
    [group] = [json.loads(line) for line in shell.text("pool", "group", "list", "--json").splitlines()]
    assert group["selector"] == "name=a"
    assert group["group"]["member_count"] == 0
