"""Converts documents to recipes, with all checks that are possible before anything runs."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from junctura._document.located_yaml import Document, Wrong, at, nearest, read
from junctura.errors import Error, InvalidArgument
from junctura.products._map.seen import view_of
from junctura.products._map.styling.styles import load
from junctura.products._operations import READERS, Crop, Ensemble, Operation, Periods, Statistics, ToGrid, Turn, Winds
from junctura.products._outputs._output import Output as Map
from junctura.products._recipe.definitions import OPEN_WORDS, UNKNOWN, Recipe, Target
from junctura.products._recipe.file_names import Template, file_name, unknown
from junctura.products._recipe.gathered import check_gathered
from junctura.products._recipe.mars_words import Key, Value, number_of, span_of, step_at, values
from junctura.products._recipe.recipe_schema import ALIASES, RECIPE, WORDS
from junctura.products._regrid.grids import Grid
from junctura.products._units import unit

_INPUTS_MAX = 1_000_000
_FILES_MAX = 100_000
_Words = dict[str, tuple[Value, ...]]


def recipes_of(path: str | Path) -> tuple[list[Recipe], list[Error]]:
    """Returns the recipes of a file, and its errors; see `load_all`."""
    try:
        found = read(path)
    except Error as error:
        return [], [error]
    if not found:
        return [], [InvalidArgument(str(path), "there is no recipe in it")]
    read_so = [_read_one(document) for document in found]
    return [recipe for recipes, _ in read_so for recipe in recipes], [one for _, wrong in read_so for one in wrong]


def recipe_of(document: Document) -> Recipe:
    """Returns the recipe of a document."""
    recipes, wrong = _read_one(document)
    if wrong:
        raise wrong[0]
    return recipes[0]


def _read_one(document: Document) -> tuple[list[Recipe], list[InvalidArgument]]:
    """Returns the recipe, or the errors."""
    folder = Path(document.path).parent
    try:
        RECIPE.check(document.value)
        recipe = _recipe(document.value, folder, f"{document.path}:{document.line()}")
        _check_files(recipe)
    except Wrong as wrong:
        found = list(wrong.each())
        found += list(_wrong_parts(document.value, folder, found))
        found.sort(key=lambda one: document.line(one.place))
        return [], [document.error(one) for one in found]
    return [recipe], []


def _wrong_parts(said: Any, folder: Path, found: Sequence[Wrong]) -> Iterator[Wrong]:
    """Returns the errors in well-formed parts of a recipe that can be read independently."""
    for place, check in _parts(said, folder):
        if not any(one.place[: len(place)] == place for one in found):
            try:
                with at(*place):
                    check()
            except Wrong as wrong:
                yield from wrong.each()
            except Error as error:
                yield Wrong(str(error), *place)


def _parts(said: Any, folder: Path) -> Iterator[tuple[tuple[str | int, ...], Callable[[], object]]]:
    """Yields the position of each such part, and its reader."""
    source, do, to = (said.get(key) if isinstance(said, dict) else None for key in ("from", "do", "to"))
    if isinstance(source, dict):
        for word in (word for word in WORDS if word in source):
            yield ("from", word), functools.partial(values, word, source[word])
    for index, item in enumerate(do if isinstance(do, list) else []):
        for name, value in item.items() if isinstance(item, dict) else ():
            if reader := READERS.get(ALIASES.get(str(name), str(name))):
                yield ("do", index, name), functools.partial(reader, value)
    if isinstance(to, dict):
        for key, check in _OPTIONS.items():
            if key in to:
                yield ("to", key), functools.partial(check, to[key], folder)


def _recipe(said: dict[str, Any], folder: Path, where: str) -> Recipe:
    words = _words(said["from"])
    operations = tuple(_operations(said.get("do", []), words, folder))
    params = _params(operations, tuple(str(param) for param in words["param"]))
    output = _output(said["to"], folder, words, operations)
    recipe = Recipe(said["product"], tuple(words.items()), operations, params, output, where)
    if recipe.periods is not None:
        with at("do", _index(operations, "statistics"), "statistics"):
            recipe.periods.groups(words)
    if recipe.statistics is not None:
        with at("do", _index(operations, "statistics"), "statistics"):
            recipe.statistics.windows(words["step"])
    return recipe


def _words(said: dict[str, Any]) -> _Words:
    found: _Words = {}
    for word in WORDS:
        if word in said:
            with at("from", word):
                found[word] = values(word, said[word])
    if {"cf", "pf"} <= set(found.get("type", ())) and 0 not in found.get("number", (0,)):
        raise Wrong("the control forecast (cf) is member 0: write it, as 0/to/50, or leave cf out", "from", "number")
    inputs = math.prod(map(len, found.values()))
    if inputs > _INPUTS_MAX:
        raise Wrong(f"{inputs} fields, at most {_INPUTS_MAX} are possible", "from")
    return found


def _operations(said: list[dict[str, Any]], words: _Words, folder: Path) -> Iterator[Operation]:
    on: Grid | None = None
    seen: list[str] = []
    named = [{ALIASES.get(name, name): value for name, value in item.items()} for item in said]
    for index, item in enumerate(named):
        ((name, value),) = item.items()
        with at("do", index, *said[index]):
            _check_order(name, value, seen, words)
            operation = _operation(name, value, named[index + 1 :], words)
            operation = operation.beside(folder) if isinstance(operation, ToGrid) else operation
            on = _grid_behind(operation, on)
        seen.append(name)
        yield operation


def _check_order(name: str, value: Any, seen: list[str], words: _Words) -> None:
    if name in ("ensemble", "statistics", "wind") and name in seen:
        raise Wrong("it stands there twice, and once is possible")
    if name == "wind" and (before := set(seen) - {"units", "wind"}):
        raise Wrong(f"vorticity and divergence must be spectral: write it before {sorted(before)[0]}")
    over = ("date", "time") if name == "statistics" and _is_of_periods(value) else ("step",)
    if "date" in over and "hdate" in words:
        raise Wrong("hindcasts of several days are no series: write windows of steps, as over: 24h")
    gathers = {"ensemble": ("number",), "statistics": over}.get(name, ())
    if absent := [f'"{word}"' for word in gathers if word not in words]:
        are = "is" if len(absent) == 1 else "are"
        raise Wrong(f"{' and '.join(absent)} {are} missing in from: it is not known what to gather")


def _is_of_periods(statistics: dict[str, Any]) -> bool:
    return statistics["over"] in ("day", "month")


def _operation(name: str, value: Any, later: list[dict[str, Any]], words: _Words) -> Operation:
    if name == "wind" and {138, 155} & set(map(number_of, words["param"])):
        raise Wrong("vorticity and divergence are found by their names: write vo and d in from, not their numbers")
    if name == "wind":
        return Winds(_grid_of_wind(value, later)) if {"vo", "d"} & set(words["param"]) else Turn()
    if name == "statistics" and _is_of_periods(value):
        return Periods.read(value)
    if name == "statistics":
        for key in ("include", "on"):
            if key in value:
                raise Wrong(f"it is of days and months: write over: day, or leave {key} out", key)
        return Statistics.read(value, _first_step(words))
    return READERS[name](value)


def _first_step(words: _Words) -> Value:
    single = [span.end for step in words["step"] if (span := span_of(step)).start == span.end]
    return step_at(min(single, default=0))


def _grid_of_wind(value: dict[str, Any], later: list[dict[str, Any]]) -> str:
    """Returns its own grid, or that to which fields are regridded next."""
    if "grid" in value:
        return ToGrid.read(value["grid"]).grid
    for item in later:
        if "grid" in item:
            return ToGrid.read(item["grid"]).grid
    raise Wrong("on which grid? write wind: {grid: 0.5/0.5}, or a grid behind it")


def _grid_behind(operation: Operation, before: Grid | None) -> Grid | None:
    """Returns the grid of fields after an operation, if known; rejects an area that the grid does not have."""
    if isinstance(operation, ToGrid | Winds):
        return operation.on
    if isinstance(operation, Crop) and before is not None:
        return operation.area(before)
    return before


def _params(operations: tuple[Operation, ...], params: tuple[str, ...]) -> tuple[str, ...]:
    for index, operation in enumerate(operations):
        with at("do", index, operation.name):
            params = operation.params(params)
    return params


def _index(operations: tuple[Operation, ...], name: str) -> int:
    return next(index for index, operation in enumerate(operations) if operation.name == name)


def _output(said: dict[str, Any], folder: Path, words: _Words, operations: tuple[Operation, ...]) -> Target:
    gather = said.get("gather", [])
    listed = gather if isinstance(gather, list) else [gather]
    for word in listed:
        if word not in words:
            raise Wrong(f'"{word}" is not in from{nearest(word, words)}', "to", "gather")
    options: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in said.items()
        if key not in ("format", "name", "gather")
    }
    for key, read_option in _OPTIONS.items():
        if key in options:
            with at("to", key):
                options[key] = read_option(options[key], folder)
    gathers_number = any(operation.name == "ensemble" for operation in operations)
    kept = tuple(word for word in WORDS if word in listed and not (word == "number" and gathers_number))
    return Target(said["format"], said["name"], kept, Key(options))


def _units(said: str, _folder: Path) -> str:
    unit(said)
    return said


def _upwards(said: Sequence[float], _folder: Path) -> tuple[float, ...]:
    if any(one >= other for one, other in itertools.pairwise(said)):
        raise Wrong("each number must be greater than the one before")
    return tuple(said)


# Options of maps with a meaning independent of the rest of a recipe, and their readers.
_OPTIONS: dict[str, Callable[[Any, Path], Any]] = {
    "styles": lambda said, folder: load(folder / said),
    "units": _units,
    "range": _upwards,
    "levels": _upwards,
}


def _check_files(recipe: Recipe) -> None:
    """Checks that each file has a unique name."""
    files = math.prod(len(parts) for parts in recipe._parts())
    if files > _FILES_MAX:
        raise Wrong(f"{files} files, at most {_FILES_MAX} are possible", "from")
    _check_told_apart(recipe)
    _check_format(recipe)
    with at("to", "name"):
        _check_names(recipe)
    if "title" in recipe.output.options:
        with at("to", "title"):
            _check_words(Template(recipe.output.options["title"]), recipe)


def _check_format(recipe: Recipe) -> None:
    """Checks that files of the format can have these fields, as far as the grid is known."""
    to, on = recipe.output, None
    for operation in recipe.operations:
        on = _grid_behind(operation, on)
    if to.format == "grib2" and on is not None and on.kind == "points":
        raise Wrong("GRIB has no grid of places: write csv, parquet, netcdf or zarr", "to", "format")
    if to.format in ("netcdf", "zarr"):
        check_gathered(recipe)
    if to.format != "png":
        return
    if (fields := _fields_in_file(recipe)) > 1:
        raise Wrong(f"a map has one field, and a file would have {fields}", "to", "format")
    with at("to"):
        output = Map("png", **to.options)
    if on is not None:
        with at("to", *(["width"] if "width" in to.options else [])):
            view_of(on, output)


def _check_told_apart(recipe: Recipe) -> None:
    """Checks that statistics over steps differ within a file."""
    if recipe.statistics is None:
        return
    of, cause = recipe.statistics.of, ""
    amounts = [kind for kind in of if kind in ("sum", "accumulation")]
    if len(amounts) > 1:
        cause = 'in a file "sum" and "accumulation" are both amounts of the window: write one of them'
    elif amounts and "instant" in of and recipe.output.format in ("netcdf", "zarr"):
        cause = f'in {recipe.output.format} "instant" and "{amounts[0]}" would be one variable: write one of them'
    if cause:
        raise Wrong(cause, "do", _index(recipe.operations, "statistics"), "statistics", "of")


def _fields_in_file(recipe: Recipe) -> int:
    words = dict(recipe.words)
    apart = ("date", "time", "step") if recipe.periods else ("step",) if recipe.statistics else ()
    gathered = math.prod(len(words[word]) for word in recipe.output.gather if word not in apart)
    if recipe.periods and any(word in recipe.output.gather for word in apart):
        gathered *= len(recipe.periods.groups(words))
    if recipe.statistics and "step" in recipe.output.gather:
        gathered *= len(recipe.statistics.windows(words["step"]))
    made = [
        len(operation.of) for operation in recipe.operations if isinstance(operation, Ensemble | Periods | Statistics)
    ]
    return len(recipe.params) * gathered * math.prod(made)


def _check_names(recipe: Recipe) -> None:
    template = Template(recipe.output.name)
    _check_words(template, recipe)
    # Values that only fields have are not known yet; they are equal for all files, or a further difference.
    known = UNKNOWN
    seen: dict[str, Key] = {}
    for attributes in recipe.files():
        name = file_name(template, {**known, **attributes})
        if name in seen:
            words = [word for word in attributes if attributes[word] != seen[name][word]]
            one, other = (", ".join(f"{word} {of[word]}" for word in words) for of in (seen[name], attributes))
            gather = "" if recipe.output.format == "png" else f", or gather: {words[0]}"
            remedy = f"write {{{words[0]}}} in the name{gather}"
            raise Wrong(f'two files have the name "{name}": that of {one}, and that of {other}; {remedy}')
        seen[name] = attributes


def _check_words(template: Template, recipe: Recipe) -> None:
    single = next(recipe.files())
    known = tuple(dict.fromkeys((*single, *OPEN_WORDS)))
    word = unknown(template, known)
    if word == "param":
        raise Wrong(f'"{{param}}" has no single value: a file has {" and ".join(recipe.params)}')
    if word in dict(recipe.words):
        raise Wrong(f'"{{{word}}}" has no single value: a file has all of them')
    if word is not None:
        raise Wrong(f'"{{{word}}}" is no word of a file{nearest(word, known)}')
