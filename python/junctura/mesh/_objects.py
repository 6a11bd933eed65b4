"""Meshes as objects of a pool or a store: docs/formats/mesh.md."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from junctura._native import Bundle, Pool, Store
from junctura.errors import InvalidArgument, NotFound, Timeout
from junctura.mesh._model import MeshStep
from junctura.mesh._payload import CONTENT_TYPE, PackedTree, SharedArrays, unpack
from junctura.mesh._tree import MeshTrees, RankJoin, static_tree, step_tree

SCHEMA = "mesh"
# A mesh that changes may return to one of these at no cost.
_SHARED_MAX = 8
# Characters of the parts of a bundle's path.
_PATH = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+:-=,@")

Attributes = Mapping[str, Any]


class StepAssembly:
    """Makes one mesh of the objects of a step.

    Parameters
    ----------
    shared
        Returns the payload of the object of ``part=mesh`` with these attributes.

    """

    def __init__(self, shared: Callable[[dict[str, Any]], Any]) -> None:
        self._find = shared
        self._shared: OrderedDict[tuple[int, str], SharedArrays] = OrderedDict()
        self._trees: dict[int, MeshTrees] = {}
        self._join = RankJoin()

    def mesh(self, parts: list[tuple[Attributes, Any]]) -> MeshStep:
        """Returns the mesh of a step.

        Parameters
        ----------
        parts
            Attributes and payload of the object of each rank.

        """
        meshes = []
        for attributes, payload in sorted(parts, key=lambda part: int(part[0]["rank"])):
            rank = int(attributes["rank"])
            trees = self._trees.setdefault(rank, MeshTrees())
            time = attributes.get("time")
            tree = unpack(payload, self._arrays(attributes, rank))
            mesh = trees.mesh(tree, int(attributes["step"]), None if time is None else float(time))
            meshes.append((str(rank), mesh))
        return self._join.mesh(meshes)

    def _arrays(self, attributes: Attributes, rank: int) -> SharedArrays | None:
        identifier = attributes.get("mesh")
        if identifier is None:
            return None
        known = self._shared.get((rank, identifier))
        if known is None:
            named = {name: attributes[name] for name in ("case", "channel", "rank")}
            known = SharedArrays(self._find({**named, "part": "mesh", "mesh": identifier}))
            self._shared[rank, identifier] = known
        self._shared.move_to_end((rank, identifier))
        while len(self._shared) > _SHARED_MAX * len(self._trees):
            self._shared.popitem(last=False)
        return known


class MeshPacking:
    """Makes objects of the meshes of a series."""

    def __init__(self, case: str, channel: str, rank: int, ranks: int) -> None:
        for name, value in (("case", case), ("channel", channel)):
            if not 1 <= len(value) <= 128 or set(value) - _PATH:
                raise InvalidArgument(name, f"{value!r} is not 1 to 128 letters, digits and characters of ._+:-=,@")
        if not 0 <= rank < ranks:
            raise InvalidArgument("rank", f"{rank} of {ranks} ranks")
        self._attributes = {"case": case, "channel": channel, "rank": rank}
        self._ranks = ranks
        self._before: MeshStep | None = None
        self._static: dict[str, Any] = {}
        self._indices: dict[int, int] = {}
        self._identifier = ""
        self._offered: set[str] = set()

    def objects(self, mesh: MeshStep) -> Iterator[tuple[PackedTree, dict[str, Any]]]:
        """Yields the object of ``part=mesh`` if it is new, and that of the step, with their attributes."""
        common = {"step": mesh.step, "ranks": self._ranks, "content_type": CONTENT_TYPE, **self._attributes}
        if not mesh.shares(self._before):
            mesh.check()
            self._static = static_tree(mesh)
            packed = PackedTree(self._static)
            self._indices, self._identifier = packed.indices(), packed.identifier()
            self._before = mesh
            if self._identifier not in self._offered:
                yield packed, {**common, "part": "mesh", "mesh": self._identifier}
                self._offered.add(self._identifier)
        packed = PackedTree(step_tree(self._static, mesh), self._indices)
        time = {} if mesh.time is None else {"time": mesh.time}
        yield packed, {**common, **time, "part": "fields", "mesh": self._identifier}


class PoolMeshWriter:
    """Offers meshes to a pool.

    Parameters
    ----------
    pool
        The pool; its schemas must include ``mesh``.
    case, channel
        Attributes of the objects.
    rank, ranks
        This process, and the number of all. A step is visible when all ranks have offered theirs.
    retention
        Of steps; that of ``part=mesh`` is until withdrawn.

    Examples
    --------
    >>> pool = junctura.Pool(schema="mesh")
    >>> points = {"nodes": junctura.mesh.MeshPoints((numpy.arange(3.0),))}
    >>> blocks = {"rod": junctura.mesh.MeshBlock("nodes", "line", numpy.array([0, 1, 1, 2]))}
    >>> writer = junctura.mesh.PoolMeshWriter(pool, "rod")
    >>> writer.write(junctura.mesh.MeshStep(points, blocks, step=1, time=0.5))
    >>> pool.demand("case=rod, part=fields")["time"]
    0.5

    """

    def __init__(
        self,
        pool: Pool,
        case: str,
        channel: str = "mesh",
        *,
        rank: int = 0,
        ranks: int = 1,
        retention: str | None = None,
    ) -> None:
        self._pool = pool
        self._packing = MeshPacking(case, channel, rank, ranks)
        self._place = f"{case}/{channel}"
        self._ranks = ranks
        self._retention = retention

    def write(self, mesh: MeshStep) -> None:
        """Offers a step, and what it shares with later steps before it. Blocks while the pool is full."""
        for packed, attributes in self._packing.objects(mesh):
            with self._pool.allocate(packed.nbytes) as memory:
                packed.fill(memory)
                is_step = attributes["part"] == "fields"
                retention = self._retention if is_step else None
                if self._ranks == 1 or not is_step:
                    memory.offer(attributes, schema=SCHEMA, retention=retention)
                else:
                    self._stage(mesh.step, memory, attributes, retention)

    def _stage(self, step: int, memory: Any, attributes: Attributes, retention: str | None) -> None:
        bundle: Bundle = self._pool.bundle(f"{self._place}/{step}", members=self._ranks)
        bundle.offer(memory, dict(attributes), schema=SCHEMA, retention=retention)
        bundle.leave()

    def close(self) -> None:
        """Waits until the server has processed all requests."""
        self._pool.sync()

    def abort(self) -> None:
        """Does nothing: steps that are offered stay."""


class StoreMeshWriter:
    """Archives meshes in a store; they are visible when it is closed.

    Examples
    --------
    >>> store = junctura.Store.create(folder / "archive", schema="mesh")
    >>> points = {"nodes": junctura.mesh.MeshPoints((numpy.arange(3.0),))}
    >>> blocks = {"rod": junctura.mesh.MeshBlock("nodes", "line", numpy.array([0, 1, 1, 2]))}
    >>> writer = junctura.mesh.StoreMeshWriter(store, "rod")
    >>> writer.write(junctura.mesh.MeshStep(points, blocks, step=1, time=0.5))
    >>> writer.close()
    >>> len(junctura.mesh.StoreMeshReader(store, "case=rod"))
    1

    """

    def __init__(self, store: Store, case: str, channel: str = "mesh") -> None:
        self._store = store
        self._packing = MeshPacking(case, channel, 0, 1)

    def write(self, mesh: MeshStep) -> None:
        """Archives a step."""
        for packed, attributes in self._packing.objects(mesh):
            self._store.archive(packed.to_bytes(), attributes, schema=SCHEMA)

    def close(self) -> None:
        """Commits all steps."""
        self._store.flush()

    def abort(self) -> None:
        """Discards all steps."""
        self._store.discard()


class _StoredSteps:
    """Steps of one channel of one case, in order."""

    def __init__(self, subject: str, entries: list[Any]) -> None:
        self._subject = subject
        series = {(entry["case"], entry["channel"]) for entry in entries}
        if not entries:
            raise NotFound(subject, "no step matches")
        if len(series) > 1:
            names = ", ".join(sorted(f"case={case}&channel={channel}" for case, channel in series))
            raise InvalidArgument(subject, f"several meshes match; name one of {names[:400]}")
        self._steps: dict[int, list[Any]] = {}
        for entry in sorted(entries, key=lambda entry: int(entry["step"])):
            self._steps.setdefault(int(entry["step"]), []).append(entry)
        for step, parts in self._steps.items():
            ranks = int(parts[0].get("ranks") or 1)
            if len(parts) != ranks:
                raise NotFound(subject, f"step {step} has {len(parts)} of {ranks} ranks")

    def __len__(self) -> int:
        return len(self._steps)

    def __iter__(self) -> Iterator[MeshStep]:
        assembly = StepAssembly(self._shared)
        for parts in self._steps.values():
            yield assembly.mesh([(entry.attributes, self._payload(entry)) for entry in parts])

    def __enter__(self) -> _StoredSteps:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes what it reads from."""

    def _payload(self, entry: Any) -> Any:
        raise NotImplementedError

    def _shared(self, attributes: dict[str, Any]) -> Any:
        raise NotImplementedError


