"""A process that decodes the GRIB messages whose values cannot be proven to be in the message.

```text
  decoded ── length | pickle of (read, message, arguments) ──► serve ──► read(message, ...) ──► ecCodes
     ◄────── length | pickle of (is result, result or error) ──┘
```
One such process serves all threads of a process, one message at a time. It starts with the first message and ends when
its standard input does. If it crashes, or takes longer than `_SECONDS_MAX`, its message is `Corrupt`, and the next
message starts another.

It contains crashes and reads of foreign memory. It is no sandbox: the process has the user's rights.
"""

from __future__ import annotations

import atexit
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

from junctura import _forks
from junctura.errors import Corrupt, Error, TooLarge

_Result = TypeVar("_Result")
_LENGTH = struct.Struct("<Q")
# Time limit for one message.
_SECONDS_MAX = 120
# Of the decoder's address space: its libraries, and for each point its value, its coordinates and what ecCodes unpacks.
_MEMORY_LEAST = 4 << 30
_MEMORY_MOST = 1 << 62
_BYTES_PER_POINT = 64
# No folder is searched for modules because the process happens to be in it.
_PROGRAM = "import sys; sys.path[:] = filter(None, sys.path); from junctura._grib.decoder_process import serve; serve()"
_lock = threading.Lock()
_process: subprocess.Popen[bytes] | None = None


def decoded(message: bytes, read: Callable[..., _Result], *arguments: Any) -> _Result:
    """Returns ``read(message, *arguments)`` from the decoder. Blocks while it decodes, also messages of other
    threads.
    """
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
        package = str(Path(__file__).resolve().parents[2])
        path = os.pathsep.join(filter(None, (package, os.environ.get("PYTHONPATH"))))
        # NumPy's threads would take address space, and have nothing to do.
        environment = {**os.environ, "PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1"}
        # A child forked meanwhile would inherit these pipes.
        with _forks.passage():
            _process = subprocess.Popen(
                [sys.executable, "-c", _PROGRAM],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                bufsize=0,
                env=environment,
            )
        os.set_blocking(_input(_process), False)
    return _process


def _input(process: subprocess.Popen[bytes]) -> int:
    assert process.stdin is not None
    return process.stdin.fileno()


def _output(process: subprocess.Popen[bytes]) -> int:
    assert process.stdout is not None
    return process.stdout.fileno()


def _end() -> None:
    global _process
    process, _process = _process, None
    if process is not None:
        process.kill()
        process.wait()
        _close(process)


def _close(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()


def _asked(process: subprocess.Popen[bytes], request: bytes) -> bytes:
    until = time.monotonic() + _SECONDS_MAX
    try:
        _write(_input(process), _LENGTH.pack(len(request)) + request, until)
        (length,) = _LENGTH.unpack(_read(_output(process), _LENGTH.size, until))
        return bytes(_read(_output(process), length, until))
    except TimeoutError:
        raise Corrupt("GRIB message", f"its decoder took more than {_SECONDS_MAX} s") from None
    except (EOFError, BrokenPipeError):
        raise Corrupt("GRIB message", f"its decoder ended: {_how(process.wait())}") from None


def _write(pipe: int, content: bytes, until: float) -> None:
    left = memoryview(content)
    while left:
        _wait(pipe, selectors.EVENT_WRITE, until)
        left = left[os.write(pipe, left) :]


def _read(pipe: int, length: int, until: float) -> bytearray:
    content = bytearray(length)
    left = memoryview(content)
    while left:
        _wait(pipe, selectors.EVENT_READ, until)
        count = os.readv(pipe, [left])
        if not count:
            raise EOFError
        left = left[count:]
    return content


def _wait(pipe: int, event: int, until: float) -> None:
    with selectors.DefaultSelector() as ready:
        ready.register(pipe, event)
        if not ready.select(max(0.0, until - time.monotonic())):
            raise TimeoutError


def _how(code: int) -> str:
    return signal.Signals(-code).name if code < 0 else f"exit status {code}"


def _forget() -> None:
    """Lets a forked child start a decoder of its own."""
    global _process, _lock
    process, _process, _lock = _process, None, threading.Lock()
    if process is not None:
        _close(process)


atexit.register(_end)
os.register_at_fork(after_in_child=_forget)


def serve() -> None:
    """Decodes the messages on standard input, until it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    memory = _limited_memory()
    # Libraries that print go to the standard error output.
    with os.fdopen(os.dup(1), "wb") as output:
        os.dup2(2, 1)
        while request := _request(sys.stdin.buffer):
            _limit_seconds()
            reply = _reply(request, memory)
            try:
                output.write(_LENGTH.pack(len(reply)) + reply)
                output.flush()
            except BrokenPipeError:
                # The client process has ended. Closing the file would fail, too.
                os._exit(0)


def _limited_memory() -> int:
    """Limits the address space of this process, and returns the limit in bytes."""
    # It imports this module.
    from junctura._grib import checked_messages

    wanted = min(max(_MEMORY_LEAST, checked_messages.points_max() * _BYTES_PER_POINT), _MEMORY_MOST)
    least = min(limit for limit in (*resource.getrlimit(resource.RLIMIT_AS), wanted) if limit >= 0)
    resource.setrlimit(resource.RLIMIT_AS, (least, least))
    return least


def _limit_seconds() -> None:
    """Ends this process if its next message exceeds the time limit, even without a waiting client."""
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    until = int(time.process_time()) + _SECONDS_MAX + 1
    resource.setrlimit(resource.RLIMIT_CPU, (until if hard < 0 else min(until, hard), hard))


def _request(source: BinaryIO) -> bytes:
    head = source.read(_LENGTH.size)
    return source.read(*_LENGTH.unpack(head)) if len(head) == _LENGTH.size else b""


def _reply(request: bytes, memory: int) -> bytes:
    try:
        read, message, arguments = pickle.loads(request)
        return pickle.dumps((True, read(message, *arguments)))
    except (Error, ImportError) as error:
        return pickle.dumps((False, error))
    except MemoryError:
        limit = f"it does not decode within {memory >> 20} MiB of address space"
        return pickle.dumps((False, TooLarge("GRIB message", limit)))
    except Exception as error:
        return pickle.dumps((False, Corrupt("GRIB message", f"it cannot be decoded: {error}")))
