"""The demo: six members of a forecast run, and 21 products are made of their fields while they do.

```text
  swell.py x 6  --offer-->  pool  --follow-->  broker  --tasks-->  workers  -->  GRIB, netCDF, Zarr, maps, tables
                              |   --follow-->  archiver  -->  store
                           demo.py                           the pool, the broker, what is to be seen
```
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from poster import poster
from view import Progress

import junctura
from junctura.products import Broker, Failed, Made, Report, load_all

HERE = Path(__file__).resolve().parent
MODEL = HERE.parent / "11_swell/swell.py"
# Where cores are few, products come first.
BEHIND = ("nice", "-n", "19")
FIELDS_A_STEP = 6
HOURS_APART = 3
CAPTION = (
    "Shallow water on a rotating sphere, spectral model at T{truncation}. An idealized planet without land: coastlines "
    "are there for orientation only. All members begin with a westerly jet of 80\u00a0m/s at 45\u00b0N, in balance, "
    "and with a small bump of the depth, which is a little different in each (after Galewsky, Scott and Polvani 2004, "
    "Tellus A 56, 429-440). The fluid is one layer of 10\u00a0km; its fields are labeled 500\u00a0hPa."
)


class Forecast:
    """What runs beside the broker: members, and an archiver that keeps all their fields."""

    def __init__(self, pool: junctura.Pool, given: argparse.Namespace) -> None:
        self.store = given.out / "store"
        junctura.Store.create(self.store, schema="mars")
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        days = ["--days", str(given.days), "--every", f"{HOURS_APART}h", "--truncation", str(given.truncation)]
        self.pool = pool
        self.members = [
            _start([str(MODEL), "--pool", pool.url, "--member", str(number), *days], environment)
            for number in range(1, given.members + 1)
        ]
        command = [
            "-m",
            "junctura",
            "store",
            "archiver",
            "--pool",
            pool.url,
            "*",
            "--store",
            str(self.store),
            "--quiet",
        ]
        self.archiver = _start(command, environment)
        self.failed: list[str] = []
        for member in self.members:
            threading.Thread(target=self._look_after, args=(member,), daemon=True).start()

    def _look_after(self, member: subprocess.Popen[str]) -> None:
        """Ends the pool if a member fails: then nobody waits for its fields."""
        _, told = member.communicate()
        if member.returncode > 0:
            self.failed.append(told.strip().rpartition("\n")[2])
            self.pool.stop()

    def wait(self, pool: junctura.Pool) -> None:
        """Until all members have ended, and the archiver has kept what they offered: it ends with the pool."""
        for member in self.members:
            member.wait()
        pool.stop()
        self.archiver.wait()
        if self.failed:
            raise SystemExit(f"demo: {self.failed[0]}")

    def end(self) -> None:
        """Whoever still runs does not any more."""
        for process in [*self.members, self.archiver]:
            process.kill()
            process.wait()


def _start(arguments: list[str], environment: dict[str, str]) -> subprocess.Popen[str]:
    null, pipe = subprocess.DEVNULL, subprocess.PIPE
    command = [*BEHIND, sys.executable, *arguments]
    return subprocess.Popen(command, env=environment, stdout=null, stderr=pipe, text=True)


class Watch:
    """Sees every field that is offered, and kept, and when the first and the last one was."""

    def __init__(self, pool: junctura.Pool, progress: Progress, count: int) -> None:
        self.pool, self.progress, self.count = pool, progress, count
        self.offered = self.archived = 0
        self.first = self.last = 0.0
        self.thread = threading.Thread(target=self._run, args=(pool.subscribe(kinds=["offered", "archived"]),))
        self.thread.start()

    def _run(self, events: junctura.Subscription) -> None:
        while self.offered < self.count or self.archived < self.count:
            try:
                event = events.next()
            except junctura.Closed:
                return
            if event is None:
                return
            if event.kind == "offered":
                self.offered += 1
                self.last = time.monotonic()
                self.first = self.first or self.last
            else:
                self.archived += 1
            self.progress.fields(self.offered, self.archived)


def run(given: argparse.Namespace) -> dict[str, Any]:
    """Runs all of it; returns the summary."""
    recipes = load_all(_recipes(given))
    fields = given.members * FIELDS_A_STEP * (round(given.days * 24) // HOURS_APART + 1)
    progress = Progress(fields, sum(1 for recipe in recipes for _ in recipe.wanted()))
    # When, and after how many fields.
    made_at: list[tuple[float, int]] = []

    def show(event: Made | Failed) -> None:
        if isinstance(event, Made):
            made_at.append((time.monotonic(), watch.offered))
        progress.product(event)

    with junctura.Pool(schema="mars", name="demo") as pool:
        watch = Watch(pool, progress, fields)
        names = [f"swell-{number}" for number in range(1, given.members + 1)]
        options = {"workers": given.workers, "until_gone": names, "observer": show}
        broker = Broker(recipes, pool.url, given.out / "products", **options)
        forecast = Forecast(pool, given)
        try:
            report = broker.run()
            forecast.wait(pool)
            watch.thread.join()
        finally:
            forecast.end()
    progress.close()
    if not made_at:
        raise SystemExit(f"demo: no product was made: {report.failed[0].cause}")
    return summary(report, watch, made_at, forecast, fields)


def _recipes(given: argparse.Namespace) -> list[Path]:
    """Those of this folder, for as many hours and members as there are."""
    folder = given.out / "recipes"
    folder.mkdir()
    last = round(given.days * 24)
    for file in sorted((HERE / "recipes").glob("*.yaml")):
        text = file.read_text().replace("step: 0/to/120/", f"step: 0/to/{last}/")
        (folder / file.name).write_text(text.replace("number: 1/to/6", f"number: 1/to/{given.members}"))
    return sorted(folder.glob("*.yaml"))


def summary(
    report: Report, watch: Watch, made_at: list[tuple[float, int]], forecast: Forecast, fields: int
) -> dict[str, Any]:
    with junctura.Store(forecast.store) as store:
        kept = len(store.list())
    return {
        "fields": fields,
        "products": len(report.made),
        "failed": [f"{one.product}: {one.cause}" for one in report.failed],
        "decodes_per_input_max": report.decodes_per_input_max,
        "decodes": report.decodes,
        "first_product_at_fraction": round(made_at[0][1] / fields, 3),
        # The last field may be one that no product needs.
        "last_product_lag_s": round(max(0.0, made_at[-1][0] - watch.last), 3),
        "product_latency_ms": report.latency_ms,
        "archived": kept,
        "lost": fields - kept + len(report.failed),
        "seconds": round(report.seconds, 1),
    }


def hang(given: argparse.Namespace, result: dict[str, Any]) -> Path:
    """The poster of the maps."""
    title = f"A jet becomes unstable: {given.members} forecasts of {given.days:g} days"
    credit = (
        f"{result['fields']} fields, {result['products']} products, made while the forecasts ran. "
        "Coastlines: Natural Earth. junctura: make demo"
    )
    path: Path = given.out / "products.png"
    poster(given.out / "products/maps", title, CAPTION.format(truncation=given.truncation), credit).save(path)
    return path


def show(result: dict[str, Any], out: Path, picture: Path) -> None:
    """Prints what happened."""
    latency, first = result["product_latency_ms"], 100 * result["first_product_at_fraction"]
    rows = [
        ("fields", f"{result['fields']} in, {result['archived']} kept in a store; {result['lost']} lost"),
        ("products", f"{result['products']} in {result['seconds']:.0f} s; {len(result['failed'])} could not be made"),
        ("decoded", f"each field {result['decodes_per_input_max']} time, however many products need it"),
        ("first", f"product when {first:.0f} % of the fields were there; the last one"),
        ("", f"{result['last_product_lag_s']:.1f} s after the last field"),
        (
            "latency",
            f"p50 {latency['p50']:.0f} ms, p95 {latency['p95']:.0f} ms, from a product's last field to its file",
        ),
        ("maps", str(picture)),
        ("files", str(out / "products")),
        ("summary", str(out / "summary.json")),
    ]
    for name, text in rows:
        print(f"  {name:<9} {text}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--members", type=int, default=6, metavar="N")
    parser.add_argument("--days", type=float, default=5.0, help="how long the forecast is (5)")
    parser.add_argument("--truncation", type=int, default=63, metavar="T", help="the model's resolution (63)")
    parser.add_argument("--workers", type=int, default=None, metavar="N", help="processes that make products")
    parser.add_argument("--out", type=Path, default=Path("demo-out"), metavar="DIR")
    given = parser.parse_args()
    if given.members < 2 or given.days < 1 or given.days % 1:
        parser.error("an ensemble has two members or more, and a forecast whole days")
    given.out.mkdir(parents=True, exist_ok=True)
    for name in ("products", "recipes", "store"):
        shutil.rmtree(given.out / name, ignore_errors=True)
    print(f"{given.members} members of a forecast at T{given.truncation}, {given.days:g} days, and 21 products")
    result = run(given)
    (given.out / "summary.json").write_text(json.dumps(result, indent=2) + "\n")
    show(result, given.out, hang(given, result))
    return 1 if result["lost"] else 0


if __name__ == "__main__":
    sys.exit(main())
