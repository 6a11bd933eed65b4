"""A broker's pool that other machines reach: a process of its own serves it, with secrets that are made for it.

It ends when the broker does, by whatever end.
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import junctura
from junctura import _limits
from junctura.errors import Unavailable
from junctura.products._tasks import task_messages

_ENDING_S = 10


class ServedPool:
    """A pool at a port of this machine, for whoever has the token.

    Parameters
    ----------
    host
        The number by which others reach this machine.
    room
        Bytes of memory.

    Attributes
    ----------
    pool
        The pool; the server ends when this is closed.
    token, ca
        The secret by which a client is let in, and the certificate that it believes.

    Raises
    ------
    Unavailable
        It cannot be served there.

    """

    def __init__(self, host: str, room: int) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="junctura-")
        folder = Path(self._folder.name)
        try:
            _command("cert", str(folder), "--host", host)
            _command("token", str(folder), "--for", "products", "--out", str(folder / "token"))
            self.token = (folder / "token").read_text()
            self.ca = (folder / "ca.pem").read_text()
            url = self._serve(folder, host, room)
            ca_file, token_file = folder / "ca.pem", folder / "token"
            self.pool = junctura.Pool(url, name=task_messages.BROKER, token_file=token_file, ca_file=ca_file)
        except BaseException:
            self._end()
            raise

    def _serve(self, folder: Path, host: str, room: int) -> str:
        where = f"tcp://[{host}]:0" if ipaddress.ip_address(host).version == 6 else f"tcp://{host}:0"
        options = ["--security", str(folder), "--schema", "free", "--budget", str(room)]
        options += ["--spill", str(_limits.spacious()), "--until-gone", task_messages.BROKER]
        # Should the broker end before it has connected.
        options += ["--end-when-idle", "60s", "--announce"]
        # Ctrl-C is the broker's.
        self._process: subprocess.Popen[str] = subprocess.Popen(
            [*_JUNCTURA, "serve", where, *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=(folder / "said").open("w"),
            text=True,
            start_new_session=True,
            env={**os.environ, "JUNCTURA_LOG": "error"},
        )
        assert self._process.stdout is not None
        url = self._process.stdout.readline().strip()
        if not url:
            raise Unavailable(
                where, f"the broker's pool cannot be served there: {(folder / 'said').read_text().strip()}"
            )
        return url

    def close(self) -> None:
        """Ends the pool."""
        self.pool.close()
        self._end()

    def _end(self) -> None:
        process = getattr(self, "_process", None)
        if process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_ENDING_S)
            process.kill()
            process.wait()
            process.stdout.close()
        self._folder.cleanup()


_JUNCTURA = [sys.executable, "-m", "junctura"]


def _command(*words: str) -> None:
    done = subprocess.run([*_JUNCTURA, *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise Unavailable("the broker's pool", f"junctura {words[0]}: {done.stderr.strip()}")
