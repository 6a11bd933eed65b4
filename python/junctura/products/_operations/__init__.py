"""Operations on fields: each operation takes fields and returns fields, and is a value with a canonical text.

```text
  name         class        needs
  grid         ToGrid       one field
  wind         Winds        vorticity and divergence of one step, level and member
  wind         Turn         both components of a wind, of one step, level and member
  crop         Crop         one field on a regular grid
  units, fill  Units, Fill  one field
  mask         Mask         one field; with `where` all of one step, level and member
  compute      Compute      all of one step, level and member
  keep         Keep         any
  ensemble     Ensemble     all members
  statistics   Statistics   all steps of its windows
               Periods      all dates, times and steps of its days or months
```
Operations on a single field are shared between products: `Operation.is_alone`, with `Operation.text` as the identity of
the result.
"""

from collections.abc import Callable
from typing import Any

from junctura.products._operations._base import Method, Operation, Transform, telling
from junctura.products._operations._ensemble import Ensemble, Statistic
from junctura.products._operations._periods import Periods
from junctura.products._operations._places import Crop, ToGrid, Turn, Winds
from junctura.products._operations._steps import FollowingSteps, Statistics, Window
from junctura.products._operations._values import Compute, Computed, Fill, Keep, Mask, Units, masked

# Converts documents to operations that need no other data.
READERS: dict[str, Callable[[Any], Operation]] = {
    one.name: one.read for one in (ToGrid, Crop, Units, Mask, Fill, Compute, Keep, Ensemble)
}

__all__ = [
    "READERS",
    "Compute",
    "Computed",
    "Crop",
    "Ensemble",
    "Fill",
    "FollowingSteps",
    "Keep",
    "Mask",
    "Method",
    "Operation",
    "Periods",
    "Statistic",
    "Statistics",
    "ToGrid",
    "Transform",
    "Turn",
    "Units",
    "Window",
    "Winds",
    "masked",
    "telling",
]
