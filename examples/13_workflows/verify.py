"""Verifies that so many members are in the pool of the run, each with all its fields, and that these are right."""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter

import junctura


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fields", type=int, required=True, help="how many each member has")
    parser.add_argument("--members", type=int, required=True, help="how many members there are")
    given = parser.parse_args()
    fields: Counter[str] = Counter()
    with junctura.Pool(os.environ["JUNCTURA_POOL"]) as pool:
        for entry in pool.list("kind=field"):
            with pool.demand(name=str(entry["name"]), timeout=0) as obj:
                if not (obj.array() == float(str(obj["value"]))).all():
                    print(f"{obj['name']} is not what was written", file=sys.stderr)
                    return 1
            fields[str(entry["member"])] += 1
    print(f"members {', '.join(sorted(fields)) or 'none'}: {fields.total()} fields are right")
    return 0 if list(fields.values()) == [given.fields] * given.members else 1


if __name__ == "__main__":
    sys.exit(main())
