"""The wheel in a clean environment: what was installed works, away from the source tree.

The environment knows nothing of the one that development uses: pip fetches the build tool and NumPy as it would for a
user. Cargo's target folder is shared, so that the crates are not compiled once more. The wheel is all that is
installed: it is the package, with its types, and the command.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# The oldest that the package says it works with. What is compiled knows nothing of NumPy, so any goes with any.
OLDEST_NUMPY = "numpy==1.24.4"
# Compressed. It holds the server, the command, and the store with what speaks Parquet and S3.
WHEEL_BYTES_MAX = 12 << 20

HERE = """
import asyncio
import numpy
import junctura

with junctura.Pool(schema="free") as pool:
    field = numpy.arange(12.0).reshape(3, 4)
    version = pool.offer(field, name="field", unit="K")
    found = pool.demand(name="field", timeout=60)
    assert found.version == version
    assert numpy.array_equal(found.array(), field)
    found.release()

    async def main():
        async with junctura.aio.Pool(pool) as ours:
            return (await ours.demand(name="field")).array().sum()

    assert asyncio.run(main()) == 66
print("junctura", junctura.__version__, "with NumPy", numpy.__version__, "from", junctura.__file__)
"""

# No program `junctura` is on the path: the pool's server is started from the package itself.
OFFERS = """
import sys
import numpy
import junctura

with junctura.Pool(sys.argv[1], schema="free", start=True) as pool:
    pool.offer(numpy.arange(1 << 17), name="field")
    assert bytes(pool.demand(name="answer", timeout=60)) == b"8589869056"
    pool.stop()
"""
ANSWERS = """
import sys
import junctura

with junctura.Pool(sys.argv[1], schema="free", start=True) as pool:
    obj = pool.demand(name="field", timeout=60)
    assert obj.transport == "shared"
    total = str(obj.array().sum())
    obj.release()
    pool.offer(total.encode(), name="answer")
"""


class StepError(Exception):
    """A step did not do what it should."""


def run(*command: str | Path, cwd: Path, environment: dict[str, str], also: list[str] | None = None) -> str:
    """What a command prints; `also` runs beside it."""
    options = {"cwd": cwd, "env": environment, "stdin": subprocess.DEVNULL}
    beside = subprocess.Popen(also, **options) if also else None  # type: ignore[call-overload]
    done = subprocess.run([str(word) for word in command], **options, stdout=subprocess.PIPE, text=True, check=False)  # type: ignore[call-overload]
    codes = [done.returncode, *([beside.wait()] if beside else [])]
    if any(codes):
        raise StepError(f"{' '.join(str(word) for word in command[:4])}: exit status {codes}")
    return str(done.stdout)


def check(folder: Path, kept: dict[str, str]) -> list[str]:
    """Builds the wheel, installs it and uses it; gives what was shown."""
    shown = []
    target = kept.get("CARGO_TARGET_DIR", str(ROOT / "target"))
    building = {**kept, "CARGO_TARGET_DIR": target, "PIP_CACHE_DIR": str(ROOT / ".tools/pip-cache")}
    python = folder / "venv/bin/python"
    pip = [str(python), "-m", "pip", "--quiet", "--disable-pip-version-check"]
    run(sys.executable, "-m", "venv", folder / "venv", cwd=folder, environment=building)
    run(*pip, "wheel", "--no-deps", "--wheel-dir", folder / "wheels", ROOT, cwd=folder, environment=building)
    (wheel,) = (folder / "wheels").iterdir()
    size = wheel.stat().st_size
    if size > WHEEL_BYTES_MAX:
        raise StepError(f"the wheel has {size} bytes, more than {WHEEL_BYTES_MAX}")
    shown.append(f"a wheel of {size / (1 << 20):.1f} MiB")
    run(*pip, "install", wheel, cwd=folder, environment=building)
    # From here on nothing is known but what is installed.
    clean = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "XDG_RUNTIME_DIR": str(folder), "LANG": "C.UTF-8"}
    shown.append(run(python, "-c", HERE, cwd=folder, environment=clean).strip())
    version = run(python, "-m", "junctura", "--version", cwd=folder, environment=clean)
    if run(folder / "venv/bin/junctura", "--version", cwd=folder, environment=clean) != version:
        raise StepError("the script `junctura` is not `python -m junctura`")
    shown.append(f"{version.splitlines()[0]}, as a module and as a script")
    url = f"unix:{folder}/pool"
    run(python, "-c", OFFERS, url, cwd=folder, environment=clean, also=[str(python), "-c", ANSWERS, url])
    shown.append("two processes, with a server that the wheel started")
    if not (python.parents[1] / "lib").glob("python*/site-packages/junctura/py.typed"):
        raise StepError("there are no types")
    run(*pip, "install", OLDEST_NUMPY, cwd=folder, environment=building)
    shown.append(run(python, "-c", HERE, cwd=folder, environment=clean).strip())
    return shown


def main() -> int:
    """Installs, runs what users run, and says whether it worked."""
    mine = ("VIRTUAL_ENV", "PYO3_PYTHON", "PYTHONPATH", "JUNCTURA_PROGRAM")
    kept = {name: value for name, value in os.environ.items() if name not in mine}
    with tempfile.TemporaryDirectory(prefix="install-") as folder:
        try:
            shown = check(Path(folder), kept)
        except StepError as failed:
            print(f"install: failed at: {failed}")
            print("install: 0 passed, 1 failed")
            return 1
    for line in shown:
        print(f"install: {line}")
    print(f"install: {len(shown)} passed, 0 failed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
