"""Exchange scientific data between programs, selected by its attributes.

A `Pool` is the shared space in which producers and consumers meet. A producer offers an object (attributes and a
payload) and continues computing. Every consumer with a matching request receives the object through memory that both
map, whether the request was made before or after the offer.

A `Store` keeps objects persistently, under the same keys, for the same selectors.

Every call that may block is documented as such, releases the GIL, and can be interrupted with Ctrl-C. Every failure
raises a subclass of `Error`, which names its subject and the action to take.

Examples
--------
>>> with junctura.Pool(schema="free") as pool:
...     version = pool.offer(numpy.ones((2, 2)), name="ones", unit="K")
...     obj = pool.demand(name="ones")
...     print(obj.attributes["unit"], obj.array().mean(), obj.key)
K 1.0 {space=default}{}{name=ones}

"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from junctura._forks import imported
from junctura._native import (
    Allocation,
    Archiver,
    ArchiverCounts,
    Board,
    Bundle,
    BundleEntry,
    Checked,
    Checkpointed,
    Compacted,
    Completed,
    Described,
    Entry,
    Event,
    Flushed,
    Follow,
    Gap,
    Layout,
    Listing,
    Live,
    Location,
    Moved,
    Object,
    Peer,
    PendingDemand,
    Pipeline,
    Plan,
    Pool,
    Released,
    Removed,
    Requirement,
    Schema,
    Selector,
    Snapshot,
    Staged,
    Store,
    Stored,
    Subscription,
    Tally,
    TallyGroup,
    Timer,
    Version,
    __version__,
)
from junctura.errors import (
    AlreadyExists,
    BundleClosed,
    BundleFull,
    Closed,
    Conflict,
    Corrupt,
    Denied,
    Disconnected,
    Error,
    Expired,
    Gone,
    Interrupted,
    InvalidArgument,
    InvalidSelector,
    Io,
    LimitExceeded,
    NotFound,
    NotWanted,
    PoolFull,
    Protocol,
    SchemaMismatch,
    SelectorWarning,
    Timeout,
    TooLarge,
    TypeMismatch,
    Unavailable,
    Unsupported,
    UsageWarning,
    WaitWarning,
)

if TYPE_CHECKING:
    from junctura import aio, dask, mesh, remap
    from junctura._array.exchange import Exchange
    from junctura._store.compare import Comparison, compare
    from junctura._store.tables import to_arrow, to_pandas

__all__ = [
    "Allocation",
    "AlreadyExists",
    "Archiver",
    "ArchiverCounts",
    "Board",
    "Bundle",
    "BundleClosed",
    "BundleEntry",
    "BundleFull",
    "Checked",
    "Checkpointed",
    "Closed",
    "Compacted",
    "Comparison",
    "Completed",
    "Conflict",
    "Corrupt",
    "Denied",
    "Described",
    "Disconnected",
    "Entry",
    "Error",
    "Event",
    "Exchange",
    "Expired",
    "Flushed",
    "Follow",
    "Gap",
    "Gone",
    "Interrupted",
    "InvalidArgument",
    "InvalidSelector",
    "Io",
    "Layout",
    "LimitExceeded",
    "Listing",
    "Live",
    "Location",
    "Moved",
    "NotFound",
    "NotWanted",
    "Object",
    "Peer",
    "PendingDemand",
    "Pipeline",
    "Plan",
    "Pool",
    "PoolFull",
    "Protocol",
    "Released",
    "Removed",
    "Requirement",
    "Schema",
    "SchemaMismatch",
    "Selector",
    "SelectorWarning",
    "Snapshot",
    "Staged",
    "Store",
    "Stored",
    "Subscription",
    "Tally",
    "TallyGroup",
    "Timeout",
    "Timer",
    "TooLarge",
    "TypeMismatch",
    "Unavailable",
    "Unsupported",
    "UsageWarning",
    "Version",
    "WaitWarning",
    "__version__",
    "aio",
    "compare",
    "dask",
    "mesh",
    "remap",
    "to_arrow",
    "to_pandas",
]

# Modules that not every program needs are imported on first use.
_LATER: dict[str, tuple[str, str | None]] = {
    "Comparison": ("junctura._store.compare", "Comparison"),
    "Exchange": ("junctura._array.exchange", "Exchange"),
    "aio": ("junctura.aio", None),
    "compare": ("junctura._store.compare", "compare"),
    "dask": ("junctura.dask", None),
    "mesh": ("junctura.mesh", None),
    "remap": ("junctura.remap", None),
    "to_arrow": ("junctura._store.tables", "to_arrow"),
    "to_pandas": ("junctura._store.tables", "to_pandas"),
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'junctura' has no attribute {name!r}")
    module, member = _LATER[name]
    found = imported(module)
    return found if member is None else getattr(found, member)


def __dir__() -> list[str]:
    return sorted({*__all__, "errors"})
