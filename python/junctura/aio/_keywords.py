"""Keywords that a method does not have: the error names the nearest option, as that of the pool that blocks."""

from __future__ import annotations

import difflib
import functools
import inspect
import re
from collections.abc import Callable
from typing import Any, TypeVar

_Kind = TypeVar("_Kind", bound=type)
_UNEXPECTED = re.compile(r"unexpected keyword argument '(\w+)'")


def with_hints(kind: _Kind) -> _Kind:
    """Makes each public method of a class, and its constructor, name the nearest option for an unknown keyword."""
    for name in dir(kind):
        call = inspect.getattr_static(kind, name)
        if inspect.isfunction(call) and (name == "__init__" or not name.startswith("_")):
            label = kind.__name__ if name == "__init__" else f"{kind.__name__}.{name}"
            setattr(kind, name, _hinted(call, label))
    return kind


def _hinted(call: Callable[..., Any], label: str) -> Callable[..., Any]:
    if inspect.iscoroutinefunction(call):

        @functools.wraps(call)
        async def awaited(*arguments: Any, **keywords: Any) -> Any:
            return await _begun(call, label, arguments, keywords)

        return awaited

    @functools.wraps(call)
    def called(*arguments: Any, **keywords: Any) -> Any:
        return _begun(call, label, arguments, keywords)

    return called


def _begun(call: Callable[..., Any], label: str, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    try:
        return call(*arguments, **keywords)
    except TypeError as error:
        found = _UNEXPECTED.search(str(error))
        # The call itself has failed, and not one that it makes.
        is_own = error.__traceback__ is not None and error.__traceback__.tb_next is None
        if found is None or not is_own:
            raise
        raise TypeError(_message(call, label, found[1])) from None


def _message(call: Callable[..., Any], label: str, name: str) -> str:
    options = [one for one in inspect.signature(call).parameters if one != "self"]
    near = difflib.get_close_matches(name, options, 1)
    if near:
        remedy = f"did you mean {near[0]}?"
    elif "selector" in options:
        remedy = f'conditions are part of the selector, as in "{name}=VALUE"; it has {", ".join(options)}'
    else:
        remedy = f"it has {', '.join(options)}"
    return f'{label}() has no option "{name}": {remedy}'
