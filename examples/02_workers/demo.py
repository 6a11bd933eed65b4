"""A queue of tasks and two workers, one of which is killed in the middle of a task: all tasks are done."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

import numpy as np

import junctura

WORKER = Path(__file__).with_name("worker.py")


def start(pool: junctura.Pool, name: str, *options: str) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, str(WORKER), pool.url, name, *options], stdin=pipe, stdout=pipe, text=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=20, help="how many there are (at least 4)")
    parser.add_argument("--json", action="store_true", help="print what happened as JSON")
    arguments = parser.parse_args()
    if arguments.tasks < 4:
        parser.error("--tasks: at least 4")

    with junctura.Pool(schema="free") as pool:
        # The group stands before there is a worker: what is offered from now on is kept for it.
        pool.require("kind=task", name="workers", group=True)
        for number in range(arguments.tasks):
            pool.offer(np.arange(1000) + number, name=f"task/{number}", kind="task")

        broken = start(pool, "one", "--stuck-at", "3")
        assert broken.stdout is not None
        broken.stdout.readline()
        broken.kill()
        broken.communicate()

        with start(pool, "two") as sound, pool.follow("kind=result") as results:
            done: dict[int, dict[str, object]] = {}
            while len(done) < arguments.tasks:
                with next(results) as result:
                    number = int(str(result["name"]).partition("/")[2])
                    done[number] = {
                        "worker": result["worker"],
                        "again": result["again"] == "True",
                        "sum": int(bytes(result)),
                    }
            # Its members are told that there is nothing more to come.
            left = pool.retract("workers")
            sound.wait()

    again = sorted(number for number, one in done.items() if one["again"])
    wrong = [number for number, one in done.items() if one["sum"] != sum(range(number, number + 1000))]
    by = {name: sum(one["worker"] == name for one in done.values()) for name in ("one", "two")}
    if arguments.json:
        print(json.dumps({"done": len(done), "by": by, "again": again, "wrong": wrong, "left": left}))
    else:
        print(f"{len(done)} tasks done: one did {by['one']} before it was killed, two did {by['two']}")
        print(f"done by two after one had begun it: {', '.join(f'task/{number}' for number in again)}")
    sys.exit(1 if wrong or left > 1 else 0)


if __name__ == "__main__":
    main()
