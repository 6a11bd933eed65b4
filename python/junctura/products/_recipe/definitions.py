"""Definitions of products: their input fields, operations, and output files.

A recipe is read from YAML and completely validated before anything runs::

    product: t850-europe
    from: {param: t, levelist: 850, step: 0/to/240/by/6, number: 1/to/6}
    do:
      - grid: 0.25/0.25
      - crop: {north: 72, west: -25, south: 34, east: 45}
      - ensemble: [mean, spread]
    to: {format: grib2, name: "t850_{step:03}.grib2"}

Each combination of the values in ``from``, except parameters, results in a file with all parameters; values that an
operation combines (``ensemble`` the members, ``statistics`` the steps of a window), or ``to.gather``, are in one file.
`Recipe.wanted` lists the files, each with the fields that it needs.
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

# Attributes that fields have even if a recipe does not select them; file names may use them.
OPEN_WORDS = ("class", "expver", "stream", "date", "time", "type", "levtype", "domain", "origin", "model", "hdate")
# Words with several values in a day or a month.
_OF_PERIODS = ("date", "time", "step")
# Placeholder in names until the fields are known.
UNKNOWN = {word: Open(f"({word})") for word in OPEN_WORDS}


@dataclass(frozen=True)
class Target:
    """The format and the names of output files.

    Attributes
    ----------
    format
        ``grib2``, ``netcdf``, ``zarr``, ``png``, ``csv`` or ``parquet``.
    name
        The file name, with words in braces.
    gather
        Words of ``from`` whose values are combined in one file.
    options
        Options of this format, as the writer takes them.

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
        Selection of its fields: all combinations of these values.
    operations
        The operations, in this order.
    params
        The parameters in a file.
    output
        The output files.
    where
        File and line, for messages.

    Examples
    --------
    >>> import junctura.products
    >>> recipe = "{product: warm, from: {param: t, step: 0}, to: {format: csv, name: warm.csv}}"
    >>> size = (folder / "warm.yaml").write_text(recipe)
    >>> recipes = junctura.products.load_all([folder / "warm.yaml"])
    >>> recipes[0].sources(), recipes[0].output.format
    (['step=0,param=t'], 'csv')

    """

    product: str
    words: tuple[tuple[str, tuple[Value, ...]], ...]
    operations: tuple[Operation, ...]
    params: tuple[str, ...]
    output: Target
    where: str = field(default="", compare=False)

    @lazy_property
    def fingerprint(self) -> str:
        """SHA-256 of the definition: `product`, `from`, `do` and `to` after parsing.

        The notation of the recipe does not matter. Fields, their versions and software versions are not included: the
        provenance of a product lists them separately.
        """
        said = {
            "product": self.product,
            "from": [[word, list(values)] for word, values in self.words],
            "do": [operation.text for operation in self.operations],
            "to": [self.output.format, self.output.name, self.output.gather, dict(self.output.options)],
        }
        return hashlib.sha256(json.dumps(said, sort_keys=True, separators=(",", ":")).encode()).hexdigest()

    def sources(self) -> list[str]:
        """Selectors that match exactly its fields."""
        return selectors(self._needed)

    def key(self, attributes: Mapping[str, Any]) -> Key | None:
        """Returns the input that an object with these attributes is; None if it is none."""
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
        """Returns the leading operations, on this input alone, or (winds) on its pair.

        Inputs of other products with the same prefix become the same fields: they are compared by the `Operation.text`
        of each operation. Operations that do not change the parameter are omitted.
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
        """Returns the operations after the prefixes, on all inputs of a file; `Wanted.rest` has those of one file."""
        return self.operations[self._alone :]

    def wanted(self) -> Iterator[Wanted]:
        """The files to make, in the order in which they can be complete first."""
        return (self._wanted(parts) for parts in sorted(self._files(), key=_completion))

    def _files(self) -> Iterator[dict[str, _RecipePart]]:
        """Yields for each file its values of each word."""
        files = (dict(parts) for parts in itertools.product(*self._parts()))
        return (parts for parts in files if any(self._is_member(key) for key in _combinations(parts, "type", "number")))

    @lazy_property
    def has_control(self) -> bool:
        """Whether control and perturbed forecasts are selected by number: members of one ensemble."""
        words = dict(self.words)
        return "number" in words and {"cf", "pf"} <= set(words.get("type", ()))

    def _is_member(self, key: Mapping[str, Any]) -> bool:
        """Whether a field of this type and number can exist: the control forecast is member 0, and no other type is."""
        return not self.has_control or key["type"] not in ("cf", "pf") or (key["type"] == "cf") == (key["number"] == 0)

    @lazy_property
    def _alone(self) -> int:
        """Number of operations before the first that needs several fields."""
        return len(list(itertools.takewhile(lambda operation: operation.is_alone, self.operations)))

    @lazy_property
    def statistics(self) -> Statistics | None:
        """The operation over steps, if there is one."""
        return next((operation for operation in self.operations if isinstance(operation, Statistics)), None)

    @lazy_property
    def periods(self) -> Periods | None:
        """The operation over days or months, if there is one."""
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
        """Yields for each word the values combined in one file; with days, dates, times and steps are one item."""
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
        """Words whose values are combined in one file, except `param` and windows of steps."""
        members = ["number", *(["type"] if self.has_control else [])]
        return (*self.output.gather, *(members if self._is_ensemble else []))

    def files(self) -> Iterator[Key]:
        """Yields the single values of each file, as `Wanted.attributes`, without its inputs."""
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
    """Values of a word that are combined in one file, and their attribute of the file; or of several related words."""

    values: tuple[Value, ...]
    label: Value | None
    window: Window | None = None
    labels: Key = field(default_factory=Key)
    keys: tuple[Key, ...] = ()

    def of(self, word: str) -> tuple[Key, ...]:
        """Returns each value as words and their values."""
        return self.keys or tuple(Key({word: value}) for value in self.values)


