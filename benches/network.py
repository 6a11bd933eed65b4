"""Measures what a pool carries over TCP, in the clear and within TLS, beside a plain, tuned stream of the same machine.

One process offers, by memory that it shares with the server; one follows over a link and touches the first and the last
cache line of each payload. The plain stream is two processes: one writes, the other reads, no attributes, nothing
chosen. With several streams, the link has so many, and as many plain ones go at a time. Both go round and round
through as much memory, which is warm. All is on one machine, over loopback: client, server, link and producer share
its cores.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests/link"))

from harness import (
    BANDWIDTH,
    RATE,
    Bench,
    Case,
    Check,
    Contender,
    Figures,
    LeftOutError,
    Measure,
    begin,
    call,
    program,
    served,
)
from link_weather import Weather, free_port

MEMORY_BYTES = 256 << 20
SIZES = {"15MiB": 15 << 20, "804KiB": 804 << 10, "1KiB": 1 << 10}
WINDOWS = {"15MiB": 8, "804KiB": 16, "1KiB": 256}
# What a proxy does to each direction (toxiproxy).
WEATHERS: dict[str, list[tuple[str, dict[str, int]]]] = {
    "fair": [],
    "far": [("latency", {"latency": 10, "jitter": 5})],
    "sliced": [("slicer", {"average_size": 20_000, "size_variation": 15_000, "delay": 5})],
    "narrow": [("bandwidth", {"rate": 100_000})],
}
HOW = {"tcp": "in the clear", "tls": "TLS 1.3"}
STREAMS = (2, 4)
TRIP = Measure("trip_us", "us, p50", more_is_better=False)
OURS, PLAIN = "pool over a link", "plain stream"


@contextmanager
def with_gate(how: str) -> Iterator[tuple[str, str, dict[str, str]]]:
    """A server with a gate: its address, the gate's, and what a client needs in its environment."""
    environment = {"JUNCTURA_TRANSPORTS": "tcp"}
    options = ["--listen", "tcp://127.0.0.1:0", "--schema", "mars", "--budget", str(MEMORY_BYTES)]
    with tempfile.TemporaryDirectory(prefix="junctura-network-") as folder:
        if how == "tls":
            secrets, token = f"{folder}/secrets", f"{folder}/token"
            command = str(program("junctura"))
            call([command, "cert", secrets, "--host", "127.0.0.1"], 60)
            call([command, "token", "make", secrets, "--for", "bench", "--rights", "admin", "--out", token], 60)
            options += ["--security", secrets]
            environment |= {"JUNCTURA_TOKEN_FILE": token, "JUNCTURA_CA_FILE": f"{secrets}/ca.pem"}
        with served(*options) as server:
            near, far = server.addresses
            yield near, far, environment


@contextmanager
def weather(kind: str | None, gate: str) -> Iterator[str]:
    """The way to a gate: none, or through a proxy that makes bad weather."""
    if kind is None:
        yield gate
        return
    if not Weather.PROGRAM.exists():
        raise LeftOutError("toxiproxy is not here: tools/setup.sh makes it")
    one = Weather()
    try:
        road = one.road_to(gate)
        for toxic, attributes in WEATHERS[kind]:
            one.worsen(toxic, **attributes)
        yield road
    finally:
        one.close()


def run_load(how: str, *options: str, kind: str | None = None, streams: int = 1) -> dict[str, Any]:
    with with_gate(how) as (near, gate, environment), weather(kind, gate) as far:
        environment["JUNCTURA_STREAMS"] = str(streams)
        words = [f"{name}={value}" for name, value in environment.items()]
        load = ["load", "pool", "--pool", near, "--consume-from", far, "--warmup", "3s", "--json", *options]
        figures: dict[str, Any] = json.loads(call(["env", *words, str(program("junctura")), *load], 120))
    return figures


def through_link(how: str, size: str, seconds: float, kind: str | None = None, streams: int = 1) -> Figures:
    load = ["--size", size, "--window", str(WINDOWS[size]), "--duration", f"{seconds}s"]
    figures = run_load(how, *load, kind=kind, streams=streams)
    rate = figures["objects_per_s"]
    return {"objects_per_s": rate, "gib_per_s": rate * SIZES[size] / 2**30, "lost": figures["lost"]}


def plain(how: str, what: str, size: str, seconds: float, *road: str) -> Figures:
    call(["cargo", "build", "--quiet", "--release", "-p", "junctura-link", "--example", "plain_stream"], 1800)
    command = [
        str(program("examples/plain_stream")),
        how,
        what,
        str(SIZES[size]),
        str(seconds),
        str(MEMORY_BYTES),
        *road,
    ]
    figures: Figures = json.loads(call(command, 120))
    return figures


