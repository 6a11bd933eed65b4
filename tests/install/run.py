"""`pip install .` in a clean environment: what was installed works, away from the source tree.

The environment knows nothing of the one that development uses: pip fetches the build tool and NumPy as it would for a
user. Cargo's target folder is shared, so that the crates are not compiled once more.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import numpy
import junctura

with junctura.Pool(schema="free") as pool:
    field = numpy.arange(12.0).reshape(3, 4)
    version = pool.offer(field, name="field", unit="K")
    found = pool.demand(name="field", timeout=60)
    assert found.version == version
    assert numpy.array_equal(found.array(), field)
    found.release()
print("junctura", junctura.__version__, "from", junctura.__file__)
"""


def main() -> int:
    """Installs, runs the program, and says whether it worked."""
    kept = {
        name: value for name, value in os.environ.items() if name not in ("VIRTUAL_ENV", "PYO3_PYTHON", "PYTHONPATH")
    }
    target = kept.get("CARGO_TARGET_DIR", str(ROOT / "target"))
    environment = {**kept, "CARGO_TARGET_DIR": target, "PIP_CACHE_DIR": str(ROOT / ".tools/pip-cache")}
    with tempfile.TemporaryDirectory(prefix="install-") as folder:
        python = f"{folder}/venv/bin/python"
        for command in (
            [sys.executable, "-m", "venv", f"{folder}/venv"],
            [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(ROOT)],
            [python, "-c", PROGRAM],
        ):
            if subprocess.run(command, cwd=folder, env=environment, stdin=subprocess.DEVNULL).returncode != 0:
                print(f"install: failed at: {' '.join(command[:4])}")
                print("install: 0 passed, 1 failed")
                return 1
    print("install: 1 passed, 0 failed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
