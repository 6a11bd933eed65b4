"""Loads over bad links: they complete, and every promise is held as the judges of histories see it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from e2e_shell import Process, Shell
from link_weather import Weather
from storm_run import SPACE, check

SECONDS = 3
CUTS = 5
PEOPLE = ["--producers", "2", "--followers", "2", "--consumers", "4", "--groups", "2"]
LOAD = [*PEOPLE, *SPACE, "--mode", "verify", "--window", "16", "--warmup", "0s", "--duration", f"{SECONDS}s"]
WEATHERS: dict[str, list[tuple[str, dict[str, int]]]] = {
    "fair": [],
    "far": [("latency", {"latency": 10, "jitter": 5})],
    "sliced": [("slicer", {"average_size": 700, "size_variation": 300, "delay": 5})],
    "narrow": [("bandwidth", {"rate": 20_000})],
    "far-and-sliced": [
        ("latency", {"latency": 5, "jitter": 5}),
        ("slicer", {"average_size": 5000, "size_variation": 4900, "delay": 1}),
    ],
}


def serve(bare: Shell, *options: str) -> str:
    """A server that is also reached over TCP; its URL there."""
    server = bare.start(
        "pool",
        "serve",
        "--pool",
        bare.pool,
        "--listen",
        "tcp://127.0.0.1:0",
        "--announce",
        "--schema",
        "mars",
        *options,
    )
    assert server.line() == bare.pool
    return server.line()


def begin(bare: Shell, url: str, directory: Path, *options: str) -> Process:
    roads = ["--consume-from", url, "--offer-to", url]
    command = ["load", "pool", "--pool", bare.pool, *roads, "--json", "--history", str(directory), *LOAD, *options]
    return bare.start(*command)


def end(bare: Shell, load: Process, directory: Path) -> dict[str, Any]:
    figures: dict[str, Any] = json.loads(bare.result(load, 100))
    check(figures, directory)
    return figures


@pytest.mark.parametrize("size", ["1KiB", "100KiB"])
@pytest.mark.parametrize("kind", WEATHERS)
def test_a_load_completes_in_bad_weather(
    bare: Shell, weather: Weather, tmp_path: Path, kind: str, size: str, tell: Callable[[str], None]
) -> None:
    url = weather.road_to(serve(bare, "--budget", "256MiB"))
    for toxic, attributes in WEATHERS[kind]:
        weather.worsen(toxic, **attributes)
    # Not as many as possible: the judges read what was recorded of each.
    figures = end(bare, begin(bare, url, tmp_path, "--size", size, "--rate", "1000"), tmp_path)
    tell(f"{kind}, {size}: {figures['objects_per_s']:.0f} objects/s, {figures['redelivered']} delivered again")
    assert figures["redelivered"] == 0


def goes_on(load: Process, seconds: float) -> bool:
    """Whether a load goes on for so long."""
    try:
        load.popen.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        return True
    return False


@pytest.mark.parametrize("size", ["1KiB", "100KiB"])
def test_a_road_that_is_cut_again_and_again_loses_nothing(
    bare: Shell, weather: Weather, tmp_path: Path, size: str, tell: Callable[[str], None]
) -> None:
    url = weather.road_to(serve(bare, "--budget", "64MiB"))
    watch = bare.watch("--pool", bare.pool)
    load = begin(bare, url, tmp_path, "--size", size, "--cuts", "1000", "--rate", "300")
    # All of its processes have connected when it offers.
    assert watch.line()
    watch.popen.kill()
    cuts = 0
    while cuts < CUTS and goes_on(load, 0.6):
        weather.cut()
        weather.heal()
        cuts += 1
    figures = end(bare, load, tmp_path)
    tell(f"{size}: {cuts} cuts, {figures['objects_per_s']:.0f} objects/s, {figures['redelivered']} delivered again")
    assert cuts == CUTS


def test_a_road_that_is_cut_before_a_load_begins_and_while_it_ends_loses_nothing(
    bare: Shell, weather: Weather, tmp_path: Path
) -> None:
    url = weather.road_to(serve(bare, "--budget", "64MiB"))
    load = begin(bare, url, tmp_path, "--size", "1KiB", "--cuts", "1000", "--rate", "300")
    # At first some of its processes have not connected; at the end some have their last order.
    for _ in range(40):
        if goes_on(load, 0.12):
            weather.cut()
            weather.heal()
    end(bare, load, tmp_path)


def test_whoever_is_killed_on_a_link_has_lost_nothing(bare: Shell, tmp_path: Path, tell: Callable[[str], None]) -> None:
    url = serve(bare, "--budget", "96MiB")
    kills = ["--kills", "producers=4,consumers=4,members=8", "--seed", "20261121"]
    figures = end(bare, begin(bare, url, tmp_path, "--size", "100KiB", *kills), tmp_path)
    told = f"{figures['killed']} killed, {figures['objects_per_s']:.0f} objects/s"
    tell(f"{told}, {figures['redelivered']} delivered again")
