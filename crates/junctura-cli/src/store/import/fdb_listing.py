"""Lists an FDB for ``junctura store import fdb``: a JSON line for each field, read with FDB's own package.

``python -c PROGRAM ROOT newest|all``: standard output begins with the schema file, has the fields, and ends with
``"end"``; an error comes in place of what is left. Of each field it has the newest version, or all that FDB has, newest
first. FDB writes what it likes to standard output: that goes to standard error.
"""

import sys

# Modules come from where Python has its own, not from the folder in which the command happens to run.
sys.path = [folder for folder in sys.path if folder]

import json  # noqa: E402
import os  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any, TextIO  # noqa: E402


class Refused(Exception):  # noqa: N818
    """What the user can do something about: the code of an error, and why."""


def configuration(root: Path) -> dict[str, Any] | Path:
    """What pyfdb opens: a configuration file, the one of an installation, or a folder with data and their schema."""
    if root.is_file():
        return root
    installed = root / "etc/fdb/config.yaml"
    if installed.is_file():
        os.environ.setdefault("FDB_HOME", str(root))
        return installed
    if not (root / "schema").is_file():
        raise Refused("NotFound", "it is no configuration file of FDB, and has neither schema nor etc/fdb/config.yaml")
    data = root / "root" if (root / "root").is_dir() else root
    spaces = [{"handler": "Default", "roots": [{"path": str(data)}]}]
    return {"type": "local", "engine": "toc", "schema": str(root / "schema"), "spaces": spaces}


def schema(configured: dict[str, Any]) -> dict[str, str]:
    """The schema file of a configuration and its text, if it can be read; without one, the one of the installation."""
    file = Path(configured.get("schema") or Path(os.environ.get("FDB_HOME", "/"), "etc/fdb/schema"))
    try:
        return {"file": str(file), "text": file.read_text()}
    except (OSError, UnicodeDecodeError) as error:
        return {"file": str(file), "text": "", "error": str(error)}


def listed(root: Path, versions: str, out: TextIO) -> None:
    """Writes everything."""
    try:
        import pyfdb
    except ImportError as error:
        raise Refused(
            "Unsupported", f"{error}; FDB is read with its own packages: pip install pyfdb fdb5lib"
        ) from error

    def tell(**what: object) -> None:
        out.write(json.dumps(what) + "\n")

    fdb = pyfdb.FDB(configuration(root))
    tell(schema=schema(fdb.config()[0]))
    for element in fdb.list({}, include_masked=versions == "all"):
        uri = element.uri
        tell(
            field={
                "key": element.keys(),
                "scheme": uri.scheme(),
                "file": uri.path(),
                "offset": element.offset(),
                "length": element.length(),
            }
        )
    out.write('"end"\n')


def main() -> int:
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    try:
        listed(Path(sys.argv[1]).absolute(), sys.argv[2], out)
    except Exception as error:
        code, cause = error.args if isinstance(error, Refused) else ("Io", f"{type(error).__name__}: {error}")
        out.write(json.dumps({"error": {"code": code, "cause": cause}}) + "\n")
    out.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