class PoolMeshReader(_StoredSteps):
    """The steps of a mesh that a pool has now.

    Parameters
    ----------
    pool
        The pool; `close` closes it.
    selector
        Of one channel of one case.

    Examples
    --------
    >>> pool = junctura.Pool(schema="mesh")
    >>> points = {"nodes": junctura.mesh.MeshPoints((numpy.arange(3.0),))}
    >>> blocks = {"rod": junctura.mesh.MeshBlock("nodes", "line", numpy.array([0, 1, 1, 2]))}
    >>> writer = junctura.mesh.PoolMeshWriter(pool, "rod")
    >>> for step in range(2):
    ...     writer.write(junctura.mesh.MeshStep(points, blocks, step=step))
    >>> [mesh.blocks["rod"].count for mesh in junctura.mesh.PoolMeshReader(pool, "case=rod")]
    [2, 2]

    """

    def __init__(self, pool: Pool, selector: str) -> None:
        self._pool = pool
        entries = pool.list(with_part(selector, "fields"))
        if not entries:
            raise NotFound(pool.url, no_step(pool, selector))
        super().__init__(pool.url, entries)

    def close(self) -> None:
        """Closes the pool."""
        self._pool.close()

    def _payload(self, entry: Any) -> Any:
        key = {name: entry[name] for name in ("case", "channel", "step", "rank", "part")}
        return self._pool.demand(key, schema=SCHEMA, timeout=0.0)

    def _shared(self, attributes: dict[str, Any]) -> Any:
        return shared_of(self._pool, attributes)


