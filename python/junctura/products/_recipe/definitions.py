"""Products that are asked for: what they are made of, what is done, and which files come out.

A recipe is read from YAML and checked to its last word before anything runs::

    product: t850-europe
    from: {param: t, levelist: 850, step: 0/to/240/by/6, number: 1/to/6}
    do:
      - grid: 0.25/0.25
      - crop: {north: 72, west: -25, south: 34, east: 45}
      - ensemble: [mean, spread]
    to: {format: grib2, name: "t850_{step:03}.grib2"}

Each combination of the values in ``from``, parameters aside, gives a file with all parameters; what an operation
gathers (``ensemble`` the members, ``statistics`` the steps of a window), or ``to.gather`` does, is in one file.
`Recipe.wanted` says of each file which fields it waits for.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from junctura._document.located_yaml import Wrong, files_of
from junctura._forks import lazy_property
from junctura.errors import AlreadyExists, Error, NotFound
from junctura.products._operations import Operation, Periods, Statistics, Window, Winds
from junctura.products._recipe.file_names import Open, Template, file_name
from junctura.products._recipe.mars_words import Key, Value, end_of, of_object, seconds_since, selectors

# What fields have whether a recipe asks for it or not, so that names of files may have it, too.
OPEN_WORDS = ("class", "expver", "stream", "date", "time", "type", "levtype", "domain", "origin", "model", "hdate")
# What a day or a month has several of.
_OF_PERIODS = ("date", "time", "step")
# What stands in names until the fields tell it.
UNKNOWN = {word: Open(f"({word})") for word in OPEN_WORDS}


@dataclass(frozen=True)
class Target:
    """What kind of files is made, and what they are called.

    Attributes
    ----------
    format
        ``grib2``, ``netcdf``, ``zarr``, ``png``, ``csv`` or ``parquet``.
    name
        Of the file, with words in braces.
    gather
        Words of ``from`` whose values go into one file.
    options
        What only this format knows, as the writer takes it.

    """

    format: str
    name: str
    gather: tuple[str, ...] = ()
    options: Key = field(default_factory=Key)


@dataclass(frozen=True)
class Recipe:
    """One product: many files of one kind.

    Attributes
    ----------
    product
        Its name.
    words
        Which fields it is made of: all combinations of these values.
    operations
        What is done, in this order.
    params
        The parameters that are in a file.
    output
        What comes out.
    where
        File and line, for messages.

    """

    product: str
    words: tuple[tuple[str, tuple[Value, ...]], ...]
    operations: tuple[Operation, ...]
    params: tuple[str, ...]
    output: Target
    where: str = field(default="", compare=False)

    @lazy_property
    def fingerprint(self) -> str:
        """SHA-256 of what is asked for: `product`, `from`, `do` and `to` as they were understood.

        How the file was written does not matter. Neither the fields are in it nor their versions, nor those of the
        software: the provenance of a product names them beside it.
        """
        said = {
            "product": self.product,
            "from": [[word, list(values)] for word, values in self.words],
            "do": [operation.text for operation in self.operations],
            "to": [self.output.format, self.output.name, self.output.gather, dict(self.output.options)],
        }
        return hashlib.sha256(json.dumps(said, sort_keys=True, separators=(",", ":")).encode()).hexdigest()

    def sources(self) -> list[str]:
        """Selectors that find the fields it is made of, and no others."""
        return selectors(self._needed)

    def key(self, attributes: Mapping[str, Any]) -> Key | None:
        """Which of its inputs an object with these attributes is; None where it is none."""
        found: dict[str, Value] = {}
        for word, values in self._sets.items():
            try:
                found[word] = of_object(word, attributes)
            except (KeyError, Wrong):
                return None
            if found[word] not in values:
                return None
        return Key(found)

    def prefix(self, key: Mapping[str, Any]) -> tuple[Operation, ...]:
        """What is done first, with this input alone, or (winds) with the pair it belongs to.

        Inputs of other products with the same prefix become the same fields: by the `Operation.text` of each. What
        leaves the parameter as it is is left out.
        """
        names, found = {str(key["param"])}, []
        for operation in self.operations[: self._alone]:
            if any(operation.concerns(name) for name in names):
                found.append(operation)
            if isinstance(operation, Winds) and names & {"vo", "d"}:
                names = {"u", "v"}
        return tuple(found)

    @property
    def rest(self) -> tuple[Operation, ...]:
        """What is done behind the prefixes, with all inputs of a file; `Wanted.rest` is that of one file."""
        return self.operations[self._alone :]

    def wanted(self) -> Iterator[Wanted]:
        """The files that are to be made, in the order in which they can be complete first."""
        return (self._wanted(parts) for parts in sorted(self._files(), key=_completion))

    def _files(self) -> Iterator[dict[str, _RecipePart]]:
        """Of each file what of each word is in it."""
        files = (dict(parts) for parts in itertools.product(*self._parts()))
        return (parts for parts in files if any(self._is_member(key) for key in _combinations(parts, "type", "number")))

    @lazy_property
    def has_control(self) -> bool:
        """Whether control and perturbed forecasts are asked for, by their numbers: members of one ensemble."""
        words = dict(self.words)
        return "number" in words and {"cf", "pf"} <= set(words.get("type", ()))

    def _is_member(self, key: Mapping[str, Any]) -> bool:
        """Whether there can be a field of this type and number: the control forecast is member 0, and no other is."""
        return not self.has_control or key["type"] not in ("cf", "pf") or (key["type"] == "cf") == (key["number"] == 0)

    @lazy_property
    def _alone(self) -> int:
        """How many operations come before the first that needs several fields."""
        return len(list(itertools.takewhile(lambda operation: operation.is_alone, self.operations)))

    @lazy_property
    def statistics(self) -> Statistics | None:
        """What is done over steps, if anything is."""
        return next((operation for operation in self.operations if isinstance(operation, Statistics)), None)

    @lazy_property
    def periods(self) -> Periods | None:
        """What is done over days or months, if anything is."""
        return next((operation for operation in self.operations if isinstance(operation, Periods)), None)

    @lazy_property
    def _needed(self) -> dict[str, tuple[Value, ...]]:
        needed = dict(self.words)
        if self.statistics is not None:
            used = {step for window in self._windows for step in window.values}
            needed["step"] = tuple(step for step in needed["step"] if step in used)
        return needed

    @lazy_property
    def _sets(self) -> dict[str, frozenset[Value]]:
        return {word: frozenset(values) for word, values in self._needed.items()}

    @lazy_property
    def _windows(self) -> list[_RecipePart]:
        statistics, steps = self.statistics, dict(self.words)["step"]
        if statistics is None:
            return []
        is_instant = set(statistics.of) == {"instant"}
        return [
            _RecipePart(statistics.needed(window, steps), window.end if is_instant else window.step, window)
            for window in statistics.windows(steps)
        ]

    def _parts(self) -> list[list[tuple[str, _RecipePart]]]:
        """For each word what of it goes into one file together; dates, times and steps are one where days count."""
        found = [self._of_periods] if self.periods else []
        for word, values in self.words:
            if self.periods and word in _OF_PERIODS:
                continue
            parts = (
                self._windows
                if word == "step" and self.statistics
                else [_RecipePart((value,), value) for value in values]
            )
            if word == "param" or word in self.gathered:
                everything = tuple(dict.fromkeys(value for part in parts for value in part.values))
                parts = [_RecipePart(everything, parts[0].label if len(parts) == 1 else None)]
            found.append([(word, part) for part in parts])
        return found

    @lazy_property
    def _of_periods(self) -> list[tuple[str, _RecipePart]]:
        groups = [] if self.periods is None else self.periods.groups(dict(self.words))
        if any(word in self.gathered for word in _OF_PERIODS):
            keys = tuple(key for group in groups for key in group.keys)
            return [("date", _RecipePart((), None, labels=groups[0].label if len(groups) == 1 else Key(), keys=keys))]
        return [("date", _RecipePart((), None, labels=group.label, keys=group.keys)) for group in groups]

    @lazy_property
    def _is_ensemble(self) -> bool:
        return any(operation.name == "ensemble" for operation in self.operations)

    @property
    def gathered(self) -> tuple[str, ...]:
        """Words whose values go into one file together, `param` and windows of steps aside."""
        members = ["number", *(["type"] if self.has_control else [])]
        return (*self.output.gather, *(members if self._is_ensemble else []))

    def files(self) -> Iterator[Key]:
        """What is single in each file, as `Wanted.attributes`, without saying what it waits for."""
        return map(self._said, self._files())

    def _said(self, parts: dict[str, _RecipePart]) -> Key:
        said = {word: part.label for word, part in parts.items() if part.label is not None and word != "param"}
        said |= {word: value for part in parts.values() for word, value in part.labels.items()}
        if self._is_ensemble:
            said.pop("number", None)
        if len(self.params) == 1:
            said["param"] = self.params[0]
        return Key(said, product=self.product)

    def _wanted(self, parts: dict[str, _RecipePart]) -> Wanted:
        needed = tuple(key for key in _combinations(parts, *parts) if self._is_member(key))
        window = parts["step"].window if "step" in parts else None
        return Wanted(self, self._said(parts), needed, window)


@dataclass(frozen=True)
class _RecipePart:
    """Values of a word that go into one file, and what the file says of them; or of several words that go together."""

    values: tuple[Value, ...]
    label: Value | None
    window: Window | None = None
    labels: Key = field(default_factory=Key)
    keys: tuple[Key, ...] = ()

    def of(self, word: str) -> tuple[Key, ...]:
        """Each of them as words and their values."""
        return self.keys or tuple(Key({word: value}) for value in self.values)


def _combinations(parts: Mapping[str, _RecipePart], *words: str) -> Iterator[Key]:
    """All combinations of the values that some words have in a file."""
    named = [parts[word].of(word) for word in words if word in parts]
    return (Key({word: value for key in keys for word, value in key.items()}) for keys in itertools.product(*named))


@dataclass(frozen=True)
class Wanted:
    """One file that is to be made.

    Attributes
    ----------
    recipe
        To which product it belongs.
    attributes
        What is single in it: ``step`` (or a range of steps), ``number``, ``levelist``, ``param``, ...
    inputs
        The fields that it waits for.
    window
        The steps that it has statistics of, where these are of one window.

    """

    recipe: Recipe
    attributes: Key
    inputs: tuple[Key, ...]
    window: Window | None = None

    @property
    def rest(self) -> tuple[Operation, ...]:
        """What is done with its inputs, behind their prefixes."""
        if self.window is None:
            return self.recipe.rest
        window = self.window
        return tuple(
            operation.of_window(window) if isinstance(operation, Statistics) else operation
            for operation in self.recipe.rest
        )

    def name(self, **known: Any) -> str:
        """The file's name, below a folder; `known` are words that only the fields tell, such as ``date``.

        Raises
        ------
        InvalidArgument
            A word in the name has no value, or the name would lead elsewhere.

        """
        return file_name(_template(self.recipe.output.name), {**known, **self.attributes})

    def options(self, **known: Any) -> dict[str, Any]:
        """What the writer of this format is told besides the fields: as the recipe says it, with a title filled in."""
        options = dict(self.recipe.output.options)
        if "title" in options:
            options["title"] = _template(options["title"]).fill({**known, **self.attributes})
        return options


@functools.lru_cache(maxsize=1024)
def _template(text: str) -> Template:
    return Template(text)


def _completion(parts: dict[str, _RecipePart]) -> int:
    """The second of the last step, or the last valid time, that a file waits for."""
    if "date" in parts and parts["date"].keys:
        return max(map(seconds_since, parts["date"].keys))
    return max(map(end_of, parts["step"].values)) if "step" in parts else 0


def load_all(paths: Iterable[str | Path], told: Callable[[Error], None] | None = None) -> list[Recipe]:
    """The recipes in files, or in those that patterns such as ``recipes/*.yaml`` find.

    Parameters
    ----------
    paths
        Files, or patterns.
    told
        Gets each error, when all files have been read, and recipes that are wrong are left out. Without it the
        first error is raised.

    Raises
    ------
    InvalidArgument
        Something in them is wrong: the error names file, line, key and, for a word that is not known, the nearest.
    NotFound, Io, LimitExceeded
        There is no such file, it cannot be read, or it is larger than 4 MiB.
    AlreadyExists
        Two products have one name, or make files of one name. The first of them is not left out.

    """
    recipes, wrong = _read(paths)
    kept, twice = _told_apart(recipes)
    for error in (*wrong, *twice):
        if told is None:
            raise error
        told(error)
    return kept


def _read(paths: Iterable[str | Path]) -> tuple[list[Recipe], list[Error]]:
    from junctura.products._recipe.reading import recipes_of

    recipes: list[Recipe] = []
    wrong: list[Error] = []
    for path in paths:
        try:
            files = list(files_of([path]))
        except NotFound as error:
            wrong.append(error)
            continue
        for file in files:
            found, of_file = recipes_of(file)
            recipes += found
            wrong += of_file
    return recipes, wrong


def _told_apart(recipes: Iterable[Recipe]) -> tuple[list[Recipe], list[Error]]:
    """Those whose names no other had before, and what is wrong with the others."""
    kept: list[Recipe] = []
    wrong: list[Error] = []
    products: dict[str, Recipe] = {}
    files: dict[str, Recipe] = {}
    for recipe in recipes:
        names = [_template(recipe.output.name).fill({**UNKNOWN, **one}) for one in recipe.files()]
        if error := _taken(recipe, names, products, files):
            wrong.append(error)
            continue
        products[recipe.product] = recipe
        files |= dict.fromkeys(names, recipe)
        kept.append(recipe)
    return kept, wrong


def _taken(
    recipe: Recipe, names: Iterable[str], products: Mapping[str, Recipe], files: Mapping[str, Recipe]
) -> AlreadyExists | None:
    if other := products.get(recipe.product):
        return AlreadyExists(recipe.where, f'product: "{recipe.product}" is asked for already, in {other.where}')
    for name in names:
        if other := files.get(name):
            both = f'files of "{recipe.product}" and "{other.product}"'
            return AlreadyExists(recipe.where, f"to.name: {both} are both named {name}")
    return None
