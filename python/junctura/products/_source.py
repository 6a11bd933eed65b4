"""The pool that fields come from: one that is served, or for a store alone a private one that has its schemas."""

from __future__ import annotations

from collections.abc import Iterable

import junctura
from junctura._asking import joined
from junctura.errors import Error, InvalidArgument, InvalidSelector


def is_served(url: str) -> bool:
    """Whether a server answers at an address."""
    try:
        junctura.Pool(url).close()
    except (junctura.Unavailable, junctura.NotFound):
        return False
    return True


def opened(url: str | None, store: str | None, name: str, selectors: Iterable[str]) -> junctura.Pool:
    """The pool, with the store behind it.

    Parameters
    ----------
    url
        Of the pool; None: the store is all there is.
    store
        Its folder or URL.
    name
        What the run calls itself there.
    selectors
        Which fields are asked for.

    Raises
    ------
    InvalidArgument
        The store has such fields of a schema that the pool lacks, and which nobody finds through it.
    Error
        There is no such pool, or no such store, or it cannot be read.

    """
    if url is not None:
        try:
            pool = junctura.Pool(url, name=name, store=store)
        except junctura.NotFound as error:
            # Which one is what the reader wants to know.
            raise junctura.NotFound(store or url, error.cause) from None
        if store is not None:
            _check(pool, store, selectors)
        return pool
    if store is None:
        raise InvalidArgument("pool", "there is neither a pool nor a store that fields could come from")
    with junctura.Store(store) as kept:
        schemas = [schema.to_yaml() for schema in kept.schemas]
    return junctura.Pool(schema=schemas, name=name, store=store)


def _check(pool: junctura.Pool, store: str, selectors: Iterable[str]) -> None:
    known = {schema.name for schema in pool.schemas}
    with junctura.Store(store) as kept:
        lacking = {schema.name for schema in kept.schemas} - known
        if not lacking:
            return
        for selector in joined(sorted(set(selectors))):
            if name := _found(kept, selector, lacking):
                cause = f'{store} has such fields of the schema "{name}", which the pool at {pool.url} does not have'
                remedy = (
                    f"leave --pool out to use the store alone, or serve a pool with that schema: junctura schema show "
                    f"{name} --store {store} > {name}.yaml; junctura serve URL --schema {name}.yaml"
                )
                pool.close()
                raise InvalidArgument("--behind", f"{cause}: {remedy}")


def _found(store: junctura.Store, selector: str, schemas: set[str]) -> str | None:
    try:
        listed = store.list(selector)
    except InvalidSelector:
        return None
    except Error:
        # The store is damaged, say: what can be read of it is, and what cannot is named where it is missing.
        return None
    return next((stored.schema.name for stored in listed if stored.schema.name in schemas), None)
