"""Arrays whose ranks left before all pieces were offered: a plan reports them, since they never become fields."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any

import junctura
from junctura.errors import Closed, Disconnected, Error, InvalidSelector
from junctura.products._plan._item import named

if TYPE_CHECKING:
    from typing_extensions import Self

# The bundles in which incomplete arrays are staged (docs/formats/array.md).
_OF_ARRAYS = "exists(piece_of)"
_PATH = "array."
_NAMED_MAX = 16
_RANKS_SEARCHED_MAX = 1 << 16


@dataclass(frozen=True)
class _Lack:
    """Returns a description of the missing pieces; `is_held`: a client may still offer the rest."""

    text: str
    is_held: bool


class Unfinished:
    """Observes the arrays in pieces that match a selector.

    Parameters
    ----------
    pool
        The pool to which ranks offer their pieces.
    selector
        Selector of the arrays.

    """

    def __init__(self, pool: junctura.Pool, selector: str) -> None:
        self._pool, self._selector = pool, selector
        self._selectors: dict[str, junctura.Selector | None] = {}
        self._events = pool.subscribe("", kinds=["left", "completed", "aborted"])
        # By the paths of their bundles.
        self._lacks: dict[str, _Lack] = {}

    def watch(self) -> None:
        """Handles events; remembers arrays that a client has abandoned, since the pool forgets them."""
        has_left = False
        for event in self._happened():
            if event.kind == "left":
                has_left = True
            elif event.bundle is not None and (event.bundle[0] or "").startswith(_PATH):
                self._end(event.kind, *event.bundle)
        if has_left:
            self._look()

    def _happened(self) -> Iterator[junctura.Event]:
        with contextlib.suppress(junctura.Timeout, Closed, Disconnected):
            while (event := self._events.next(timeout=0)) is not None:
                yield event

    def _end(self, kind: str, path: str | None, members: int, declared: int | None) -> None:
        path = str(path)
        if kind == "completed":
            self._lacks.pop(path, None)
            return
        known = self._lacks.get(path)
        # For an array that was not seen before it is unknown whether the selector matches.
        if known is not None:
            self._lacks[path] = _Lack(known.text, is_held=False)
        elif self._means_all:
            there = f"of {max(0, (declared or 1) - 1)} pieces, {members} were there when its last producer left"
            self._lacks[path] = _Lack(f"array {path}: {there}", is_held=False)

    @property
    def _means_all(self) -> bool:
        return not self._selector.strip()

    def _look(self) -> None:
        with contextlib.suppress(Closed, Disconnected):
            for bundle in self._pool.bundles(_OF_ARRAYS):
                if bundle.state == "open" and bundle.path and (attributes := self._meant(bundle.attributes)):
                    text = f"array {named(attributes)}: {self._missing(bundle)}"
                    self._lacks[bundle.path] = _Lack(text, is_held=bundle.openers > 0)

    def _meant(self, about: dict[str, Any]) -> dict[str, Any] | None:
        """Returns the attributes in the array's key, if the selector matches."""
        schema_name, brace, key = str(about["piece_of"]).partition("{")
        try:
            schema = self._pool.schema(schema_name)
            attributes = schema.parse_key(brace + key)
            if schema_name not in self._selectors:
                self._selectors[schema_name] = junctura.Selector(self._selector, schema)
        except InvalidSelector:
            self._selectors[schema_name] = None
            return None
        except Error:
            return None
        selector = self._selectors[schema_name]
        return attributes if selector is not None and selector.matches(attributes) else None

    def _missing(self, bundle: junctura.BundleEntry) -> str:
        wanted = max(0, (bundle.declared or 1) - 1)
        pieces = self._pool.list(_OF_ARRAYS, bundle=bundle.path, incomplete=True)
        there = {int(piece["rank"]) for piece in pieces}
        try:
            layout = junctura.Layout(str(bundle.attributes["layout"]))
        except Error:
            # The pool has only a hash of a long layout.
            return f"{len(there)} of {wanted} pieces came"
        ranks = range(min(layout.ranks, _RANKS_SEARCHED_MAX))
        missing = [str(rank) for rank in ranks if rank not in there and layout.extents(rank)]
        shown = ", ".join(missing[:_NAMED_MAX]) + (", ..." if len(missing) > _NAMED_MAX else "")
        return f"of {wanted} pieces, rank{'s' * (len(missing) != 1)} {shown} did not offer theirs"

    def lost(self) -> list[str]:
        """Returns a line for each array that stays unfinished, because every client that had it open has left."""
        self.watch()
        self._look()
        return [lack.text for lack in self._lacks.values() if not lack.is_held]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _value: BaseException | None, _trace: TracebackType | None
    ) -> None:
        # The server may have ended.
        with contextlib.suppress(Closed, Disconnected):
            self._events.close()
