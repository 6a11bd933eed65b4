"""Interpolates the steps of one model to the times of another."""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from junctura import _native
from junctura._array.numpy_payload import array_of
from junctura.errors import InvalidArgument

Array = npt.NDArray[Any]
Time: TypeAlias = int | datetime.datetime | datetime.timedelta | np.generic
Method: TypeAlias = Literal["nearest", "linear", "mean", "sum"]
_EPOCH = datetime.datetime(1970, 1, 1)
_EPOCH_UTC = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
_MICROSECOND = datetime.timedelta(microseconds=1)
_MICROSECONDS, _NANOSECONDS = "us", "ns"
_FINE = ("ns", "ps", "fs", "as")
# The limit of 64 bits.
_NUMBER_MAX = (1 << 63) - 1


def at_times(
    steps: Iterable[Any],
    times: Iterable[Time],
    *,
    method: Method = "linear",
    lag: Time = 0,
    window: Time | None = None,
    time: str | Callable[[Any], Time] = "step",
    field: Callable[[Any], Array] | None = None,
) -> Iterator[tuple[Time, Array]]:
    """Yields the field at each requested time, as soon as the required steps have arrived.

    Parameters
    ----------
    steps : iterable of Object
        Steps in the order of their times: a follow, the follow of a requirement, a list. No more steps are read than a
        requested time needs. Steps that are still needed are held: two for ``nearest`` and ``linear``; for ``mean`` and
        ``sum`` the steps of the window are copied.
    times : iterable
        Requested times, in non-decreasing order: integers, as the steps have them, or datetimes, or durations, exact to
        the nanosecond if the first one, or the first step, has nanoseconds.
    method : str
        ``nearest``: the nearest step; if two are equally near, the earlier. ``linear``: linear interpolation between
        the step before and the step after; at the time of a step the step itself, bit for bit. ``mean``, ``sum``: over
        the steps of a window that ends at the requested time.
    lag
        At a requested time `t` the result is the field at `t - lag`.
    window
        Length of the window of a mean or sum, with the steps after `t - window`, up to and including `t`.
    time : str or callable
        The time of a step: the name of an integer attribute, or a function of the object that returns a time.
    field : callable, optional
        Returns the values of an object. Default: `Object.array`. A writable array is copied while it is needed, so one
        buffer may be reused for all steps. Masked elements are NaN.

    Yields
    ------
    tuple
        The requested time, and the field: double precision if it was computed (single for float32), else the values of
        the step, which are read-only if they are a payload of the pool, else a copy.

    Raises
    ------
    NotFound
        The steps have ended, or begin later, and a required step is missing.
    InvalidArgument
        Times decrease, or are not integers.

    Examples
    --------
    >>> with junctura.Pool(schema="free") as pool:
    ...     for step in (0, 6, 12):
    ...         version = pool.offer(numpy.full(2, step / 2), space="t", name=str(step))
    ...     fields = junctura.remap.at_times(
    ...         pool.follow("space=t", until_live=True), [0, 3, 12], time=lambda step: int(step["name"])
    ...     )
    ...     for time, values in fields:
    ...         print(time, values)
    0 [0. 0.]
    3 [1.5 1.5]
    12 [6. 6.]

    """
    if (window is None) != (method in ("nearest", "linear")):
        raise InvalidArgument("window", f"a window of {window} is not for {method}")

    def course(unit: str) -> _native._Course:
        return _native._Course(method, 0 if window is None else _whole(window, unit), _whole(lag, unit))

    is_fine = any(map(_is_fine, (window, lag)))
    # Invalid arguments fail at once.
    course(_unit(is_fine))
    when = (lambda step: step[time]) if isinstance(time, str) else time
    read = field if field is not None else (lambda step: step.array())
    given, wanted = iter(steps), iter(times)

    def found() -> Iterator[tuple[Time, Array]]:
        for first in wanted:
            # The first requested time needs the first step, and both together determine the resolution of times.
            begin = list(itertools.islice(given, 1))
            unit = _unit(is_fine or any(map(_is_fine, (first, *map(when, begin)))))
            fields = _Fields(
                course(unit), unit, itertools.chain(begin, given), when, read, is_copied=window is not None
            )
            yield from fields.at(itertools.chain([first], wanted))

    return found()


