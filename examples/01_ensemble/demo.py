"""The demo: an ensemble of processes hands fields over; maps are drawn while it runs, every byte is verified.

The pool lives in this process and needs no configuration; the other processes reach it through its address.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from fields import SELECTOR, Forecast

import junctura

HERE = Path(__file__).resolve().parent


@dataclass
class Child:
    """A process of the demo; what it prints last is its report, as JSON."""

    name: str
    process: subprocess.Popen[str]
    report: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def start(cls, name: str, script: str, *arguments: str) -> Child:
        # Many processes share few cores: each keeps to one thread.
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        command = [sys.executable, str(HERE / script), *arguments]
        return cls(name, subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True))


@dataclass
class Watch:
    """A third consumer, in this process: sees every field arrive, and when."""

    forecast: Forecast
    delivery_us: list[float] = field(default_factory=list)
    bytes: int = 0
    first_ns: int = 0
    last_ns: int = 0
    error: BaseException | None = None

    def run(self, pool: junctura.Pool) -> None:
        """Follows until every field was there; for a thread of its own."""
        try:
            self._follow(pool)
        except BaseException as error:
            self.error = error

    def _follow(self, pool: junctura.Pool) -> None:
        for found in pool.follow(SELECTOR):
            arrived = time.monotonic_ns()
            with found:
                offered = int(_tag(found["tags"], "offered"))
                self.bytes += len(found)
            self.first_ns = self.first_ns or offered
            self.last_ns = arrived
            self.delivery_us.append((arrived - offered) / 1000)
            self._show()
            if len(self.delivery_us) == self.forecast.count:
                return

    def _show(self) -> None:
        done, count = len(self.delivery_us), self.forecast.count
        if sys.stderr.isatty():
            bar = "█" * (40 * done // count)
            print(
                f"\r  fields {bar:<40} {done}/{count}", end="\n" if done == count else "", file=sys.stderr, flush=True
            )
        elif done * 4 // count > (done - 1) * 4 // count:
            print(f"  fields {done}/{count}", file=sys.stderr, flush=True)


def _tag(tags: list[str], name: str) -> str:
    for tag in tags:
        key, _, value = tag.partition(":")
        if key == name:
            return value
    raise KeyError(name)


def wait_for(children: list[Child]) -> None:
    """Waits until all have ended well; the first that has not ends the demo."""
    left = {os.pidfd_open(child.process.pid): child for child in children}
    poll = select.poll()
    for descriptor in left:
        poll.register(descriptor, select.POLLIN)
    try:
        while left:
            for descriptor, _ in poll.poll():
                child = left.pop(descriptor)
                poll.unregister(descriptor)
                os.close(descriptor)
                output, _ = child.process.communicate()
                if child.process.returncode != 0:
                    raise SystemExit(f"demo: {child.name} ended with status {child.process.returncode}")
                child.report = json.loads(output.splitlines()[-1])
    finally:
        for descriptor in left:
            os.close(descriptor)


def run(forecast: Forecast, out: Path) -> dict[str, Any]:
    """Runs the ensemble and its consumers; returns the summary."""
    watch = Watch(forecast)
    with junctura.Pool(schema="mars") as pool:
        following = threading.Thread(target=watch.run, args=(pool,), daemon=True)
        following.start()
        shared = [pool.url, *forecast.arguments()]
        consumers = [Child.start("maps", "maps.py", *shared, str(out)), Child.start("verify", "verify.py", *shared)]
        numbers = range(1, forecast.members + 1)
        members = [Child.start(f"member {number}", "member.py", *shared, str(number)) for number in numbers]
        try:
            wait_for(members + consumers)
            following.join()
        finally:
            for child in members + consumers:
                child.process.kill()
                child.process.wait()
        if watch.error is not None:
            raise watch.error
    return summary(forecast, watch, members, *consumers)


def summary(forecast: Forecast, watch: Watch, members: list[Child], maps: Child, verify: Child) -> dict[str, Any]:
    seconds = (watch.last_ns - watch.first_ns) / 1e9
    offer_us = np.concatenate([member.report["offer_us"] for member in members])
    return {
        "members": forecast.members,
        "processes": len(members) + 3,
        "cores": len(os.sched_getaffinity(0)),
        "steps": forecast.steps,
        "grid_deg": forecast.grid_deg,
        "fields": len(watch.delivery_us),
        "bytes": watch.bytes,
        "seconds": round(seconds, 3),
        "fields_per_s": round(len(watch.delivery_us) / seconds, 1),
        "mib_per_s": round(watch.bytes / 2**20 / seconds, 1),
        "offer_us": _percentiles(offer_us),
        "delivery_us": _percentiles(np.array(watch.delivery_us)),
        "verified_fields": verify.report["fields"],
        "verified_bytes": verify.report["bytes"],
        "wrong": verify.report["wrong"],
        "maps": maps.report["pictures"],
        "maps_before_last_field": sum(drawn < watch.last_ns for drawn in maps.report["drawn_ns"]),
        "animation": maps.report["animation"],
    }


def _percentiles(values: Any) -> dict[str, float]:
    return {name: round(float(np.percentile(values, at)), 1) for name, at in (("p50", 50), ("p99", 99))}


def show(result: dict[str, Any], path: Path) -> None:
    """Prints what happened."""
    mib, offer, delivery = result["bytes"] / 2**20, result["offer_us"], result["delivery_us"]
    rows = [
        ("fields", f"{result['fields']} of {result['members']} members, {mib:.0f} MiB, in {result['seconds']:.1f} s"),
        (
            "rate",
            f"{result['fields_per_s']:.0f} fields/s, {result['mib_per_s']:.0f} MiB/s (making them takes the time)",
        ),
        ("on", f"{result['processes']} processes on {result['cores']} cores: what waits for a core counts below"),
        ("offer", f"p50 {offer['p50']:.0f} us, p99 {offer['p99']:.0f} us"),
        (
            "delivery",
            f"p50 {delivery['p50']:.0f} us, p99 {delivery['p99']:.0f} us from before the offer to the consumer",
        ),
        ("verified", f"{result['verified_fields']} fields, every byte; {len(result['wrong'])} wrong"),
        ("maps", f"{len(result['maps'])}, {result['maps_before_last_field']} of them while members still ran"),
        ("", f"{result['maps'][-1]}"),
        ("", f"{result['animation']}"),
        ("summary", str(path)),
    ]
    for name, text in rows:
        print(f"  {name:<9} {text}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--members", type=int, default=10, metavar="N")
    parser.add_argument("--steps", type=int, default=24, metavar="N", help="three hours apart")
    parser.add_argument("--grid", type=float, default=0.5, metavar="DEGREES", help="a divisor of 180")
    parser.add_argument("--out", type=Path, default=Path("demo-out"), metavar="DIR")
    arguments = parser.parse_args()
    if min(arguments.members, arguments.steps) < 1 or arguments.grid <= 0 or 180 / arguments.grid % 1:
        parser.error("there must be a member, a step, and a grid that divides 180 degrees")
    arguments.out.mkdir(parents=True, exist_ok=True)
    forecast = Forecast(members=arguments.members, steps=arguments.steps, grid_deg=arguments.grid)

    print(f"An ensemble of {forecast.members} members, {forecast.count} fields by meaning through memory")
    result = run(forecast, arguments.out)
    path = arguments.out / "summary.json"
    path.write_text(json.dumps(result, indent=2) + "\n")
    show(result, path)
    return 1 if result["wrong"] or result["verified_fields"] != forecast.count else 0


if __name__ == "__main__":
    sys.exit(main())
