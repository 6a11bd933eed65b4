"""Converts documents to plans, with all checks that are possible before anything runs."""

from __future__ import annotations

import contextlib
import datetime as dt
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import junctura
from junctura._document.located_yaml import WRONG_MAX, Document, Step, Wrong, at, raise_all, read
from junctura.errors import Error, InvalidArgument, InvalidSelector
from junctura.products._map.styling.styles import load
from junctura.products._operations import READERS, Compute, FollowingSteps, ToGrid
from junctura.products._outputs import Output
from junctura.products._plan._actions import (
    Action,
    Aggregate,
    Do,
    Encode,
    Print,
    Select,
    Set,
    mask_of,
    whole_grid,
)
from junctura.products._plan._flow import Counted, Flow
from junctura.products._plan._gathering import Formulas, OverSteps, Pairs
from junctura.products._plan._knowing import Known
from junctura.products._plan._python import Python
from junctura.products._plan._schema import ALONE, PLAN
from junctura.products._plan._sinks import Archive, FileSink, Offer, Products
from junctura.products._recipe.definitions import Recipe, load_all
from junctura.products._recipe.file_names import Template
from junctura.products._recipe.mars_words import Key, values
from junctura.products._recipe.recipe_schema import ALIASES

# One word of a request of MARS, and its values.
_REQUESTED = re.compile(r"(\w+)\s*=\s*([\w.:+-]+(?:/[\w.:+-]+)*)")


@dataclass(frozen=True)
class Source:
    """A source of fields; see the schema."""

    follow: str
    pool: str | None
    group: str | None
    until_gone: tuple[str, ...]


@dataclass(frozen=True)
class Places:
    """The environment of a plan: the folder of its file, its output folder, the number of processes for products, and
    by file name the sink that writes it, and its field.
    """

    folder: Path
    out: Path
    workers: int | None
    owners: dict[str, tuple[FileSink, Key]] = field(default_factory=dict)


class Plan:
    """A validated plan.

    Parameters
    ----------
    document
        The contents of the plan.

    Raises
    ------
    InvalidArgument
        The document is invalid: the error names file, line, key and the closest valid word.

    Examples
    --------
    >>> import junctura.products
    >>> document = "{sources: [{follow: param=t}], sinks: [{file: {format: csv, name: 't-{step}.csv'}}]}"
    >>> size = (folder / "plan.yaml").write_text(document)
    >>> plan = junctura.products.Plan.load(folder / "plan.yaml")
    >>> plan.sources[0].follow
    'param=t'

    """

    def __init__(self, document: Document) -> None:
        self.where = f"{document.path}:{document.line()}"
        self.folder = Path(document.path).resolve().parent
        if wrong := _errors(document, self.folder):
            raise wrong[0]
        self._document, self._said = document, document.value

    @classmethod
    def load(cls, file: str | Path) -> Plan:
        """Reads the plan in a file.

        Raises
        ------
        NotFound
            The file does not exist.
        InvalidArgument
            As for a document; or the file has recipes, for which there is `load_all`.

        """
        plan = plan_of([file])
        if plan is None:
            read(file)
            raise InvalidArgument(str(file), "no plan: it has no `sources` (recipes are read by `load_all`)")
        return plan

    @property
    def sources(self) -> list[Source]:
        return [
            Source(one["follow"], one.get("pool"), one.get("group"), tuple(_listed(one.get("until_gone", []))))
            for one in self._said["sources"]
        ]

    def strict_errors(self) -> list[Error]:
        """Returns what no message of a parameter of ecCodes can pass: units of another quantity, unknown parameters,
        actions on fields that do not come.
        """
        return _errors(self._document, self.folder, is_strict=True)

    def recipes(self) -> list[Recipe]:
        """Returns the recipes that it names."""
        return list(_recipes_in(self._said, self.folder))

    def flow(self, places: Places) -> Flow:
        """Returns its actions and sinks, ready to run: with open pools and stores, and started workers."""
        return _flow(self._said, places)


def plan_of(files: Sequence[str | Path], told: Callable[[Error], None] | None = None) -> Plan | None:
    """Reads the plan in files; returns None if the files have recipes, or after a call of `told`.

    Parameters
    ----------
    files
        The files of a plan, or of recipes.
    told
        Called with each error of the plan. Without it the first error is raised.

    Raises
    ------
    InvalidArgument
        The plan is not the only document, or is invalid.

    """
    plans = [document for file in files if Path(file).is_file() for document in _documents(file) if _is_plan(document)]
    if not plans:
        return None
    if len(files) > 1 or len(read(files[0])) > 1:
        raise InvalidArgument(plans[0].path, "a plan runs alone: name recipes in it, as a sink `product`")
    if told is not None and (wrong := _errors(plans[0], Path(plans[0].path).resolve().parent)):
        for error in wrong:
            told(error)
        return None
    return Plan(plans[0])


