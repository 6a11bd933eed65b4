"""Archives files of GRIB messages without a word on what they are, for ``store.py``; prints its figures as JSON.

``store_messages.py FOLDER MESSAGES``: the files of a folder, a flush after each. What a message is, its header says.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import junctura


def main() -> int:
    folder, archived = sys.argv[1:]
    paths = sorted(Path(archived).iterdir())
    with junctura.Store.create(folder, schema="mars") as store:
        began = time.perf_counter()
        objects = 0
        for path in paths:
            objects += store.archive_grib(path)
            store.flush()
        took = time.perf_counter() - began
    nbytes = sum(path.stat().st_size for path in paths)
    print(json.dumps({"objects_per_s": objects / took, "gib_per_s": nbytes / took / 2**30}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
