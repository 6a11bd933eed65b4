"""Where a forecast's fields go: into a pool, a GRIB file, or nowhere.

A model that is alone hands all over as GRIB. Ranks hand gridded fields over as pieces of arrays, each its rows, so that
nobody has to gather them; a plan makes messages of them (`ranks.yaml`). Spectral fields, which all ranks have, come
from the first one.
"""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from typing import TypeAlias

import numpy as np
from messages import GRIDDED, Encoder, Message
from shallow_water import Gridded, Model

import junctura
from junctura.errors import AlreadyExists

Sink: TypeAlias = Callable[[Message], object]


class Outputs:
    """Of one rank, to all that was asked for.

    Parameters
    ----------
    given
        The arguments of the program.
    model
        Whose fields they are.

    """

    def __init__(self, given: argparse.Namespace, model: Model) -> None:
        self._given, self._model = given, model
        self._harmonics, self._ranks = model.harmonics, model.harmonics.ranks
        self._sinks: list[Sink] = []
        self._pool: junctura.Pool | None = None
        self._encoder: Encoder | None = None
        self.fields = self.nbytes = 0

    def open(self, stack: ExitStack) -> None:
        """Connects; what was opened is closed with the stack."""
        given = self._given
        if given.out is not None:
            file = stack.enter_context(given.out.open("ab" if given.restart else "wb"))
            self._sinks.append(lambda message: file.write(message.data))
        if given.pool is not None:
            self._pool = stack.enter_context(junctura.Pool(given.pool, name=f"swell-{given.member}"))
            self._sinks.append(self._offer)

    def write(self) -> None:
        """The latest fields, and a line on what they are like."""
        gridded = self._model.gridded()
        if self._sinks:
            if self._encoder is None:
                self._encoder = Encoder(self._harmonics, self._given.member, self._given.date, self._given.expver)
            if self._given.ranks:
                self._write_as_ranks(self._encoder, gridded)
            else:
                self._send(self._encoder.messages(self._model, gridded))
        self._tell(gridded)

    def _send(self, messages: Iterable[Message]) -> None:
        for message in messages:
            for sink in self._sinks:
                sink(message)
            self.fields += 1
            self.nbytes += len(message.data)

    def _offer(self, message: Message) -> None:
        assert self._pool is not None
        with self._again():
            self._pool.offer(message.data, message.attributes, schema="mars")

    def _write_as_ranks(self, encoder: Encoder, gridded: Gridded) -> None:
        hour, ranks = round(self._model.hour), self._ranks
        if ranks.is_first:
            self._send(encoder.spectral(hour, self._model.now))
        assert self._pool is not None
        layout = ranks.layout(self._harmonics.n)
        for param, values in zip(GRIDDED, gridded, strict=True):
            attributes = encoder.attributes(param, hour)
            with self._again():
                # Both bands, one behind the other.
                self._pool.offer_piece(values.ravel(), layout, ranks.rank, attributes, schema="mars")
            self.fields += 1
            self.nbytes += values.nbytes

    @contextlib.contextmanager
    def _again(self) -> Iterator[None]:
        """Ignores fields that the pool has: a continued forecast makes some again, maybe on other ranks."""
        try:
            yield
        except AlreadyExists:
            if not self._given.restart:
                raise

    def _tell(self, gridded: Gridded) -> None:
        u, v, depth = gridded
        smallest = self._ranks.smallest
        wind, lowest, highest = -smallest(-(u**2 + v**2).max()), smallest(depth.min()), -smallest(-depth.max())
        self._ranks.tell(
            f"member {self._given.member}, hour {round(self._model.hour)} of {self._given.hours}: "
            f"wind up to {np.sqrt(wind):.1f} m/s, depth {lowest:.0f} to {highest:.0f} m, {self.fields} fields out"
        )
