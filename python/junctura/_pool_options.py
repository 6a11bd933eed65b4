"""The options of commands for their pool and their name in it."""

from __future__ import annotations

import argparse
import os

# The pool where none is named.
DEFAULT_POOL = "unix:default"


def add_pool_options(parser: argparse.ArgumentParser, command: str) -> None:
    """Adds ``--pool`` (`None` if neither the option nor ``$JUNCTURA_POOL`` names one) and ``--as``."""
    text = f"the pool ($JUNCTURA_POOL, else {DEFAULT_POOL})"
    parser.add_argument("--pool", default=os.environ.get("JUNCTURA_POOL") or None, metavar="URL", help=text)
    name = os.environ.get("JUNCTURA_NAME") or command
    parser.add_argument("--as", dest="name", default=name, metavar="NAME", help="the name of this client in the pool")
