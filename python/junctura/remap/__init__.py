"""Fields between models: from grid to grid by weights, from times to times by steps.

```text
  Weights.read(file)                        SCRIP and ESMF files (netCDF), as cdo, ESMF and others write them
  Weights.compute(source, target, method)   conservative, bilinear, nearest
      weights(field)                        the field on the other grid
      weights.conservation(field)           whether the target gets what the source holds
  at_times(steps, times)                    the field at the consumer's times: nearest, linear, mean, sum, after a lag
```
A target point is one sum in one order: a field has the same bits with any number of threads, and however its points are
dealt out over ranks (`Weights.part`). Values that are missing (NaN, or one that is named) are never taken for numbers.

Files need netCDF4, and computing conservative and nearest weights YAC: ``pip install 'junctura[remap]'``.
"""

from __future__ import annotations

from junctura.remap._grids import LonLat, Mesh
from junctura.remap._times import at_times
from junctura.remap._weights import Conservation, Weights

__all__ = ["Conservation", "LonLat", "Mesh", "Weights", "at_times"]
