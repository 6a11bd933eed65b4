"""Two readers of a store that use nothing of ours: what ``docs/formats/store.md`` says is enough for them.

Each begins with the newest checkpoint, reads the files that it names, and finds the bytes where the rows say: beside
the catalogue, elsewhere, or in a tier. What lies packed is unpacked. A row is a dictionary of its attributes, with
``payload`` beside the columns of the store's own.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

Row = dict[str, Any]


def by_pyarrow(root: Path) -> list[Row]:
    """With pyarrow, the rows of each file one by one."""
    import pyarrow
    import pyarrow.parquet

    checkpoint = json.loads(max((root / "checkpoints").glob("*.json")).read_text())
    folders = places(root)
    tables = [pyarrow.parquet.read_table(root / file) for file in checkpoint["files"]]
    rows: list[Row] = []
    for row in pyarrow.concat_tables(tables, promote_options="default").to_pylist():
        place = next((place for start, place in folders.items() if row["_file"].startswith(start)), str(root))
        with Path(place, row["_file"]).open("rb") as file:
            file.seek(row["_offset"])
            rows.append({**row, "payload": unpacked(row, file.read(row["_length"]))})
    return rows


# A subquery is no argument of a table function; a variable is.
CATALOGUE = """
set variable files = (
    select [getvariable('root') || '/' || file for file in files]
    from read_json(getvariable('root') || '/checkpoints/*.json')
    order by "commit" desc limit 1
);
create view catalogue as
    select *, coalesce(getvariable('places')[regexp_extract(_file, '^(data|tiers/[^/]+)/')], getvariable('root'))
        || '/' || _file as path
    from read_parquet(getvariable('files'), union_by_name = true);
set variable paths = (select list(distinct path) from catalogue);
"""
PAYLOADS = """
select catalogue.* exclude (path), content[_offset + 1 : _offset + _length] as payload
from catalogue join read_blob(getvariable('paths')) on path = filename
order by _number
"""
NEWEST = "select {columns} from catalogue qualify row_number() over (partition by {key} order by _number desc) = 1"


def by_duckdb(root: Path) -> list[Row]:
    """With DuckDB, in SQL alone, but for where everything lies, and for what it cannot unpack."""
    with catalogue(root) as database:
        found = database.sql(PAYLOADS)
        rows = [dict(zip(found.columns, row, strict=True)) for row in found.fetchall()]
    return [{**row, "payload": unpacked(row, row["payload"])} for row in rows]


def newest_by_duckdb(root: Path, key: str, columns: str) -> list[tuple[Any, ...]]:
    """Of each key the newest version."""
    with catalogue(root) as database:
        rows: list[tuple[Any, ...]] = database.sql(NEWEST.format(key=key, columns=columns)).fetchall()
        return rows


def catalogue(root: Path) -> Any:
    """A database with the rows of a store."""
    import duckdb

    database = duckdb.connect()
    database.execute("set variable root = ?", [str(root)])
    known = places(root)
    database.execute("set variable places = map(?, ?)", [list(known), list(known.values())])
    database.execute(CATALOGUE)
    return database


def places(root: Path) -> dict[str, str]:
    """Where files lie that are not below the root, by how their names begin."""
    store = json.loads((root / "store.json").read_text())
    found = {"data/": store.get("data", str(root))}
    for file in (root / "tiers").glob("*.json"):
        place = json.loads(file.read_text())["place"]
        # What another store has there is not to be read.
        assert json.loads(Path(place, "tiers", f"{file.stem}.owner.json").read_text())["owner"] == store["id"]
        found[f"tiers/{file.stem}/"] = place
    return found


def unpacked(row: Row, stored: bytes) -> bytes:
    """The bytes of an object, of those that lie in its file."""
    # There are such columns only where something is packed.
    if (codec := row.get("_codec")) is None:
        return stored
    import pyarrow

    # What Arrow calls lz4 is a frame, too.
    payload: bytes = pyarrow.Codec(codec).decompress(stored, row["_unpacked"], asbytes=True)
    return payload


def crc32c(data: bytes) -> int:
    """The checksum of a row."""
    register = 0xFFFFFFFF
    for byte in data:
        register = CRC32C[(register ^ byte) & 0xFF] ^ register >> 8
    return register ^ 0xFFFFFFFF


def of_a_byte(register: int) -> int:
    """CRC-32C's register after eight bits."""
    for _ in range(8):
        register = register >> 1 ^ (0x82F63B78 if register & 1 else 0)
    return register


CRC32C = [of_a_byte(byte) for byte in range(256)]
