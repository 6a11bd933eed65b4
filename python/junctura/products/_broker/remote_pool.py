"""A broker's pool for other hosts: a separate process serves it, with secrets that are created for it.

The process exits when the broker exits, in any way.
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
    """A pool at a TCP port of this host, for clients with the token.

    Parameters
    ----------
    host
        The IP address by which other hosts reach this host.
    room
        Memory budget in bytes.

    Attributes
    ----------
    pool
        The pool; closing it stops the server.
    token, ca
        The secret that admits a client, and the certificate that the client trusts.

    Raises
    ------
    Unavailable
        The pool cannot be served at this address.

    """

    def __init__(self, host: str, room: int) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="junctura-")
        folder = Path(self._folder.name)
        try:
            _command("cert", str(folder), "--host", host)
            _command(
                "token", "make", str(folder), "--for", "products", "--rights", "admin", "--out", str(folder / "token")
            )
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
        # In case the broker exits before it has connected.
        options += ["--end-when-idle", "60s", "--announce"]
        # The broker handles Ctrl-C.
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
        """Stops the server."""
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
