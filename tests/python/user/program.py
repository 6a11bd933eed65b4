"""A program of a user: every public name once, in a place where one would use it. The tests type-check and run it."""

from __future__ import annotations

import asyncio
import datetime
import pickle
import sys
import tempfile
import warnings
from collections.abc import Iterator

import numpy as np

import junctura

WRONG_INPUT = (
    junctura.InvalidArgument,
    junctura.InvalidSelector,
    junctura.NotFound,
    junctura.SchemaMismatch,
    junctura.TooLarge,
    junctura.TypeMismatch,
)
TRY_AGAIN = (junctura.Disconnected, junctura.Interrupted, junctura.Io, junctura.PoolFull, junctura.Unavailable)
NOT_HERE = (junctura.Corrupt, junctura.Denied, junctura.LimitExceeded, junctura.Protocol, junctura.Unsupported)


def advice(error: junctura.Error) -> str:
    """What to do about an error."""
    if isinstance(error, TRY_AGAIN):
        return "again"
    return "other input" if isinstance(error, WRONG_INPUT) else error.advice


def names(entries: list[junctura.Entry]) -> Iterator[str]:
    """The names of what is listed."""
    for entry in entries:
        described: junctura.Described = entry
        yield str(described["name"])


def produce(pool: junctura.Pool) -> junctura.Version:
    """Offers in all ways."""
    with pool.allocate(shape=(2, 3), dtype="f4") as field:
        memory: junctura.Allocation = field
        memory.array()[:] = 1.5
        version: junctura.Version = memory.offer(name="filled", retention="withdrawn")
    pool.offer(np.eye(2), {"name": "eye"}, retention=datetime.timedelta(hours=1))
    pool.offer_many([(b"1", {"name": "one"}), (b"2", {"name": "two"})], retention=junctura.Released(1))
    with pool.pipeline(window=8) as pipeline:
        sender: junctura.Pipeline = pipeline
        number: int = sender.offer(b"3", name="three")
        assert number == 0
    declined: junctura.Version | None = pool.offer(b"", name="unwanted", if_wanted=True)
    assert declined is None
    try:
        pool.demand(name="unwanted", timeout=1)
    except junctura.NotWanted as error:
        print(error.subject, advice(error))
    return version


def bundles(pool: junctura.Pool) -> int:
    """Objects that become visible together."""
    with pool.bundle("run/step=1", members=2) as bundle:
        opened: junctura.Bundle = bundle
        staged: junctura.Staged = opened.offer(b"t", name="t")
        waiting: junctura.BundleEntry = pool.bundles(under="run/step=1")[0]
        print(waiting.path, waiting.state, waiting.members)
        opened.offer(b"u", name="u")
        completed: junctura.Completed = opened.wait(timeout=10)
        assert completed.version(staged) is not None
    try:
        opened.offer(b"v", name="v")
    except (junctura.BundleClosed, junctura.BundleFull, junctura.Closed, junctura.Conflict) as error:
        print(advice(error))
    return completed.objects


