"""Follows a simulation: its steps as meshes, as soon as all ranks have offered theirs."""

from __future__ import annotations

import os
from typing import Any

from junctura._native import Gap, Pool
from junctura._pool_options import DEFAULT_POOL
from junctura.errors import InvalidArgument
from junctura.mesh._model import MeshStep
from junctura.mesh._objects import StepAssembly, shared_of, with_part


class MeshFollow:
    """The steps of a mesh in a pool: those that are there, and then each new one. Created by `follow`.

    An iterator. It holds the objects of one step at a time; arrays of a mesh keep theirs in memory.

    Attributes
    ----------
    version
        Identifies the objects of the step that was received last, among all steps of all incarnations of the pool.
    missed
        Numbers of the steps that were removed before they were received.
    missed_others
        Number of objects that were removed likewise, and whose step is unknown.

    Examples
    --------
    >>> pool = junctura.Pool(schema="mesh")
    >>> points = {"nodes": junctura.mesh.MeshPoints((numpy.arange(3.0),))}
    >>> blocks = {"rod": junctura.mesh.MeshBlock("nodes", "line", numpy.array([0, 1, 1, 2]))}
    >>> with junctura.mesh.follow(pool, "case=rod") as steps:
    ...     junctura.mesh.PoolMeshWriter(pool, "rod").write(junctura.mesh.MeshStep(points, blocks, step=7))
    ...     steps.next(timeout=10).step, steps.series
    (7, 'rod/mesh')

    """

    def __init__(self, pool: Pool, selector: str, *, only_new: bool, until_live: bool) -> None:
        self._pool = pool
        self._follow = pool.follow(
            with_part(selector, "fields"), only_new=only_new, until_live=until_live, gaps="yield", order_by="step"
        )
        self._assembly = StepAssembly(lambda attributes: shared_of(pool, attributes))
        self._series: tuple[str, str] | None = None
        self._parts: dict[int, dict[int, Any]] = {}
        self.version = ""
        self.missed: set[int] = set()
        self.missed_others = 0

    def __iter__(self) -> MeshFollow:
        return self

    def __next__(self) -> MeshStep:
        found = self.next()
        if found is None:
            raise StopIteration
        return found

    def __enter__(self) -> MeshFollow:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def series(self) -> str:
        """The mesh, as ``CASE/CHANNEL``; empty before the first step."""
        return "/".join(self._series or ())

    def close(self) -> None:
        """Ends the follow."""
        self._parts.clear()
        self._follow.close()

    def next(self, timeout: float | None = None) -> MeshStep | None:
        """Waits for the next step, and returns it; None at the end, if only steps that are present were asked for.

        Parameters
        ----------
        timeout
            Seconds to wait for each object; None waits for ever.

        Raises
        ------
        Timeout
            No object arrived in this time.
        Closed, Disconnected
            The pool has ended.
        InvalidArgument
            The selector matches several meshes.
        Corrupt
            An object is not a mesh.

        """
        while True:
            arrived = self._follow.next(timeout)
            if arrived is None:
                return None
            if isinstance(arrived, Gap):
                self._leave_out(arrived)
                continue
            parts = self._with(arrived)
            if parts is not None:
                self.version = "+".join(str(part.version) for part in parts)
                return self._assembly.mesh([(part.attributes, part) for part in parts])

    def _leave_out(self, gap: Gap) -> None:
        """Forgets steps of which a part was removed before it was read: they never become complete."""
        for item in gap.items:
            self.missed.add(int(item["step"]))
            self._parts.pop(int(item["step"]), None)
        self.missed_others += gap.unnamed

    def _with(self, arrived: Any) -> list[Any] | None:
        """Takes one more object, and returns those of its step if it is the last."""
        series = (str(arrived["case"]), str(arrived["channel"]))
        if self._series not in (None, series):
            pair = [f"case={case}, channel={channel}" for case, channel in (self._series or ("", ""), series)]
            raise InvalidArgument("selector", f"it matches several meshes: {pair[0]}; {pair[1]}")
        self._series = series
        step = int(arrived["step"])
        ranks = int(arrived.get("ranks") or 1)
        parts = self._parts.setdefault(step, {})
        parts[int(arrived["rank"])] = arrived
        if len(parts) < ranks:
            return None
        return [part for _, part in sorted(self._parts.pop(step).items())]


def follow(
    pool: Pool | str | None = None, selector: str = "", *, only_new: bool = False, until_live: bool = False
) -> MeshFollow:
    """Returns an iterator over the steps of a mesh in a pool.

    Parameters
    ----------
    pool
        The pool, or its URL; default: ``$JUNCTURA_POOL``, else ``unix:default``.
    selector
        Of one channel of one case: ``case=wing, channel=fluid``.
    only_new
        Leave out steps that are present.
    until_live
        End when all steps that are present were received.

    Examples
    --------
    >>> pool = junctura.Pool(schema="mesh")
    >>> points = {"nodes": junctura.mesh.MeshPoints((numpy.arange(3.0),))}
    >>> blocks = {"rod": junctura.mesh.MeshBlock("nodes", "line", numpy.array([0, 1, 1, 2]))}
    >>> writer = junctura.mesh.PoolMeshWriter(pool, "rod")
    >>> for step in range(3):
    ...     writer.write(junctura.mesh.MeshStep(points, blocks, step=step, time=0.5 * step))
    >>> [mesh.time for mesh in junctura.mesh.follow(pool, "case=rod", until_live=True)]
    [0.0, 0.5, 1.0]

    """
    opened = pool if isinstance(pool, Pool) else Pool(pool or os.environ.get("JUNCTURA_POOL") or DEFAULT_POOL)
    return MeshFollow(opened, selector, only_new=only_new, until_live=until_live)
