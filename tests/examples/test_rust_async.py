"""The service in Rust, in a pool of its own and in pools that are served."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import junctura

LAST = "20 fields of 1600000 bytes seen by one runtime\n"


@pytest.fixture(scope="module")
def service(rust_programs: Path) -> str:
    return str(rust_programs / "async_service")


def run(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout


def test_it_serves_itself(service: str) -> None:
    assert run(service) == LAST


@pytest.mark.parametrize("where", ["unix:@rust-async", "tcp://127.0.0.1:0"])
def test_it_serves_in_a_pool_of_others(service: str, where: str) -> None:
    command = [sys.executable, "-m", "junctura", "pool", "serve", "--pool", where, "--announce"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        assert run(service, url) == LAST
        with junctura.Pool(url, transports="tcp" if url.startswith("tcp") else None) as pool:
            assert [entry["name"] for entry in pool.list("space=service")] == []
        server.terminate()
        assert server.wait(timeout=60) == 0