def counted(pool: junctura.Pool) -> int:
    """Numbers of objects, without a list."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", junctura.SelectorWarning)
        warnings.simplefilter("error", junctura.UsageWarning)
        warnings.simplefilter("error", junctura.WaitWarning)
        tally: junctura.Tally = pool.tally("name=t/u", by=["name"], sum_bytes=True)
    groups: tuple[junctura.TallyGroup, ...] = tally.groups
    print([(group.schema.name, group.values, group.objects, group.nbytes) for group in groups])
    return tally.objects


def silent_for(pool: junctura.Pool) -> float:
    """How long the server has not turned: read from its page in shared memory."""
    board: junctura.Board = pool.board()
    return board.turn_age


def consume(pool: junctura.Pool) -> list[str]:
    """Reads in all ways."""
    seen: list[str] = []
    with pool.follow(gaps="yield", live="yield", until_live=True) as follow:
        reader: junctura.Follow = follow
        for item in iter(reader.next, None):
            if isinstance(item, junctura.Gap):
                seen.extend(f"lost {one.key}" for one in item.items)
            elif not isinstance(item, junctura.Live):
                obj: junctura.Object = item
                seen.append(str(obj["name"]))
    with pool.require("name=late") as requirement:
        wanted: junctura.Requirement = requirement
        pool.offer(np.arange(3), name="late")
        with wanted.demand(name="late", timeout=10) as late:
            seen.append(f"{late.array().sum()}")
    events: junctura.Subscription = pool.subscribe(kinds=["offered"])
    pending: junctura.PendingDemand = pool.begin_demand(name="new")
    timer = junctura.Timer(after=60)
    pool.offer(b"new", name="new")
    assert timer not in pool.wait(events, pending, timer)
    event: junctura.Event | None = events.next(timeout=10)
    if event is not None and event.client is not None:
        peer: junctura.Peer = event.client
        seen.append(peer.name)
    try:
        pending.get().release()
        pool.demand(name="never", timeout=0.001)
    except (junctura.Timeout, junctura.Gone, junctura.Expired) as error:
        seen.append(error.code)
    events.close()
    return seen


def keep(pool: junctura.Pool, folder: str) -> int:
    """What is to last."""
    opened: junctura.Store
    with junctura.Store.create(f"{folder}/store", schema="free", snapshot_max_age="12h") as opened:
        with pool.demand(name="eye") as obj:
            opened.archive(obj, obj.attributes)
        opened.archive_many([(b"1", {"name": "one"}), (np.zeros(3), {"name": "zeros"})])
        done: junctura.Flushed = opened.flush()
    snapshot: junctura.Snapshot = opened.snapshot()
    listing: junctura.Listing = snapshot.list("name=eye/zeros")
    kept: junctura.Stored = listing[0]
    place: junctura.Location = kept.location
    with kept.open() as file:
        assert len(file.read()) == kept.nbytes == place.nbytes
    assert place.uri == f"file://{folder}/store/{place.file}"
    for each, payload in listing.payloads(run_nbytes="1MiB"):
        assert len(payload) == each.nbytes
    print(done.objects, kept.array().shape, listing.to_arrow().num_rows, opened.axes()["name"])
    views: list[memoryview] = listing.map()
    print(len(views), len(listing.read()[0]))
    same: junctura.Comparison = junctura.compare(listing, opened.retrieve("", wait=True), atol=0.0)
    print(same.is_same, same.both, len(opened.list(after=done.commit)))
    checked: junctura.Checked = opened.check()
    covered: junctura.Checkpointed = opened.checkpoint()
    tidied: junctura.Compacted = opened.compact()
    opened.add_tier("cold", f"{folder}/cold")
    moved: junctura.Moved = opened.move_to("name=zeros", "cold")
    print(moved.objects, opened.tiers["cold"], opened.gather().nbytes)
    removed: junctura.Removed = opened.wipe("name=one")
    assert removed.objects == 1
    with junctura.Archiver(pool, opened, "name=eye", until_live=True) as archiver:
        counts: junctura.ArchiverCounts = archiver.wait(timeout=60.0)
    assert counts.archived == 1 and archiver.is_over
    return checked.damaged_count + covered.rows + len(tidied.removed)


def exchange(pool: junctura.Pool) -> float:
    """An array in two pieces, taken in three."""
    layout = junctura.Layout(shape=(4, 6), grid=(2, 1))
    for rank in range(layout.ranks):
        pool.offer_piece(np.full(layout.extents(rank)[0], float(rank)), layout, rank, name="pieces")
    with pool.bundle("pieces/step") as step:
        for rank in range(layout.ranks):
            step.offer_piece(np.zeros(layout.extents(rank)[0]), layout, rank, name="together")
    pool.withdraw_all("name=together")
    mine = pool.demand_array("name=pieces", "shape=4x6 grid=1x3", 2)
    plan: junctura.Plan = layout.plan("shape=4x6 grid=1x3", 2)
    assert plan.partners == [(0, 4), (1, 4)]
    part = pool.demand_array(name="pieces", slab=(slice(1, 3), (0, 2)), dtype="f4", timeout=10)
    columns = junctura.Exchange(pool, "shape=4x6 grid=1x3", 2, schema="free", dtype="f8")
    got = columns.get(name="pieces", timeout=10)
    return float(mine.sum() + part.sum() + got.sum())


def between_models(pool: junctura.Pool) -> float:
    """Fields on another grid, at other times."""
    source = junctura.remap.LonLat([0, 90, 180, 270], [-45, 45])
    triangle = junctura.remap.Mesh([20], [10], [[0, 40, 20]], [[0, 0, 30]])
    weights: junctura.remap.Weights = junctura.remap.Weights.compute(source, triangle, "bilinear")
    for step in (0, 6):
        pool.offer(np.full(source.shape, float(step)), space="model", name=str(step))
    kept: junctura.remap.Conservation = weights.conservation(np.ones(source.shape))
    print(kept.relative_error > 0.0)
    steps = pool.list("space=model")
    times = junctura.remap.at_times(
        steps, [2, 3], time=lambda step: int(step["name"]), field=lambda step: pool.demand(step.key).array()
    )
    return float(sum(weights(field)[0] for _, field in times))


def lazily(pool: junctura.Pool) -> int:
    """What a selector finds, for tasks of Dask's."""
    return len(junctura.dask.from_selector("name=filled", pool=pool, as_="delayed"))


