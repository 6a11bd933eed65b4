"""Errors: one class for each error code, with the same codes in all languages.

All are subclasses of `Error`. If Python has a class for the same failure, it is a base class as well, so that ``except
TimeoutError`` works, too.
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
    """The named item does not exist."""

    code = "NotFound"
    advice = "fix the input"


class AlreadyExists(Error):
    """The key or name exists, and the schema or call allows only one."""

    code = "AlreadyExists"
    advice = "fix the input"


class Gone(Error, KeyError):
    """The object existed and has been removed; the cause gives the reason.

    Attributes
    ----------
    gap : Gap or None
        Set when a follow raised the error: the objects that were removed before they could be delivered.

    """

    code = "Gone"
    advice = "give up"
    gap: Gap | None = None


class InvalidSelector(Error, ValueError):
    """The selector is invalid, or uses an operation that its attributes do not support."""

    code = "InvalidSelector"
    advice = "fix the input"


class SchemaMismatch(Error, ValueError):
    """The schema does not allow the input: an unknown, missing or duplicate attribute, an invalid value, or different
    schemas.
    """

    code = "SchemaMismatch"
    advice = "fix the input"


class TypeMismatch(Error, ValueError):
    """A value cannot be parsed as the type of its attribute."""

    code = "TypeMismatch"
    advice = "fix the input"


class InvalidArgument(Error, ValueError):
    """An argument other than an attribute is invalid."""

    code = "InvalidArgument"
    advice = "fix the input"


class Timeout(Error, TimeoutError):
    """The timeout of the call has expired."""

    code = "Timeout"
    advice = "retry"


class PoolFull(Error):
    """Memory and spill are full, and no memory was freed in time."""

    code = "PoolFull"
    advice = "retry"


class BundleFull(Error):
    """The bundle has its declared number of members already."""

    code = "BundleFull"
    advice = "fix the input"


class BundleClosed(Error):
    """The bundle is complete or aborted."""

    code = "BundleClosed"
    advice = "fix the input"


class Conflict(Error):
    """Two callers gave different values for terms that must be equal."""

    code = "Conflict"
    advice = "fix the input"


class NotWanted(Error):
    """No client wants the object, and the offer was made on that condition."""

    code = "NotWanted"
    advice = "give up"


class Expired(Error):
    """The lease, membership or cursor has ended."""

    code = "Expired"
    advice = "give up"


class Closed(Error):
    """The pool, connection or handle was closed by its owner."""

    code = "Closed"
    advice = "give up"


class Disconnected(Error, ConnectionError):
    """The connection to the server was lost; data that only its memory held may be lost, too."""

    code = "Disconnected"
    advice = "retry"


class Unavailable(Error, ConnectionError):
    """The server cannot be reached or does not accept work now."""

    code = "Unavailable"
    advice = "retry"


class Denied(Error, PermissionError):
    """The caller lacks the permission."""

    code = "Denied"
    advice = "give up"


class Corrupt(Error):
    """Data are corrupt."""

    code = "Corrupt"
    advice = "give up"


class TooLarge(Error, ValueError):
    """The item exceeds a size limit."""

    code = "TooLarge"
    advice = "fix the input"


class LimitExceeded(Error):
    """The number of items exceeds a limit."""

    code = "LimitExceeded"
    advice = "fix the input"


class Unsupported(Error, NotImplementedError):
    """Not supported by this build, server or machine."""

    code = "Unsupported"
    advice = "give up"


class Protocol(Error):
    """The peer violated the protocol."""

    code = "Protocol"
    advice = "give up"


class Interrupted(Error, InterruptedError):
    """The wait was interrupted externally."""

    code = "Interrupted"
    advice = "retry"


class Io(Error, OSError):
    """A read, write or map failed in the operating system."""

    code = "Io"
    advice = "retry"
