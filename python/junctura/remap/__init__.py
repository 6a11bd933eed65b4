"""Exchange of fields between models: regridding with weights, and interpolation in time.

```text
  Weights.read(file)                        SCRIP and ESMF files (netCDF), as cdo, ESMF and others write them
  Weights.compute(source, target, method)   conservative, bilinear, nearest
      weights(field)                        the field on the other grid
      weights.conservation(field)           whether the target gets what the source holds
  at_times(steps, times)                    the field at the consumer's times: nearest, linear, mean, sum, after a lag
```
Each target point is one sum in one order: the result has the same bits with any number of threads, and any distribution
of target points over ranks (`Weights.part`). Missing values (NaN, or a given value) are never used as numbers.

Files need netCDF4, and computing conservative and nearest weights YAC: ``pip install 'junctura[remap]'``.

Examples
--------
>>> grid = junctura.remap.LonLat.regular
>>> weights = junctura.remap.Weights.compute(grid(36, 18), grid(24, 12), "bilinear")
>>> weights(numpy.ones((18, 36))).shape
(12, 24)

"""

from __future__ import annotations

from junctura.remap._grids import LonLat, Mesh
from junctura.remap._times import at_times
from junctura.remap._weights import Conservation, Weights

__all__ = ["Conservation", "LonLat", "Mesh", "Weights", "at_times"]
