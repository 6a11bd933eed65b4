"""A process that decodes messages of which nobody knows whether all values are there.

```text
  decoded ── length | pickle of (read, message, arguments) ──► serve ──► read(message, ...) ──► ecCodes
     ◄────── length | pickle of (is result, result or error) ──┘
```
One such process serves all threads of a process, one message at a time. It starts with the first message and ends when
its standard input does. If it crashes, or takes longer than `_SECONDS_MAX`, its message is `Corrupt`, and the next
message starts another.

It protects against crashes and foreign memory, not against a decoder that is taken over: it has the user's rights.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import pickle
import resource
import selectors
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from junctura.errors import Corrupt, Error, TooLarge

_Result = TypeVar("_Result")
_LENGTH = struct.Struct("<Q")
# A decoder that takes longer has been led astray: JPEG 2000 takes some seconds for 64 Mi points.
_SECONDS_MAX = 120
# Of the decoder's address space: values, coordinates and what ecCodes unpacks on the way, some seven times 512 MiB.
_MEMORY_MAX = 4 << 30
_lock = threading.Lock()
_process: subprocess.Popen[bytes] | None = None


def decoded(message: bytes, read: Callable[..., _Result], *arguments: Any) -> _Result:
    """``read(message, *arguments)`` by the decoder. Blocks while it decodes, for other threads' messages, too."""
    request = pickle.dumps((read, message, arguments))
    with _lock:
        process = _started()
        try:
            reply = _asked(process, request)
        except BaseException:
            _end()
            raise
    is_result, result = pickle.loads(reply)
    if not is_result:
        raise result
    found: _Result = result
    return found


def _started() -> subprocess.Popen[bytes]:
    global _process
    if _process is None or _process.poll() is not None:
        package = str(Path(__file__).resolve().parent.parent)
        path = os.pathsep.join(filter(None, (package, os.environ.get("PYTHONPATH"))))
        command = [sys.executable, "-c", "from junctura._decoder import serve; serve()"]
        _process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": path}
        )
    return _process


def _end() -> None:
    global _process
    process, _process = _process, None
    if process is not None:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):
                pipe.close()  # type: ignore[union-attr]


def _asked(process: subprocess.Popen[bytes], request: bytes) -> bytes:
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(_LENGTH.pack(len(request)))
        process.stdin.write(request)
        process.stdin.flush()
        output = _Until(process.stdout.fileno(), time.monotonic() + _SECONDS_MAX)
        (length,) = _LENGTH.unpack(output.exactly(_LENGTH.size))
        return bytes(output.exactly(length))
    except TimeoutError:
        raise Corrupt("GRIB message", f"its decoder took more than {_SECONDS_MAX} s") from None
    except (EOFError, BrokenPipeError):
        raise Corrupt("GRIB message", f"its decoder ended: {_how(process.wait())}") from None


class _Until:
    """Reads from a pipe until a deadline."""

    def __init__(self, pipe: int, deadline: float) -> None:
        self._pipe, self._deadline = pipe, deadline

    def exactly(self, length: int) -> bytearray:
        content = bytearray(length)
        view, at = memoryview(content), 0
        with selectors.DefaultSelector() as ready:
            ready.register(self._pipe, selectors.EVENT_READ)
            while at < length:
                if not ready.select(max(0.0, self._deadline - time.monotonic())):
                    raise TimeoutError
                count = os.readv(self._pipe, [view[at:]])
                if not count:
                    raise EOFError
                at += count
        return content


def _how(code: int) -> str:
    return signal.Signals(-code).name if code < 0 else f"exit status {code}"


def _forget() -> None:
    """A child of this process starts a decoder of its own."""
    global _process, _lock
    _process, _lock = None, threading.Lock()


atexit.register(_end)
os.register_at_fork(after_in_child=_forget)


def serve() -> None:
    """Decodes what standard input brings, until it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _limit_memory()
    # Libraries that print go to the standard error output.
    with os.fdopen(os.dup(1), "wb") as output:
        os.dup2(2, 1)
        while request := _request(sys.stdin.buffer):
            output.write(_LENGTH.pack(len(reply := _reply(request))))
            output.write(reply)
            output.flush()


def _limit_memory() -> None:
    least = min(limit for limit in (*resource.getrlimit(resource.RLIMIT_AS), _MEMORY_MAX) if limit >= 0)
    resource.setrlimit(resource.RLIMIT_AS, (least, least))


def _request(source: BinaryIO) -> bytes:
    head = source.read(_LENGTH.size)
    return source.read(*_LENGTH.unpack(head)) if len(head) == _LENGTH.size else b""


def _reply(request: bytes) -> bytes:
    try:
        read, message, arguments = pickle.loads(request)
        return pickle.dumps((True, read(message, *arguments)))
    except (Error, ImportError) as error:
        return pickle.dumps((False, error))
    except MemoryError:
        limit = f"it does not decode within {_MEMORY_MAX >> 30} GiB"
        return pickle.dumps((False, TooLarge("GRIB message", limit)))
    except Exception as error:
        return pickle.dumps((False, Corrupt("GRIB message", f"it cannot be decoded: {error}")))
