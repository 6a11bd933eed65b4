"""Tells whoever follows a pool that a product is there: a small object for each, found by what the product is.

Its attributes, of the schema `free`, say what is in the file and where it is; its payload is the path alone, as a line.
Whoever waits for "product X of step 24" asks the pool for ``kind=product,product=X,step=24``.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import junctura
from junctura.products._tasks.task_messages import BROKER

SCHEMA = "free"
# Products do not wait for a pool that is full.
_PATIENCE_S = 1.0


class ProductAnnouncer:
    """Announces the products of one run.

    Parameters
    ----------
    url
        Of the pool.
    run
        The name of the run.
    out
        The directory of the products, from which names of files count.

    Raises
    ------
    Unavailable, NotFound
        There is no such pool, or it has no schema `free`.

    """

    def __init__(self, url: str, run: str, out: Path) -> None:
        # As a broker it is no producer that somebody waits for.
        self.pool = junctura.Pool(url, name=BROKER, offer_timeout=_PATIENCE_S)
        self.pool.schema(SCHEMA)
        self.run, self.out = run, out.resolve()
        # A product that is made again is announced again.
        self._prefix = f"{dt.datetime.now(dt.timezone.utc):%Y%m%dT%H%M%S.%fZ}-{os.getpid()}"
        # Why no more is announced, and how many products that are there were not.
        self.failure = ""
        self.missed = 0

    def tell(self, product: str, path: Path, size: int, file_format: str, words: Mapping[str, Any]) -> None:
        """A product is there. One that cannot be announced is counted, and none is after it."""
        if self.failure:
            self.missed += 1
            return
        path = path.resolve()
        file = path.relative_to(self.out).as_posix()
        said = {word: str(value) for word, value in words.items()}
        said |= {"kind": "product", "product": product, "run": self.run, "format": file_format, "file": file}
        said |= {"path": str(path), "uri": path.as_uri(), "size": str(size), "name": f"{self._prefix}/{file}"}
        try:
            self.pool.offer(f"{path}\n".encode(), said, schema=SCHEMA)
        except junctura.Error as error:
            self.failure, self.missed = str(error), 1

    def close(self) -> None:
        """Leaves the pool; what was announced stays."""
        with contextlib.suppress(junctura.Closed, junctura.Disconnected):
            self.pool.close()
