"""Finds out whether the variable of a loop refers to the newest object of a follow as long as the loop lasts.

A loop over a follow releases its newest object while it waits, if the only reference left is that of the loop variable.
A reference of ``list(follow)``, of a queue or of an attribute looks the same, so the loop itself is examined: it must
be a `for` or `async for` statement over the follow, whose target is a variable that no other statement of its code
sets.
"""

from __future__ import annotations

import dis
from collections.abc import Iterator
from functools import lru_cache
from types import CodeType

_BEGINNINGS = {"GET_ITER", "GET_AITER"}
# From the beginning of a loop to the first instruction that stores an item.
_BETWEEN = {
    "CLEANUP_THROW",
    "END_SEND",
    "EXTENDED_ARG",
    "FOR_ITER",
    "GET_ANEXT",
    "JUMP_BACKWARD_NO_INTERRUPT",
    "LOAD_CONST",
    "NOP",
    "NOT_TAKEN",
    "RESUME",
    "SEND",
    "YIELD_VALUE",
}
_LOCAL = ("STORE_FAST", "STORE_NAME")


@lru_cache(maxsize=256)
def has_own_variable(code: CodeType, at: int) -> bool:
    """Returns whether the loop that begins at this instruction sets a variable that nothing else in the code sets."""
    instructions = iter(dis.get_instructions(code))
    beginning = next((one for one in instructions if one.offset == at), None)
    if beginning is None or beginning.opname not in _BEGINNINGS:
        return False
    target = next((one for one in instructions if one.opname not in _BETWEEN), None)
    if target is None or not target.opname.startswith(_LOCAL):
        return False
    name = next(_set_by(target), None)
    return sum(one == name for instruction in dis.get_instructions(code) for one in _set_by(instruction)) == 1


def _set_by(instruction: dis.Instruction) -> Iterator[object]:
    """The names that an instruction sets or deletes. Some instructions of newer versions store one and load another."""
    if not instruction.opname.startswith(("STORE_", "DELETE_")):
        return
    names = instruction.argval if isinstance(instruction.argval, tuple) else (instruction.argval,)
    yield from names[:1] if "LOAD" in instruction.opname else names