def meshes(folder: str) -> float:
    """A rod with the heat of its elements, in a file."""
    points = {"nodes": junctura.mesh.MeshPoints((np.arange(3.0), np.zeros(3)))}
    blocks = {"rod": junctura.mesh.MeshBlock("nodes", "line", np.array([0, 1, 1, 2]))}
    heat = junctura.mesh.MeshField("heat", "element", "rod", {"": np.array([300.0, 310.0])})
    writer = junctura.mesh.create(f"{folder}/rod.exo")
    writer.write(junctura.mesh.MeshStep(points, blocks, fields=(heat,), step=1, time=0.5))
    writer.close()
    with junctura.mesh.read(f"{folder}/rod.exo") as series:
        return sum(float(mesh.fields[0].values[""].sum()) for mesh in series)


async def in_a_loop(pool: junctura.Pool) -> float:
    """The same in a loop."""
    ours: junctura.aio.Pool
    async with junctura.aio.Pool(pool) as ours:
        follow: junctura.aio.Follow = ours.follow("name=x")
        events: junctura.aio.Subscription = await ours.subscribe(kinds=["offered"])
        kept: junctura.aio.Requirement = await ours.require("name=x")
        bundle: junctura.aio.Bundle = ours.bundle()
        async with bundle, follow:
            await bundle.offer(np.ones(4), name="x")
            completed = await bundle.seal()
            assert completed.objects == 1
            ready = await ours.wait(follow, events, timeout=10)
            assert events in ready or follow in ready
            total = 0.0
            async for obj in follow:
                total += float(obj.array().sum())
                break
            (await kept.demand(name="x")).release()
        pipeline: junctura.aio.Pipeline = ours.pipeline()
        async with pipeline:
            await pipeline.offer(b"", name="y")
        side: junctura.aio.Exchange = junctura.aio.Exchange(ours, "shape=4x6", schema="free")
        await side.put(np.ones((4, 6)), name="put")
        total += float((await side.get(name="put")).sum())
        event = await events.next(timeout=10)
        assert event is not None
        await kept.retract()
        await events.close()
    return total


def main() -> int:
    """Everything, in one pool of its own."""
    schema = junctura.Schema.builtin("free")
    selector = junctura.Selector("name=a/b", schema)
    assert selector.matches(name="a")
    assert pickle.loads(pickle.dumps(selector)) == selector
    with junctura.Pool(schema=schema, name="user", budget="64MiB") as pool:
        version = produce(pool)
        try:
            pool.offer(b"", name="filled")
        except junctura.AlreadyExists as error:
            print(version, error.subject, advice(error))
        print(
            exchange(pool),
            between_models(pool),
            bundles(pool),
            counted(pool),
            consume(pool),
            asyncio.run(in_a_loop(pool)),
        )
        with tempfile.TemporaryDirectory() as folder:
            print(keep(pool, folder), meshes(folder))
        print(lazily(pool))
        entries = pool.list()
        print(sorted(names(entries)), junctura.to_pandas(entries).shape, junctura.to_arrow(entries).num_rows)
        print(pool.demand(name="filled").to_xarray().mean().item(), NOT_HERE[0].code, junctura.__version__)
    return 0


if __name__ == "__main__":
    sys.exit(main())
