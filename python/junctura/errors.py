"""Errors: one class for each error code, with the same codes in all languages.

All are subclasses of `Error`. If Python has a class for the same failure, it is a base class as well, so that ``except
TimeoutError`` works, too.

Examples
--------
>>> try:
...     junctura.Selector("levelist=abc")
... except ValueError as error:  # the base class of `InvalidSelector`
...     print(error.code)
InvalidSelector

"""

# ruff: noqa: N818 - the names are those of the codes, the same in every language.

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

if TYPE_CHECKING:
    from junctura._native import Gap


class Error(Exception):
    """The base class of all errors.

    Parameters
    ----------
    subject : str
        The subject of the error: an attribute, a key, a path, a peer. May be empty.
    cause : str
        The reason, as text.
    position : int, optional
        Offset in bytes of the error in the input.

    Attributes
    ----------
    code : str
        The name of the code, the same in every language.
    advice : "retry", "fix the input" or "give up"
        The action to take.
    picture : str or None
        For selectors: the text with a mark at the error.
    index : int or None
        For `Pool.offer_many` and `Store.archive_many`: the position of the object that failed.
    waited : float or None
        For arrays with missing pieces: the seconds that the call waited.

    Examples
    --------
    >>> try:
    ...     junctura.Selector("levelist=abc")
    ... except junctura.Error as error:
    ...     print(error.code, error.position, error.advice)
    InvalidSelector 9 fix the input

    """

    code: ClassVar[str] = "Error"
    advice: ClassVar[Literal["retry", "fix the input", "give up"]] = "give up"
    subject: str
    cause: str
    position: int | None
    picture: str | None = None
    index: int | None = None
    waited: float | None = None

    def __init__(self, subject: str = "", cause: str = "", position: int | None = None) -> None:
        # Not OSError.__init__, which would interpret the arguments as an error number and a file name.
        Exception.__init__(self, subject, cause, position)
        self.subject = subject
        self.cause = cause
        self.position = position

    def __str__(self) -> str:
        text = ": ".join(part for part in (self.subject, self.cause) if part)
        if self.waited is not None:
            text += f", after {self.waited:.1f} s"
        if self.position is not None:
            text += f" (at byte {self.position})"
        if self.picture is not None:
            text += f"\n{self.picture}"
        return text


class NotFound(Error, KeyError):
    """The named item does not exist.

    Examples
    --------
    >>> with junctura.Pool(schema="free") as pool:
    ...     try:
    ...         pool.demand(name="a", timeout=0)
    ...     except junctura.NotFound as error:
    ...         print(error)
    {space=default}{}{name=a}: no object in the pool matches now; a demand with a timeout waits for one

    """

    code = "NotFound"
    advice = "fix the input"


class AlreadyExists(Error):
    """The key or name exists, and the schema or call allows only one.

    Examples
    --------
    >>> with junctura.Store.create(folder / "store", schema="free"):
    ...     try:
    ...         junctura.Store.create(folder / "store", schema="free")
    ...     except junctura.AlreadyExists as error:
    ...         print(error.code, error.advice)
    AlreadyExists fix the input

    """

    code = "AlreadyExists"
    advice = "fix the input"


class Gone(Error, KeyError):
    """The object existed and has been removed; the cause gives the reason.

    Attributes
    ----------
    gap : Gap or None
        Set when a follow raised the error: the objects that were removed before they could be delivered.

    Examples
    --------
    >>> with junctura.Pool(schema="free") as pool:
    ...     version = pool.offer(b"payload", name="a")
    ...     count = pool.withdraw(name="a")
    ...     try:
    ...         pool.demand(name="a")
    ...     except junctura.Gone as error:
    ...         print(error.subject)
    {space=default}{}{name=a}

    """

    code = "Gone"
    advice = "give up"
    gap: Gap | None = None


