"""One of those who fill a bundle together, and does what it is told, line by line.

``open PATH MEMBERS`` opens it (0 members: nobody says how many), ``stage FROM TO`` offers members of these numbers into
it, ``seal`` and ``abort`` do so. Each is answered with a line.
"""

from __future__ import annotations

import sys

import junctura


def main() -> None:
    url, rank = sys.argv[1], sys.argv[2]
    bundle: junctura.Bundle | None = None
    with junctura.Pool(url, name=f"bundler {rank}") as pool:
        print("ready", flush=True)
        for line in sys.stdin:
            verb, *words = line.split()
            try:
                if verb == "open":
                    bundle = pool.bundle(words[0], members=int(words[1]) or None, orphan_timeout=0.1)
                    path = words[0]
                elif verb == "stage":
                    assert bundle is not None
                    for number in range(int(words[0]), int(words[1])):
                        bundle.offer(b"payload", space=path, name=f"{rank}/{number}")
                elif verb == "seal":
                    assert bundle is not None
                    bundle.seal()
                else:
                    assert bundle is not None
                    bundle.abort()
                print("done", flush=True)
            except junctura.Error as error:
                print(type(error).__name__, error.cause, flush=True)


if __name__ == "__main__":
    main()
