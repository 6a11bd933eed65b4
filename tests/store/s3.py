"""Runs the store's tests that need an object store, against a real server that it starts and ends.

The server is versitygw, which ``tools/setup.sh`` makes; where it cannot be had these tests are left out. Those of the
library run first, then those of the command and of Python beside this file. ``s3.py COMMAND...`` runs a command beside
such a server.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SERVER = ROOT / ".tools/bin/versitygw"
ACCESS, SECRET = "of-these-tests", "known-to-everybody"
BUCKET = "fields"
# Programs that `make build-ci` has built.
LIBRARY = [sys.executable, "tests/rust.py"]
TESTS = [
    [*LIBRARY, "junctura-store/lib", "s3", "--ignored"],
    [*LIBRARY, "junctura-store/integration", "s3", "--ignored"],
    [sys.executable, "-m", "pytest", "-q", "tests/store"],
]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def served() -> Iterator[dict[str, str]]:
    """A server with an empty bucket; yields what its clients need in their environment."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, BUCKET).mkdir()
        port = free_port()
        credentials = {"ROOT_ACCESS_KEY": ACCESS, "ROOT_SECRET_KEY": SECRET}
        server = subprocess.Popen(
            [SERVER, "--port", f"127.0.0.1:{port}", "posix", folder],
            env={**os.environ, **credentials},
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert server.stdout is not None
            # It says where it listens, in a box.
            next(line for line in server.stdout if line.startswith("└"))
            # What it says of each request would fill the pipe.
            threading.Thread(target=server.stdout.read, daemon=True).start()
            endpoint = f"http://127.0.0.1:{port}"
            yield {
                "AWS_ACCESS_KEY_ID": ACCESS,
                "AWS_SECRET_ACCESS_KEY": SECRET,
                "JUNCTURA_TEST_S3": f"s3://{BUCKET}/{{}}?endpoint={endpoint}",
            }
        finally:
            server.terminate()
            server.wait()


def main(arguments: list[str]) -> int:
    """The tests, or the command that is given, beside a server."""
    if not SERVER.exists():
        print(f"left out: {SERVER.relative_to(ROOT)} is not there")
        return 0
    with served() as environment:
        here = {**os.environ, **environment}
        commands = [arguments] if arguments else TESTS
        ended = [subprocess.run(command, cwd=ROOT, env=here, check=False).returncode for command in commands]
        return max(ended, key=abs)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
