"""What arrives in the pool: every value, once, and whole steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from catalyst_ranks import CatalystRanks
from expected_blocks import assert_equal, blocks, tetrahedra
from mesh_payload import parse, parts

import junctura

Ranks = Callable[..., CatalystRanks]


def payload(pool: junctura.Pool, **key: object) -> bytes:
    selector = ",".join(f"{name}={value}" for name, value in key.items())
    with pool.demand(selector, timeout=0) as found:
        return bytes(memoryview(found))


def of_step(pool: junctura.Pool, channel: str, step: int, rank: int) -> Any:
    """The tree of a rank's step, with the shared arrays that it names."""
    with pool.demand(f"channel={channel},step={step},rank={rank},part=fields", timeout=0) as found:
        mesh = found.get("mesh")
        assert found["content_type"] == "application/vnd.junctura.mesh"
        shared = payload(pool, channel=channel, rank=rank, part="mesh", mesh=f'"{mesh}"') if mesh else None
        return parse(bytes(memoryview(found)), shared)


@pytest.mark.parametrize("count", [1, 4])
def test_every_value_arrives(pool: junctura.Pool, ranks: Ranks, count: int) -> None:
    assert ranks(count, 3, "probe").end() == [""] * count
    for rank in range(count):
        for step in range(3):
            assert_equal(of_step(pool, "blocks", step, rank), blocks(rank, step))
            assert_equal(of_step(pool, "probe", step, rank), tetrahedra(rank, step))


def test_attributes(pool: junctura.Pool, ranks: Ranks) -> None:
    ranks(2, 2, options="case=wing").end()
    with pool.demand("step=1,rank=1,part=fields", timeout=0) as found:
        names = ("case", "channel", "step", "rank", "ranks", "time", "part")
        assert [found[name] for name in names] == ["wing", "blocks", 1, 1, 2, 0.5, "fields"]


def test_a_channel_has_a_state_of_its_own(pool: junctura.Pool, ranks: Ranks) -> None:
    ranks(1, 2, "probe", "state").end()
    found = [(entry["channel"], entry["step"], entry["time"]) for entry in pool.list("part=fields")]
    assert found == [("blocks", 0, 0.0), ("blocks", 1, 0.5), ("probe", 100, 7.5), ("probe", 101, 7.5)]


def test_a_mesh_that_does_not_change_is_offered_once(pool: junctura.Pool, ranks: Ranks) -> None:
    ranks(2, 5).end()
    meshes = pool.list("part=mesh")
    assert [(entry["step"], entry["rank"]) for entry in meshes] == [(0, 0), (0, 1)]
    # Coordinates, connectivity and the numbers of the grids: none is in a step.
    tree, arrays = parts(payload(pool, step=4, rank=0, part="fields"))
    assert tree["tets"]["topologies"]["tets"]["elements"]["connectivity"]["of"] == "mesh"
    assert len(arrays) == 8


def test_a_mesh_that_changes_is_offered_again(pool: junctura.Pool, ranks: Ranks) -> None:
    ranks(2, 6, "refined=3").end()
    meshes = [(entry["step"], entry["rank"]) for entry in pool.list("part=mesh")]
    assert sorted(meshes) == [(0, 0), (0, 1), (3, 0), (3, 1)]
    for step in range(6):
        assert_equal(of_step(pool, "blocks", step, 1), blocks(1, step, shift=5 if step >= 3 else 0))


def test_a_mesh_that_changes_with_each_step_is_in_the_steps(pool: junctura.Pool, ranks: Ranks) -> None:
    ranks(1, 6, "moving").end()
    assert [entry["step"] for entry in pool.list("part=mesh")] == [0, 1]
    for step in range(6):
        assert_equal(of_step(pool, "blocks", step, 0), blocks(0, step, shift=step))
    assert [entry.get("mesh") is None for entry in pool.list("part=fields")] == [False, False, True, True, True, True]


def test_the_mesh_inside_each_step(pool: junctura.Pool, ranks: Ranks) -> None:
    ranks(1, 2, options="mesh=inside").end()
    assert pool.list("part=mesh") == []
    assert_equal(parse(payload(pool, step=1)), blocks(0, 1))


def test_a_fixed_mesh_is_not_looked_at_again(pool: junctura.Pool, ranks: Ranks) -> None:
    ranks(1, 3, "moving", options="mesh=fixed").end()
    assert len(pool.list("part=mesh")) == 1
    assert_equal(of_step(pool, "blocks", 2, 0)["box"]["coordsets"], blocks(0, 2)["box"]["coordsets"])


def test_every_second_step_of_one_channel(pool: junctura.Pool, ranks: Ranks) -> None:
    ranks(1, 5, "probe", options="every=2,channels=(probe,other)").end()
    assert [(entry["channel"], entry["step"]) for entry in pool.list("part=fields")] == [
        ("probe", 0),
        ("probe", 2),
        ("probe", 4),
    ]


def test_a_step_is_visible_when_all_ranks_have_offered(pool: junctura.Pool, ranks: Ranks) -> None:
    running = ranks(3, 2, "stepwise")
    running.step([0, 2])
    assert pool.list("part=fields") == []
    (bundle,) = pool.bundles()
    assert bundle.path == "blocks/blocks/0"
    running.step([1])
    assert [entry["rank"] for entry in pool.list("part=fields")] == [0, 1, 2]
    running.step()
    running.end()
    assert len(pool.list("part=fields")) == 6


def test_options_of_the_node_and_of_the_environment(pool: junctura.Pool, ranks: Ranks) -> None:
    ranks(1, 1, "case=from-node").end()
    ranks(1, 1, "case=from-node", options="case=from-environment").end()
    assert {entry["case"] for entry in pool.list("part=fields")} == {"from-node", "from-environment"}


def test_retention_is_that_of_steps_alone(pool: junctura.Pool, ranks: Ranks) -> None:
    ranks(1, 1, options="retention=released:1").end()
    pool.demand("part=fields", timeout=0).release()
    pool.demand("part=mesh", timeout=0).release()
    pool.sync()
    assert [entry["part"] for entry in pool.list()] == ["mesh"]


@pytest.mark.usefixtures("pool")
def test_report(ranks: Ranks) -> None:
    (error,) = ranks(1, 3, options="report").end()
    assert error.startswith("junctura: catalyst: rank 0: 3 steps offered, 0 left out, 1 meshes, ")
