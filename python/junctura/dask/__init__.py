"""Dask collections of the objects of a pool or a store, fetched where a task runs.

```text
  from_selector("param=t,step=0/6", pool="tcp://node7:7000")
      as_="bag"       dask.bag of `Fetched`: attributes, and the payload
      as_="delayed"   a list of delayed `Fetched`, one for each object
      as_="array"     dask.array, stacked along the attributes in which the objects differ; a chunk for each object
      as_="xarray"    the same with coordinates, a variable for each parameter
```
Objects are listed at once; payloads are read when a task computes, and move from the pool or the store to the task, not
through the scheduler. A process that runs tasks opens each pool and store once, and keeps it open.

Needs Dask, and for arrays xarray: ``pip install 'junctura[dask,grib]'``.

Examples
--------
>>> with junctura.Pool(schema="free") as pool:
...     version = pool.offer(numpy.arange(3.0), name="t")
...     fields = junctura.dask.from_selector("name=t", pool=pool)
...     print(fields.map(lambda field: float(field.array().max())).compute(scheduler="threads"))
[2.0]

"""

from __future__ import annotations

from junctura.dask._fetched import Fetched
from junctura.dask._select import from_selector

__all__ = ["Fetched", "from_selector"]