def several_plain(how: str, size: str, seconds: float, streams: int) -> Figures:
    """As many at a time, each with a pair of processes of its own."""
    with ThreadPoolExecutor(streams) as pool:
        each = list(pool.map(lambda _: plain(how, "stream", size, seconds), range(streams)))
    return {name: sum(one[name] for one in each) for name in ("objects_per_s", "gib_per_s")}


def streams_case(how: str, size: str, seconds: float) -> Case:
    touched = "first and last cache line by the consumer"
    window = f"window {WINDOWS[size]}"
    contenders = []
    for count in (1, *STREAMS):
        name = "one stream" if count == 1 else f"{count} streams"
        ours = ["load", "pool", how, size, f"JUNCTURA_STREAMS={count}"]

        def link(count: int = count) -> Figures:
            return through_link(how, size, seconds, streams=count)

        def beside(count: int = count) -> Figures:
            return several_plain(how, size, seconds, count)

        contenders.append(Contender(f"{OURS}, {name}", "us", window, touched, ours, link))
        command = [f"{count} x", "plain_stream", how, size]
        contenders.append(Contender(f"{PLAIN}, {count} x", "limit", "nothing", "copied by the kernel", command, beside))
    question = f"objects of {size} over {HOW[how]}, by links of one and of several streams"
    return Case(f"{how}-streams", question, BANDWIDTH, contenders)


def stream_case(how: str, size: str, seconds: float) -> Case:
    touched = "first and last cache line by the consumer"
    contenders = [
        Contender(
            OURS,
            "us",
            f"window {WINDOWS[size]}",
            touched,
            ["load", "pool", how, size],
            lambda: through_link(how, size, seconds),
        ),
        Contender(
            PLAIN,
            "limit",
            "nothing",
            "copied by the kernel",
            ["plain_stream", how, size],
            lambda: plain(how, "stream", size, seconds),
        ),
    ]
    small = size == "1KiB"
    checks = [Check(OURS, at_least=100_000)] if small else [Check(OURS, at_least=0.8, times=PLAIN)]
    question = f"objects of {size} from a producer of the server's machine to a consumer over {HOW[how]}"
    return Case(f"{how}-{size}", question, RATE if small else BANDWIDTH, contenders, checks)


def weather_case(kind: str, size: str, seconds: float) -> Case:
    def beside() -> Figures:
        port = free_port()
        with weather(kind, f"tcp://127.0.0.1:{port}") as road:
            return plain("tcp", "stream", size, seconds, f"127.0.0.1:{port}", road.removeprefix("tcp://"))

    window = f"window {WINDOWS[size]}"
    touched = "first and last cache line by the consumer"
    contenders = [
        Contender(
            OURS, "us", window, touched, ["load", "pool", kind], lambda: through_link("tcp", size, seconds, kind)
        ),
        Contender(PLAIN, "limit", "nothing", "copied by the kernel", ["plain_stream", kind], beside),
    ]
    did = ", ".join(f"{toxic} {attributes}" for toxic, attributes in WEATHERS[kind]) or "nothing but passing on"
    return Case(f"weather-{kind}", f"objects of {size} through a proxy: {did}", BANDWIDTH, contenders)


def trip_case(how: str, seconds: float) -> Case:
    def ours() -> Figures:
        options = ["--size", "1KiB", "--window", "1", "--rate", "1000", "--duration", f"{seconds}s"]
        figures = run_load(how, *options)
        return {"trip_us": figures["delivery_us"]["p50"], "delivery_us": figures["delivery_us"]}

    def echo() -> Figures:
        figures = plain(how, "echo", "1KiB", seconds)
        return {"trip_us": figures["round_trip_us"]["p50"], **figures}

    contenders = [
        Contender(
            "hand-over, offered to received", "us", "each", "read", ["load", "pool", how, "--rate", "1000"], ours
        ),
        Contender(
            "bare echo, there and back", "limit", "each", "copied by the kernel", ["plain_stream", how, "echo"], echo
        ),
    ]
    return Case(f"{how}-trip", f"1 KiB, one at a time, over {HOW[how]}", TRIP, contenders)


def main() -> int:
    bench: Bench = begin("network", "What does a pool carry over a network, beside a plain stream?")
    seconds = 0.5 if bench.quick else 4.0
    cases = [stream_case(how, size, seconds) for how in HOW for size in SIZES]
    cases += [streams_case(how, "15MiB", seconds) for how in HOW]
    cases += [weather_case(kind, "804KiB", seconds) for kind in WEATHERS]
    return bench.run([*cases, *(trip_case(how, seconds) for how in HOW)])


if __name__ == "__main__":
    sys.exit(main())
