"""One member of the ensemble: makes its fields step by step and hands each over by what it means."""

from __future__ import annotations

import argparse
import json
import os
import time

from fields import PARAMS, Encoder, Forecast

import junctura


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pool", help="where the pool is")
    parser.add_argument("forecast", type=Forecast.parse, help="what all processes agree on")
    parser.add_argument("number", type=int, help="which member this is")
    arguments = parser.parse_args()
    os.nice(10)  # where cores are few, the maps come first
    forecast, number = arguments.forecast, arguments.number

    encoder, offer_us = Encoder(forecast), []
    same: dict[str, object] = {"class": "rd", "expver": "demo", "stream": "enfo", "type": "pf", "levtype": "sfc"}
    same |= {"date": forecast.date, "time": 0}
    with junctura.Pool(arguments.pool) as pool:
        for hour in forecast.hours:
            for param in PARAMS:
                message = encoder.message(param, number, hour)
                begin = time.monotonic_ns()
                # The monotonic clock is the same for all processes of a machine.
                varying = {"number": number, "step": hour, "param": param, "tags": [f"offered:{begin}"]}
                pool.offer(message, same | varying)
                offer_us.append((time.monotonic_ns() - begin) / 1000)
    print(json.dumps({"offer_us": offer_us}))


if __name__ == "__main__":
    main()
