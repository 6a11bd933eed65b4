"""Bad links, made by toxiproxy (https://github.com/Shopify/toxiproxy): latency, sliced writes, resets, narrow roads."""

from __future__ import annotations

import json
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


def free_port() -> int:
    """A port that nobody listens at now."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


class Weather:
    """A toxiproxy with one road; ``url`` is where it begins."""

    PROGRAM = ROOT / ".tools/bin/toxiproxy-server"

    def __init__(self) -> None:
        self.port = free_port()
        command = [str(self.PROGRAM), "-port", str(self.port), "-seed", "20261121"]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.url = ""

    def road_to(self, url: str) -> str:
        """A road to a gate."""
        upstream = url.removeprefix("tcp://")
        road = {"name": "road", "listen": "127.0.0.1:0", "upstream": upstream, "enabled": True}
        self.url = f"tcp://{self.ask('POST', '/proxies', road)['listen']}"
        return self.url

    def worsen(self, kind: str, **attributes: int) -> None:
        """Makes the weather worse, in both directions."""
        for stream in ("upstream", "downstream"):
            toxic = {"name": f"{kind}-{stream}", "type": kind, "stream": stream, "attributes": attributes}
            self.ask("POST", "/proxies/road/toxics", toxic)

    def cut(self) -> None:
        """Ends all that is under way, and lets nobody pass."""
        self.ask("POST", "/proxies/road", {"enabled": False})

    def heal(self) -> None:
        """Lets others pass again."""
        self.ask("POST", "/proxies/road", {"enabled": True})

    def ask(self, method: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}",
            data=json.dumps(body).encode(),
            method=method,
            headers={"Content-Type": "application/json"},
        )
        while self.process.poll() is None:
            said = answer(request)
            if said is not None:
                return said
        raise AssertionError("toxiproxy has ended")

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()


def answer(request: urllib.request.Request) -> dict[str, Any] | None:
    """What is said to a request; nothing while nobody listens: toxiproxy says nowhere when it does."""
    try:
        with urllib.request.urlopen(request, timeout=10) as response:
            said: dict[str, Any] = json.load(response)
            return said
    except urllib.error.URLError as error:
        if not isinstance(error.reason, ConnectionRefusedError):
            raise
        return None


@pytest.fixture
def weather() -> Iterator[Weather]:
    """A network whose weather can be made."""
    if not Weather.PROGRAM.exists():
        pytest.skip(f"{Weather.PROGRAM} is not here: tools/setup.sh makes it")
    weather = Weather()
    yield weather
    weather.close()