class InvalidSelector(Error, ValueError):
    """The selector is invalid, or uses an operation that its attributes do not support.

    Examples
    --------
    >>> try:
    ...     junctura.Selector("step=0/to")
    ... except junctura.InvalidSelector as error:
    ...     print(error)
    selector: expected `/`, found the end (at byte 9)
      step=0/to
               ^

    """

    code = "InvalidSelector"
    advice = "fix the input"


class SchemaMismatch(Error, ValueError):
    """The schema does not allow the input: an unknown, missing or duplicate attribute, an invalid value, or different
    schemas.

    Examples
    --------
    >>> try:
    ...     junctura.Schema.builtin("mars").key(colour="red")
    ... except junctura.SchemaMismatch as error:
    ...     print(error.subject)
    colour

    """

    code = "SchemaMismatch"
    advice = "fix the input"


class TypeMismatch(Error, ValueError):
    """A value cannot be parsed as the type of its attribute.

    Examples
    --------
    >>> try:
    ...     junctura.Schema.builtin("record").key(collection="c", producer="p", sequence="seven")
    ... except junctura.TypeMismatch as error:
    ...     print(error)
    sequence: "seven" is no integer (expected a whole number of 64 bits, such as 12 or -3)

    """

    code = "TypeMismatch"
    advice = "fix the input"


class InvalidArgument(Error, ValueError):
    """An argument other than an attribute is invalid.

    Examples
    --------
    >>> try:
    ...     junctura.Pool(schema="free", budget="plenty")
    ... except junctura.InvalidArgument as error:
    ...     print(error)
    size: 'plenty' is not a size such as 4294967296 or "4GiB"

    """

    code = "InvalidArgument"
    advice = "fix the input"


class Timeout(Error, TimeoutError):
    """The timeout of the call has expired.

    Examples
    --------
    >>> with junctura.Pool(schema="free") as pool:
    ...     try:
    ...         pool.demand(name="a", timeout=0.01)
    ...     except junctura.Timeout as error:
    ...         print(error.code, error.advice)
    Timeout retry

    """

    code = "Timeout"
    advice = "retry"


class PoolFull(Error):
    """Memory and spill are full, and no memory was freed in time.

    The text names what keeps most of the memory. ``advice`` is "give up" if only a withdrawal can free memory, since
    all objects stay until they are withdrawn.

    Examples
    --------
    >>> with junctura.Pool(schema="free", budget="4MiB", offer_timeout=0) as pool:
    ...     version = pool.offer(bytes(3 << 20), name="a")
    ...     try:
    ...         pool.offer(bytes(3 << 20), name="b")
    ...     except junctura.PoolFull as error:
    ...         print(error.code, error.advice)
    PoolFull give up

    """

    code = "PoolFull"
    advice: ClassVar[Literal["retry", "fix the input", "give up"]] = "retry"


class BundleFull(Error):
    """The bundle has its declared number of members already.

    Examples
    --------
    >>> with junctura.Pool(schema="free") as pool:
    ...     outer, inner = pool.bundle("run", members=1), pool.bundle("run/step", members=1)
    ...     try:
    ...         outer.offer(b"payload", name="a")
    ...     except junctura.BundleFull as error:
    ...         print(error)
    bundle run: it has all its 1 members

    """

    code = "BundleFull"
    advice = "fix the input"


class BundleClosed(Error):
    """The bundle is complete or aborted.

    Examples
    --------
    >>> with junctura.Pool(schema="free") as pool:
    ...     first, second = (pool.bundle("run", members=1) for _ in range(2))
    ...     member = first.offer(b"payload", name="a")
    ...     try:
    ...         second.offer(b"late", name="b")
    ...     except junctura.BundleClosed as error:
    ...         print(error)
    bundle run: it is complete; open another path, or declare more members

    """

    code = "BundleClosed"
    advice = "fix the input"


