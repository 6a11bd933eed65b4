"""kill -9 of the server, several times under one name: its clients survive, and what it lost is what they are told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from e2e_shell import Shell
from storm_lives import live_and_die

LIVES = 6
SEED = 20261121


def test_clients_survive_their_servers(bare: Shell, tmp_path: Path, tell: Callable[[str], None]) -> None:
    live_and_die(bare, tmp_path, SEED, LIVES, tell)
