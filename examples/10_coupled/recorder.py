"""Keeps all fields of both models in a store, from which either can be run alone."""

from __future__ import annotations

from coupling import SCHEMA, arguments, connect

import junctura

given = arguments(__doc__)
store = junctura.Store.create(given.recorded, schema=SCHEMA)
given.recorded = None
with connect(given) as pool, store:
    for step in range(given.steps):
        for field in ["wind", "sst"]:
            whole = pool.demand_array(field=field, step=step)
            store.archive(whole, field=field, step=step)
        store.flush()
