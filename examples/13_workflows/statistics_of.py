"""Decodes one field of wind from the pool of the run, and writes how strong it is into a file."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import eccodes

import junctura


def main(key: str, out: Path) -> None:
    with junctura.Pool(os.environ["JUNCTURA_POOL"]) as pool, pool.demand(key, timeout=0) as obj:
        handle = eccodes.codes_new_from_message(bytes(obj))
        values = eccodes.codes_get_values(handle)
        eccodes.codes_release(handle)
        said = {"step": int(obj["step"]), "max": float(values.max()), "min": float(values.min())}
    out.parent.mkdir(exist_ok=True)
    out.write_text(json.dumps(said))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
