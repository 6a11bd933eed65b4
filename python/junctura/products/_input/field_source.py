"""The pool of the fields: that of a server, or for a store alone a private pool with the store's schemas."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future, wait

import junctura
from junctura._selectors import joined
from junctura.errors import Error, InvalidArgument, InvalidSelector, NotFound, Unavailable
from junctura.products._broker.run_report import WaitingReport
from junctura.products._input.patience import SAY_S

Told = Callable[[WaitingReport], None]


def is_served(url: str) -> bool:
    """Whether a server responds at an address."""
    try:
        junctura.Pool(url).close()
    except (junctura.Unavailable, junctura.NotFound):
        return False
    return True


def opened(
    url: str | None,
    store: str | None,
    name: str,
    selectors: Iterable[str],
    *,
    start: bool = False,
    waits: Told | None = None,
) -> junctura.Pool:
    """Opens the pool, with the store behind it.

    Parameters
    ----------
    url
        URL of the pool; None: the store is the only source.
    store
        Its folder or URL.
    name
        Client name of the run in the pool.
    selectors
        Selectors of the requested fields.
    start
        Whether to start a server of this user, if none runs.
    waits
        Called if the store has not answered for a while.

    Raises
    ------
    InvalidArgument
        The store has such fields in a schema that the pool lacks, so that they cannot be found through the pool.
    Error
        The pool or the store does not exist, or cannot be read.

    """
    if store is None:
        if url is None:
            raise InvalidArgument("pool", "there is neither a pool nor a store that fields could come from")
        return _served(url, None, name, start=start)
    line = f"waits for the store {store}, which has not answered for {SAY_S:.0f} s"
    return _patient(lambda: _opened(url, store, name, selectors, start=start), line, waits)


def _opened(url: str | None, store: str, name: str, selectors: Iterable[str], *, start: bool) -> junctura.Pool:
    with _kept(store) as kept:
        if url is None:
            return junctura.Pool(schema=[schema.to_yaml() for schema in kept.schemas], name=name, store=store)
        pool = _served(url, store, name, start=start)
        _check(pool, store, kept, selectors)
        return pool


def _patient(call: Callable[[], junctura.Pool], line: str, waits: Told | None) -> junctura.Pool:
    """Returns the result of a call in a thread, so that Ctrl-C ends the wait; `line` reports long calls."""
    future: Future[junctura.Pool] = Future()

    def run() -> None:
        try:
            future.set_result(call())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, name="opens a store", daemon=True).start()
    if wait([future], SAY_S).not_done and waits is not None:
        waits(WaitingReport((line,), True))
    return future.result()


def _served(url: str, store: str | None, name: str, *, start: bool) -> junctura.Pool:
    try:
        return junctura.Pool(url, name=name, store=store, start=start)
    except Unavailable as error:
        if not url.startswith("unix:"):
            raise
        remedy = "leave --pool out to use the store alone, or" if store else "begin with the producer, or"
        cause = error.cause.partition(";")[0]
        raise Unavailable(error.subject, f"{cause}: {remedy} start one: junctura pool serve --pool {url}") from None


def _kept(store: str) -> junctura.Store:
    try:
        return junctura.Store(store)
    except NotFound:
        raise
    except Error as error:
        raise type(error)(f"store {store}", f"{error.subject}: {error.cause}") from None


def _check(pool: junctura.Pool, store: str, kept: junctura.Store, selectors: Iterable[str]) -> None:
    known = {schema.name for schema in pool.schemas}
    lacking = {schema.name for schema in kept.schemas} - known
    if not lacking:
        return
    for selector in joined(sorted(set(selectors))):
        if name := _found(kept, selector, lacking):
            cause = f'{store} has such fields of the schema "{name}", which the pool at {pool.url} does not have'
            remedy = (
                f"leave --pool out to use the store alone, or serve a pool with that schema: junctura schema show "
                f"{name} --store {store} > {name}.yaml; junctura pool serve URL --schema {name}.yaml"
            )
            pool.close()
            raise InvalidArgument("--behind", f"{cause}: {remedy}")


def _found(store: junctura.Store, selector: str, schemas: set[str]) -> str | None:
    try:
        listed = store.list(selector)
    except InvalidSelector:
        return None
    except Error:
        # The store may be damaged: intact objects are used, damaged ones are reported where they are missing.
        return None
    return next((stored.schema.name for stored in listed if stored.schema.name in schemas), None)