class StoreMeshReader(_StoredSteps):
    """The steps of a mesh in a store.

    Examples
    --------
    >>> store = junctura.Store.create(folder / "archive", schema="mesh")
    >>> points = {"nodes": junctura.mesh.MeshPoints((numpy.arange(3.0),))}
    >>> blocks = {"rod": junctura.mesh.MeshBlock("nodes", "line", numpy.array([0, 1, 1, 2]))}
    >>> writer = junctura.mesh.StoreMeshWriter(store, "rod")
    >>> writer.write(junctura.mesh.MeshStep(points, blocks, step=1, time=0.5))
    >>> writer.close()
    >>> [mesh.time for mesh in junctura.mesh.StoreMeshReader(store, "case=rod")]
    [0.5]

    """

    def __init__(self, store: Store, selector: str) -> None:
        self._store = store
        super().__init__(store.url, list(store.list(with_part(selector, "fields"))))

    def _payload(self, entry: Any) -> Any:
        return entry.map()

    def _shared(self, attributes: dict[str, Any]) -> Any:
        for entry in self._store.list(selector_of(attributes)):
            return entry.map()
        raise NotFound(self._store.url, f"the mesh {attributes['mesh']} is missing")


def shared_of(pool: Pool, attributes: dict[str, Any]) -> Any:
    """Returns the object of ``part=mesh`` that a step refers to."""
    try:
        return pool.demand(selector_of(attributes), timeout=0.0)
    except (NotFound, Timeout) as error:
        cause = f"the mesh {attributes['mesh']} that the step refers to is missing; retain part=mesh as long as steps"
        raise NotFound(pool.url, cause) from error


def no_step(pool: Pool, selector: str) -> str:
    """Returns a message for a selector that no step matches; it names the meshes that the pool has."""
    tally = pool.tally("part=fields", by=["case", "channel"], limit=8)
    names = [f"case={case}, channel={channel}" for case, channel in (group.values for group in tally.groups)]
    if tally.others:
        names.append(f"{tally.others} more")
    return f"no step matches {selector or 'part=fields'}; the pool has {'; '.join(names) or 'no meshes'}"


def with_part(selector: str, part: str) -> str:
    """Restricts a selector to steps, or to what they share."""
    return f"{selector}, part={part}" if selector.strip() else f"part={part}"


def selector_of(attributes: Attributes) -> str:
    """Returns the selector of these attributes."""
    return ", ".join(f'{name}="{value}"' for name, value in attributes.items())
