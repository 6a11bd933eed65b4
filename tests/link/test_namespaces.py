"""Two machines, as far as networks go: a server and its clients in network namespaces with addresses of their own."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from e2e_shell import JUNCTURA, Shell
from storm_run import SPACE

SERVER, CLIENT = "10.211.7.1", "10.211.7.2"


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


@pytest.fixture
def namespaces() -> Iterator[tuple[str, str]]:
    """Two network namespaces with a wire between them."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("network namespaces need root and iproute2")
    server, client = f"junctura-s{os.getpid()}", f"junctura-c{os.getpid()}"
    try:
        ip("netns", "add", server)
        ip("netns", "add", client)
    except subprocess.CalledProcessError as error:
        pytest.skip(f"network namespaces cannot be made here: {error.stderr.decode().strip()}")
    try:
        ip("link", "add", "jserver", "netns", server, "type", "veth", "peer", "name", "jclient", "netns", client)
        for name, device, address in ((server, "jserver", SERVER), (client, "jclient", CLIENT)):
            ip("-n", name, "addr", "add", f"{address}/24", "dev", device)
            ip("-n", name, "link", "set", device, "up")
            ip("-n", name, "link", "set", "lo", "up")
        yield server, client
    finally:
        ip("netns", "delete", server)
        ip("netns", "delete", client)


def within(namespace: str, environment: dict[str, str], *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = ["ip", "netns", "exec", namespace, str(JUNCTURA), *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)


def test_two_machines_with_tls_and_tokens(namespaces: tuple[str, str], tmp_path: Path) -> None:
    there, here = namespaces
    shell = Shell()
    secrets = tmp_path / "secrets"
    shell.run("cert", secrets, "--host", SERVER)
    shell.run("token", secrets, "--for", "viewer", "--out", tmp_path / "token")
    url = f"tcp://{SERVER}:7000"
    plain = {**os.environ, "HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / "config")}
    refused = within(there, plain, "serve", url)
    assert (refused.returncode, "TLS and tokens" in refused.stderr) == (1, True), refused.stderr
    command = ["ip", "netns", "exec", there, str(JUNCTURA), "serve", url, "--security", str(secrets), "--announce"]
    server = subprocess.Popen([*command, "--schema", "mars"], env=plain, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        assert server.stdout.readline() == f"{url}\n"
        refused = within(here, plain, "stat", "--pool", url)
        assert "certificate authority" in refused.stderr
        trusting = {**plain, "JUNCTURA_CA_FILE": str(secrets / "ca.pem")}
        refused = within(here, trusting, "stat", "--pool", url)
        assert "none was shown" in refused.stderr, refused.stderr
        # Where they usually are, nothing needs to be said.
        (tmp_path / "config/junctura").mkdir(parents=True)
        shutil.copy(secrets / "ca.pem", tmp_path / "config/junctura/ca.pem")
        shutil.copy(tmp_path / "token", tmp_path / "config/junctura/token")
        payload = bytes(range(256)) * 20_000
        (tmp_path / "field").write_bytes(payload)
        done = within(here, plain, "put", tmp_path / "field", "--pool", url, "--schema", "free", "--set", "name=field")
        assert done.returncode == 0, done.stderr
        done = within(here, plain, "get", "--pool", url, "name=field", "-o", tmp_path / "back")
        assert done.returncode == 0, done.stderr
        assert (tmp_path / "back").read_bytes() == payload
        done = within(here, plain, "stat", "--pool", url, "--json")
        assert f"tcp, TLS from {CLIENT}" in done.stdout
        load = ["hammer", "--pool", url, *SPACE, "--producers", "2", "--consumers", "2", "--size", "100KiB"]
        done = within(here, plain, *load, "--mode", "verify", "--duration", "2s", "--warmup", "0s", "--window", "16")
        assert done.returncode == 0, done.stderr
        done = within(here, plain, "stop", url)
        assert done.returncode == 0, done.stderr
        assert server.wait(timeout=60) == 0
    finally:
        server.kill()
        server.communicate()
        shell.close()
