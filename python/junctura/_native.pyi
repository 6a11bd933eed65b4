"""Types of the native module; its behavior is documented there."""

from __future__ import annotations

import builtins
import datetime
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import TracebackType
from typing import Any, Generic, Literal, Protocol, SupportsIndex, TypeAlias, TypeVar, final, overload

import dask.array
import numpy.typing as npt
import xarray
from typing_extensions import Buffer, Self

from junctura._native_grib import _packed, _sections, _simple_points, _unpack, _with_values
from junctura._native_model import (
    Board,
    BundleEntry,
    Described,
    Entry,
    Event,
    Gap,
    Layout,
    Live,
    Peer,
    Plan,
    Released,
    Schema,
    Selector,
    Staged,
    Tally,
    TallyGroup,
    Timer,
    Version,
    _Attributes,
    _Communicator,
    _Given,
    _Kind,
    _LoopedObjects,
    _Value,
)
from junctura._native_raster import _blend, _dim, _isolines, _sample, _shade
from junctura._native_remap import _Course, _ensemble, _weighted_sums, _Weights
from junctura._native_store import (
    Archiver,
    ArchiverCounts,
    Checked,
    Checkpointed,
    Compacted,
    Flushed,
    Listing,
    Location,
    Moved,
    Removed,
    Snapshot,
    Store,
    Stored,
    _Following,
    _Objects,
    _Payload,
    _Payloads,
)

__all__ = [
    "Allocation",
    "Archiver",
    "ArchiverCounts",
    "Board",
    "Bundle",
    "BundleEntry",
    "Checked",
    "Checkpointed",
    "Compacted",
    "Completed",
    "Described",
    "Entry",
    "Event",
    "Flushed",
    "Follow",
    "Gap",
    "Layout",
    "Listing",
    "Live",
    "Location",
    "Moved",
    "Object",
    "Peer",
    "PendingDemand",
    "Pipeline",
    "Plan",
    "Pool",
    "Released",
    "Removed",
    "Requirement",
    "Schema",
    "Selector",
    "Snapshot",
    "Staged",
    "Store",
    "Stored",
    "Subscription",
    "Tally",
    "TallyGroup",
    "Timer",
    "Version",
    "_Answer",
    "_Course",
    "_Following",
    "_LoopedObjects",
    "_Objects",
    "_Payload",
    "_Payloads",
    "_Places",
    "_Weights",
    "__version__",
    "_blend",
    "_command",
    "_described",
    "_dim",
    "_ensemble",
    "_entry",
    "_event",
    "_gap",
    "_isolines",
    "_packed",
    "_peer",
    "_sample",
    "_sections",
    "_shade",
    "_simple_points",
    "_unpack",
    "_weighted_sums",
    "_with_values",
    "codes",
]
__version__: str

class _OnDevice(Protocol):
    def __dlpack__(self) -> Any: ...
    def __dlpack_device__(self) -> tuple[Any, int]: ...

_Data: TypeAlias = Buffer | npt.ArrayLike | Allocation | _OnDevice | xarray.DataArray
_Awaited = TypeVar("_Awaited", bound=Follow | Subscription | PendingDemand | Bundle | Timer)
_Raised: TypeAlias = type[BaseException] | None
_Shape: TypeAlias = SupportsIndex | Sequence[SupportsIndex]
_SchemaSource: TypeAlias = str | os.PathLike[str] | Schema

_Answered_co = TypeVar("_Answered_co", covariant=True)

@final
class _Answer(Generic[_Answered_co]):
    def poll(self, wake: Callable[[], None]) -> tuple[_Answered_co] | None: ...
    def close(self) -> None: ...

@final
class _Places:
    def leave(self) -> None: ...

@final
class _Errand:
    def run(self) -> None: ...

