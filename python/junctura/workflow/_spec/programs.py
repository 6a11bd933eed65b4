"""Finds the programs of tasks: on ``$PATH``, or beside the workflow's file.

``junctura`` and ``python`` are those of this process, so that a workflow does not depend on the shell. A program with a
``/`` in its name, and the script argument of ``python``, are relative to the folder of the file, since a task runs in
another folder.
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
    """Returns the command with the paths of its program and script; arguments and result are templates."""
    program, *rest = command
    if program not in _OURS:
        return (_beside(program, folder) if "/" in program else program, *rest)
    ours = tuple(map(escaped, _OURS[program]))
    if program == "python" and rest and not rest[0].startswith("-"):
        return (*ours, _beside(rest[0], folder), *rest[1:])
    return (*ours, *rest)


def check(command: tuple[str, ...], folder: Path) -> None:
    """Checks that the program, and the script of ``python``, exist, as far as they are known.

    Raises
    ------
    Wrong
        The program or the script does not exist.

    """
    program, *rest = command
    if cause := "" if words(program) else _missing(displayed(program, {}), folder):
        raise Wrong(cause)
    if program == escaped(sys.executable) and rest and not rest[0].startswith("-") and not words(rest[0]):
        script = Path(displayed(rest[0], {}))
        if not script.is_file():
            raise Wrong(f"there is no {_near(script, folder)}")


def _beside(name: str, folder: Path) -> str:
    # The value of a leading word may be an absolute path.
    is_placed = name.startswith("/") or (name.startswith("{") and not name.startswith("{{"))
    return name if is_placed else f"{escaped(str(folder))}/{name.removeprefix('./')}"


# Cached: a hundred thousand tasks may have the same program.
@functools.lru_cache(maxsize=1024)
def _missing(program: str, folder: Path) -> str:
    """Returns why a program cannot be run; empty if it can be."""
    if "/" not in program:
        if shutil.which(program) is not None:
            return ""
        beside = f'; write "./{program}" for the one beside the file' if (folder / program).is_file() else ""
        return f"there is no program {program} on $PATH{beside or '; install it, or write its path'}"
    file = Path(program)
    if not file.is_file():
        return f"there is no program {_near(file, folder)}"
    return "" if os.access(file, os.X_OK) else f"{_near(file, folder)} is no program: chmod +x makes it one"


def _near(file: Path, folder: Path) -> str:
    """Returns a path relative to the folder if that is shorter."""
    return str(file.relative_to(folder)) if file.is_relative_to(folder) else str(file)
