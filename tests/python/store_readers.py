"""Two readers of a store's catalogue that use nothing of ours: what ``docs/formats/store.md`` says is enough for them.

Each begins with the newest checkpoint, reads the files that it names, and finds the bytes where the rows say. A row is
a dictionary of its attributes, with ``payload`` beside the columns of the store's own.
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
    data = data_root(root)
    tables = [pyarrow.parquet.read_table(root / file) for file in checkpoint["files"]]
    rows: list[Row] = []
    for row in pyarrow.concat_tables(tables, promote_options="default").to_pylist():
        with (data if row["_file"].startswith("data/") else root).joinpath(row["_file"]).open("rb") as file:
            file.seek(row["_offset"])
            rows.append({**row, "payload": file.read(row["_length"])})
    return rows


# A subquery is no argument of a table function; a variable is.
CATALOGUE = """
set variable files = (
    select [getvariable('root') || '/' || file for file in files]
    from read_json(getvariable('root') || '/checkpoints/*.json')
    order by "commit" desc limit 1
);
create view catalogue as
    select *, if(_file like 'data/%', getvariable('data'), getvariable('root')) || '/' || _file as path
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
    """With DuckDB, in SQL alone, but for the place of the data."""
    with catalogue(root) as database:
        found = database.sql(PAYLOADS)
        return [dict(zip(found.columns, row, strict=True)) for row in found.fetchall()]


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
    database.execute("set variable data = ?", [str(data_root(root))])
    database.execute(CATALOGUE)
    return database


def data_root(root: Path) -> Path:
    """Where ``data/`` lies."""
    return Path(json.loads((root / "store.json").read_text()).get("data", root))
