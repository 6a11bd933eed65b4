"""A consumer: makes every message a second time and compares all bytes with those that came through the pool."""

from __future__ import annotations

import argparse
import json
import os

import numpy as np
from fields import SELECTOR, Encoder, Forecast

import junctura


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pool", help="where the pool is")
    parser.add_argument("forecast", type=Forecast.parse, help="what all processes agree on")
    arguments = parser.parse_args()
    os.nice(10)  # where cores are few, the maps come first
    forecast: Forecast = arguments.forecast
    encoder, seen, length, wrong = Encoder(forecast), set(), 0, []

    with junctura.Pool(arguments.pool) as pool:
        for found in pool.follow(SELECTOR):
            with found:
                expected = encoder.message(found["param"], found["number"], int(found["step"]))
                if not np.array_equal(np.frombuffer(memoryview(found), np.uint8), np.frombuffer(expected, np.uint8)):
                    wrong.append(found.key)
                if found.key in seen:
                    wrong.append(f"twice: {found.key}")
                seen.add(found.key)
                length += len(expected)
            if len(seen) == forecast.count:
                break
    print(json.dumps({"fields": len(seen), "bytes": length, "wrong": wrong}))


if __name__ == "__main__":
    main()
