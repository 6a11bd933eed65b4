"""Finds the programs of tasks: on ``$PATH``, or beside the workflow's file.

``junctura`` and ``python`` are those that run this, so that a workflow means the same in every shell. A program with a
``/`` in its name, and the script that ``python`` is given, are named from the folder of the file, since a task runs in
another.
"""

from __future__ import annotations

import functools
import os
import shutil
import sys
from pathlib import Path

from junctura._document.located_yaml import Wrong
from junctura.workflow._spec.placeholders import displayed, escaped, words

_OURS = {"python": (sys.executable,), "junctura": (sys.executable, "-m", "junctura")}


def placed(command: tuple[str, ...], folder: Path) -> tuple[str, ...]:
    """The command with its program, and script, where they are; arguments and what comes are templates."""
    program, *rest = command
    if program not in _OURS:
        return (_beside(program, folder) if "/" in program else program, *rest)
    ours = tuple(map(escaped, _OURS[program]))
    if program == "python" and rest and not rest[0].startswith("-"):
        return (*ours, _beside(rest[0], folder), *rest[1:])
    return (*ours, *rest)


def check(command: tuple[str, ...], folder: Path) -> None:
    """That the program, and the script of ``python``, are there, as far as they are known.

    Raises
    ------
    Wrong
        One is not.

    """
    program, *rest = command
    if cause := "" if words(program) else _missing(displayed(program, {}), folder):
        raise Wrong(cause)
    if program == escaped(sys.executable) and rest and not rest[0].startswith("-") and not words(rest[0]):
        script = Path(displayed(rest[0], {}))
        if not script.is_file():
            raise Wrong(f"there is no {_near(script, folder)}")


def _beside(name: str, folder: Path) -> str:
    # What begins with a word that is not known yet has its own beginning.
    is_placed = name.startswith("/") or (name.startswith("{") and not name.startswith("{{"))
    return name if is_placed else f"{escaped(str(folder))}/{name.removeprefix('./')}"


# The same program is that of a hundred thousand tasks.
@functools.lru_cache(maxsize=1024)
def _missing(program: str, folder: Path) -> str:
    """Why it cannot be run; empty if it can be."""
    if "/" not in program:
        if shutil.which(program) is not None:
            return ""
        beside = f'; write "./{program}" for the one beside the file' if (folder / program).is_file() else ""
        return f"there is no program {program} on $PATH{beside}"
    file = Path(program)
    if not file.is_file():
        return f"there is no program {_near(file, folder)}"
    return "" if os.access(file, os.X_OK) else f"{_near(file, folder)} is no program: chmod +x makes it one"


def _near(file: Path, folder: Path) -> str:
    """A name from the folder where that is shorter."""
    return str(file.relative_to(folder)) if file.is_relative_to(folder) else str(file)