def _documents(file: str | Path) -> list[Document]:
    """Returns the documents in a file; none if it cannot be read, which is reported when its recipes are read."""
    try:
        return read(file)
    except Error:
        return []


def _is_plan(document: Document) -> bool:
    return isinstance(document.value, dict) and "sources" in document.value


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _errors(document: Document, folder: Path, *, is_strict: bool = False) -> list[Error]:
    """Returns all errors in a plan, in the order of lines."""
    mistakes = _Mistakes()
    try:
        PLAN.check(document.value)
    except Wrong as wrong:
        mistakes.found += wrong.each()
    if len(mistakes.found) < WRONG_MAX and isinstance(document.value, dict):
        are_named_freely = any("aggregate" in action for action in _actions_in(document.value))
        known = Known(is_strict=is_strict, are_named_freely=are_named_freely)
        _check(document.value, folder, _check_sources(document.value, known, mistakes), mistakes)
    mistakes.found.sort(key=lambda one: document.line(one.place))
    return [*map(document.error, mistakes.found), *mistakes.elsewhere]


class _Mistakes:
    """Collects the errors in a plan.

    Attributes
    ----------
    found
        Errors in the plan.
    elsewhere
        Errors in files that it names.

    """

    def __init__(self) -> None:
        self.found: list[Wrong] = []
        self.elsewhere: list[Error] = []

    def are_in(self, place: Sequence[Step]) -> bool:
        """Whether there is an error at this position."""
        return any(one.place[: len(place)] == tuple(place) for one in self.found)

    @contextlib.contextmanager
    def at(self, *place: Step) -> Iterator[None]:
        """Collects the errors that a block finds at a position."""
        try:
            with at(*place):
                yield
        except Wrong as wrong:
            self.found += wrong.each()
        except Error as error:
            self.elsewhere.append(error)


def _actions_in(said: Any) -> Iterator[dict[str, Any]]:
    """Yields all actions of a plan, and of the plans in it."""
    for value in said.values() if isinstance(said, dict) else said if isinstance(said, list) else ():
        yield from _actions_in(value)
    for action in said.get("actions") or () if isinstance(said, dict) else ():
        if isinstance(action, dict):
            yield action


def _check_sources(said: dict[str, Any], known: Known, mistakes: _Mistakes) -> Known | None:
    """Collects errors in the selectors of sources; returns the known properties of their fields."""
    found: list[tuple[str, ...] | None] = []
    for step, item in _items(said, "sources", ()):
        if not mistakes.are_in(step):
            with mistakes.at(*step, "follow"):
                _check_selector(item["follow"])
                found.append(_params_of(item["follow"]))
                known.of(found[-1] or ())
        if mistakes.are_in(step):
            return None
    params = tuple(dict.fromkeys(param for named in found for param in named or ()))
    return replace(known, params=None if None in found or not params else params)


def _params_of(selector: str) -> tuple[str, ...] | None:
    """Returns the parameters that a selector in the form of MARS requests; None for others."""
    parts = [_REQUESTED.fullmatch(part.strip()) for part in selector.split(",")]
    words = {part[1]: part[2] for part in parts if part}
    return tuple(words["param"].split("/")) if all(parts) and "param" in words else None


def _check_selector(text: str) -> None:
    """Raises `Wrong` for a selector that no pool accepts: `free` accepts each valid one, and `mars` each request."""
    today = dt.datetime.now(dt.timezone.utc).date()
    try:
        junctura.Selector(text, "free", today=today)
    except InvalidSelector as error:
        with contextlib.suppress(InvalidSelector):
            junctura.Selector(text, "mars", today=today)
            return
        raise Wrong(f'"{text[:60]}": {error.cause}') from error


def _check(said: dict[str, Any], folder: Path, known: Known | None, mistakes: _Mistakes, *place: Step) -> None:
    """Collects errors in well-formed actions and sinks; after an invalid action the properties of fields are
    unknown.
    """
    for step, item in _items(said, "actions", place):
        if not mistakes.are_in(step):
            ((name, value),) = _named(item).items()
            with mistakes.at(*step, *item):
                _action(name, value, folder)
                known = known and known.behind(name, value)
        if mistakes.are_in(step):
            known = None
    for step, item in _items(said, "sinks", place):
        if not mistakes.are_in(step):
            ((name, value),) = item.items()
            with mistakes.at(*step, name):
                recipes = _check_sink(name, value, folder)
                if known is not None:
                    known.check_sink(name, value, recipes)
            if name == "plan":
                _check(value, folder, known, mistakes, *step, name)
        elif isinstance(item, dict) and isinstance(item.get("plan"), dict):
            _check(item["plan"], folder, known, mistakes, *step, "plan")


