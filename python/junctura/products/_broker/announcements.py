"""Announces finished products in a pool: a small object for each product, with attributes that describe the product.

Its attributes, of the schema `free`, describe the contents and location of the file; its payload is the path, as a
line. A program that waits for "product X of step 24" demands ``kind=product,product=X,step=24`` from the pool.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import junctura
from junctura._progress import worded
from junctura.products._tasks.task_messages import BROKER

SCHEMA = "free"
# Products do not wait for a full pool.
_PATIENCE_S = 1.0


class ProductAnnouncer:
    """Announces the products of one run.

    Parameters
    ----------
    url
        URL of the pool.
    run
        Name of the run.
    out
        The directory of the products; file names are relative to it.

    Raises
    ------
    Unavailable, NotFound
        The pool does not exist, or has no schema `free`.

    """

    def __init__(self, url: str, run: str, out: Path) -> None:
        # A broker is not a producer, so no consumer waits for it.
        self.pool = junctura.Pool(url, name=BROKER, offer_timeout=_PATIENCE_S)
        self.pool.schema(SCHEMA)
        self.run, self.out = run, out.resolve()
        # A product that is made again is announced again.
        self._prefix = f"{dt.datetime.now(dt.timezone.utc):%Y%m%dT%H%M%S.%fZ}-{os.getpid()}"
        # The reason why announcements stopped, and the number of products without an announcement.
        self.failure = ""
        self.missed = 0

    def tell(self, product: str, path: Path, size: int, file_format: str, words: Mapping[str, Any]) -> None:
        """Announces a product. If that fails, this product and all later ones are only counted."""
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
            self.failure, self.missed = worded(error), 1

    def close(self) -> None:
        """Disconnects from the pool; announcements stay."""
        with contextlib.suppress(junctura.Closed, junctura.Disconnected):
            self.pool.close()
