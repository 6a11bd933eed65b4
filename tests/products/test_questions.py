"""Any number of recipes can be asked for, and each input comes in once."""

from __future__ import annotations

import select
from pathlib import Path

import pytest
from broker_runs import broker, grid_message, offer

import junctura
from junctura._selectors import joined
from junctura.products import Failed, Made
from junctura.products._input.queries import InputFollows

pytestmark = pytest.mark.timeout(120)


def of(name: str, level: int, steps: list[int]) -> str:
    return (
        f"product: {name}\n"
        f"from: {{param: t, levelist: {level}, step: [{', '.join(map(str, steps))}], number: 1}}\n"
        f"to: {{format: grib2, name: '{name}_{{step}}.grib2'}}\n"
    )


def test_three_hundred_recipes_that_have_nothing_in_common_are_served(tmp_path: Path) -> None:
    """The first and the last one ask for one field, in different follows."""
    steps = [[100 + 7 * of + 3 * nth for nth in range(50)] for of in range(300)]
    wanted = [of(f"p{number}", 1 + number, steps[number]) for number in range(300)]
    wanted.append(of("twice", 1, [100]))
    with junctura.Pool(schema="mars") as pool:
        for number in (0, 299):
            offer(pool, grid_message(280.0, shortName="t"), param="t", step=steps[number][0], levelist=1 + number)

        def observe(event: Made | Failed) -> None:
            if isinstance(event, Made) and len(running.report.made) == 3:
                pool.stop(timeout=0)

        running = broker(tmp_path, pool, "---\n".join(wanted), observer=observe)
        asked = [text for recipe in running.recipes for text in recipe.sources()]
        assert len(list(joined(asked))) == 2
        report = running.run()
    assert sorted(made.path.name for made in report.made) == [
        "p0_100.grib2",
        f"p299_{steps[299][0]}.grib2",
        f"twice_{steps[0][0]}.grib2",
    ]
    assert (report.inputs, report.decodes, report.decodes_per_input_max) == (2, 2, 1)
    assert len(report.failed) == 300 * 50 - 2


def test_selectors_are_joined_as_far_as_they_may_be_long() -> None:
    assert list(joined([])) == []
    assert list(joined(["step=0"])) == ["step=0"]
    assert list(joined(["step=0", "step=6"])) == ["(step=0) or (step=6)"]
    long = ["a=" + "x" * 30_000, "b=" + "x" * 30_000, "c=" + "x" * 30_000]
    assert list(joined(long)) == [f"({long[0]}) or ({long[1]})", long[2]]
    many = ["step=" + "/".join(map(str, range(6000)))[:30_000]] * 2
    assert len(list(joined(many))) == 2


@pytest.mark.parametrize("count", [1, 2, 40])
def test_all_that_several_follows_find_is_taken(count: int) -> None:
    with junctura.Pool(schema="free") as pool:
        for number in range(count):
            pool.offer(b"", name=f"{number}")
        # So many values that each has a follow of its own.
        others = "/".join(map(str, range(1000, 7000)))
        asked = [f"name={number},name!={others}" for number in range(count)]
        assert len(list(joined(asked))) == count
        found: list[str] = []
        with InputFollows(pool, asked, 256) as questions:

            def take(obj: junctura.Object) -> None:
                with obj:
                    found.append(str(obj.attributes["name"]))

            questions.sync()
            assert questions.take(take) == (count, False)
        assert sorted(found, key=int) == [str(number) for number in range(count)]


@pytest.mark.parametrize("of", [0, 1, 2])
def test_each_follow_wakes_who_waits_for_all(of: int) -> None:
    """What one of three follows reads is not lost when the others are looked at after it."""
    with junctura.Pool(schema="free") as pool:
        others = "/".join(map(str, range(1000, 7000)))
        with InputFollows(pool, [f"name={number},name!={others}" for number in range(3)], 256) as questions:
            found: list[str] = []
            poll = select.poll()
            poll.register(pool.fileno(), select.POLLIN)
            while questions.take(lambda _: None)[0]:
                pass
            pool.offer(b"", name=f"{of}")
            while not found:
                assert poll.poll(50_000)
                questions.take(lambda obj: found.append(str(obj.attributes["name"])))
            assert found == [f"{of}"]
