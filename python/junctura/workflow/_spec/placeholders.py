"""Words in braces in the texts of a task: ``{member}``, ``{step:03}``, ``{pool}``; ``{{`` and ``}}`` are braces.

Values of the matrix and ``{here}`` are filled in when the file is read, the others when the task starts: until then
texts are templates, and braces in filled-in values are doubled.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Collection, Mapping
from typing import TypeAlias

from junctura._document.located_yaml import Wrong, nearest
from junctura._document.validation import shown

Value: TypeAlias = "str | int | float | bool"

# Words that are known when a task starts, and not before.
AT_START = {
    "pool": "URL of the run's pool",
    "run": "the folder of the run, absolute",
    "task": "the name of the task, with the values of its matrix",
    "attempt": "1, and one more each time that the task is begun again",
}
# In addition, in a task that starts once for each object: the name of the object, and each of its attributes.
OBJECT = "object"
# Known when the file is read: the folder of the workflow's file.
HERE = "here"
RESERVED = (*AT_START, OBJECT, HERE)

_PART = re.compile(r"\{\{|\}\}|\{(?P<word>[A-Za-z_][\w.-]*)(:(?P<width>0?[1-9][0-9]?))?\}|[{}]|[^{}]+", re.ASCII)
_SPECIAL = re.compile(r"[{}\0]")
_WHOLE = re.compile(r"-?[0-9]+")
# Length limit of a folder name; file systems allow 255.
_NAME_CHARACTERS_MAX = 200
_NAME_BEGIN = 160
_UNSAFE = re.compile(r"[^A-Za-z0-9._=,+@-]")


def words(text: str) -> tuple[str, ...]:
    """Returns the words in braces.

    Raises
    ------
    Wrong
        A brace is unbalanced, or encloses something other than a word.

    """
    return tuple(dict.fromkeys(word for _, word, _ in _parts(text) if word))


def fill(text: str, values: Mapping[str, Value]) -> str:
    """Returns the text with the values of all its words; the result is not a template.

    Raises
    ------
    Wrong
        A word has no value, or has a width and its value is not an integer.

    """
    for word in words(text):
        if word not in values:
            raise Wrong(f'"{{{word}}}" is not known{nearest(word, values)}')
    return "".join(literal or _value(values[word], word, width) for literal, word, width in _parts(text))


def fill_some(text: str, values: Mapping[str, Value]) -> str:
    """Fills in the words that have values; the result is a template."""
    if not _SPECIAL.search(text):
        return text
    made = []
    for literal, word, width in _parts(text):
        if not word:
            made.append(escaped(literal))
        elif word in values:
            made.append(escaped(_value(values[word], word, width)))
        else:
            made.append(_braced(word, width))
    return "".join(made)


def displayed(text: str, values: Mapping[str, Value]) -> str:
    """Returns the text for display: words without a value stay as written."""
    return "".join(
        literal or (_value(values[word], word, width) if word in values else _braced(word, width))
        for literal, word, width in _parts(text)
    )


def escaped(text: str) -> str:
    """Returns a template for exactly this text."""
    return text.replace("{", "{{").replace("}", "}}")


def written(value: Value) -> str:
    """Returns a value as a text."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def instance(of: str, values: Mapping[str, Value]) -> str:
    """Returns the name of one of several tasks, as ``member-3``; valid as a file name."""
    return "-".join([of, *(_UNSAFE.sub("_", written(value)) for value in values.values())])


def as_name(value: Value) -> str:
    """Returns an external value as a folder name; a long value is shortened to its beginning and a hash."""
    text = _UNSAFE.sub("_", written(value))
    if len(text) > _NAME_CHARACTERS_MAX:
        text = f"{text[:_NAME_BEGIN]}-{hashlib.sha256(written(value).encode(errors='replace')).hexdigest()[:16]}"
    return text if text.strip(".") else "_" * max(1, len(text))


def check(text: str, known: Collection[str] | None, early: Collection[str] = ()) -> None:
    """Checks that all words are known; None: any word may be. Words in `early` are known, but not allowed in this text.

    Raises
    ------
    Wrong
        A word is unknown; the error has the closest known word.

    """
    for word in words(text):
        if known is None or word in known:
            continue
        if word in early:
            raise Wrong(f'"{{{word}}}" is known when the task starts, and not here')
        if word == OBJECT:
            raise Wrong(f'"{{{word}}}" is known in tasks that start for each object, and this one does not')
        raise Wrong(f'"{{{word}}}" is no word that is known here{nearest(word, known)}')


@functools.lru_cache(maxsize=4096)
def _parts(text: str) -> tuple[tuple[str, str, str], ...]:
    """Yields literal text, or a word with its width."""
    if "\0" in text:
        raise Wrong(f"{text[:60]!r} has a character that no program can be given")
    made = []
    for found in _PART.finditer(text):
        if found["word"]:
            made.append(("", found["word"], found["width"] or ""))
        elif found[0] in ("{", "}"):
            raise Wrong(f'{shown(text)}: in braces stands a word as in "{{pool}}"; a brace itself is written twice')
        else:
            made.append((found[0][0] if found[0] in ("{{", "}}") else found[0], "", ""))
    return tuple(made)


def _braced(word: str, width: str) -> str:
    return f"{{{word}:{width}}}" if width else f"{{{word}}}"


def _value(value: Value, word: str, width: str) -> str:
    text = written(value)
    if not width:
        return text
    if not _WHOLE.fullmatch(text):
        raise Wrong(f'"{{{word}:{width}}}" is for whole numbers, and {word} is {shown(value)}')
    return format(int(text), f"{width}d")
