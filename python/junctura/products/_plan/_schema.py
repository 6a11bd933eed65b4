"""The schema of plans: the one source for validation and for editors.

``plan.schema.json`` beside it is written from here (``python -m junctura.products._plan._schema``), and a test fails
where it is not the same.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from typing import Any

from junctura._document.validation import (
    Either,
    Flag,
    Kinds,
    KnownMapping,
    ListOf,
    Nested,
    Number,
    OneKey,
    Spec,
    Table,
    Text,
)
from junctura.products._recipe.recipe_schema import FORMATS, OF_ALIASES, OPERATIONS, OVER_STEPS_ONLY, VALUES

# Operations of recipes that need a single field.
ALONE = ("grid", "crop", "units", "mask", "fill")
_SELECT = KnownMapping(VALUES, doc="Lets the fields pass that have one of these values of each word")
_SET = Table(Either((Text(), Number())), "Other attributes; a message gets them in its header by `encode`")
_SOURCE = KnownMapping(
    {
        "follow": Text("Which fields: a selector", length_max=10_000),
        "pool": Text("Where; by default the pool that the command says"),
        "group": Text("Of a consumer group: several runs of the plan share the fields"),
        "until_gone": Either((Text(), ListOf(Text())), "The plan ends when everybody of these names has left the pool"),
    },
    ("follow",),
    "Where fields come from",
)
_RECIPES = Either((Text(), ListOf(Text())), "Files of recipes; * is anything")
ACTIONS: dict[str, Spec] = {
    "select": _SELECT,
    "set": _SET,
    "aggregate": KnownMapping(
        {
            "grid": Text("On which the whole array lies: 0.25/0.25, F48, N320, O96", what="the name of a grid"),
            "units": Text("Of its values", what="a unit"),
            "missing": Number("The value that stands for what is missing, as on land"),
            "mask": KnownMapping(
                {
                    "file": Text("A message of GRIB beside the plan, on the same grid or on all of it", what="a file"),
                    "where": Text("A formula of its parameter, as lsm > 0.5: where it holds, values are missing"),
                },
                ("file", "where"),
                "Where values are missing, whatever the model has there: a land-sea mask",
            ),
            "from_south": Flag("Whether the array begins with the southernmost row, as those of ocean models do"),
        },
        ("grid",),
        "Makes one field of the pieces that the ranks of a model offer",
    ),
    **{name: OPERATIONS[name] for name in ALONE},
    **OF_ALIASES,
    "statistics": OVER_STEPS_ONLY,
    "compute": OPERATIONS["compute"],
    "wind": KnownMapping(
        {"grid": OPERATIONS["grid"]},
        doc="Vorticity and divergence (spectral) to u and v on a grid; components along the rows and columns of their "
        "grid to east and north: when both fields have come",
    ),
    "encode": KnownMapping(
        {key: spec for key, spec in FORMATS["grib2"].keys.items() if key not in ("name", "gather")},
        doc="Makes a message of GRIB edition 2",
    ),
    "print": Text("Says which fields pass, words in braces: {param} {step}"),
    "python": Text("A function of a field: module:function, which gives a field, several, or None", r"^[\w.]+:\w+$"),
}
SINKS: dict[str, Spec] = {
    "offer": KnownMapping({"pool": Text("Which pool"), "set": _SET}, ("pool",), "Offers to a pool"),
    "archive": KnownMapping(
        {
            "store": Text("The store's folder or URL; it is made if there is none"),
            "select": _SELECT,
            "every": Number("Of the steps, those that so many hours divide", 1, 10_000, whole=True),
        },
        ("store",),
        "Keeps messages in a store",
    ),
    "file": Kinds(
        "format",
        {
            name: KnownMapping(
                {key: spec for key, spec in record.keys.items() if key != "gather"}, record.needs, record.doc
            )
            for name, record in FORMATS.items()
        },
        "A file for each field",
    ),
    "product": KnownMapping(
        {
            "recipe": _RECIPES,
            "requirement": dataclasses.replace(_RECIPES, doc="The earlier name of `recipe`"),
            "out": Text("The folder of the products"),
            "workers": Number("Processes; by default as many as cores and memory allow", 1, 1024, whole=True),
        },
        doc="Makes products",
        one=("recipe", "requirement"),
    ),
    "plan": Nested(lambda: NESTED, "nested"),
}
_ACTIONS = ListOf(OneKey(ACTIONS, word="action"), "What is done with each field, in this order", low=0, high=100)
_SINKS = ListOf(OneKey(SINKS, word="sink"), "Where fields go: each gets all that come through", high=100)
NESTED: KnownMapping = KnownMapping(
    {"actions": _ACTIONS, "sinks": _SINKS}, ("sinks",), "A plan in the plan: it gets all fields"
)
PLAN = KnownMapping(
    {
        "sources": ListOf(_SOURCE, "Where fields come from", high=100),
        "actions": _ACTIONS,
        "sinks": _SINKS,
    },
    ("sources", "sinks"),
    "A plan: what is done with fields as they come",
)


def text() -> str:
    """Returns the contents of ``plan.schema.json``."""
    said: dict[str, Any] = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Junctura: a plan"}
    said |= {**PLAN.json(), "$defs": {"nested": NESTED.json()}}
    return json.dumps(said, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.stdout.write(text())
