"""Makes what all workers of a run need in the process from which they are forked, so that each is made once.

What fails here is made by the worker that needs it, which reports the error.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from junctura._xarray.label_attributes import needed
from junctura.products._broker.task_graph import ProductGraph
from junctura.products._input.decoding import decode
from junctura.products._map.styling.ranges import prepare
from junctura.products._outputs import software
from junctura.products._outputs._quiet import quiet
from junctura.products._recipe.definitions import Recipe
from junctura.products._regrid.weight_matrices import version
from junctura.products._workers.worker_process import inherit

# Of ecCodes: fields on a grid, and in spherical harmonics.
_SAMPLES = ("regular_ll_pl_grib2", "sh_pl_grib2")


def warm(recipes: Sequence[Recipe], graph: ProductGraph) -> None:
    """Makes what workers need for these recipes, and keeps their graph."""
    inherit(graph)
    prepare(recipes)
    for output_format in {recipe.output.format for recipe in recipes}:
        software(output_format)
    with contextlib.suppress(ImportError):
        version()
    for name in _SAMPLES:
        with contextlib.suppress(Exception):
            _ask(name)


def _ask(sample: str) -> None:
    """Decodes a sample: ecCodes reads the definitions of its sections, and its Python package those of the functions
    that it calls.
    """
    eccodes = needed("eccodes", "products")
    with quiet():
        handle = eccodes.codes_grib_new_from_samples(sample)
        try:
            eccodes.codes_set(handle, "dataDate", 20000101)
            eccodes.codes_set(handle, "step", "6")
            message = bytes(eccodes.codes_get_message(handle))
        finally:
            eccodes.codes_release(handle)
        decode(message, {"param": "t"})
