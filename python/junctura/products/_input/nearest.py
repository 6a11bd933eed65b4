"""The missing inputs of a run, as text, with the closest objects in the pool."""

from __future__ import annotations

import contextlib
import difflib
import itertools
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

import junctura
from junctura._document.located_yaml import Wrong
from junctura.products._outputs._parameters import is_known
from junctura.products._recipe.mars_words import Key, Value, canonical, selectors

# Maximum number of values per word.
_SHOWN = 8
# Maximum number of fields to search for, of different parameters.
_LOOKED_FOR = 3
# The order in which words are dropped from the search; the parameter last.
_LEFT_OUT = ("step", "number", "levelist", "levtype", "type", "stream", "expver", "class", "domain", "origin", "model")
_LAST = ("time", "date", "param")
# Fields that differ in only one of these words have the same producer.
_OF_ONE_PRODUCER = ("step", "number", "levelist")


class NearestField(NamedTuple):
    """The objects closest to a missing field.

    Attributes
    ----------
    text
        A description of the missing field and of the existing objects.
    is_of_its_producer
        Whether the objects are so close that the producer of the field has run already, or the field cannot exist.

    """

    text: str
    is_of_its_producer: bool


def in_words(keys: Sequence[Key]) -> str:
    """Returns one selector for the fields, if they are all combinations of some values, else for the first field."""
    if not keys:
        return "nothing"
    values = {word: list(dict.fromkeys(key[word] for key in keys if word in key)) for word in keys[0]}
    combinations = itertools.product(*values.values())
    is_all = {tuple(key.values()) for key in keys} == set(itertools.islice(combinations, len(keys) + 1))
    if is_all and all(len(key) == len(values) for key in keys):
        return ",".join(f"{word}={_list(found)}" for word, found in values.items())
    return f"{keys[0]} and {len(keys) - 1} more"


def _list(values: Sequence[Value]) -> str:
    shown = "/".join(map(str, values[:_SHOWN]))
    return f"{shown}/... ({len(values)} values)" if len(values) > _SHOWN else shown


def nearest(pool: junctura.Pool, keys: Iterable[Key]) -> list[NearestField]:
    """Returns, for the first missing field of some parameters, the closest objects of the pool.

    Raises
    ------
    Closed, Disconnected
        The pool has ended.

    """
    firsts = {key.get("param"): key for key in reversed(list(keys))}
    found = [_near(pool, key) for key in list(firsts.values())[::-1][:_LOOKED_FOR]]
    return list({near.text: near for near in found if near.text}.values())


def _near(pool: junctura.Pool, key: Key) -> NearestField:
    for word in (*_LEFT_OUT, *_LAST):
        if word in key and len(key) > 1 and (found := _values(pool, word, key)):
            rest = Key({name: value for name, value in key.items() if name != word})
            text = f"{word}={key[word]} is not there; with {rest} there is {word}={_nearest_first(key[word], found)}"
            is_of_it = word in _OF_ONE_PRODUCER or (word == "param" and not is_known(str(key["param"])))
            return NearestField(text, is_of_it)
    return _far(pool, key)


def _values(pool: junctura.Pool, word: str, key: Key) -> set[Value]:
    """Returns the values of a word in all fields that share the other words of a key."""
    found: set[Value] = set()
    for selector in selectors({name: (value,) for name, value in key.items() if name != word}):
        found |= _of_word(pool.list(selector), word)
    return found - {key[word]}


def _of_word(entries: Iterable[junctura.Entry], word: str) -> set[Value]:
    found: set[Value] = set()
    for value in {str(entry.get(word)): entry.get(word) for entry in entries if entry.get(word) is not None}.values():
        with contextlib.suppress(Wrong):
            found.add(canonical(word, value))
    return found


def _far(pool: junctura.Pool, key: Key) -> NearestField:
    """Describes, if several words differ, the objects of the parameter in the pool, or of other parameters."""
    of_param = pool.list(*selectors({"param": (key["param"],)}))
    if not of_param:
        params = _of_word(pool.list("exists(param)"), "param")
        there = f"there is param={_nearest_first(key['param'], params)}" if params else "there is no field at all"
        return NearestField(f"param={key['param']} is not there; {there}", False)
    lacking = []
    for word in key:
        found = _of_word(of_param, word)
        if key[word] not in found:
            lacking.append(f"{word}={key[word]} (there is {_nearest_first(key[word], found) if found else 'none'})")
    what = f"of param={key['param']} there is no {', no '.join(lacking)}" if lacking else f"there is no {key}"
    return NearestField(what, False)


def _nearest_first(wanted: Value, found: Collection[Value]) -> str:
    """Returns some of the values: numbers by distance from the requested one, texts by similarity."""
    numbers = [value for value in found if isinstance(value, (int, float))]
    if isinstance(wanted, (int, float)) and len(numbers) == len(found):
        near: Sequence[Value] = sorted(sorted(numbers, key=lambda value: (abs(value - wanted), value))[:_SHOWN])
    else:
        texts = sorted(map(str, found))
        alike = difflib.get_close_matches(str(wanted), texts, n=_SHOWN, cutoff=0.3)
        near = [*alike, *(text for text in texts if text not in alike)][:_SHOWN]
    more = f" and {len(found) - len(near)} more" if len(found) > len(near) else ""
    return "/".join(map(str, near)) + more
