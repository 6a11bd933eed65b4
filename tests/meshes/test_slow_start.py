"""`junctura view` names what it loads, if that takes long."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from junctura import _progress


def test_a_slow_block_is_named_once(monkeypatch: pytest.MonkeyPatch) -> None:
    said, written = list[str](), threading.Event()

    def say(text: str, _stream: Any) -> None:
        said.append(text)
        written.set()

    monkeypatch.setattr(_progress, "say", say)
    with _progress.said_if_slow("loading VTK", seconds=0):
        assert written.wait(60)
    assert said == ["junctura: loading VTK ..."]


def test_a_fast_or_quiet_block_is_not_named(monkeypatch: pytest.MonkeyPatch) -> None:
    said = list[str]()
    monkeypatch.setattr(_progress, "say", lambda text, _stream: said.append(text))
    with _progress.said_if_slow("loading VTK", seconds=3600):
        pass
    with _progress.said_if_slow("loading VTK", is_quiet=True, seconds=0):
        pass
    assert said == []
