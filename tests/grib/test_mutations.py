"""Messages that announce something else than they have: no crash, no values from elsewhere, every refusal named."""

from __future__ import annotations

import ast
import collections
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("eccodes")
HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
import grib_mutations  # noqa: E402

from junctura._native import _packed  # noqa: E402

_SEEDS = 10_000
_PARTS = 4
# Beyond these, messages of edition 1 that end ecCodes: section 4 announces another length than it has; a row has one
# point; the binary scale factor is -32767.
_CRASHED = (220951, 1112738, 1417054, 421319, 413542, 541923, 608750)

# Through all that decodes; the first that is refused otherwise, or crashes, ends it.
_THROUGH = """
import collections, os, sys
sys.path.insert(0, sys.argv[1])
os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
import numpy as np
import grib_mutations
import junctura
from junctura.products._input.decoding import decode

def outcome(how, what):
    try:
        return np.asarray(how(what)).dtype.kind
    except junctura.Error as error:
        return error.code

tally = collections.Counter()
with junctura.Pool(schema="free") as pool:
    for seed in range(int(sys.argv[2]), int(sys.argv[3])):
        message = grib_mutations.mutated(seed)
        pool.offer(message, name=str(seed))
        tally["to_xarray " + outcome(lambda obj: obj.to_xarray(), pool.demand(name=str(seed)))] += 1
        tally["product " + outcome(lambda message: decode(message).values, message)] += 1
print(dict(tally))
"""


@pytest.mark.parametrize("part", range(_PARTS))
def test_what_is_found_to_have_its_values_is_decoded_within_the_message(part: int) -> None:
    count = _SEEDS // _PARTS
    command = [sys.executable, str(HERE / "grib_guarded.py"), str(part * count), str(count)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout[-2000:] + ran.stderr[-2000:]


@pytest.mark.parametrize("seed", _CRASHED)
def test_what_ended_the_decoder_is_not_found_to_have_its_values(seed: int) -> None:
    assert not _packed(grib_mutations.mutated(seed))[3]


def test_whole_messages_are_found_to_have_their_values() -> None:
    found = [_packed(message)[3] for message in grib_mutations.whole()]
    assert sum(found) > len(found) / 2 > 50


def test_every_way_to_decode_refuses_by_name_and_none_crashes() -> None:
    command = [sys.executable, "-c", _THROUGH, str(HERE), "0", "400"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout[-2000:] + ran.stderr[-2000:]
    kinds: collections.Counter[str] = collections.Counter(ast.literal_eval(ran.stdout))
    assert set(kinds) <= {f"{how} {kind}" for how in ("to_xarray", "product") for kind in _OUTCOMES}
    assert min(kinds["to_xarray f"], kinds["product f"], kinds["to_xarray Corrupt"], kinds["product Corrupt"]) > 0


_OUTCOMES = ("f", "Corrupt", "TooLarge", "Unsupported")
