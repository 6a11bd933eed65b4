"""A member of the demo's model whose fields go another way: ``products_files_member.py files|synced|archive FOLDER …``.

What follows is for ``swell.py``, which runs as it is: this is one more place that its messages are given to, and that
hears of the end of a step.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

from products_files_ways import ArchiveWriter, FileWriter, Name, SyncedFileWriter, Writer

MODEL = Path(__file__).resolve().parent.parent / "examples/11_swell"


def main() -> int:
    way, place, *rest = sys.argv[1:]
    sys.path.insert(0, str(MODEL))
    modules: tuple[Any, ...] = tuple(map(importlib.import_module, ("swell", "outputs")))
    swell, outputs = modules
    writers: dict[str, Any] = {"files": FileWriter, "synced": SyncedFileWriter, "archive": ArchiveWriter}
    writer: Writer = writers[way](Path(place))

    def outputs_of(given: Any, model: Any) -> Any:
        made = outputs.Outputs(given, model)
        made._sinks.append(lambda message: take(writer, message))
        write = made.write

        def write_and_end() -> None:
            write()
            writer.end_step()

        made.write = write_and_end
        return made

    swell.Outputs = outputs_of
    sys.argv = [str(MODEL / "swell.py"), *rest]
    status: int = swell.main()
    return status


def take(writer: Writer, message: Any) -> None:
    about = message.attributes
    writer.take(Name(about["param"], about["number"], about["step"]), message.data)


if __name__ == "__main__":
    sys.exit(main())
