"""From the shell: what has left a pool, and is in the store behind it."""

from __future__ import annotations

import asyncio
from pathlib import Path

from e2e_shell import Shell

import junctura
import junctura.aio


def test_what_has_left_the_pool_is_listed_and_got(shell: Shell, tmp_path: Path) -> None:
    store = tmp_path / "store"
    shell.run("store", "create", "--store", store, "--schema", "free", "--quiet")
    for name in "abc":
        shell.run("put", "--schema", "free", "--set", f"name={name}", "-", stdin=name.encode())
    shell.run("store", "archiver", "--pool", "unix:test", "*", "--store", store, "--until-live", "--quiet")
    for name in "ac":
        shell.run("pool", "withdraw", "--schema", "free", f"name={name}")
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
    assert "junctura store create" in shell.error(3, "ls", "--behind", tmp_path / "nowhere")


def test_a_task_follows_what_leaves_the_pool_before_it_was_given(shell: Shell, tmp_path: Path) -> None:
    """An archiver of its own keeps what is offered; it leaves the pool while a task holds all that it may."""
    store = tmp_path / "store"
    shell.run("store", "create", "--store", store, "--schema", "free", "--quiet")
    url = f"unix:{shell.folder}/junctura/test.sock"

    def offer_and_leave(names: str, *, archives: bool) -> None:
        for name in names:
            shell.run("put", "--schema", "free", "--set", f"name={name}", "-", stdin=name.encode())
        if archives:
            shell.run("store", "archiver", "--pool", "unix:test", "*", "--store", store, "--until-live", "--quiet")
        for name in names:
            shell.run("pool", "withdraw", "--schema", "free", f"name={name}")

    def shown(item: object) -> str:
        if isinstance(item, junctura.Object):
            assert bytes(item) == item["name"].encode()
            return str(item["name"])
        return "|" if isinstance(item, junctura.Live) else "?"

    async def story() -> None:
        with junctura.Pool(url, schema="free", store=store) as blocking:
            pool = junctura.aio.Pool(blocking)
            await pool.offer(b"a", name="a")
            async with asyncio.timeout(60), pool.follow("", window=1, gaps="yield", live="yield") as follow:
                said = shown(held := await follow.next())
                cursor = follow.cursor
                await asyncio.to_thread(offer_and_leave, "bc", archives=True)
                await asyncio.to_thread(offer_and_leave, "d", archives=False)
                await pool.offer(b"e", name="e")
                held.release()
                while not said.endswith("e"):
                    said += shown(await follow.next())
                assert said == "a|bc?e"
                follow = pool.follow("", cursor=cursor, gaps="ignore", live="yield")
                assert [shown(await follow.next()) for _ in range(4)] == ["|", "b", "c", "e"]
                await follow.close()

    asyncio.run(story())
