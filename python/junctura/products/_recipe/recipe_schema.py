"""The schema of recipes: the one source for validation and for editors.

``python -m junctura.products._recipe.recipe_schema`` prints ``recipe.schema.json``, a file of the package; a test
compares them. An editor with yaml-language-server reads it with this first line in a recipe:
``# yaml-language-server: $schema=<path>/recipe.schema.json``.
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
    Number,
    OneKey,
    Spec,
    Table,
    Text,
    Word,
)
from junctura.products._map.styling.colours import NAMES
from junctura.products._outputs._output import PARTS, SCALES, THEMES

# Attributes that distinguish files, in the schema `mars`, in the order of selectors.
WORDS = {
    "class": "Which archive or project the fields belong to",
    "expver": "Version of the experiment",
    "stream": "The forecasting system",
    "date": "Base days, as 20261120",
    "time": "Base times, as 0600",
    "domain": "The area of a limited-area model",
    "origin": "The centre, where one stream has several",
    "model": "The model, where one stream has several",
    "type": "What they are: fc, pf, an",
    "levtype": "The kind of level: pl, sfc, ml",
    "levelist": "Levels",
    "step": "Hours since the base time, minutes as 90m, or ranges of them as 0-24",
    "number": "Members of the ensemble",
    "param": "Parameters, by their short names",
    "hdate": "Base days of hindcasts, whose `date` is that of the model version",
    "fcmonth": "Months of a seasonal forecast",
    "system": "Version of a seasonal forecasting system",
    "method": "Method of a seasonal forecasting system",
    "quantile": "Quantiles, as 1:10",
    "direction": "Numbers of the direction in a wave spectrum",
    "frequency": "Numbers of the frequency in a wave spectrum",
    "timespan": "Lengths of time that statistics cover",
    "chem": "Chemical constituents",
    "wavelength": "Wavelengths, in nm",
    "bottomLevel": "Second surfaces of layers",
    "stattype": "Statistical process, where the parameter does not imply it: avg, accum",
    "probability": "Limits of probabilities, as 1::0.0127",
    "process": "Generating process, as 2-96",
    "variant": "What else tells fields apart",
}
# All attributes that identify a field, in the schema `mars`, including those that a recipe cannot select.
IDENTITY = (
    *WORDS,
    *("dataset", "activity", "experiment", "generation", "realization", "resolution", "refdate", "fcperiod"),
    *("anoffset", "iteration", "diagnostic", "ident", "instrument", "channel"),
)
METHODS = {
    "linear": "Between the three points around; the default",
    "bilinear": "Between the four points around",
    "nearest": "The value of the nearest point",
    "conservative": "Means over grid boxes, so that the mean over the globe stays",
}
STATISTICS = {
    "mean": "Of all members",
    "spread": "Standard deviation of all members, divided by how many they are",
    "min": "Of all members",
    "max": "Of all members",
}
COMPARISONS = {
    "above": "Greater than that",
    "below": "Less than that",
    "at_least": "That or greater",
    "at_most": "That or less",
}
OVER_STEPS = {
    "mean": "Of the fields behind the window's begin, to its end",
    "min": "Likewise",
    "max": "Likewise",
    "sum": "Likewise; of amounts that each belong to their own step",
    "accumulation": "What was added in the window, of fields accumulated since the start",
    "instant": "The field at the window's end",
}


def _or_list(spec: Spec, doc: str = "", high: int = 100) -> Either:
    return Either((spec, ListOf(spec, high=high)), doc)


_VALUE = Either((Text(what="a text", length_max=65536), Number()))
VALUES: dict[str, Spec] = {
    word: Either((*_VALUE.specs, ListOf(_VALUE, high=10_000)), f"{doc}. One, a list, or a/to/b/by/c")
    for word, doc in WORDS.items()
}
_FROM = KnownMapping(
    VALUES, ("param",), "Which fields it is made of: words of MARS; all combinations of their values are needed"
)
_NAME = Text("Of a grid: 0.25/0.25, F48, N320, O96, 0.5/0.5@72/-25/34/45", what="the name of a grid", length_max=60_000)
_METHOD = Word(METHODS, "How values are found between points; spectral fields need none", "a method")
_COORDINATES = Either(
    (
        Text(what="a file's name"),
        KnownMapping(
            {"latitude": Text(what="a parameter"), "longitude": Text(what="a parameter")},
            ("latitude", "longitude"),
            "The parameters of fields in the pool, or in the store behind it, on the same grid: clat and clon",
        ),
    ),
    "Places of the points of an unstructured grid: a file beside the recipe, netCDF (clat and clon, latitude and "
    "longitude, lat and lon) or GRIB fields of these; or the parameters of such fields that are in the pool",
)
_ROWS = Number("Gaussian rows between pole and equator", 1, 8000, whole=True)
_POINT = KnownMapping(
    {
        "name": Text("Of the place, for tables", length_max=200),
        "latitude": Number("Degrees north", -90, 90),
        "longitude": Number("Degrees east", -360, 360),
    },
    ("latitude", "longitude"),
)
_POINTS = ListOf(_POINT, "Places", high=100_000)
_STEPS = Either(
    (Number("", 0.001, 360), ListOf(Number("", 0.001, 360), low=2, high=2)),
    "Degrees between columns and between rows; two numbers where they differ",
)
_DEGREE = Number("Degrees between columns and between rows", 0.001, 360)
_GRID = Either(
    (
        _NAME,
        _DEGREE,
        ListOf(Either((_POINT, _DEGREE)), "Places; or two numbers as in MARS, as [0.5, 0.25]", high=100_000),
        Kinds(
            "type",
            {
                "regular_ll": KnownMapping(
                    {"resolution": _STEPS, "method": _METHOD, "coordinates": _COORDINATES},
                    ("resolution",),
                    "Rows and columns of equal distance",
                ),
                "regular_gg": KnownMapping(
                    {"n": _ROWS, "method": _METHOD, "coordinates": _COORDINATES},
                    ("n",),
                    "Gaussian rows of equally many columns, as F48",
                ),
                "reduced_gg": KnownMapping(
                    {"n": _ROWS, "method": _METHOD, "coordinates": _COORDINATES},
                    ("n",),
                    "Gaussian rows with fewer columns to the poles, as N48",
                ),
                "points": KnownMapping(
                    {"points": _POINTS, "method": _METHOD, "coordinates": _COORDINATES}, ("points",), "Places"
                ),
            },
            otherwise=KnownMapping(
                {"name": _NAME, "method": _METHOD, "coordinates": _COORDINATES}, ("name",), "A grid by its name"
            ),
        ),
    ),
    "Brings the fields to a grid",
)
_PLACES = Either(
    (_POINTS, KnownMapping({"points": _POINTS, "method": _METHOD, "coordinates": _COORDINATES}, ("points",), "Places")),
    "Brings the fields to places: `grid` of a list",
)
EDGES = KnownMapping(
    {
        "north": Number("Degrees", -90, 90),
        "west": Number("Degrees", -360, 360),
        "south": Number("Degrees", -90, 90),
        "east": Number("Degrees", -360, 720),
    },
    ("north", "west", "south", "east"),
)
_DEGREES = r"-?[0-9]{1,3}(\.[0-9]{1,9})?"
_CROP = Either(
    (
        EDGES,
        Text("In the form of MARS", rf"^{_DEGREES}(/{_DEGREES}){{3}}$", "an area as north/west/south/east in degrees"),
    ),
    "Keeps the rows and columns within an area",
)
_THRESHOLDS = {
    word: _or_list(Number(), f"{meaning}, in the unit that the field has here") for word, meaning in COMPARISONS.items()
}
_ENSEMBLE = _or_list(
    Either(
        (
            Word(STATISTICS, what="a statistic"),
            OneKey(
                {
                    "probability": OneKey(_THRESHOLDS, "Of this, in percent of the members", word="comparison"),
                    "percentile": _or_list(Number("", 0, 100, whole=True), "Percentiles, linear between members"),
                },
                word="statistic",
            ),
        )
    ),
    "Statistics of all members: each gives a field",
)
_FORMULA = Text(
    "Of fields of one step, level and member: + - * / **, comparisons, and, or, not, where, sqrt, abs, exp, log, min, "
    "max, sin, cos, hypot, numbers, parameters",
    what="a formula",
)
_UNIT = Text("As m s**-1, m/s, degC, hPa", what="a unit", length_max=60)
_LENGTH = Either(
    (Number("", 1, 10_000, whole=True), Text(pattern=r"^([1-9][0-9]{0,4}[dhm])+$", what="a length as 24h or 30m")),
    "Hours, or a length as 24h, 30m, 1h30m",
)
_LENGTH_OR_PERIOD = Either(
    (
        Number("", 1, 10_000, whole=True),
        Text(pattern=r"^(day|month|([1-9][0-9]{0,4}[dhm])+)$", what="a length as 24h or 30m, day or month"),
    ),
    "Hours, or a length as 24h, 30m, 1h30m; day or month: by valid times, of several dates and times",
)
_OF = _or_list(Word(OVER_STEPS, what="a statistic"), "Which; each gives a field")
# In plans, which do not know future dates.
OVER_STEPS_ONLY = KnownMapping(
    {"over": _LENGTH, "of": _OF}, ("over", "of"), "Over steps, in windows that begin at step 0"
)
OPERATIONS: dict[str, Spec] = {
    "grid": _GRID,
    "wind": KnownMapping(
        {"grid": _GRID},
        doc="Vorticity and divergence (spectral) to u and v, on the grid that follows; "
        "components along the rows and columns of their grid to east and north",
    ),
    "crop": _CROP,
    "ensemble": _ENSEMBLE,
    "statistics": KnownMapping(
        {
            "over": _LENGTH_OR_PERIOD,
            "of": _OF,
            "include": Word(
                {
                    "start": "An instant at midnight belongs to the day that begins; the default but for sums",
                    "end": "It belongs to the day that ends; for ranges of steps, such as amounts",
                },
                "Which end of a day or month belongs to it",
            ),
            "on": Either((*_VALUE.specs, ListOf(_VALUE, high=10_000)), "The days or months, as 20190301 or 201903"),
        },
        ("over", "of"),
        "Over steps, in windows of this length that begin at the first step of `from`; or over days or months",
    ),
    "compute": Table(
        KnownMapping({"formula": _FORMULA, "units": _UNIT}, ("formula", "units")),
        "Adds fields, each computed from others of the same step, level and member",
    ),
    "units": Either((_UNIT, Table(_UNIT)), "Converts to a unit: all fields, or those of some parameters"),
    "mask": OneKey(
        {
            **{word: Number(f"{meaning} becomes missing") for word, meaning in COMPARISONS.items()},
            "where": Text(f"{_FORMULA.doc}: where it holds, all fields become missing", what="a condition"),
        },
        "Values that become missing",
        word="condition",
    ),
    "fill": Number("Missing values become this number"),
    "keep": _or_list(Text(what="a parameter", length_max=60), "Keeps the fields of these parameters only"),
}
# Aliases of operations: their arguments are read as those of the operation itself.
ALIASES = {
    "regrid": "grid",
    "interpolate": "grid",
    "stations": "grid",
    "points": "grid",
    "area": "crop",
    "subset": "crop",
}
OF_ALIASES: dict[str, Spec] = {
    **dict.fromkeys(("regrid", "interpolate"), dataclasses.replace(_GRID, doc="The same as `grid`")),
    **dict.fromkeys(("stations", "points"), _PLACES),
    **dict.fromkeys(("area", "subset"), dataclasses.replace(_CROP, doc="The same as `crop`")),
}
_OUTPUT: dict[str, Spec] = {
    "name": Text(
        "The file's name, with what differs between files in braces: t_{step:03}_{number}.png; folders by /",
        what="a file's name",
    ),
    "gather": _or_list(
        Word({word: meaning for word, meaning in WORDS.items() if word != "param"}, what="a word of `from`"),
        "Puts the fields of all these steps, levels, … into one file",
    ),
}


def _format(doc: str, **keys: Spec) -> KnownMapping:
    return KnownMapping({**keys, **_OUTPUT}, ("name",), doc)


_COMPRESSION = Word({"zstd": "Faster and smaller; the default", "zlib": "Read everywhere"}, "Of the values")
FORMATS = {
    "grib2": _format(
        "GRIB edition 2",
        bits=Number("Of a packed value", 1, 32, whole=True),
        packing=Word({"simple": "Read everywhere", "ccsds": "A quarter of the size"}, "How values are packed"),
    ),
    "netcdf": _format("netCDF-4 after the CF conventions", compression=_COMPRESSION),
    "zarr": _format("A group of Zarr 3", compression=_COMPRESSION),
    "png": _format(
        "A map",
        projection=Word(
            {
                "cylindrical": "True to scale along the middle latitude; the default",
                "robinson": "The whole globe",
                "globe": "Seen from far",
            },
            "Of the map",
            "a projection",
        ),
        centre=ListOf(Number("", -360, 360), "Latitude and longitude in the middle of the map", low=2, high=2),
        colours=Word(NAMES, "By default the parameter's", "a table of colours"),
        range=ListOf(Number(), "The values at the ends of the color bar; by default the style's", low=2, high=2),
        levels=ListOf(Number(), "Where one color ends and the next begins, upwards; by default the style's", low=2),
        middle=Number("The value in the middle of a diverging table; by default 0, or the freezing point"),
        scale=Word(SCALES, "Of the color bar; by default the style's", "a scale"),
        units=Text("Of the map, and of range, levels, middle and isolines; by default the style's", length_max=60),
        isolines=Either(
            (Flag(), Number(), ListOf(Number())),
            "The distance of lines, their values, or false; by default the style's",
        ),
        styles=Text("A file of styles beside this one, looked at before Junctura's own", length_max=4096),
        part=Word(PARTS, "What is in the picture", "a part"),
        theme=Word(THEMES, "Of the page", "a theme"),
        text=Number("The size of the smallest letters, in pixels; by default 11 at least", 6, 100, whole=True),
        title=Text("Above the map; braces as in the name"),
        coast=Flag("Whether coastlines are drawn; the default"),
        borders=Flag("Whether borders of countries are drawn, as Natural Earth has them; by default not"),
        width=Number("Of the map, in pixels", 160, 8000, whole=True),
    ),
    "csv": _format(
        "A table: a row for each point", digits=Number("Significant ones; by default all", 1, 17, whole=True)
    ),
    "parquet": _format("The same table as a Parquet file"),
}
RECIPE = KnownMapping(
    {
        "product": Text(
            "Its name; no other recipe has it",
            r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$",
            "a name of letters, digits, . _ and -",
        ),
        "from": _FROM,
        "do": ListOf(
            OneKey({**OPERATIONS, **OF_ALIASES}, word="operation"), "What is done, in this order", low=0, high=100
        ),
        "to": Kinds("format", FORMATS, "What kind of file is made, and where"),
    },
    ("product", "from", "to"),
    "A recipe for a product",
)


def schema() -> dict[str, Any]:
    """Returns the JSON Schema of a recipe."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Junctura: a product", **RECIPE.json()}


def text() -> str:
    """Returns the contents of ``recipe.schema.json``."""
    return json.dumps(schema(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.stdout.write(text())
