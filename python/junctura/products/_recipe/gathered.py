"""Checks whether the values combined in a file can be one data set, before anything runs.

netCDF and Zarr have axes of members, times and levels only. See `junctura.products._outputs._cube`.
"""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from junctura._document.located_yaml import Wrong
from junctura.field import seconds_of, step_of
from junctura.products._recipe.definitions import Recipe
from junctura.products._recipe.mars_words import Value

_AXES = ("step", "number", "levelist", "date", "time", "hdate", "param")
_Seconds = npt.NDArray[np.int64]


def check_gathered(recipe: Recipe) -> None:
    """Returns where each file can be one data set.

    Raises
    ------
    Wrong
        A word has several values in a file and no axis, or two fields of a parameter are valid at one time.

    """
    words = dict(recipe.words)
    several = [word for word in recipe.gathered if len(words.get(word, ())) > 1]
    kind = recipe.output.format
    for word in several:
        if word not in _AXES and not (word == "type" and recipe.has_control):
            cause = f'{kind} has no axis for "{word}": leave it out, and put {{{word}}} into the name, or write csv'
            raise Wrong(cause, "to", "gather")
    # No two days or months are valid at one time.
    if recipe.periods is None and (found := _valid_twice(recipe, several)):
        raise Wrong(f"{found}: {kind} has one axis of time; leave a word out, or write csv", "to", "gather")


def _valid_twice(recipe: Recipe, several: list[str]) -> str:
    """Returns two fields of a file that are valid at one time, if there are any."""
    bases, steps = _bases(recipe, several), _steps(recipe, several)
    valid = (_numbers(bases)[:, None] + _numbers(steps)[None, :]).ravel()
    _, first, counts = np.unique(valid, return_index=True, return_counts=True)
    if (counts == 1).all():
        return ""
    twice = np.flatnonzero(valid == valid[first[counts > 1][0]])[:2].tolist()
    one, other = (_named(bases[at // len(steps)][0], steps[at % len(steps)][0]) for at in twice)
    return f"{one} and {other} have one valid time"


def _numbers(named: list[tuple[str, int]]) -> _Seconds:
    return np.array([number for _, number in named], np.int64)


def _named(base: str, step: str) -> str:
    return ",".join(part for part in (base, step) if part)


def _bases(recipe: Recipe, several: list[str]) -> list[tuple[str, int]]:
    """Returns the base times of a file: as words, and in seconds; an unknown time counts as one."""
    words: dict[str, tuple[Value, ...]] = dict(recipe.words)

    def of(word: str, number: Any) -> list[tuple[str, int]]:
        return [(f"{word}={value}", number(str(value))) for value in words[word]] if word in several else [("", 0)]

    # The base time of a hindcast is that of its own day.
    days = [
        (_named(day, hindcast), number if "hdate" not in several else other)
        for day, number in of("date", _day)
        for hindcast, other in of("hdate", _day)
    ]
    return [(_named(day, time), number + other) for day, number in days for time, other in of("time", seconds_of)]


def _day(text: str) -> int:
    return 86400 * datetime.datetime.strptime(text, "%Y%m%d").toordinal()


def _steps(recipe: Recipe, several: list[str]) -> list[tuple[str, int]]:
    """Returns the ends of the steps, or windows, of a file."""
    if "step" not in several:
        return [("", 0)]
    windows = [] if recipe.statistics is None else recipe.statistics.windows(dict(recipe.words)["step"])
    texts = [window.step for window in windows] or [str(step) for step in dict(recipe.words)["step"]]
    found = [(text, step_of(text)) for text in texts]
    return [(f"step={text}", step.end) for text, step in found if step is not None]