def _described(schema: Schema, words: Sequence[tuple[str, str]], version: Version) -> Described: ...
def _entry(
    schema: Schema,
    words: Sequence[tuple[str, str]],
    version: Version,
    nbytes: int,
    staged_in: int | None,
    spilled: bool,
    archived: bool,
) -> Entry: ...
def _peer(client: int, name: str, host: str, pid: int, offered: int) -> Peer: ...
def _gap(items: Sequence[Described], unnamed: int, reason: str) -> Gap: ...
def _event(
    kind: str,
    about: Described | None,
    nbytes: int,
    client: Peer | None,
    requirement: tuple[str, str] | None,
    bundle: tuple[str | None, int, int | None] | None,
    location: str | None,
    reason: str,
) -> Event: ...
def _command(arguments: Sequence[str], again: Sequence[str]) -> int: ...
def codes() -> tuple[tuple[str, int, Literal["retry", "fix the input", "give up"]], ...]: ...

@final
class Subscription:
    def next(self, timeout: float | None = None) -> Event | None: ...
    def _take(self) -> tuple[Event | None] | None: ...
    def _begin_stop(self) -> _Answer[None] | None: ...
    def close(self) -> None: ...
    def __iter__(self) -> Iterator[Event]: ...
    def __next__(self) -> Event: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, _type: _Raised, _value: BaseException | None, _trace: TracebackType | None) -> None: ...

@final
class PendingDemand:
    def get(self) -> Object: ...
    def try_get(self) -> Object | None: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, _type: _Raised, _value: BaseException | None, _trace: TracebackType | None) -> None: ...

@final
class Object:
    @property
    def attributes(self) -> dict[str, _Value]: ...
    @property
    def key(self) -> str: ...
    @property
    def version(self) -> Version: ...
    @property
    def schema(self) -> Schema: ...
    @property
    def cursor(self) -> str | None: ...
    @property
    def in_snapshot(self) -> bool: ...
    @property
    def redelivered(self) -> bool: ...
    @property
    def staged(self) -> bool: ...
    @property
    def producer(self) -> int: ...
    @property
    def transport(self) -> Literal["shared", "inline", "file", "tcp", "store"]: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def released(self) -> bool: ...
    def get(self, name: str, default: Any = None) -> _Value: ...
    def __contains__(self, name: str, /) -> bool: ...
    def __getitem__(self, name: str, /) -> _Value: ...
    def array(self, dtype: npt.DTypeLike | None = None, shape: _Shape | None = None) -> npt.NDArray[Any]: ...
    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    @property
    def __array_interface__(self) -> dict[str, Any]: ...
    def to_xarray(self) -> xarray.DataArray: ...
    def release(self) -> None: ...
    def give_back(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, _type: _Raised, _value: BaseException | None, _trace: TracebackType | None) -> None: ...
    def __len__(self) -> int: ...
    def __bool__(self) -> bool: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...
    def __release_buffer__(self, buffer: memoryview, /) -> None: ...

@final
class Allocation:
    def array(self, dtype: npt.DTypeLike | None = None, shape: _Shape | None = None) -> npt.NDArray[Any]: ...
    @overload
    def offer(
        self,
        attributes: _Attributes | None = None,
        /,
        *,
        schema: str | None = None,
        retention: str | datetime.timedelta | Released | None = None,
        if_wanted: Literal[False] = False,
        durability: Literal["memory", "durable"] | None = None,
        **keywords: _Given,
    ) -> Version: ...
    @overload
    def offer(
        self,
        attributes: _Attributes | None = None,
        /,
        *,
        schema: str | None = None,
        retention: str | datetime.timedelta | Released | None = None,
        if_wanted: bool,
        durability: Literal["memory", "durable"] | None = None,
        **keywords: _Given,
    ) -> Version | None: ...
    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def closed(self) -> bool: ...
    def free(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, _type: _Raised, _value: BaseException | None, _trace: TracebackType | None) -> None: ...
    def __len__(self) -> int: ...
    def __bool__(self) -> bool: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...
    def __release_buffer__(self, buffer: memoryview, /) -> None: ...

@final
class Completed:
    @property
    def first(self) -> Version | None: ...
    @property
    def objects(self) -> int: ...
    def version(self, member: Staged) -> Version | None: ...

