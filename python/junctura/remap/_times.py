"""The steps of one model at the times of another."""

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
# Of 64 bits.
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
    """Gives the field at each wanted time, as soon as the steps that it is made of have come.

    Parameters
    ----------
    steps : iterable of Object
        Steps in the order of their times: a follow, a requirement's, a list. They are read no further than a wanted
        time needs. Of those that come those still needed are held: two for ``nearest`` and ``linear``; for ``mean`` and
        ``sum`` the window is kept as copies.
    times : iterable
        When the field is wanted, never going back: whole numbers, as the steps have them, or datetimes, or lengths of
        time, exact to the nanosecond where the first one, or the first step, is in nanoseconds.
    method : str
        ``nearest``: the nearest step, of two the earlier. ``linear``: a line between the step before and the one
        behind; at the time of a step the step itself, bit for bit. ``mean``, ``sum``: of the steps of a window that
        ends with the wanted time.
    lag
        At a wanted time `t` is given what the steps are at `t - lag`.
    window
        How long the window of a mean or sum is: it has the steps behind `t - window`, up to `t`.
    time : str or callable
        When a step is: the name of an attribute that is a whole number, or a function of the object that says a time.
    field : callable, optional
        The values of an object. Default: `Object.array`. An array that can be written to is copied while it is needed,
        so one buffer may be filled for all steps. Masked elements are NaN.

    Yields
    ------
    tuple
        The wanted time, and the field: of doubles where it was computed (of float32 such), else the values of the step.
        They are read-only where they are a payload of the pool.

    Raises
    ------
    NotFound
        The steps have ended, or begin later, and what would be needed is not there.
    InvalidArgument
        Times go back, or are not whole.

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
    # What is wrong with these is said at once.
    course(_unit(is_fine))
    when = (lambda step: step[time]) if isinstance(time, str) else time
    read = field if field is not None else (lambda step: step.array())
    given, wanted = iter(steps), iter(times)

    def found() -> Iterator[tuple[Time, Array]]:
        for first in wanted:
            # The first wanted time needs the first step, and these two decide how fine times are.
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
        """The next step, which is looked at only where it may be needed, at this wanted time or later."""
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
            return values
        dtype = np.float32 if values.dtype == np.float32 else np.float64
        total: Array = values.astype(np.float64) * share
        for number, share in uses[1:]:
            if self.held[number].shape != values.shape:
                shapes = f"{values.shape} and {self.held[number].shape}"
                raise InvalidArgument("steps", f"two steps have different shapes: {shapes}")
            total += self.held[number].astype(np.float64) * share
        return (total / divisor).astype(dtype, copy=False)


def _can_change(values: Array | None) -> bool:
    """Whether somebody can write to an array: then the next step may be read into its memory."""
    while isinstance(values, np.ndarray):
        if values.flags.writeable:
            return True
        values = values.base
    return False


def _unit(is_fine: bool) -> str:
    return _NANOSECONDS if is_fine else _MICROSECONDS


def _is_fine(time: Any) -> bool:
    """Whether it is a time in nanoseconds, or finer."""
    return isinstance(time, (np.datetime64, np.timedelta64)) and np.datetime_data(time.dtype)[0] in _FINE


def _whole(time: Any, unit: str) -> int:
    """A time as a whole number: of microseconds or nanoseconds, where it is a moment or a length of time."""
    if isinstance(time, (np.datetime64, np.timedelta64)):
        # In its own unit, or a coarser one: a conversion to a finer one may leave 64 bits without a word.
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
