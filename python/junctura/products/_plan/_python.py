"""User functions in a plan; an error in a function is reported with its name and line, and stops no other field."""

from __future__ import annotations

import importlib
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from junctura._document.located_yaml import Wrong
from junctura.errors import InvalidArgument
from junctura.products._input.decoded_field import Field
from junctura.products._plan._actions import Each
from junctura.products._plan._item import Item


class Python(Each):
    """A user function: takes a field, and returns a field, several, or None.

    Parameters
    ----------
    name
        Module and function: ``of_mine:anomaly``; modules in the folder of the plan are found.
    folder
        The folder of the plan.

    """

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.function = name, _function(name, folder)
        self._file = str(getattr(sys.modules[name.partition(":")[0]], "__file__", ""))

    def take(self, item: Item) -> Sequence[Item]:
        field = item.field
        return [item if made is field else item.of(made) for made in self._made(field)]

    def _made(self, field: Field) -> list[Field]:
        try:
            result = self.function(field)
            if isinstance(result, Field):
                return [result]
            made = [] if result is None else list(result)
        except Exception as error:
            raise InvalidArgument(f"python {self.name}", _said(error, self._file)) from error
        for one in made:
            if not isinstance(one, Field):
                raise InvalidArgument(f"python {self.name}", f"it gave {type(one).__name__}, expected a Field")
        return made


def _function(name: str, folder: Path) -> Callable[[Field], Any]:
    module, _, function = name.partition(":")
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    try:
        found = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise Wrong(f'"{name}": {error}') from error
    except Exception as error:
        raise Wrong(f'"{name}": {_said(error)}') from error
    if not callable(found):
        raise Wrong(f'"{name}" is no function')
    typed: Callable[[Field], Any] = found
    return typed


def _said(error: Exception, file: str = "") -> str:
    """Returns the exception, and the line of the user's code that raised it."""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename != __file__ and not frame.filename.startswith("<frozen")
    ]
    own = [frame for frame in frames if frame.filename == file] or frames
    place = f"{own[-1].filename}:{own[-1].lineno}" if own else file
    what = f"{type(error).__name__}: {error}"
    return f"{what} ({place})" if place else what
