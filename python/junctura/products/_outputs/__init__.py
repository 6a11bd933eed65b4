"""Writes finished products: files of six formats, atomically.

`write` makes a product of decoded fields, renames it to its path in one step and writes its provenance beside it;
`is_made` returns whether that has been done already. A format (`grib2`, `netcdf`, `zarr_group`, `png`, `csv_points`,
`parquet`) converts fields to bytes without disk access; only `_place` writes.
"""

from __future__ import annotations

import datetime as dt
import functools
import importlib
import importlib.metadata
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from junctura.errors import InvalidArgument
from junctura.products._input.decoded_field import Field
from junctura.products._outputs import _place
from junctura.products._outputs._meaning import Meaning, meaning
from junctura.products._outputs._output import Format, Output

__all__ = ["Meaning", "Output", "Written", "is_made", "meaning", "provenance_path", "write"]

_MODULES: dict[Format, str] = {
    "grib2": "grib2",
    "netcdf": "netcdf",
    "zarr": "zarr_group",
    "png": "png",
    "csv": "csv_points",
    "parquet": "parquet",
}
_PACKAGES: dict[Format, tuple[str, ...]] = {
    "grib2": ("eccodes",),
    "netcdf": ("eccodes", "netCDF4"),
    "zarr": ("eccodes", "numcodecs"),
    "png": ("pillow", "isal"),
    "csv": (),
    "parquet": ("pyarrow",),
}

provenance_path = _place.provenance_of


@dataclass(frozen=True)
class Written:
    """A finished product."""

    path: Path
    bytes: int
    sha256: str
    provenance: Path


def write(
    fields: Sequence[Field], to: Output, path: Path, provenance: Mapping[str, Any], *, durable: bool = False
) -> Written:
    """Makes a product and writes it to its path. Syncs to disk only if `durable`.

    Parameters
    ----------
    fields
        Its fields, in this order; one for a map.
    to
        The output format and its options.
    path
        Path of the product; an existing one is replaced atomically. The directory must exist.
    provenance
        What it was made of, as JSON has it: ``fingerprint`` (of the plan and the versions of the inputs; needed),
        ``product``, ``inputs`` and what else matters. Format, software, the time, size and SHA-256 are added.
    durable
        Whether to sync the product to disk before returning.

    Raises
    ------
    InvalidArgument
        The fields cannot be written in this format, or there are none; the error names the field.
    Io
        A write failed, for example on a full disk; an existing product is unchanged.
    ImportError
        The library of the format is not installed.

    """
    path = Path(path)
    if not fields:
        raise InvalidArgument(f"product {path.name}", "there are no fields")
    if to.format != "grib2":
        _check_located(fields)
    said = _checked(path, provenance)
    made: Callable[[Sequence[Field], Output], _place.Content]
    made = importlib.import_module(f"{__name__}.{_MODULES[to.format]}").made
    content = made(fields, to)
    count, digest = _place.measured(content)
    said = {
        "name": path.name,
        "format": to.format,
        "created": dt.datetime.now(dt.timezone.utc).isoformat(timespec="milliseconds"),
        **said,
        "software": {**software(to.format), **said.get("software", {})},
        "bytes": count,
        "sha256": digest,
    }
    _place.put(path, content, said, durable)
    return Written(path, count, digest, _place.provenance_of(path))


def is_made(path: Path, fingerprint: str) -> bool:
    """Whether a finished product with this fingerprint exists, according to its provenance and its size."""
    path = Path(path)
    try:
        said = json.loads(_place.provenance_of(path).read_bytes())
        return (
            isinstance(said, dict)
            and (said.get("name"), said.get("fingerprint")) == (path.name, fingerprint)
            and said.get("bytes") == _place.size(path)
        )
    except (OSError, ValueError):
        return False


def _check_located(fields: Sequence[Field]) -> None:
    for field in fields:
        if not field.grid.is_located:
            cause = f"the header of its grid {field.grid.label} has no places of points"
            raise InvalidArgument(f"field {field.param}", f"{cause}: bring it to a grid, with `coordinates`")


def _checked(path: Path, provenance: Mapping[str, Any]) -> dict[str, Any]:
    fingerprint = provenance.get("fingerprint")
    if not isinstance(fingerprint, str) or not fingerprint:
        raise InvalidArgument(f"provenance of {path.name}", f"expected a text as its fingerprint, not {fingerprint!r}")
    try:
        json.dumps(dict(provenance), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InvalidArgument(f"provenance of {path.name}", f"not of what JSON has: {error}") from error
    return dict(provenance)


@functools.lru_cache
def software(output_format: Format) -> dict[str, str]:
    """Returns the versions of the packages that write a format."""
    return {package: _version(package) for package in ("junctura", "numpy", *_PACKAGES[output_format])}


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "unknown"
