"""Plans: pipelines for fields, from their sources through actions into sinks.

```text
  sources ──> actions: select, set, aggregate, grid, wind, crop, units, mask, fill, statistics, compute, encode, ...
                 └──> sinks, of which each gets every field: offer, archive, file, product, and plans in the plan
```
A field is decoded when the first action needs its values, once for all branches; nothing is copied.
"""

from junctura.products._plan._reading import Plan, plan_of
from junctura.products._plan._run import Ran, run

__all__ = ["Plan", "Ran", "plan_of", "run"]