class _Fields:
    """The steps that are still needed, by number."""

    def __init__(
        self,
        course: _native._Course,
        unit: str,
        steps: Iterator[Any],
        when: Callable[[Any], Time],
        read: Callable[[Any], Array],
        *,
        is_copied: bool,
    ) -> None:
        self.course = course
        self.unit = unit
        self.steps = steps
        self.when = when
        self.read = read
        self.is_copied = is_copied
        self.held: dict[int, Array] = {}

    def at(self, times: Iterable[Time]) -> Iterator[tuple[Time, Array]]:
        for wanted in times:
            moment = _whole(wanted, self.unit)
            while (uses := self.course.ask(moment)) is None:
                self._take(moment)
            values = self._made(*uses)
            self._forget(moment)
            yield wanted, values

    def _take(self, moment: int) -> None:
        """Reads the next step, and its values only if this or a later requested time needs them."""
        try:
            step = next(self.steps)
        except StopIteration:
            self.course.end()
            return
        number = self.course.push(_whole(self.when(step), self.unit))
        if number >= self._forget(moment):
            values = array_of(self.read(step))
            self.held[number] = values.copy() if self.is_copied or _can_change(values) else values

    def _forget(self, moment: int) -> int:
        first = self.course.forget(moment)
        for number in [number for number in self.held if number < first]:
            del self.held[number]
        return first

    def _made(self, uses: list[tuple[int, float]], divisor: float) -> Array:
        number, share = uses[0]
        values = self.held[number]
        if len(uses) == 1 and share == divisor == 1:
            # Later times need the step as it is, whatever is done to what is yielded.
            return values.copy() if values.flags.writeable else values
        dtype = np.float32 if values.dtype == np.float32 else np.float64
        total: Array = values.astype(np.float64) * share
        for number, share in uses[1:]:
            if self.held[number].shape != values.shape:
                shapes = f"{values.shape} and {self.held[number].shape}"
                raise InvalidArgument("steps", f"two steps have different shapes: {shapes}")
            total += self.held[number].astype(np.float64) * share
        return (total / divisor).astype(dtype, copy=False)


def _can_change(values: Array | None) -> bool:
    """Whether an array can be modified: then the next step may be read into its memory."""
    while isinstance(values, np.ndarray):
        if values.flags.writeable:
            return True
        values = values.base
    return False


def _unit(is_fine: bool) -> str:
    return _NANOSECONDS if is_fine else _MICROSECONDS


def _is_fine(time: Any) -> bool:
    """Whether the time has a resolution of nanoseconds or finer."""
    return isinstance(time, (np.datetime64, np.timedelta64)) and np.datetime_data(time.dtype)[0] in _FINE


def _whole(time: Any, unit: str) -> int:
    """Returns a time as an integer: in microseconds or nanoseconds, if it is a moment or a duration."""
    if isinstance(time, (np.datetime64, np.timedelta64)):
        # In its own unit, or a coarser one: conversion to a finer one may overflow 64 bits silently.
        own = unit if _is_fine(time) else _MICROSECONDS
        rounded = time.astype(f"{time.dtype.kind}8[{own}]")
        if rounded != time:
            finer = "nanosecond" if own == _NANOSECONDS else "microsecond, and those before it were not"
            raise InvalidArgument("times", f"{time!r} is finer than a {finer}: round it")
        number = int(rounded.astype(np.int64))
        return number if own == unit else _in_nanoseconds(time, number)
    if isinstance(time, datetime.datetime):
        time = time - (_EPOCH if time.tzinfo is None else _EPOCH_UTC)
    if isinstance(time, datetime.timedelta):
        number = time // _MICROSECOND
        return number if unit == _MICROSECONDS else _in_nanoseconds(time, number)
    if isinstance(time, (int, np.integer)) and not isinstance(time, bool):
        return int(time)
    raise InvalidArgument("times", f"{time!r} is no whole number, moment or length of time")


def _in_nanoseconds(time: Any, microseconds: int) -> int:
    if abs(microseconds) * 1000 > _NUMBER_MAX:
        raise InvalidArgument("times", f"{time} is too far away for times in nanoseconds: say all in microseconds")
    return microseconds * 1000
