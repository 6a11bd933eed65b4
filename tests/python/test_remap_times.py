"""The steps of one model at the times of another."""

from __future__ import annotations

import datetime
import threading
import weakref
from typing import Any

import numpy as np
import pytest

import junctura
from junctura.remap import at_times

HOUR = datetime.timedelta(hours=1)


class Step:
    """What a list of steps may hold: a time, and values."""

    def __init__(self, time: Any, values: Any) -> None:
        self.time, self.values = time, np.asarray(values)


def steps(*times: int) -> list[Step]:
    return [Step(time, np.array([0.1 * time, -time])) for time in times]


def fields(given: list[Step], wanted: list[Any], **options: Any) -> list[list[float]]:
    found = at_times(given, wanted, time=lambda step: step.time, field=lambda step: step.values, **options)
    return [values.tolist() for _, values in found]


def test_linear_at_a_step_is_the_step_bit_for_bit() -> None:
    given = steps(0, 6, 12)
    for step in given:
        step.values.flags.writeable = False
    found = list(at_times(given, [0, 6, 9, 12], time=lambda step: step.time, field=lambda step: step.values))
    # What nobody can write to is not copied.
    assert found[0][1] is given[0].values and found[1][1] is given[1].values and found[3][1] is given[2].values
    assert found[2][0] == 9
    np.testing.assert_allclose(found[2][1], [0.9, -9.0], rtol=1e-15)


def test_nearest_mean_and_sum() -> None:
    given = steps(0, 6, 12, 18)
    assert [values[1] for values in fields(given, [1, 3, 4, 30], method="nearest")] == [0, 0, -6, -18]
    assert [values[1] for values in fields(given, [6, 18], method="mean", window=12)] == [-3, -15]
    assert [values[1] for values in fields(given, [12, 18], method="sum", window=12)] == [-18, -30]


def test_a_lag_looks_back() -> None:
    assert [values[1] for values in fields(steps(0, 6, 12), [6, 9, 12], lag=6)] == [0, -3, -6]


def test_times_may_be_moments() -> None:
    start = datetime.datetime(2026, 11, 23)
    given = [Step(start + hour * HOUR, [float(hour)]) for hour in (0, 6, 12)]
    wanted = [np.datetime64("2026-11-23T09:00"), start + 12 * HOUR]
    assert fields(given, wanted) == [[9.0], [12.0]]
    assert fields(given, [start + 9 * HOUR], method="mean", window=9 * HOUR, lag=np.timedelta64(1, "h")) == [[3.0]]
    utc = [Step(step.time.replace(tzinfo=datetime.timezone.utc), step.values) for step in given]
    assert fields(utc, [datetime.datetime(2026, 11, 23, 4, tzinfo=datetime.timezone(HOUR))]) == [[3.0]]


def test_floats_stay_small_and_whole_numbers_become_doubles() -> None:
    for kind, expected in (("f4", "f4"), ("f8", "f8"), ("i4", "f8")):
        given = [Step(0, np.zeros(2, kind)), Step(2, np.full(2, 3, kind))]
        found = dict(at_times(given, [1], time=lambda step: step.time, field=lambda step: step.values))
        assert found[1].dtype == expected and found[1].tolist() == [1.5, 1.5]


def test_what_is_wrong_is_named() -> None:
    for options, words in (
        ({"wanted": [1.5]}, "1.5 is no whole number"),
        ({"wanted": [3, 2]}, "after a later one"),
        ({"wanted": [3], "method": "cubic", "window": 3}, "cubic. is not one of"),
        ({"wanted": [3], "window": 3}, "is not for linear"),
        ({"wanted": [3], "method": "mean"}, "is not for mean"),
        ({"wanted": [3], "method": "sum", "window": 0}, "a window of 0"),
    ):
        with pytest.raises(junctura.InvalidArgument, match=words):
            fields(steps(0, 6), **options)
    for wanted, words in ((-1, "the first step is of 0"), (7, "the last step is of 6")):
        with pytest.raises(junctura.NotFound, match=words):
            fields(steps(0, 6), [wanted])
    with pytest.raises(junctura.InvalidArgument, match="a step of time 6 follows one of 6"):
        fields(steps(0, 6, 6, 12), [12])
    with pytest.raises(junctura.InvalidArgument, match="different shapes"):
        fields([Step(0, [1.0]), Step(2, [1.0, 2.0])], [1])


@pytest.mark.parametrize("method", ["nearest", "linear"])
def test_steps_that_are_not_needed_are_let_go(method: Any) -> None:
    read: list[weakref.ref[Any]] = []

    def field(step: Step) -> Any:
        values = np.full(2, float(step.time))
        read.append(weakref.ref(values))
        assert sum(one() is not None for one in read) <= 3
        return values

    found = at_times(steps(*range(1000)), [500, 990], method=method, time=lambda step: step.time, field=field)
    assert [values.tolist() for _, values in found] == [[500, 500], [990, 990]]
    assert len(read) == 991