def _combinations(parts: Mapping[str, _RecipePart], *words: str) -> Iterator[Key]:
    """Yields all combinations of the values of some words in a file."""
    named = [parts[word].of(word) for word in words if word in parts]
    return (Key({word: value for key in keys for word, value in key.items()}) for keys in itertools.product(*named))


@dataclass(frozen=True)
class Wanted:
    """One file to make.

    Attributes
    ----------
    recipe
        Its product.
    attributes
        Its single values: ``step`` (or a range of steps), ``number``, ``levelist``, ``param``, ...
    inputs
        The fields that it needs.
    window
        The steps of its statistics, if they are over one window.

    """

    recipe: Recipe
    attributes: Key
    inputs: tuple[Key, ...]
    window: Window | None = None

    @property
    def rest(self) -> tuple[Operation, ...]:
        """The operations on its inputs, after their prefixes."""
        if self.window is None:
            return self.recipe.rest
        window = self.window
        return tuple(
            operation.of_window(window) if isinstance(operation, Statistics) else operation
            for operation in self.recipe.rest
        )

    def name(self, **known: Any) -> str:
        """Returns the file's name, relative to a folder; `known` are words that only the fields have, such as ``date``.

        Raises
        ------
        InvalidArgument
            A word in the name has no value, or the path would leave the folder.

        """
        return file_name(_template(self.recipe.output.name), {**known, **self.attributes})

    def options(self, **known: Any) -> dict[str, Any]:
        """Returns the options for the writer of this format: those of the recipe, with the completed title."""
        options = dict(self.recipe.output.options)
        if "title" in options:
            options["title"] = _template(options["title"]).fill({**known, **self.attributes})
        return options


@functools.lru_cache(maxsize=1024)
def _template(text: str) -> Template:
    return Template(text)


def _completion(parts: dict[str, _RecipePart]) -> int:
    """Returns the second of the last step, or the last valid time, that a file needs."""
    if "date" in parts and parts["date"].keys:
        return max(map(seconds_since, parts["date"].keys))
    return max(map(end_of, parts["step"].values)) if "step" in parts else 0


def load_all(paths: Iterable[str | Path], told: Callable[[Error], None] | None = None) -> list[Recipe]:
    """Reads the recipes in files, or in files that match patterns such as ``recipes/*.yaml``.

    Parameters
    ----------
    paths
        Files, or patterns.
    told
        Called with each error after all files have been read; invalid recipes are omitted. Without it the first error
        is raised.

    Raises
    ------
    InvalidArgument
        A recipe is invalid: the error names file, line, key and, for an unknown word, the closest valid word.
    NotFound, Io, LimitExceeded
        The file does not exist, cannot be read, or is larger than 4 MiB.
    AlreadyExists
        Two products have one name, or files with the same name. The first of the two is kept.

    Examples
    --------
    >>> import junctura.products
    >>> recipe = "{product: warm, from: {param: t, stepp: 0}, to: {format: csv, name: warm.csv}}"
    >>> size = (folder / "warm.yaml").write_text(recipe)
    >>> junctura.products.load_all([folder / "warm.yaml"], told=lambda error: print(error.cause))
    from.stepp: "stepp" is no key here; did you mean "step"?
    []

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
    """Returns the recipes with unique names, and the errors of the others."""
    kept: list[Recipe] = []
    wrong: list[Error] = []
    products: dict[str, Recipe] = {}
    files: dict[str, Recipe] = {}
    folders: dict[str, Recipe] = {}
    for recipe in recipes:
        names = [_template(recipe.output.name).fill({**UNKNOWN, **one}) for one in recipe.files()]
        if error := _taken(recipe, names, products, files, folders):
            wrong.append(error)
            continue
        products[recipe.product] = recipe
        files |= dict.fromkeys(names, recipe)
        folders |= dict.fromkeys((folder for name in names for folder in _folders(name)), recipe)
        kept.append(recipe)
    return kept, wrong


def _folders(name: str) -> Iterator[str]:
    """Yields the folders of a file, below that of all products."""
    parts = name.split("/")
    return ("/".join(parts[:count]) for count in range(1, len(parts)))


def _taken(
    recipe: Recipe,
    names: Iterable[str],
    products: Mapping[str, Recipe],
    files: Mapping[str, Recipe],
    folders: Mapping[str, Recipe],
) -> AlreadyExists | None:
    if other := products.get(recipe.product):
        return AlreadyExists(
            recipe.where, f'product: "{recipe.product}" is the name of a recipe in {other.where}, too; rename one'
        )
    for name in names:
        if other := files.get(name):
            both = f'files of "{recipe.product}" and "{other.product}"'
            return AlreadyExists(recipe.where, f"to.name: {both} are both named {name}")
        if other := folders.get(name):
            cause = f'to.name: {name} is a folder, of the files of "{other.product}"'
            return AlreadyExists(recipe.where, cause)
        for folder in _folders(name):
            if other := files.get(folder):
                return AlreadyExists(recipe.where, f'to.name: {folder} is no folder, but a file of "{other.product}"')
    return None
