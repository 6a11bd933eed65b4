"""A plan at work: fields come from its sources, and go through its actions into its sinks."""

from __future__ import annotations

import contextlib
import select
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import junctura
from junctura.products._departures import Departures
from junctura.products._plan._flow import Counted, Flow
from junctura.products._plan._item import Item
from junctura.products._plan._reading import Places, Plan, Source
from junctura.products._plan._unfinished import Unfinished

_WINDOW = 64


@dataclass(frozen=True)
class Ran:
    """What became of a plan.

    Attributes
    ----------
    fields
        How many came.
    actions
        What each action did.
    told
        What was wrong.
    unfinished
        How many arrays never became fields, since ranks left without having offered their pieces.

    """

    fields: int
    actions: list[Counted]
    told: list[str]
    unfinished: int = 0

    @property
    def failed(self) -> int:
        """How often an action, or a sink, could not do with what came, and how many arrays stayed unfinished."""
        return sum(counted.failed for counted in self.actions) + self.unfinished


def run(
    plan: Plan,
    pool: str,
    out: Path,
    *,
    name: str = "plan",
    store: str | None = None,
    workers: int | None = None,
    until_gone: Sequence[str] = (),
    told: Callable[[str], None] = print,
) -> Ran:
    """Lets fields through a plan as they come; waits until its sources have ended.

    Parameters
    ----------
    plan
        Which.
    pool
        Where the fields are, unless a source says it.
    out
        The folder of files and products.
    name
        What it calls itself in the pools of its sources.
    store
        A store behind them: what it has comes, too.
    workers
        Processes that make products.
    until_gone
        Names of producers: when the last of them has left, nothing more comes.
    told
        Is called with what is wrong with a field; the others go on.

    """
    wrong: list[str] = []

    def tell(text: str) -> None:
        wrong.append(text)
        told(text)

    with ExitStack() as stack:
        inlets = [
            Inlet(source, junctura.Pool(source.pool or pool, name=name, store=store), until_gone, stack)
            for source in plan.sources
        ]
        flow = plan.flow(Places(plan.folder, out, workers))
        _tell(flow, tell)
        count = 0
        while open_inlets := [inlet for inlet in inlets if not inlet.is_over]:
            came = sum(inlet.drain(flow) for inlet in open_inlets)
            count += came
            # What is read together with something else wakes nobody: only who finds nothing may wait.
            if not came:
                _wait([inlet for inlet in open_inlets if not inlet.is_over])
        lost = dict.fromkeys(text for inlet in inlets for text in inlet.unfinished.lost())
        flow.end()
        for text in lost:
            tell(text)
    return Ran(count, flow.all_counted(), wrong, len(lost))


def _tell(flow: Flow, told: Callable[[str], None]) -> None:
    flow.told = told
    for branch in flow.branches:
        _tell(branch, told)


def _wait(inlets: Sequence[Inlet]) -> None:
    poll = select.poll()
    for inlet in inlets:
        poll.register(inlet.pool, select.POLLIN)
    if inlets:
        poll.poll()


class Inlet:
    """A source that is followed."""

    def __init__(self, source: Source, pool: junctura.Pool, until_gone: Sequence[str], stack: ExitStack) -> None:
        self.pool = stack.enter_context(pool)
        self.departures = stack.enter_context(Departures(self.pool, [*until_gone, *source.until_gone]))
        self.unfinished = stack.enter_context(Unfinished(self.pool, source.follow))
        options: dict[str, Any] = {"group": source.group} if source.group else {}
        self.follow = stack.enter_context(self.pool.follow(source.follow, window=_WINDOW, gaps="ignore", **options))
        self.is_over = False

    def drain(self, flow: Flow) -> int:
        """Lets through what has come; returns how many fields that were."""
        self.unfinished.watch()
        are_gone = self.departures.all_are_gone()
        if are_gone:
            # All that they have offered is here then, if the server is, and as far as the window goes.
            with contextlib.suppress(junctura.Closed, junctura.Disconnected):
                self.pool.sync()
        count = 0
        # Released when all is done with it, and it lasts: of a group, another one gets it if this one dies before.
        with ExitStack() as held:
            # Other sources have their turn, too.
            while count < _WINDOW and (obj := self._next()) is not None:
                held.enter_context(obj)
                flow.take([Item(obj.attributes, source=obj, pool=self.pool)])
                count += 1
                if not flow.is_unsettled:
                    held.close()
            flow.settle()
        self.is_over |= are_gone and not count
        return count

    def _next(self) -> junctura.Object | None:
        """What has come, if anything has."""
        try:
            obj: junctura.Object | None = self.follow.next(timeout=0)
        except junctura.Timeout:
            return None
        except (junctura.Closed, junctura.Disconnected):
            obj = None
        self.is_over = obj is None
        return obj
