"""The options of commands for their pool and their name in it, and options of servers that run already."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

# The pool where none is named.
DEFAULT_POOL = "unix:default"


def add_pool_options(parser: argparse.ArgumentParser, command: str) -> None:
    """Adds ``--pool`` (`None` if neither the option nor ``$JUNCTURA_POOL`` names one) and ``--as``."""
    text = f"the pool ($JUNCTURA_POOL, else {DEFAULT_POOL})"
    parser.add_argument("--pool", default=os.environ.get("JUNCTURA_POOL") or None, metavar="URL", help=text)
    name = os.environ.get("JUNCTURA_NAME") or command
    parser.add_argument("--as", dest="name", default=name, metavar="NAME", help="the name of this client in the pool")


def ignored(
    url: str,
    stat: str,
    board: str | None,
    own: tuple[int, bool],
    stated: Mapping[str, Any],
    began_ns: int,
) -> str | None:
    """Returns which stated options a server does not have, since it ran before; None: it has all.

    Parameters
    ----------
    url
        The pool.
    stat, board
        Of the server; no board: it is on another machine.
    own
        Its `inline_max` and `checked`.
    stated
        The options of the call that opened the pool.
    began_ns
        When that call began, by the monotonic clock.

    """
    if board is not None and json.loads(board)["head"]["started_ns"] >= began_ns:
        return None
    found = list(_ignored(json.loads(stat), own, stated))
    if not found:
        return None
    return (
        f"the server of {url} runs already: {', '.join(found)}. Leave the options out, or end the server first: "
        f"`junctura pool stop --pool {url}`"
    )


def _ignored(stat: Mapping[str, Any], own: tuple[int, bool], stated: Mapping[str, Any]) -> Iterator[str]:
    spill = stat["spill"] or {}
    sizes = {
        "budget": stat["memory"]["budget_bytes"],
        "spill_size": spill.get("limit_bytes"),
        "inline_max": own[0],
    }
    for name, has in sizes.items():
        if stated[name] is not None and stated[name] != has and (has is not None or name != "spill_size"):
            yield f"{name}={_size(stated[name])} is ignored, it has {_size(has)}"
    if stated["spill"] is not None:
        folder = spill.get("directory")
        if folder is None or not _is_same(folder, stated["spill"]):
            yield f"spill={os.fspath(stated['spill'])} is ignored, it has {folder or 'none'}"
    if stated["checked"] and not own[1]:
        yield "checked=True is ignored, it has False"
    if stated["orphan_timeout"] is not None:
        yield f"orphan_timeout={stated['orphan_timeout']:g} is ignored, it keeps its own"
    names = [component["name"] for component in stat["until_gone"]]
    if stated["until_gone"] and set(stated["until_gone"]) != set(names):
        yield f"until_gone={','.join(stated['until_gone'])} is ignored, it has {','.join(names) or 'none'}"


def _is_same(one: str | os.PathLike[str], other: str | os.PathLike[str]) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


def _size(nbytes: int) -> str:
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if nbytes >= size and nbytes % size == 0:
            return f"{nbytes // size} {unit}"
    return f"{nbytes:,} bytes"
