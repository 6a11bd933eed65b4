"""The states of inputs, pairs and products in a run, and the events that change them.

An input is an object of the producers' pool that the broker holds until a worker has decoded it.

```text
  input              GRID_WANTED       WEIGHTS_WANTED     READY      DECODED   FAILED
  ARRIVED            AWAITING_GRID     AWAITING_WEIGHTS   DECODING   -         -
  AWAITING_GRID      -                 AWAITING_WEIGHTS   DECODING   -         -
  AWAITING_WEIGHTS   -                 -                  DECODING   -         -
  DECODING           -                 -                  -          DECODED   FAILED
  DECODED, FAILED    -                 -                  -          -         -
```
A pair is a node of the graph with two parents: winds of vorticity and divergence.

```text
  pair               BEGUN      MADE       FAILED     DROPPED    PARTED
  WAITING            MAKING     -          -          UNNEEDED   -
  MAKING             -          MADE       FAILED     -          WAITING
  MADE, FAILED, UNNEEDED: none
```
A product is a file. It begins when its last field is available, or together with the task that decodes that field.

```text
  product            FOUND      BEGUN      MADE       FAILED     PARTED
  WAITING            PRESENT    MAKING     -          FAILED     -
  MAKING             -          -          MADE       FAILED     WAITING
  FAILED             -          -          FAILED     -          FAILED     the answer of a task that was in flight
  PRESENT, MADE      -          -          -          -          -
```
A pair or a product is parted when a worker crashes with joined tasks.
`-` is illegal and raises `junctura._transitions.IllegalTransitionError`. The engine drops an answer that a product
failed when the product has failed already.
"""

from __future__ import annotations

import enum

from junctura._transitions import TransitionTable


class InputState(enum.Enum):
    """The state of an input."""

    ARRIVED = "arrived"
    AWAITING_GRID = "awaiting grid"
    AWAITING_WEIGHTS = "awaiting weights"
    DECODING = "decoding"
    DECODED = "decoded"
    FAILED = "failed"


class InputEvent(enum.Enum):
    """An event of an input."""

    GRID_WANTED = "grid wanted"
    WEIGHTS_WANTED = "weights wanted"
    READY = "ready"
    DECODED = "decoded"
    FAILED = "failed"


INPUT = TransitionTable(
    "input",
    {
        (InputState.ARRIVED, InputEvent.GRID_WANTED): InputState.AWAITING_GRID,
        (InputState.ARRIVED, InputEvent.WEIGHTS_WANTED): InputState.AWAITING_WEIGHTS,
        (InputState.ARRIVED, InputEvent.READY): InputState.DECODING,
        (InputState.AWAITING_GRID, InputEvent.WEIGHTS_WANTED): InputState.AWAITING_WEIGHTS,
        (InputState.AWAITING_GRID, InputEvent.READY): InputState.DECODING,
        (InputState.AWAITING_WEIGHTS, InputEvent.READY): InputState.DECODING,
        (InputState.DECODING, InputEvent.DECODED): InputState.DECODED,
        (InputState.DECODING, InputEvent.FAILED): InputState.FAILED,
    },
)


class PairState(enum.Enum):
    """The state of a pair."""

    WAITING = "waiting"
    MAKING = "making"
    MADE = "made"
    FAILED = "failed"
    UNNEEDED = "unneeded"


class PairEvent(enum.Enum):
    """An event of a pair."""

    BEGUN = "begun"
    MADE = "made"
    FAILED = "failed"
    DROPPED = "dropped"
    PARTED = "parted"


PAIR = TransitionTable(
    "pair",
    {
        (PairState.WAITING, PairEvent.BEGUN): PairState.MAKING,
        (PairState.WAITING, PairEvent.DROPPED): PairState.UNNEEDED,
        (PairState.MAKING, PairEvent.MADE): PairState.MADE,
        (PairState.MAKING, PairEvent.FAILED): PairState.FAILED,
        (PairState.MAKING, PairEvent.PARTED): PairState.WAITING,
    },
)


class ProductState(enum.Enum):
    """The state of a product."""

    WAITING = "waiting"
    MAKING = "making"
    MADE = "made"
    FAILED = "failed"
    PRESENT = "present"


class ProductEvent(enum.Enum):
    """An event of a product."""

    FOUND = "found"
    BEGUN = "begun"
    MADE = "made"
    FAILED = "failed"
    PARTED = "parted"


PRODUCT = TransitionTable(
    "product",
    {
        (ProductState.WAITING, ProductEvent.FOUND): ProductState.PRESENT,
        (ProductState.WAITING, ProductEvent.BEGUN): ProductState.MAKING,
        (ProductState.WAITING, ProductEvent.FAILED): ProductState.FAILED,
        (ProductState.MAKING, ProductEvent.MADE): ProductState.MADE,
        (ProductState.MAKING, ProductEvent.FAILED): ProductState.FAILED,
        (ProductState.MAKING, ProductEvent.PARTED): ProductState.WAITING,
        (ProductState.FAILED, ProductEvent.MADE): ProductState.FAILED,
        (ProductState.FAILED, ProductEvent.PARTED): ProductState.FAILED,
    },
)
OPEN = (ProductState.WAITING, ProductState.MAKING)