class Conflict(Error):
    """Two callers gave different values for terms that must be equal.

    Examples
    --------
    >>> with junctura.Pool(schema="free") as pool:
    ...     first = pool.bundle("run", members=1)
    ...     try:
    ...         pool.bundle("run", members=2)
    ...     except junctura.Conflict as error:
    ...         print(error.subject)
    bundle run

    """

    code = "Conflict"
    advice = "fix the input"


class NotWanted(Error):
    """No client wants the object, and the offer was made on that condition.

    Examples
    --------
    >>> with junctura.Pool(schema="free") as pool:
    ...     assert pool.offer(b"payload", name="a", if_wanted=True) is None
    ...     try:
    ...         pool.demand(name="a")
    ...     except junctura.NotWanted as error:
    ...         print(error.code, error.advice)
    NotWanted give up

    """

    code = "NotWanted"
    advice = "give up"


class Expired(Error):
    """The lease, membership or cursor has ended.

    Examples
    --------
    >>> with junctura.Pool(schema="free") as pool:
    ...     version = pool.offer(b"payload", name="a")
    ...     cursor = next(pool.follow("")).cursor
    >>> with junctura.Pool(schema="free") as pool:
    ...     try:
    ...         pool.follow("", cursor=cursor)
    ...     except junctura.Expired as error:
    ...         print(error.code)
    Expired

    """

    code = "Expired"
    advice = "give up"


class Closed(Error):
    """The pool, connection or handle was closed by its owner.

    Examples
    --------
    >>> pool = junctura.Pool(schema="free")
    >>> pool.close()
    >>> try:
    ...     pool.list()
    ... except junctura.Closed as error:
    ...     print(error.code)
    Closed

    """

    code = "Closed"
    advice = "give up"


class Disconnected(Error, ConnectionError):
    """The connection to the server was lost; data that only its memory held may be lost, too.

    Examples
    --------
    >>> issubclass(junctura.Disconnected, ConnectionError), junctura.Disconnected.advice
    (True, 'retry')

    """

    code = "Disconnected"
    advice = "retry"


class Unavailable(Error, ConnectionError):
    """The server cannot be reached or does not accept work now.

    Examples
    --------
    >>> try:
    ...     junctura.Pool(f"unix:{folder}/socket")
    ... except junctura.Unavailable as error:
    ...     print(error.code, error.advice)
    Unavailable retry

    """

    code = "Unavailable"
    advice = "retry"


class Denied(Error, PermissionError):
    """The caller lacks the permission.

    Examples
    --------
    >>> issubclass(junctura.Denied, PermissionError), junctura.Denied.advice
    (True, 'give up')

    """

    code = "Denied"
    advice = "give up"


class Corrupt(Error):
    """Data are corrupt.

    Examples
    --------
    >>> with junctura.Store.create(folder / "store", schema="free") as store:
    ...     store.archive(b"payload", name="a")
    >>> stored = store.list()[0]
    >>> data = bytearray((store.path / stored.location.file).read_bytes())
    >>> data[stored.location.offset] ^= 1
    >>> size = (store.path / stored.location.file).write_bytes(data)
    >>> try:
    ...     stored.read()
    ... except junctura.Corrupt as error:
    ...     print(error.code)
    Corrupt

    """

    code = "Corrupt"
    advice = "give up"


class TooLarge(Error, ValueError):
    """The item exceeds a size limit.

    Examples
    --------
    >>> with junctura.Pool(schema="free") as pool:
    ...     try:
    ...         pool.allocate(1 << 50)
    ...     except junctura.TooLarge as error:
    ...         print(error.code)
    TooLarge

    """

    code = "TooLarge"
    advice = "fix the input"


class LimitExceeded(Error):
    """The number of items exceeds a limit.

    Examples
    --------
    >>> try:
    ...     junctura.Selector("name=" + "/".join(map(str, range(100_000))), "free")
    ... except junctura.LimitExceeded as error:
    ...     print(error.code)
    LimitExceeded

    """

    code = "LimitExceeded"
    advice = "fix the input"


