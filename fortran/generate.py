"""Writes ``junctura.f90``, the Fortran module, from ``parts`` and the header of C: ``make fortran``.

A part has declarations, a line ``contains``, and procedures. The interfaces of the C functions and the constants are
made from the header. A part repeats procedures for each kind and rank of an array by these lines:

``!@ bind NAME as GENERIC``
    the bindings ``NAME_i1_0`` to ``NAME_r8_7`` of a type, and their generic name
``!@ each NAME`` to ``!@ end``
    a procedure for each kind and rank, with ``@N@`` (its suffix), ``@VALUES:INTENT@`` (the declaration of ``values``
    and its address ``location``), ``@LOCATE@`` (which sets the address), ``@BYTES@``, ``@SIZE@`` and
    ``@ELEMENT@``
``!@ bind_real``, ``!@ each_real``
    the same for reals of rank 1 to 7, with a second array ``results`` at ``place``: ``@RESULTS@``,
    ``@LOCATE_RESULTS@``, ``@BYTES_OF_RESULTS@``
``!@ bind_flat``, ``!@ flat``
    the same for each kind alone, with ``@N@``, ``@TYPE@``, ``@SIZE@``
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
HEADER = HERE.parent / "c/include/junctura.h"
MODULE = HERE / "junctura.f90"
PARTS = (
    *("errors", "attributes", "pool", "offers", "pipeline", "object", "follow", "subscription", "requirement"),
    *("list", "bundle", "layout", "weights", "exchange"),
)
RANKS = range(8)


@dataclass(frozen=True)
class Kind:
    """A type of elements."""

    suffix: str
    declaration: str
    element: str
    size: int


KINDS = [
    Kind("i1", "integer(int8)", "i1", 1),
    Kind("i2", "integer(int16)", "i2", 2),
    Kind("i4", "integer(int32)", "i4", 4),
    Kind("i8", "integer(int64)", "i8", 8),
    Kind("r4", "real(real32)", "f4", 4),
    Kind("r8", "real(real64)", "f8", 8),
]

REALS = KINDS[-2:]

# Arguments of C, and how Fortran declares them.
ARGUMENTS = {
    "int *": "integer(c_int), intent(out) :: {}",
    "int": "integer(c_int), value :: {}",
    "int64_t": "integer(c_int64_t), value :: {}",
    "uint64_t": "integer(c_int64_t), value :: {}",
    "uint64_t *": "integer(c_int64_t), intent(out) :: {}",
    "const uint64_t *": "integer(c_int64_t), intent(in) :: {}(*)",
    "size_t": "integer(c_size_t), value :: {}",
    "size_t *": "integer(c_size_t), intent(out) :: {}",
    "double": "real(c_double), value :: {}",
    "const char *": "character(kind=c_char), intent(in) :: {}(*)",
    "const char *const *": "type(c_ptr), intent(in) :: {}(*)",
}
RESULTS = {"int": "integer(c_int)", "uint32_t": "integer(c_int32_t)", "uint64_t": "integer(c_int64_t)"}


def argument(text: str) -> tuple[str, str]:
    """The name and the declaration of an argument of C."""
    found = re.fullmatch(r"(.*?)(\w+)", text.strip())
    assert found is not None, text
    kind, name = found[1].strip(), found[2]
    if kind in ARGUMENTS:
        return name, ARGUMENTS[kind].format(name)
    # The address of an allocation may be left out, and is asked for where it is used.
    place = "intent(out)" if kind.endswith("**") and kind != "void **" else "value"
    return name, f"type(c_ptr), {place} :: {name}"


def wrapped(line: str) -> str:
    """A statement, continued where it is long."""
    indent = re.match(" *", line)[0] + "    "  # type: ignore[index]
    lines = [""]
    for word in re.split(r"(?<=, )", line):
        if len(lines[-1]) + len(word) > 110:
            lines.append(indent)
        lines[-1] += word
    return "&\n".join(lines)


def interface(result: str, name: str, arguments: str) -> str:
    """The interface of a function of C."""
    taken = [] if arguments.strip() == "void" else [argument(text) for text in arguments.split(",")]
    names = ", ".join(each for each, _ in taken)
    declared = [f"      {declaration}" for _, declaration in taken]
    if result == "void":
        kind, declared_result = "subroutine", []
    else:
        kind, declared_result = "function", [f"      {RESULTS.get(result, 'type(c_ptr)')} :: c_{name}"]
    head = wrapped(f"    {kind} c_{name}({names}) bind(C, name='{name}')")
    return "\n".join([head, "      import", *declared, *declared_result, f"    end {kind}"])


def interfaces(header: str) -> str:
    """The interfaces of all functions."""
    code = re.sub(r"//[^\n]*", "", header)
    functions = re.findall(r"^((?:const )?\w+ \**)(jct_\w+)\(([^;]*)\);", code, re.M)
    bodies = [interface(result.strip(), name, " ".join(arguments.split())) for result, name, arguments in functions]
    return "\n".join(["  ! The functions of junctura.h.", "  interface", *bodies, "  end interface"])


def constants(header: str) -> str:
    """The numbers of the header, each behind its comment."""
    found = re.findall(r"((?:^// [^\n]*\n)+)#define (JCT_\w+) (\d+)$", header, re.M)
    lines = []
    for comment, name, value in found:
        if name not in ("JCT_ABI", "JCT_ORDER_C", "JCT_ORDER_F"):
            lines += [comment.replace("// ", "  !> ", 1).replace("\n// ", "\n  !! ").rstrip()]
            lines += [f"  integer, parameter, public :: {name} = {value}"]
    return "\n".join(lines)


def bind(indent: str, name: str, generic: str, suffixes: list[str]) -> str:
    """Bindings of a type and their generic name."""
    lines = []
    for start in range(0, len(suffixes), len(RANKS)):
        names = ", ".join(f"{name}_{suffix}" for suffix in suffixes[start : start + len(RANKS)])
        lines += [
            wrapped(f"{indent}procedure, private :: {names}"),
            wrapped(f"{indent}generic :: {generic} => {names}"),
        ]
    return "\n".join(lines)


def of_array(text: str, kind: Kind, rank: int) -> str:
    """A procedure for arrays of one kind and rank."""
    dimensions = f"({','.join(':' * rank)})" if rank else ""
    contiguous = "contiguous, " if rank else ""
    values = f"{kind.declaration}, intent(\\1), {contiguous}target :: values{dimensions}\n    type(c_ptr) :: location"
    text = re.sub(r"@VALUES:(\w+)@", values, text)
    locate = "location = c_loc(values)"
    if rank:
        locate = "location = c_null_ptr\n    if (size(values) > 0) location = c_loc(values)"
    count = "* size(values, kind=c_size_t)" if rank else ""
    text = text.replace("@LOCATE@", locate).replace("@BYTES@", f"{kind.size}_c_size_t {count}".strip())
    text = text.replace("@N@", f"{kind.suffix}_{rank}").replace("@SIZE@", str(kind.size))
    return text.replace("@ELEMENT@", kind.element)


def of_pair(text: str, kind: Kind, rank: int) -> str:
    """A procedure for two arrays of one kind and rank."""
    dimensions = f"({','.join(':' * rank)})"
    results = f"{kind.declaration}, intent(inout), contiguous, target :: results{dimensions}\n    type(c_ptr) :: place"
    text = text.replace("@RESULTS@", results)
    text = text.replace("@LOCATE_RESULTS@", "place = c_null_ptr\n    if (size(results) > 0) place = c_loc(results)")
    text = text.replace("@BYTES_OF_RESULTS@", f"{kind.size}_c_size_t * size(results, kind=c_size_t)")
    return of_array(text, kind, rank)


def of_kind(text: str, kind: Kind) -> str:
    """A procedure for one kind."""
    return text.replace("@N@", kind.suffix).replace("@TYPE@", kind.declaration).replace("@SIZE@", str(kind.size))


def without_comments(text: str) -> str:
    """The first procedure of a kind is documented; the others are as it."""
    return re.sub(r"^ *!.*\n", "", text, flags=re.M)


def expanded(part: str) -> str:
    """A part with what it repeats."""
    all_suffixes = [f"{kind.suffix}_{rank}" for kind in KINDS for rank in RANKS]
    part = re.sub(r"^( *)!@ bind (\w+) as (\w+)$", lambda m: bind(m[1], m[2], m[3], all_suffixes), part, flags=re.M)
    pairs = [f"{kind.suffix}_{rank}" for kind in REALS for rank in RANKS[1:]]
    part = re.sub(r"^( *)!@ bind_real (\w+) as (\w+)$", lambda m: bind(m[1], m[2], m[3], pairs), part, flags=re.M)
    flat = [kind.suffix for kind in KINDS]
    part = re.sub(r"^( *)!@ bind_flat (\w+) as (\w+)$", lambda m: bind(m[1], m[2], m[3], flat), part, flags=re.M)

    def arrays(match: re.Match[str]) -> str:
        one = [of_array(match[1], kind, rank) for kind in KINDS for rank in RANKS]
        return "\n".join([one[0], *map(without_comments, one[1:])])

    def reals(match: re.Match[str]) -> str:
        one = [of_pair(match[1], kind, rank) for kind in REALS for rank in RANKS[1:]]
        return "\n".join([one[0], *map(without_comments, one[1:])])

    part = re.sub(r"^ *!@ each\n(.*?)^ *!@ end\n", arrays, part, flags=re.M | re.S)
    part = re.sub(r"^ *!@ each_real\n(.*?)^ *!@ end\n", reals, part, flags=re.M | re.S)
    return re.sub(
        r"^ *!@ flat\n(.*?)^ *!@ end\n",
        lambda m: "\n".join(of_kind(m[1], kind) for kind in KINDS),
        part,
        flags=re.M | re.S,
    )


def module() -> str:
    """The text of the module."""
    header = HEADER.read_text()
    declarations, procedures = [], []
    for name in PARTS:
        before, after = (HERE / f"parts/{name}.f90.in").read_text().split("\ncontains\n")
        declarations.append(expanded(before).strip("\n"))
        procedures.append(expanded(after).strip("\n"))
    head = (HERE / "parts/head.f90.in").read_text().rstrip("\n")
    pieces = [
        head,
        constants(header),
        *declarations,
        interfaces(header),
        "contains",
        *procedures,
        "end module junctura",
    ]
    return "\n\n".join(pieces) + "\n"


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else MODULE
    target.write_text(module())
