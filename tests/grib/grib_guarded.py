"""Decodes messages that end at a page without access: a decoder that reads beyond a message crashes.

    python tests/grib/grib_guarded.py FIRST COUNT

The messages are those of ``grib_mutations``, by their seeds. Those that are found to have all their values are
decoded, as this package asks ecCodes to, in processes that may crash. Prints how many were of which kind, and the
seeds whose decoder crashed; these are faults of the check, and the exit status is 1.
"""

from __future__ import annotations

import collections
import ctypes
import mmap
import os
import pickle
import resource
import signal
import struct
import sys
from pathlib import Path
from typing import Any

import grib_mutations
import numpy as np

import junctura
from junctura._native import _packed, _sections

_PAGE = mmap.PAGESIZE
# A process decodes so many, and is followed by another.
_TURN = 2000
_POINTS_MAX = 1 << 20
# Of processor time, for one message.
_SECONDS_MAX = 20
_KEYS = (
    b"gridType shortName name units cfName paramId stepType startStep endStep level typeOfLevel dataDate dataTime"
    b" Ni Nj N numberOfDataPoints bitmapPresent jPointsAreConsecutive latitudeOfFirstGridPointInDegrees"
    b" longitudeOfLastGridPointInDegrees iDirectionIncrementInDegrees"
).split()


def _libraries() -> tuple[Any, Any]:
    maps = Path("/proc/self/maps").read_text().splitlines()
    path = next(line.split()[-1] for line in maps if "/libeccodes.so" in line)
    codes, c = ctypes.CDLL(path), ctypes.CDLL(None)
    codes.codes_handle_new_from_message.restype = c.mmap.restype = ctypes.c_void_p
    codes.codes_handle_new_from_message.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
    c.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    c.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    return codes, c


class Guarded:
    """Memory for a message whose end is the end of all that can be read."""

    def __init__(self, nbytes_max: int) -> None:
        self.codes, c = _libraries()
        size = -(-nbytes_max // _PAGE) * _PAGE
        begin = c.mmap(
            None, size + _PAGE, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0
        )
        self._end = begin + size
        assert c.mprotect(self._end, _PAGE, 0) == 0

    def decode(self, message: bytes) -> str:
        """The values, and what else this package asks for, of the message in this memory: ecCodes makes no copy."""
        at = self._end - len(message)
        ctypes.memmove(at, message, len(message))
        handle = ctypes.c_void_p(self.codes.codes_handle_new_from_message(None, at, len(message)))
        if not handle:
            return "not opened"
        try:
            return self._decoded(handle, message)
        finally:
            self.codes.codes_handle_delete(handle)

    def _decoded(self, handle: Any, message: bytes) -> str:
        number = ctypes.c_long()
        for section, start in _sections(message):
            key = b"offsetSection%d" % section
            if self.codes.codes_get_long(handle, key, ctypes.byref(number)) or number.value != start:
                return "sections elsewhere"
        text, size = ctypes.create_string_buffer(1024), ctypes.c_size_t()
        for key in _KEYS:
            size.value = len(text)
            self.codes.codes_get_string(handle, key, text, ctypes.byref(size))
        self.codes.codes_set_double(handle, b"missingValue", ctypes.c_double(-1e34))
        if self.codes.codes_get_size(handle, b"values", ctypes.byref(size)) or size.value > _POINTS_MAX:
            return "no values"
        values = np.empty(size.value)
        fault = self.codes.codes_get_double_array(
            handle, b"values", ctypes.c_void_p(values.ctypes.data), ctypes.byref(size)
        )
        return "refused by ecCodes" if fault else "decoded"


def main(first: int, count: int) -> int:
    guarded, shared = Guarded(max(map(len, grib_mutations.whole())) + _PAGE), mmap.mmap(-1, 1 << 16)
    tally: collections.Counter[str] = collections.Counter()
    crashed, seed = [], first
    while seed < first + count:
        until = min(seed + _TURN, first + count)
        if (child := os.fork()) == 0:
            _turn(guarded, shared, range(seed, until))
        _, status = os.waitpid(child, 0)
        last, nbytes = struct.unpack_from("<QQ", shared)
        tally += pickle.loads(shared[16 : 16 + nbytes])
        if status:
            crashed.append(f"{last} ({signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else status})")
        seed = last + 1 if status else until
    print(dict(tally), "crashed:", *crashed or ["none"])
    return bool(crashed)


def _turn(guarded: Guarded, shared: mmap.mmap, seeds: range) -> None:
    """In a process of its own: what it has done so far is in the shared memory."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # EcCodes prints what it does not like.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    tally: collections.Counter[str] = collections.Counter()
    for seed in seeds:
        done = pickle.dumps(tally)
        struct.pack_into("<QQ", shared, 0, seed, len(done))
        shared[16 : 16 + len(done)] = done
        signal.setitimer(signal.ITIMER_VIRTUAL, _SECONDS_MAX)
        tally[_outcome(guarded, grib_mutations.mutated(seed))] += 1
    done = pickle.dumps(tally)
    struct.pack_into("<QQ", shared, 0, seeds[-1], len(done))
    shared[16 : 16 + len(done)] = done
    os._exit(0)


def _outcome(guarded: Guarded, message: bytes) -> str:
    try:
        _, _, points, is_proven, _ = _packed(message)
    except junctura.Error as error:
        return error.code
    if points > _POINTS_MAX:
        return "large"
    return guarded.decode(message) if is_proven else "not proven"


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