class Unsupported(Error, NotImplementedError):
    """Not supported by this build, server or machine.

    Examples
    --------
    >>> with junctura.Pool(schema="free") as pool, pool.follow("", group="workers") as follow:
    ...     try:
    ...         pool.demand(name="a", requirement="workers")
    ...     except junctura.Unsupported as error:
    ...         print(error)
    demand through a group: the group decides which member receives an object; follow the group

    """

    code = "Unsupported"
    advice = "give up"


class Protocol(Error):
    """The peer violated the protocol.

    Examples
    --------
    >>> issubclass(junctura.Protocol, junctura.Error), junctura.Protocol.advice
    (True, 'give up')

    """

    code = "Protocol"
    advice = "give up"


class Interrupted(Error, InterruptedError):
    """The wait was interrupted externally.

    Examples
    --------
    >>> issubclass(junctura.Interrupted, InterruptedError), junctura.Interrupted.advice
    (True, 'retry')

    """

    code = "Interrupted"
    advice = "retry"


class Io(Error, OSError):
    """A read, write or map failed in the operating system.

    Examples
    --------
    >>> try:
    ...     junctura.Store.create(folder / ("name" * 100), schema="free")
    ... except junctura.Io as error:
    ...     print(error.code, error.advice)
    Io retry

    """

    code = "Io"
    advice = "retry"


class SelectorWarning(UserWarning):
    """A selector that matches nothing probably has a mistake: no object has its attribute, and a schema declares a
    similar one; or no schema reads its value.

    `Pool.follow`, `demand`, `list`, `tally`, `require` and `subscribe` issue it, once for each selector of a pool;
    selectors that differ only in digits count as one. `list` of a store issues it, too. The selector is valid: a later
    object of an open schema may match it.

    Examples
    --------
    >>> import warnings
    >>> with junctura.Pool() as pool, warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     print(pool.list("parm=t"), caught[0].message)
    [] parm=t: no object has the attribute "parm"; did you mean param (schema mars)?

    """


class WaitWarning(UserWarning):
    """A call has waited for five seconds: an offer or an allocation for memory, or a withdrawal for readers.

    The text names what keeps the memory and how to free it, or which requirements are owed the objects. A process
    issues it at most once a minute for a pool. The call continues to wait, unless the program treats the warning as an
    error.

    Examples
    --------
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", junctura.WaitWarning)  # an offer that waits this long fails
    ...     with junctura.Pool(schema="free") as pool:
    ...         version = pool.offer(b"payload", name="a")

    """


class UsageWarning(UserWarning):
    """A valid call with a probable mistake.

    - A keyword of an offer is stored as an attribute and resembles an option, such as ``retenton``. `Pool.offer` and
      the other calls that offer, `Pool.bundle` and `Store.archive` issue it, once for each keyword of a pool or store;
      not if the schema declares the attribute, an object of the pool has it, or the keyword ends with an underscore,
      which is removed. Attributes in a dictionary are not checked.
    - A scalar coordinate of an `xarray.DataArray` and an attribute of its offer have the same name and other values.
      The attribute of the offer applies. An attribute may differ from one of the array, such as ``units``.
    - An array is offered to a schema that declares no attribute ``dtype`` or ``shape``: readers have to state them.
    - A schema of the client differs from that of the pool, in more than documentation. The schema of the pool applies.
    - ``Pool(url, start=True)`` has started a server, and a pool with a similar name is served.
    - ``Pool(url, budget=...)`` states options of a server that runs already and has other ones.
    - A store lacks a schema of the pool from which an `Archiver` archives.

    Examples
    --------
    >>> import warnings
    >>> with junctura.Pool(schema="free") as pool, warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     version = pool.offer(b"", name="a", retenton="10min")
    ...     print(str(caught[0].message).partition(";")[0])
    retenton is stored as an attribute

    """
