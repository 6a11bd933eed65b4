"""Two machines, as far as networks go: a server and its clients in network namespaces with addresses of their own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from e2e_shell import JUNCTURA, Shell
from storm_run import SPACE

SERVER, CLIENT = "10.211.7.1", "10.211.7.2"
# Of a segment that TCP repeats, as the devices count it.
FULL_SEGMENT = 1448
# 32 MiB, of each piece of which each taker wants a quarter, in runs of some elements.
ARRAY = """
import sys
import numpy as np
import junctura
from_ = junctura.Layout("shape=2048x2048 grid=2x2 block=64x64")
to = junctura.Layout("shape=2048x2048 grid=2x2 block=37x7 order=F")
field = np.arange(2048 * 2048, dtype="f8").reshape(2048, 2048)
with junctura.Pool(sys.argv[1]) as pool:
    print(pool.route, flush=True)
    if sys.argv[2] == "give":
        for rank in range(4):
            pool.offer_piece(field[np.ix_(*from_.indices(rank))], from_, rank, schema="free", name="t")
    else:
        rank = int(sys.argv[2])
        mine = pool.demand_array("name=t", to, rank)
        assert (mine == field[np.ix_(*to.indices(rank))]).all()
        print(mine.nbytes)
"""


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


def counted(namespace: str, device: str) -> int:
    """Bytes that went through a device, both ways."""
    shown = subprocess.run(
        ["ip", "-n", namespace, "-s", "-j", "link", "show", device], check=True, capture_output=True, text=True
    )
    counts = json.loads(shown.stdout)[0]["stats64"]
    return int(counts["rx"]["bytes"]) + int(counts["tx"]["bytes"])


def repeated(namespace: str) -> int:
    """How many bytes TCP sent a second time, as it does on a sound line when the processors are busy."""
    command = ["ip", "netns", "exec", namespace, "cat", "/proc/net/snmp"]
    shown = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    names, values = (line.split()[1:] for line in shown.splitlines() if line.startswith("Tcp:"))
    return int(dict(zip(names, values, strict=True))["RetransSegs"]) * FULL_SEGMENT


def within(namespace: str, environment: dict[str, str], *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = ["ip", "netns", "exec", namespace, str(JUNCTURA), *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture
def served(namespaces: tuple[str, str], tmp_path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """A pool of the one machine, and what its clients are shown and believe."""
    shell = Shell()
    secrets = tmp_path / "secrets"
    shell.run("cert", secrets, "--host", SERVER)
    shell.run("token", "make", secrets, "--for", "viewer", "--rights", "admin", "--out", tmp_path / "token")
    shell.close()
    url = f"tcp://{SERVER}:7000"
    environment = {**os.environ, "HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / "config")}
    environment |= {"JUNCTURA_CA_FILE": str(secrets / "ca.pem"), "JUNCTURA_TOKEN_FILE": str(tmp_path / "token")}
    command = [
        "ip",
        "netns",
        "exec",
        namespaces[0],
        str(JUNCTURA),
        "pool",
        "serve",
        "--pool",
        url,
        "--security",
        str(secrets),
    ]
    server = subprocess.Popen([*command, "--announce"], env=environment, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        assert server.stdout.readline() == f"{url}\n"
        yield url, environment
    finally:
        server.kill()
        server.communicate()


def test_of_an_array_only_what_is_wanted_goes_over_the_wire(
    namespaces: tuple[str, str], served: tuple[str, dict[str, str]], tell: Callable[[str], None]
) -> None:
    there, here = namespaces
    url, environment = served

    def run(namespace: str, what: str) -> str:
        command = ["ip", "netns", "exec", namespace, sys.executable, "-c", ARRAY, url, what]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert run(there, "give").startswith("shm"), "the pieces lie beside the server"
    # The other machine is this one but for its network, so the way through memory has to be closed.
    environment["JUNCTURA_TRANSPORTS"] = "tcp"
    for rank in range(4):
        before = counted(here, "jclient") - repeated(there)
        route, wanted = run(here, str(rank)).splitlines()
        sent = counted(here, "jclient") - repeated(there) - before
        tell(f"rank {rank}: {sent} bytes for {wanted}")
        assert route == "tcp, TLS"
        assert int(wanted) < sent < int(wanted) * 1.01, f"{sent} bytes for {wanted}"


def test_two_machines_with_tls_and_tokens(namespaces: tuple[str, str], tmp_path: Path) -> None:
    there, here = namespaces
    shell = Shell()
    secrets = tmp_path / "secrets"
    shell.run("cert", secrets, "--host", SERVER)
    shell.run("token", "make", secrets, "--for", "viewer", "--rights", "admin", "--out", tmp_path / "token")
    url = f"tcp://{SERVER}:7000"
    plain = {**os.environ, "HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / "config")}
    refused = within(there, plain, "pool", "serve", "--pool", url)
    assert (refused.returncode, "TLS and tokens" in refused.stderr) == (1, True), refused.stderr
    command = [
        "ip",
        "netns",
        "exec",
        there,
        str(JUNCTURA),
        "pool",
        "serve",
        "--pool",
        url,
        "--security",
        str(secrets),
        "--announce",
    ]
    server = subprocess.Popen([*command, "--schema", "mars"], env=plain, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        assert server.stdout.readline() == f"{url}\n"
        refused = within(here, plain, "pool", "stat", "--pool", url)
        assert "certificate authority" in refused.stderr
        trusting = {**plain, "JUNCTURA_CA_FILE": str(secrets / "ca.pem")}
        refused = within(here, trusting, "pool", "stat", "--pool", url)
        assert "has shown none" in refused.stderr, refused.stderr
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
        done = within(here, plain, "pool", "stat", "--pool", url, "--json")
        assert f"tcp, TLS from {CLIENT}" in done.stdout
        load = ["load", "pool", "--pool", url, *SPACE, "--producers", "2", "--consumers", "2", "--size", "100KiB"]
        done = within(here, plain, *load, "--mode", "verify", "--duration", "2s", "--warmup", "0s", "--window", "16")
        assert done.returncode == 0, done.stderr
        done = within(here, plain, "pool", "stop", "--pool", url)
        assert done.returncode == 0, done.stderr
        assert server.wait(timeout=60) == 0
    finally:
        server.kill()
        server.communicate()
        shell.close()
