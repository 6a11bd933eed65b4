"""A reader that is in the way, for ``stuck.py``: ``stuck_reader.py URL NAME stuck|slow TERMS``, terms as JSON.

Both receive everything through a requirement with these terms, and say ``ready``. The stuck one takes what it is given
and releases nothing until its input ends; then it releases, and prints what it is told. The slow one works for two
milliseconds on each object, until one of ``class=rd`` comes, and prints how many there were.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import junctura

WORK_S = 0.002


def stuck(follow: junctura.Follow) -> dict[str, Any]:
    """Holds what its window lets it have; what it hears once it moves again."""
    held = [next(follow)]
    sys.stdin.read()
    held.clear()
    objects = 1
    while not isinstance(item := next(follow), junctura.Gap):
        objects += 1
        item.release()
    return {"objects": objects, "told": item.reason, "missed": len(item)}


def slow(follow: junctura.Follow) -> dict[str, Any]:
    """Takes its time, and counts."""
    objects, gaps = 0, 0
    for item in follow:
        if isinstance(item, junctura.Gap):
            gaps += len(item)
        elif item["class"] == "rd":
            break
        else:
            # What such a reader does with an object takes so long: the load has a pace.
            time.sleep(WORK_S)
            objects += 1
            item.release()
    return {"objects": objects, "gaps": gaps}


def main() -> None:
    url, name, way, terms = sys.argv[1:]
    with (
        junctura.Pool(url, name=name) as pool,
        pool.require("class=od/rd", **json.loads(terms)) as requirement,
        requirement.follow(window=8, gaps="yield") as follow,
    ):
        print("ready", flush=True)
        print(json.dumps(stuck(follow) if way == "stuck" else slow(follow)), flush=True)


if __name__ == "__main__":
    main()
