"""What can go wrong: one class for each code of the list that all languages share.

All are subclasses of `Error`; where Python has a class of its own for the same, it is a base as well, so that
``except TimeoutError`` works, too.
"""

# ruff: noqa: N818 - the names are those of the codes, the same in every language.

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

if TYPE_CHECKING:
    from junctura._native import Gap


class Error(Exception):
    """Something went wrong; the base of all.

    Parameters
    ----------
    subject : str
        What it is about: an attribute, a key, a path, a peer. May be empty.
    cause : str
        Why, in words.
    position : int, optional
        Offset in bytes of the place in the input that it is about.

    Attributes
    ----------
    code : str
        The name of the code, the same in every language.
    advice : "retry", "fix the input" or "give up"
        What to do about it.
    picture : str or None
        For selectors: the text with a mark under the place.
    index : int or None
        For `Pool.offer_many` and `Store.archive_many`: which of the objects it is about.
    waited : float or None
        For arrays of which pieces are missing: how many seconds the call waited.

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
        # Not that of OSError, which would take them for an error number and a file's name.
        Exception.__init__(self, subject, cause, position)
        self.subject = subject
        self.cause = cause
        self.position = position

    def __str__(self) -> str:
        text = ": ".join(part for part in (self.code, self.subject, self.cause) if part)
        if self.waited is not None:
            text += f", after {self.waited:.1f} s"
        if self.position is not None:
            text += f" (at byte {self.position})"
        if self.picture is not None:
            text += f"\n{self.picture}"
        return text


class NotFound(Error, KeyError):
    """There is no such thing."""

    code = "NotFound"
    advice = "fix the input"


class AlreadyExists(Error):
    """The key (or name) is taken and the rule is to refuse a second."""

    code = "AlreadyExists"
    advice = "fix the input"


class Gone(Error, KeyError):
    """It was there and is not any more; the cause says why.

    Attributes
    ----------
    gap : Gap or None
        Where a follow raised it: which objects went before they could be given.

    """

    code = "Gone"
    advice = "give up"
    gap: Gap | None = None


class InvalidSelector(Error, ValueError):
    """The selector cannot be read, or asks what its attributes cannot answer."""

    code = "InvalidSelector"
    advice = "fix the input"


class SchemaMismatch(Error, ValueError):
    """The schema does not allow it: an unknown, missing or doubled attribute, a value, or two schemas that differ."""

    code = "SchemaMismatch"
    advice = "fix the input"


class TypeMismatch(Error, ValueError):
    """A value cannot be read as the type of its attribute."""

    code = "TypeMismatch"
    advice = "fix the input"


class InvalidArgument(Error, ValueError):
    """An argument that is no attribute is wrong."""

    code = "InvalidArgument"
    advice = "fix the input"


class Timeout(Error, TimeoutError):
    """The time that the caller gave is over."""

    code = "Timeout"
    advice = "retry"


class PoolFull(Error):
    """Memory and spill are full, and nobody released anything in time."""

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
    """Two callers disagree about something that must be one."""

    code = "Conflict"
    advice = "fix the input"


class NotWanted(Error):
    """Nobody wants the object, and the offer was made on that condition."""

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
    """The connection to the server was lost; what only its memory held may be lost, too."""

    code = "Disconnected"
    advice = "retry"


class Unavailable(Error, ConnectionError):
    """The server cannot be reached or does not take work now."""

    code = "Unavailable"
    advice = "retry"


class Denied(Error, PermissionError):
    """The caller may not do that."""

    code = "Denied"
    advice = "give up"


class Corrupt(Error):
    """Bytes are not what they must be."""

    code = "Corrupt"
    advice = "give up"


class TooLarge(Error, ValueError):
    """One thing is larger than its limit."""

    code = "TooLarge"
    advice = "fix the input"


class LimitExceeded(Error):
    """There are more things than a limit allows."""

    code = "LimitExceeded"
    advice = "fix the input"


class Unsupported(Error, NotImplementedError):
    """Not in this build, or not on this server or machine."""

    code = "Unsupported"
    advice = "give up"


class Protocol(Error):
    """The peer broke the protocol."""

    code = "Protocol"
    advice = "give up"


class Interrupted(Error, InterruptedError):
    """The wait was interrupted from outside."""

    code = "Interrupted"
    advice = "retry"


class Io(Error, OSError):
    """The operating system refused a read, write or map."""

    code = "Io"
    advice = "retry"