def _items(said: dict[str, Any], key: str, place: Sequence[Step]) -> Iterator[tuple[tuple[Step, ...], Any]]:
    """Yields each action or sink and its position."""
    items = said.get(key)
    for index, item in enumerate(items if isinstance(items, list) else ()):
        yield (*place, key, index), item


def _named(action: dict[str, Any]) -> dict[str, Any]:
    """Returns an action under the name of its operation."""
    return {ALIASES.get(name, name): value for name, value in action.items()}


def _check_sink(name: str, value: Any, folder: Path) -> list[Recipe]:
    """Returns the recipes of a sink; raises its errors."""
    if name == "product":
        wrong: list[Error] = []
        recipes = _recipes(value, folder, wrong.append)
        raise_all([Wrong(f"{error.subject}: {error.cause}") for error in wrong])
        return recipes
    if name == "file":
        _output(value, folder)
        Template(value["name"])
    elif name == "archive" and "select" in value:
        _select(value["select"])
    return []


def _recipes_in(said: dict[str, Any], folder: Path) -> Iterator[Recipe]:
    for item in said["sinks"]:
        ((name, value),) = item.items()
        if name == "product":
            yield from _recipes(value, folder)
        elif name == "plan":
            yield from _recipes_in(value, folder)


def _flow(said: dict[str, Any], places: Places) -> Flow:
    actions = []
    for item in said.get("actions", []):
        ((name, value),) = _named(item).items()
        actions.append(Counted(name, _action(name, value, places.folder)))
    branches = []
    for item in said["sinks"]:
        ((name, value),) = item.items()
        is_plan = name == "plan"
        branches.append(_flow(value, places) if is_plan else Flow([Counted(name, _sink(name, value, places))]))
    return Flow(actions, branches)


def _action(name: str, value: Any, folder: Path) -> Action:
    if name in ALONE:
        operation = READERS[name](value)
        return Do(operation.beside(folder) if isinstance(operation, ToGrid) else operation)
    if name == "select":
        return _select(value)
    if name == "aggregate":
        return _aggregate(value, folder)
    if name == "set":
        return Set(value)
    if name == "statistics":
        return OverSteps(FollowingSteps.read(value, 0))
    if name == "compute":
        return Formulas(Compute.read(value))
    if name == "wind":
        return Pairs(ToGrid.read(value["grid"]).grid if "grid" in value else "")
    if name == "encode":
        return Encode(Output("grib2", **value))
    if name == "print":
        return Print(value)
    return Python(value, folder)


def _aggregate(value: dict[str, Any], folder: Path) -> Aggregate:
    on = whole_grid(value["grid"])
    mask = None
    if "mask" in value:
        with at("mask"):
            mask = mask_of(folder / value["mask"]["file"], value["mask"]["where"], on)
    from_south = value.get("from_south", False)
    return Aggregate(on, value.get("units", ""), value.get("missing"), mask, from_south=from_south)


def _select(value: dict[str, Any]) -> Select:
    words = {}
    for word, given in value.items():
        with at(word):
            words[word] = values(word, given)
    return Select(words)


def _sink(name: str, value: dict[str, Any], places: Places) -> Action:
    if name == "offer":
        return Offer(junctura.Pool(value["pool"], name="plan"), value.get("set", {}))
    if name == "archive":
        select = _select(value["select"]) if "select" in value else None
        return Archive(_below(places.folder, value["store"]), select, value.get("every"))
    if name == "file":
        return FileSink(_output(value, places.folder), value["name"], places.out, places.owners)
    out = places.out / value["out"] if "out" in value else places.out
    return Products(_recipes(value, places.folder), out, value.get("workers", places.workers))


def _below(folder: Path, store: str) -> str:
    return store if "://" in store else str(folder / store)


def _output(value: dict[str, Any], folder: Path) -> Output:
    options: dict[str, Any] = {
        key: tuple(one) if isinstance(one, list) else one for key, one in value.items() if key not in ("format", "name")
    }
    if "styles" in options:
        with at("styles"):
            options["styles"] = load(folder / options["styles"])
    return Output(value["format"], **options)


def _recipes(value: dict[str, Any], folder: Path, told: Callable[[Error], None] | None = None) -> list[Recipe]:
    files = _listed(value.get("recipe", value.get("requirement")))
    return load_all((str(folder / one) for one in files), told)