@final
class Bundle:
    @property
    def path(self) -> str | None: ...
    @property
    def completed(self) -> Completed | None: ...
    def offer(
        self,
        data: _Data,
        attributes: _Attributes | None = None,
        /,
        *,
        schema: str | None = None,
        retention: str | datetime.timedelta | Released | None = None,
        durability: Literal["memory", "durable"] | None = None,
        **keywords: _Given,
    ) -> Staged: ...
    def offer_many(
        self,
        objects: Iterable[tuple[_Data, _Attributes]],
        *,
        window: int = 1024,
        schema: str | None = None,
        retention: str | datetime.timedelta | Released | None = None,
        durability: Literal["memory", "durable"] | None = None,
    ) -> list[Staged]: ...
    def offer_piece(
        self,
        data: _Data | Sequence[npt.NDArray[Any]],
        layout: Layout | str,
        rank: int | None = None,
        attributes: _Attributes | None = None,
        /,
        *,
        comm: _Communicator | None = None,
        epoch: int | None = None,
        dtype: npt.DTypeLike | None = None,
        schema: str | None = None,
        retention: str | datetime.timedelta | Released | None = None,
        **keywords: _Given,
    ) -> None: ...
    def seal(self) -> Completed: ...
    def _take_completed(self) -> Completed | None: ...
    def _begin_seal(self) -> _Answer[Completed]: ...
    def _begin_abort(self) -> _Answer[int]: ...
    def _begin_leave(self) -> _Answer[None] | None: ...
    def abort(self) -> int: ...
    def wait(self, timeout: float | None = None) -> Completed: ...
    def leave(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, kind: _Raised, _value: BaseException | None, _trace: TracebackType | None) -> None: ...

@final
class Pipeline:
    def offer(
        self,
        data: _Data,
        attributes: _Attributes | None = None,
        /,
        *,
        schema: str | None = None,
        retention: str | datetime.timedelta | Released | None = None,
        if_wanted: bool = False,
        durability: Literal["memory", "durable"] | None = None,
        **keywords: _Given,
    ) -> int: ...
    def flush(self) -> None: ...
    def push(self) -> None: ...
    @property
    def outstanding(self) -> int: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, kind: _Raised, _value: BaseException | None, _trace: TracebackType | None) -> None: ...

@final
class Follow:
    """Its items are objects; `Gap` and `Live` occur only if requested."""

    def next(self, timeout: float | None = None) -> Any: ...
    def _take(self) -> tuple[Any] | None: ...
    def _errand(self) -> _Errand | None: ...
    def _finish(self, errand: _Errand) -> None: ...
    def _begin_stop(self) -> _Answer[None] | None: ...
    @property
    def cursor(self) -> str | None: ...
    @property
    def snapshot_sequence(self) -> int: ...
    @property
    def is_live(self) -> bool: ...
    @property
    def held(self) -> int: ...
    def close(self) -> None: ...
    def __iter__(self) -> Iterator[Object]: ...
    def __next__(self) -> Object: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, _type: _Raised, _value: BaseException | None, _trace: TracebackType | None) -> None: ...

@final
class Requirement:
    @property
    def selector(self) -> str: ...
    @property
    def name(self) -> str | None: ...
    def follow(
        self,
        *,
        window: int | None = None,
        until_live: bool = False,
        gaps: Literal["raise", "yield", "ignore"] = "raise",
        live: Literal["ignore", "yield"] = "ignore",
    ) -> Follow: ...
    def demand(
        self,
        target: str | _Attributes | None = None,
        /,
        *,
        timeout: float | None = None,
        schema: str | None = None,
        **key: _Given,
    ) -> Object: ...
    def retract(self) -> None: ...
    def _begin_follow(self, window: int | None, until_live: bool, gaps: str, live: str) -> _Answer[Follow]: ...
    def _begin_demand(
        self, target: str | _Attributes | None, timeout: float | None, schema: str | None, key: dict[str, Any] | None
    ) -> _Answer[Object]: ...
    def _begin_stop(self) -> _Answer[None] | None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, _type: _Raised, _value: BaseException | None, _trace: TracebackType | None) -> None: ...