def test_steps_of_no_window_are_not_looked_at() -> None:
    read: list[int] = []

    def field(step: Step) -> Any:
        read.append(step.time)
        return np.ones(1)

    found = at_times(steps(*range(100)), [50, 90], method="sum", window=3, time=lambda step: step.time, field=field)
    assert [values.tolist() for _, values in found] == [[3.0], [3.0]]
    assert read == [48, 49, 50, 88, 89, 90]


def test_steps_of_a_pool_are_given_as_they_come_and_let_go(pool: junctura.Pool) -> None:
    """Another model has steps of 6; this one wants each 2, while the other is still running."""
    given = [threading.Event() for _ in range(4)]

    def produce() -> None:
        for number, may_go in enumerate(given):
            assert may_go.wait(60)
            pool.offer(np.full(3, 6.0 * number), space="model", name=str(number), retention=junctura.Released(1))

    producer = threading.Thread(target=produce)
    producer.start()
    given[0].set()
    with pool.follow("space=model") as follow:
        found = []
        for time, values in at_times(follow, range(0, 19, 2), time=lambda step: 6 * int(step["name"])):
            assert isinstance(time, int)
            # What is known of steps that have come does not wait for those that have not.
            given[min(time // 6 + 1, 3)].set()
            found.append(float(values.mean()))
            del values
    producer.join()
    np.testing.assert_allclose(found, np.arange(0, 19, 2), rtol=1e-15)
    pool.sync()
    assert len(pool.list("space=model")) <= 2


HOW: dict[str, Any] = {"time": lambda step: step[0], "field": lambda step: step[1]}


@pytest.mark.parametrize("start", [np.timedelta64(0, "ns"), np.datetime64("2026-11-23T09:00", "ns")])
def test_times_are_exact_to_the_nanosecond(start: Any) -> None:
    steps = [(start + np.timedelta64(1500 * at, "ns"), np.full(1, float(at))) for at in range(9)]

    def found(*wanted: int, **options: Any) -> list[float]:
        times = [start + np.timedelta64(time, "ns") for time in wanted]
        return [float(values[0]) for _, values in at_times(steps, times, **HOW, **options)]

    assert found(750, 2250) == [0.5, 1.5]
    assert found(0, 1, 4499) == pytest.approx([0, 1 / 1500, 4499 / 1500], rel=1e-15)
    assert found(749, 751, 4500, method="nearest") == [0, 1, 3]
    # Fine times of the window and the lag count, too.
    assert found(3000, 6000, method="sum", window=np.timedelta64(1500, "ns")) == [2, 4]
    assert found(3000, lag=np.timedelta64(500, "ns")) == [pytest.approx(2500 / 1500)]


def test_times_that_are_finer_than_the_first_are_refused() -> None:
    steps = [(np.timedelta64(3 * at, "us"), np.full(1, float(at))) for at in range(4)]
    with pytest.raises(junctura.InvalidArgument, match=r"750.* is finer than a microsecond, and those before it"):
        list(at_times(steps, [np.timedelta64(0, "us"), np.timedelta64(750, "ns")], **HOW))
    with pytest.raises(junctura.InvalidArgument, match="is finer than a nanosecond"):
        list(at_times(steps, [np.timedelta64(750, "ps")], **HOW))


def test_moments_far_away_are_told_in_microseconds() -> None:
    year = [np.datetime64(f"{year}-01-01", "s") for year in ("0850", "2500")]
    steps = [(moment, np.full(1, float(at))) for at, moment in enumerate(year)]
    found = [float(values[0]) for _, values in at_times(steps, [year[0], year[0] + (year[1] - year[0]) // 2], **HOW)]
    assert found == [0, 0.5]
    with pytest.raises(junctura.InvalidArgument, match="is too far away for times in nanoseconds"):
        list(at_times(steps, [np.datetime64("1990-01-01", "ns"), datetime.datetime(2400, 1, 1)], **HOW))


def test_whole_microseconds_may_be_said_in_nanoseconds() -> None:
    whole = [(np.timedelta64(2000 * at, "ns"), np.full(1, float(at))) for at in range(4)]
    found = list(at_times(whole, [np.timedelta64(1000, "ns"), np.timedelta64(5, "us")], **HOW))
    assert [float(values[0]) for _, values in found] == [0.5, 2.5]


@pytest.mark.parametrize("method", ["linear", "nearest"])
def test_what_is_done_to_a_field_changes_no_later_one(method: Any) -> None:
    steps = [{"step": hour} for hour in (0, 6, 12)]
    fields = at_times(steps, [0, 6, 6, 8, 12], method=method, field=lambda step: np.full(3, float(step["step"])))
    found = []
    for _, values in fields:
        found.append(values[0])
        values -= 273.15
    assert found == [0, 6, 6, 6 if method == "nearest" else 8, 12]
