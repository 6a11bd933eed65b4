"""From the shell: what has left a pool, and is in the store behind it."""

from __future__ import annotations

from pathlib import Path

from e2e_shell import Shell


def test_what_has_left_the_pool_is_listed_and_got(shell: Shell, tmp_path: Path) -> None:
    store = tmp_path / "store"
    shell.run("create", "--store", store, "--schema", "free", "--quiet")
    for name in "abc":
        shell.run("put", "--schema", "free", "--set", f"name={name}", "-", stdin=name.encode())
    shell.run("archiver", "unix:test", "*", "--store", store, "--until-live", "--quiet")
    for name in "ac":
        shell.run("withdraw", "--schema", "free", f"name={name}")
    assert [one["attributes"]["name"] for one in shell.documents("ls", "--json")] == ["b"]
    listed = shell.documents("ls", "--json", "--behind", store)
    assert [(one["attributes"]["name"], one["place"]) for one in listed] == [
        ("a", "store"),
        ("b", "memory"),
        ("c", "store"),
    ]
    assert shell.text("ls", "--count", "--behind", store) == "3\n"
    assert shell.run("get", "--all", "--behind", store, "-o", "-").stdout == b"abc"
    assert shell.run("get", "name=c", "--behind", store).stdout == b"c"
    assert "c" in shell.error(3, "get", "name=c")
    assert "cannot be used with" in shell.error(2, "ls", "--behind", store, "--store", store)
    assert "junctura create" in shell.error(3, "ls", "--behind", tmp_path / "nowhere")
