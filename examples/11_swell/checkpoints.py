"""Where a forecast can go on: both time levels in double precision, in a store of Junctura.

A forecast that goes on from a checkpoint makes the same fields, bit for bit, as one that was never interrupted. All
members of an ensemble may share a store.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from shallow_water import Model, State

import junctura
from junctura.errors import AlreadyExists, InvalidArgument

SCHEMA = """
name: swell
doc: Time levels of a forecast
key: {dataset: [expver, date, truncation], collocation: [number], element: [step]}
attributes:
  expver: {type: string, doc: Version of the experiment}
  date: {type: date, doc: Day of the start}
  truncation: {type: integer, doc: The largest total wavenumber}
  number: {type: integer, doc: "The member, 0 for the control"}
  step: {type: integer, unit: h, doc: Time since the start}
  # outside the key
  settings: {type: string, doc: What the forecast was made with besides; it must be the same to go on}
  dtype: {type: string, doc: Type of the elements}
  shape: {type: list of integer, doc: "Extents: level, field, m, n - m, real and imaginary part"}
"""


class Checkpoints:
    """Those of one member.

    Parameters
    ----------
    path
        Of the store; made if it is not there.
    identity
        The values of `expver`, `date`, `truncation` and `number`.
    settings
        Whatever else changes a forecast's bits.

    """

    def __init__(self, path: Path, identity: dict[str, str | int], settings: str) -> None:
        self._identity, self._settings = identity, settings
        self._store = _open(path)
        self._name = f"checkpoints of member {identity['number']} in {path}"

    def save(self, model: Model) -> None:
        """Durable when it returns; of several ranks, which all have the same, the first one does it."""
        if not model.harmonics.ranks.is_first:
            return
        levels = np.stack([model.before.spectra, model.now.spectra]).view(np.float64)
        attributes = {**self._identity, "step": round(model.hour), "settings": self._settings}
        self._store.archive(levels.reshape(*levels.shape[:-1], -1, 2), attributes)
        self._store.flush()

    def resume(self, model: Model) -> None:
        """Goes on from the latest.

        Raises
        ------
        InvalidArgument
            There is none, or it was made with other settings.

        """
        found = list(self._store.list(",".join(f"{name}={value}" for name, value in self._identity.items())))
        if not found:
            raise InvalidArgument(self._name, "there are none to go on from: start without --restart")
        latest = max(found, key=lambda stored: int(str(stored["step"])))
        if latest["settings"] != self._settings:
            cause = f"made with {latest['settings']}, not with {self._settings}: go on with the same"
            raise InvalidArgument(self._name, cause)
        levels = np.ascontiguousarray(latest.array()).view(np.complex128)[..., 0]
        steps_done = int(str(latest["step"])) * 3600 // model.step_s
        model.resume(steps_done, State(levels[0].copy()), State(levels[1].copy()))


def _open(path: Path) -> junctura.Store:
    try:
        return junctura.Store.create(path, schema=SCHEMA)
    except AlreadyExists:
        return junctura.Store(path)
