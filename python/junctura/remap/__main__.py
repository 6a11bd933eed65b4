"""``junctura weights``: conversion of weight files.

``python -m junctura.remap convert FROM TO`` writes the binary format from netCDF files of SCRIP, ESMF and YAC.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from junctura._progress import say, status_of, status_of_error, worded
from junctura.errors import Error
from junctura.remap._weights import Weights


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns the exit status."""
    given = _parser().parse_args(arguments)
    try:
        weights = Weights.read(given.source, source_shape=given.source_shape, target_shape=given.target_shape)
        weights.write(given.target, given.form)
    except Error as error:
        say(f"junctura: {worded(error)}", sys.stderr)
        return status_of_error(error)
    except ImportError as error:
        say(f"junctura: {worded(error)}", sys.stderr)
        return 2
    if not given.quiet:
        grids = " -> ".join("x".join(map(str, shape)) for shape in (weights.source_shape, weights.target_shape))
        say(f"{given.target}: {len(weights)} links, {grids}", sys.stdout)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="junctura weights", description=__doc__)
    commands = parser.add_subparsers(required=True)
    convert = commands.add_parser("convert")
    convert.add_argument("source")
    convert.add_argument("target")
    convert.add_argument("--form", choices=("binary", "esmf", "scrip"), default="binary")
    convert.add_argument("--source-shape", type=_shape)
    convert.add_argument("--target-shape", type=_shape)
    convert.add_argument("--quiet", action="store_true")
    return parser


def _shape(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(extent) for extent in text.split("x"))
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a shape such as 180x360") from error


if __name__ == "__main__":
    sys.exit(status_of(main))
