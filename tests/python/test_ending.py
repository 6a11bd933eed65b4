"""A program that ends while threads that nobody waits for still work: it ends well, and at once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SECONDS_MAX = 60
# Each does its work again and again, also when the program ends.
PROGRAM = """
import os, sys, threading
import numpy, junctura
folder = sys.argv[1]
pool = junctura.Pool(schema="free")
turns = threading.Semaphore(0)
def go():
    number = 0
    while True:
        number += 1
        {work}
        turns.release()
def prepare():
    {prepared}
prepare()
for _ in range(2):
    threading.Thread(target=go, daemon=True).start()
for _ in range(6):
    turns.acquire()
{last}
"""
FIELD = """global obj, listing
    pool.offer(open(folder + "/one.grib", "rb").read(), name="field")
    obj = pool.demand(name="field")
    junctura.Store.from_grib(folder + "/store", folder + "/one.grib")
    listing = junctura.Store(folder + "/store").list()"""
MASKED = "numpy.ma.masked_less(numpy.arange(50.0), 3)"
WORK = {
    "an array of a field": (FIELD, "obj.to_xarray()"),
    "a dataset": (FIELD, "listing.to_xarray()"),
    "values of a dataset": (FIELD, "listing.to_xarray().load()"),
    # The interrupt hook of a wait asks Python for signals every 0.2 s.
    "waits": ("pass", "turns.release(3), pool.follow('name=none').next()"),
    "masked arrays": ("pass", f"pool.offer({MASKED}, name=f'{{threading.get_ident()}}-{{number}}')"),
}
# A child ends by itself; it has no such threads, whatever they were at.
FORKED = """
for _ in range(3):
    child = os.fork()
    if child == 0:
        sys.exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
"""


@pytest.mark.parametrize(("work", "last"), [*((work, "") for work in WORK), ("an array of a field", FORKED)])
def test_it_ends_well(tmp_path: Path, work: str, last: str) -> None:
    prepared, call = WORK[work]
    if prepared == FIELD:
        eccodes = pytest.importorskip("eccodes")
        pytest.importorskip("xarray")
        handle = eccodes.codes_grib_new_from_samples("regular_ll_pl_grib2")
        (tmp_path / "one.grib").write_bytes(eccodes.codes_get_message(handle))
        eccodes.codes_release(handle)
    program = PROGRAM.format(prepared=prepared, work=call, last=last)
    command = [sys.executable, "-c", program, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_MAX, check=False)
    assert (done.returncode, done.stderr) == (0, "")
