"""Sinks of a plan: a pool, a store, files, or recipes for products."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import junctura
from junctura.errors import InvalidArgument, Io, Unavailable
from junctura.products._broker.broker import Broker
from junctura.products._broker.run_report import Report
from junctura.products._input.array_tags import bare, tagged
from junctura.products._operations import telling
from junctura.products._outputs import Output, write
from junctura.products._plan._actions import Each, Select
from junctura.products._plan._item import Item
from junctura.products._recipe.definitions import Recipe
from junctura.products._recipe.file_names import Template, file_name
from junctura.products._recipe.mars_words import Key, canonical

_FIELDS = "plan-fields"


class Offer(Each):
    """Offers fields to a pool: a message unchanged, values as an array with its grid and units.

    Parameters
    ----------
    pool
        The pool.
    attributes
        Additional attributes.

    """

    def __init__(self, pool: junctura.Pool, attributes: Mapping[str, Any]) -> None:
        self.pool, self.attributes = pool, dict(attributes)
        # New objects have the first schema.
        self._schema = pool.schemas[0]

    def take(self, item: Item) -> Sequence[Item]:
        message = item.message
        if message is not None:
            self.pool.offer(message, {**bare(item.attributes, self._schema), **self.attributes})
            return []
        field = item.field
        attributes = _but_for_arrays(tagged(item.attributes, self._schema))
        about = {**attributes, "grid": field.on.name, "units": field.units, **self.attributes}
        self.pool.offer(field.values, about)
        return []

    def end(self) -> Sequence[Item]:
        self.pool.sync()
        return []


def _but_for_arrays(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {word: value for word, value in attributes.items() if word not in ("dtype", "shape")}


class Archive(Each):
    """Archives messages in a store.

    Parameters
    ----------
    folder
        The folder of the store; created if missing.
    select
        Selector of the fields.
    every
        Keeps only steps that are multiples of this number of hours.

    """

    def __init__(self, folder: str, select: Select | None, every: int | None) -> None:
        with contextlib.suppress(junctura.AlreadyExists):
            junctura.Store.create(folder, schema="mars")
        self.store = junctura.Store(folder)
        self.select, self.every = select, every
        self._is_unsettled = False

    @property
    def is_unsettled(self) -> bool:
        return self._is_unsettled

    def settle(self) -> None:
        self.store.flush()
        self._is_unsettled = False

    def take(self, item: Item) -> Sequence[Item]:
        if not self._is_kept(item):
            return []
        message = item.message
        if message is None:
            raise InvalidArgument(item.named, "a store keeps messages: encode it before it is archived")
        self.store.archive(message, bare(item.attributes, self.store.schemas[0]))
        self._is_unsettled = True
        return []

    def _is_kept(self, item: Item) -> bool:
        if self.select is not None and not self.select.take(item):
            return False
        if self.every is None:
            return True
        step = canonical("step", item.attributes.get("step", 0))
        return isinstance(step, int) and step % self.every == 0

    def end(self) -> Sequence[Item]:
        self.settle()
        return []


class FileSink(Each):
    """Writes a file for each field, atomically.

    Parameters
    ----------
    output
        The output format.
    name
        The file name, with words in braces.
    folder
        The folder of the files.
    owners
        By file name, the sink of all of this run that writes it, and its field.

    """

    def __init__(self, output: Output, name: str, folder: Path, owners: dict[str, tuple[FileSink, Key]]) -> None:
        self.output, self.template, self.folder = output, Template(name), folder
        self._owners = owners

    def take(self, item: Item) -> Sequence[Item]:
        name, words = file_name(self.template, item.attributes), telling(item.attributes)
        sink, other = self._owners.setdefault(name, (self, words))
        if sink is not self:
            raise InvalidArgument(item.named, f"the file {name} is that of another sink: give them different names")
        if other != words:
            raise InvalidArgument(item.named, f"the file {name} is that of another field: its name needs more words")
        path = self.folder / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise Io(str(path.parent), f"files cannot go there: {error.strerror or error}") from error
        write([item.field], self.output, path, {"fingerprint": str(words), "attributes": _plain(item.attributes)})
        return []


def _plain(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {word: value if isinstance(value, int | float) else str(value) for word, value in attributes.items()}


class Products(Each):
    """Makes products from the fields, with a broker and its workers.

    Parameters
    ----------
    recipes
        The recipes.
    out
        The directory of the products.
    workers
        Number of processes.

    """

    def __init__(self, recipes: Sequence[Recipe], out: Path, workers: int | None) -> None:
        self.pool = junctura.Pool(schema="mars", name="plan")
        # When this client disconnects, the broker detects that no more fields arrive.
        self._fields = junctura.Pool(self.pool.url, name=_FIELDS)
        self._offer = Offer(self._fields, {})
        self._recipes = recipes
        self._broker = Broker(recipes, self.pool.url, out, workers=workers, until_gone=[_FIELDS])
        self.report: Report | None = None
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.report = self._broker.run()
        except BaseException as error:
            self._failure = error

    def take(self, item: Item) -> Sequence[Item]:
        # Fields that no product needs, or needs any more, would stay in the pool.
        if self._thread.is_alive() and any(recipe.key(item.attributes) is not None for recipe in self._recipes):
            # A message that an action encoded is less precise than its values.
            return self._offer.take(item if item.source else Item(item.attributes, field=item.field))
        self._check()
        return []

    def _check(self) -> None:
        """Reports once that no more products are made."""
        failure, self._failure = self._failure, None
        if failure is not None:
            cause = f"{type(failure).__name__}: {failure}"
            raise Unavailable("products", f"no more are made: {cause}") from failure

    def end(self) -> Sequence[Item]:
        """Ends the input: makes the remaining products, and reports those that cannot be made."""
        self._fields.close()
        self._thread.join()
        self.pool.close()
        self._check()
        if self.report is not None and self.report.failed:
            first = self.report.failed[0]
            raise Unavailable(f"product {first.product}", f"{first.cause} ({len(self.report.failed)} cannot be made)")
        return []