@final
class Pool:
    def __new__(
        cls,
        url: str | None = None,
        *,
        name: str | None = None,
        schema: _SchemaSource | Sequence[_SchemaSource] | None = None,
        start: bool = False,
        budget: int | str | None = None,
        spill: str | os.PathLike[str] | None = None,
        spill_size: int | str | None = None,
        checked: bool = False,
        inline_max: int | str | None = None,
        orphan_timeout: float | None = None,
        until_gone: Sequence[str] = ...,
        transports: str | None = None,
        token_file: str | os.PathLike[str] | None = None,
        ca_file: str | os.PathLike[str] | None = None,
        streams: int | None = None,
        store: str | os.PathLike[str] | None = None,
        offer_timeout: float | None = 60.0,
    ) -> Self: ...
    @property
    def url(self) -> str: ...
    @property
    def route(self) -> str: ...
    @property
    def incarnation(self) -> int: ...
    @property
    def client(self) -> int: ...
    @property
    def schemas(self) -> builtins.list[Schema]: ...
    def schema(self, name: str | None = None) -> Schema: ...
    def stat(self) -> dict[str, Any]: ...
    def board(self) -> Board: ...
    def note(self, text: str = "", /, **values: object) -> None: ...
    def waits(self, *, limit: int = 1000) -> builtins.list[dict[str, Any]]: ...
    def explain(
        self,
        target: str | _Attributes | None = None,
        /,
        *,
        version: Version | None = None,
        schema: str | None = None,
        **key: _Given,
    ) -> dict[str, Any]: ...
    def keepers(self) -> dict[str, Any]: ...
    def stop(self, timeout: float | None = None) -> None: ...
    def sync(self, timeout: float | None = None) -> None: ...
    def close(self) -> None: ...
    @overload
    def offer(
        self,
        data: _Data,
        attributes: _Attributes | None = None,
        /,
        *,
        schema: str | None = None,
        retention: str | datetime.timedelta | Released | None = None,
        if_wanted: Literal[False] = False,
        durability: Literal["memory", "durable"] | None = None,
        **keywords: _Given,
    ) -> Version: ...
    @overload
    def offer(
        self,
        data: _Data,
        attributes: _Attributes | None = None,
        /,
        *,
        schema: str | None = None,
        retention: str | datetime.timedelta | Released | None = None,
        if_wanted: bool,
        durability: Literal["memory", "durable"] | None = None,
        **keywords: _Given,
    ) -> Version | None: ...
    def offer_piece(
        self,
        data: _Data | Sequence[npt.NDArray[Any]],
        layout: Layout | str,
        rank: int | None = None,
        attributes: _Attributes | None = None,
        /,
        *,
        comm: _Communicator | None = None,
        epoch: int | None = None,
        dtype: npt.DTypeLike | None = None,
        schema: str | None = None,
        retention: str | datetime.timedelta | Released | None = None,
        **keywords: _Given,
    ) -> None: ...
    def demand_array(
        self,
        target: str | _Attributes | None = None,
        layout: Layout | str | None = None,
        rank: int | None = None,
        /,
        *,
        comm: _Communicator | None = None,
        origin: Sequence[int] | None = None,
        slab: slice | Sequence[slice | tuple[int, int]] | None = None,
        dtype: npt.DTypeLike | None = None,
        out: npt.NDArray[Any] | None = None,
        threads: int = 1,
        timeout: float | None = None,
        schema: str | None = None,
        **key: _Given,
    ) -> npt.NDArray[Any]: ...
    def offer_chunks(
        self,
        data: dask.array.Array | xarray.DataArray,
        attributes: _Attributes | None = None,
        /,
        *,
        epoch: int | None = None,
        schema: str | None = None,
        retention: str | datetime.timedelta | Released | None = None,
        **keywords: _Given,
    ) -> None: ...
    @overload
    def demand_chunks(
        self,
        target: str | _Attributes | None = None,
        /,
        *,
        chunks: Any = None,
        xarray: Literal[False] = False,
        timeout: float | None = None,
        schema: str | None = None,
        **key: _Given,
    ) -> dask.array.Array: ...
    @overload
    def demand_chunks(
        self,
        target: str | _Attributes | None = None,
        /,
        *,
        chunks: Any = None,
        xarray: Literal[True],
        timeout: float | None = None,
        schema: str | None = None,
        **key: _Given,
    ) -> xarray.DataArray: ...
    def offer_many(
        self,
        objects: Iterable[tuple[_Data, _Attributes]],
        *,
        window: int = 1024,
        schema: str | None = None,
        retention: str | datetime.timedelta | Released | None = None,
        durability: Literal["memory", "durable"] | None = None,
    ) -> builtins.list[Version]: ...
    def allocate(
        self, nbytes: int | None = None, /, *, shape: _Shape | None = None, dtype: npt.DTypeLike | None = None
    ) -> Allocation: ...
    def pipeline(self, window: int = 64) -> Pipeline: ...
    def demand(
        self,
        target: str | _Attributes | None = None,
        /,
        *,
        timeout: float | None = None,
        schema: str | None = None,
        requirement: str | None = None,
        incomplete: bool = False,
        **key: _Given,
    ) -> Object: ...
    def begin_demand(
        self,
        target: str | _Attributes | None = None,
        /,
        *,
        timeout: float | None = None,
        schema: str | None = None,
        **key: _Given,
    ) -> PendingDemand: ...
    def fileno(self) -> int: ...
    def wait(self, *on: _Awaited, timeout: float | None = None) -> builtins.list[_Awaited]: ...
    def follow(
        self,
        selector: str | None = None,
        *,
        window: int | None = None,
        order_by: str | None = None,
        cursor: str | None = None,
        only_new: bool = False,
        until_live: bool = False,
        gaps: Literal["raise", "yield", "ignore"] = "raise",
        live: Literal["ignore", "yield"] = "ignore",
        group: str | None = None,
        requirement: str | None = None,
        versions: Literal["all", "newest"] = "all",
        time_to_live: float | None = None,
    ) -> Follow: ...
    def require(
        self,
        selector: str,
        *,
        name: str | None = None,
        time_to_live: float | None = None,
        versions: Literal["all", "newest"] = "all",
        group: bool = False,
        on_full: Literal["wait", "break"] = "wait",
        quota: int | str | None = None,
        stuck_after: float | None = None,
    ) -> Requirement: ...
    def retract(self, name: str) -> int: ...
    def wanted(
        self, attributes: _Attributes | None = None, /, *, schema: str | None = None, **keywords: _Given
    ) -> int: ...
    def bundle(
        self,
        path: str | None = None,
        attributes: _Attributes | None = None,
        /,
        *,
        members: int | None = None,
        orphan_timeout: float | None = None,
        schema: str | None = None,
        **keywords: _Given,
    ) -> Bundle: ...
    def bundles(self, selector: str = "", *, under: str | None = None) -> builtins.list[BundleEntry]: ...
    def list(
        self,
        selector: str = "",
        *,
        order_by: str | None = None,
        incomplete: bool = False,
        bundle: str | None = None,
        limit: int | None = None,
        after: Described | None = None,
    ) -> builtins.list[Entry]: ...
    def tally(
        self,
        selector: str = "",
        *,
        by: str | Sequence[str] | None = None,
        limit: int = 1000,
        sum_bytes: bool = False,
        filed_only: bool = False,
    ) -> Tally: ...
    def subscribe(self, selector: str = "", *, kinds: Sequence[_Kind] | None = None) -> Subscription: ...
    def withdraw(
        self,
        target: str | _Attributes | None = None,
        /,
        *,
        timeout: float | None = None,
        force: bool = False,
        forget: bool = False,
        schema: str | None = None,
        **key: _Given,
    ) -> int: ...
    def withdraw_all(
        self, selector: str, *, timeout: float | None = None, force: bool = False, forget: bool = False
    ) -> int: ...
    def _wake_when(self, wake: Callable[[], None], *on: Any) -> _Places: ...
    def _look(self) -> bool: ...
    def _ready(self, on: builtins.list[Any]) -> builtins.list[int]: ...
    def _flush(self) -> None: ...
    @property
    def _inline_max(self) -> int: ...
    def _begin_demand(
        self,
        target: str | _Attributes | None,
        timeout: float | None,
        schema: str | None,
        requirement: str | None,
        incomplete: bool,
        key: dict[str, Any] | None,
        call: str = "demand",
    ) -> _Answer[Object]: ...
    def _begin_withdraw(
        self,
        target: str | _Attributes | None,
        timeout: float | None,
        force: bool,
        forget: bool,
        schema: str | None,
        key: dict[str, Any] | None,
    ) -> _Answer[int]: ...
    def _begin_withdraw_all(self, selector: str, timeout: float | None, force: bool, forget: bool) -> _Answer[int]: ...
    def _begin_retract(self, name: str) -> _Answer[int]: ...
    def _begin_wanted(
        self,
        attributes: _Attributes | None,
        schema: str | None,
        keywords: dict[str, Any] | None,
        declines: bool = False,
    ) -> _Answer[int]: ...
    def _begin_stat(self) -> _Answer[dict[str, Any]]: ...
    def _begin_board(self) -> _Answer[Board]: ...
    def _begin_waits(self, limit: int) -> _Answer[builtins.list[dict[str, Any]]]: ...
    def _begin_explain(self, target: Any, version: Any, schema: str | None, key: Any) -> _Answer[dict[str, Any]]: ...
    def _begin_keepers(self) -> _Answer[dict[str, Any]]: ...
    def _begin_mistakes(self, selector: str) -> _Answer[builtins.list[str]] | None: ...
    def _begin_value_hints(self, selector: str) -> _Answer[builtins.list[str]] | None: ...
    def _report_wait(self, withdraws: bool) -> None: ...
    def _full_memory(self) -> tuple[str, bool] | None: ...
    def _begin_stop(self, timeout: float | None) -> _Answer[None]: ...
    def _begin_sync(self) -> _Answer[None]: ...
    def _begin_allocate(
        self, nbytes: int, dtype: str | None, shape: Sequence[int] | None, bundle: Bundle | None
    ) -> _Answer[Allocation]: ...
    def _begin_offer(
        self,
        data: _Data,
        attributes: _Attributes | None,
        schema: str | None,
        retention: str | datetime.timedelta | Released | None,
        if_wanted: bool,
        durability: Literal["memory", "durable"] | None,
        keywords: dict[str, Any] | None,
        bundle: Bundle | None,
    ) -> _Answer[Any]: ...
    def _begin_subscribe(self, selector: str, kinds: builtins.list[_Kind] | None) -> _Answer[Subscription]: ...
    def _begin_follow(
        self,
        selector: str | None,
        window: int | None,
        order_by: str | None,
        cursor: str | None,
        only_new: bool,
        until_live: bool,
        gaps: str,
        live: str,
        group: str | None,
        requirement: str | None,
        versions: str,
        time_to_live: float | None,
    ) -> _Answer[Follow]: ...
    def _begin_require(
        self,
        selector: str,
        name: str | None,
        time_to_live: float | None,
        versions: str,
        group: bool,
        on_full: str,
        quota: int | str | None,
        stuck_after: float | None,
    ) -> _Answer[Requirement]: ...
    def _begin_bundle(
        self,
        path: str | None,
        attributes: _Attributes | None,
        members: int | None,
        orphan_timeout: float | None,
        schema: str | None,
        keywords: dict[str, Any] | None,
    ) -> _Answer[Bundle]: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, _type: _Raised, _value: BaseException | None, _trace: TracebackType | None) -> None: ...
    def __getnewargs_ex__(self) -> tuple[tuple[str], dict[str, Any]]: ...
