"""`junctura view` names what it loads on a terminal, if that takes long."""

from __future__ import annotations

import io
import sys
import threading
from typing import Any

import pytest

from junctura import _progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_slow_block_is_named_once(monkeypatch: pytest.MonkeyPatch) -> None:
    said, written = list[str](), threading.Event()

    def say(text: str, _stream: Any) -> None:
        said.append(text)
        written.set()

    monkeypatch.setattr(_progress, "say", say)
    monkeypatch.setattr(sys, "stderr", Terminal())
    with _progress.said_if_slow("loading VTK", seconds=0):
        assert written.wait(60)
    assert said == ["junctura: loading VTK ..."]


def test_a_fast_or_quiet_block_is_not_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is any in a file: the output of a batch job does not depend on the speed of its machine."""
    said = list[str]()
    monkeypatch.setattr(_progress, "say", lambda text, _stream: said.append(text))
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with _progress.said_if_slow("loading VTK", seconds=0):
        pass
    monkeypatch.setattr(sys, "stderr", Terminal())
    with _progress.said_if_slow("loading VTK", seconds=3600):
        pass
    with _progress.said_if_slow("loading VTK", is_quiet=True, seconds=0):
        pass
    assert said == []
