"""The wheel in clean environments: what was installed works, away from the source tree.

`make wheel` builds it, with the profile and the crates of the other suites. It is then all that is installed, with
NumPy: the package, its types and the command, on each CPython from 3.10 to 3.13 that this machine has. One environment
gets the extra `products`, too. The pins of the development environment are consistent.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import tomllib
from c_of_wheel import other_symbols, programs

ROOT = Path(__file__).resolve().parents[2]
VERSIONS = ("3.10", "3.11", "3.12", "3.13")
# The first version that has all of the stable ABI that the wheel uses.
STABLE_SINCE = "3.11"
# The oldest that the package says it works with. What is compiled knows nothing of NumPy, so any goes with any.
OLDEST_NUMPY = "numpy==1.24.4"
# Compressed, of the profile `release`. It holds the server, the command, and the store with what speaks Parquet and S3.
# The C library has the client, the server and the store once more.
WHEEL_BYTES_MAX = 20 << 20

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

PRODUCTS = """
import sys
from pathlib import Path
import eccodes, netCDF4, PIL, scipy, zarr
from mir.weight_matrix import WeightMatrix
import junctura.products

recipes = junctura.products.load_all([Path(name) for name in sys.argv[1:]])
print(len(recipes), "products are understood, with ecCodes", eccodes.codes_get_api_version())
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


class Environment:
    """A virtual environment that holds only what pip installs, and programs that see nothing else."""

    def __init__(self, folder: Path, interpreter: str | Path, kept: dict[str, str]) -> None:
        self.folder = folder
        self.python = folder / "venv/bin/python"
        folder.mkdir()
        self.kept = {**kept, "PIP_CACHE_DIR": str(ROOT / ".tools/pip-cache")}
        run(interpreter, "-m", "venv", folder / "venv", cwd=folder, environment=self.kept)

    def pip(self, *words: str | Path) -> str:
        command = [self.python, "-m", "pip", "--quiet", "--disable-pip-version-check", *words]
        return run(*command, cwd=self.folder, environment=self.kept)

    def install(self, *words: str | Path) -> None:
        self.pip("install", "--no-compile", *words)

    def clean(self) -> dict[str, str]:
        # A socket's path is short.
        return {
            "PATH": "/usr/bin:/bin",
            "HOME": str(self.folder),
            "XDG_RUNTIME_DIR": str(self.folder),
            "LANG": "C.UTF-8",
        }

    def run(self, *words: str | Path, also: list[str] | None = None) -> str:
        beside = [str(self.python), *also] if also else None
        return run(self.python, *words, cwd=self.folder, environment=self.clean(), also=beside)


def interpreters() -> dict[str, Path]:
    """The CPythons of this machine, by version: those on the path, and pyenv's."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found: dict[str, Path] = {}
    for version in VERSIONS:
        on_path = shutil.which(f"python{version}")
        candidates = [Path(on_path)] if on_path else []
        candidates += sorted(pyenv.glob(f"{version}.*/bin/python{version}"))
        for candidate in candidates:
            if _is_cpython(candidate, version):
                found[version] = candidate
                break
    return found


def _is_cpython(program: Path, version: str) -> bool:
    # A shim of pyenv's for a version that is not chosen fails; Debian's python3.X may lack venv.
    asked = "import ensurepip, sys, venv; print(sys.implementation.name, '%d.%d' % sys.version_info[:2])"
    done = subprocess.run([program, "-c", asked], capture_output=True, text=True, check=False)
    return done.stdout.split() == ["cpython", version]


def readme_block() -> str:
    """The program of the README that needs nothing but NumPy."""
    path = ROOT / "tests/readme/run.py"
    spec = importlib.util.spec_from_file_location("readme_run", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    found = [block.code for block in module.blocks(ROOT / "README.md") if "import junctura" in block.code]
    return str(found[0])


def pins(name: str) -> dict[str, str]:
    """What a file of requirements pins, by package."""
    found: dict[str, str] = {}
    for line in (ROOT / f"python/requirements-{name}.txt").read_text().splitlines():
        pin = line.partition("#")[0].strip()
        if not pin or pin.startswith(("-r ", "--hash")):
            continue
        package, is_pinned, version = pin.rstrip(" \\").partition("==")
        package = re.sub("[-_.]+", "-", package).lower()
        if not is_pinned or package in found:
            raise StepError(f"requirements-{name}.txt: {pin} is no pin, or the second one of its package")
        found[package] = version
    return found


def check_pins() -> str:
    """Each file of requirements includes the one before, and a package has one version everywhere."""
    purposes = ("build", "demo", "dev")
    together: dict[str, str] = {}
    for name in purposes:
        own = pins(name)
        if twice := own.keys() & together.keys():
            raise StepError(f"requirements-{name}.txt pins again what a smaller file pins: {', '.join(sorted(twice))}")
        together.update(own)
    for larger, smaller in zip(purposes[1:], purposes, strict=False):
        if (
            f"-r requirements-{smaller}.txt"
            not in (ROOT / f"python/requirements-{larger}.txt").read_text().splitlines()
        ):
            raise StepError(f"requirements-{larger}.txt does not include requirements-{smaller}.txt")
    for package, version in pins("fdb").items():
        if together.get(package, version) != version:
            raise StepError(f"requirements-fdb.txt has {package} {version}, development {together[package]}")
    return f"{len(together)} packages are pinned, each once"


def check_versions() -> str:
    """The project claims the versions that are tried here."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)["project"]
    claimed = [line.rpartition(" ")[2] for line in project["classifiers"] if re.search(r":: 3\.\d+$", line)]
    if tuple(claimed) != VERSIONS or project["requires-python"] != f">={VERSIONS[0]}":
        raise StepError(f"pyproject.toml claims CPython {', '.join(claimed)}, and {project['requires-python']}")
    return f"pyproject.toml claims CPython {', '.join(claimed)}"


def check_extras() -> str:
    """The page about installation names the extras that there are."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)["project"]
    page = (ROOT / "docs/guide/install.md").read_text()
    table = page.partition("| extra | for |")[2].partition("\n\n")[0]
    named = {
        name
        for line in table.splitlines()
        for name in re.findall(r"`(\w+)`", line.split("|")[1] if "|" in line else "")
    }
    if named != set(project["optional-dependencies"]):
        raise StepError(
            f"install.md names other extras than pyproject.toml: {named ^ set(project['optional-dependencies'])}"
        )
    return f"install.md names the {len(named)} extras"


def build(folder: Path, kept: dict[str, str], python: Path | None) -> Path:
    """The wheel that `make wheel` builds, for the interpreter of development or another."""
    words = ["make", "wheel", f"DIST={folder}", *([f"PYTHON={python}"] if python else [])]
    run(*words, cwd=ROOT, environment=kept)
    (wheel,) = folder.iterdir()
    size = wheel.stat().st_size
    if kept.get("JUNCTURA_PROFILE", "release") == "release" and size > WHEEL_BYTES_MAX:
        raise StepError(f"the wheel has {size} bytes, more than {WHEEL_BYTES_MAX}")
    return wheel


def check_environment(there: Environment, wheel: Path) -> Iterator[str]:
    """The wheel alone: it brings NumPy, and what the README shows works."""
    there.install(wheel)
    there.pip("check")
    yield there.run("-c", HERE).strip()
    version = there.run("-m", "junctura", "--version")
    if run(there.folder / "venv/bin/junctura", "--version", cwd=there.folder, environment=there.clean()) != version:
        raise StepError("the script `junctura` is not `python -m junctura`")
    there.run("-c", readme_block())
    yield f"{version.splitlines()[0]}, as a module and as a script; the README's program"


def check_more(there: Environment) -> Iterator[str]:
    """What is the same for each interpreter."""
    url = f"unix:{there.folder}/pool"
    there.run("-c", OFFERS, url, also=["-c", ANSWERS, url])
    yield "two processes, with a server that the wheel started"
    if not list((there.python.parents[1] / "lib").glob("python*/site-packages/junctura/py.typed")):
        raise StepError("there are no types")
    there.install(OLDEST_NUMPY)
    yield there.run("-c", HERE).strip()


def check_c(there: Environment) -> Iterator[str]:
    """Programs in other languages, from the wheel alone."""
    command = there.folder / "venv/bin/junctura"
    if wrong := other_symbols(there.folder, command, there.clean()):
        raise StepError(f"the C library exports, or lacks, {sorted(wrong)}")
    yield "the C library exports the functions of its header"
    for way, said in programs(there.folder, command, there.clean()):
        if said != "hello\n":
            raise StepError(f"{way}: {said}")
        yield way


def check_products(there: Environment, wheel: Path) -> str:
    """The wheel with an extra."""
    there.install(f"{wheel}[products]", "--constraint", ROOT / "python/requirements-dev.txt")
    there.pip("check")
    files = sorted((ROOT / "examples/12_products/recipes").glob("*.yaml"))
    return there.run("-c", PRODUCTS, *files).strip()


def check(folder: Path, kept: dict[str, str]) -> Iterator[str]:
    """Builds the wheel, installs it and uses it; gives what was shown."""
    yield check_pins()
    yield check_versions()
    yield check_extras()
    run(sys.executable, "-m", "pip", "check", cwd=ROOT, environment=kept)
    yield "the development environment passes `pip check`"
    stable = build(folder / "stable", kept, None)
    yield f"{stable.name}, {stable.stat().st_size / (1 << 20):.1f} MiB"
    found = interpreters()
    for version in VERSIONS:
        if version not in found:
            print(f"left out: CPython {version} is not on this machine")
            continue
        own = tuple(map(int, version.split("."))) < tuple(map(int, STABLE_SINCE.split(".")))
        wheel = build(folder / version, kept, found[version]) if own else stable
        there = Environment(folder / f"on-{version}", found[version], kept)
        for line in check_environment(there, wheel):
            yield f"CPython {version}: {line}"
        if version == STABLE_SINCE:
            for line in (*check_more(there), *check_c(there)):
                yield f"CPython {version}: {line}"
    yield check_products(Environment(folder / "products", sys.executable, kept), stable)


def main() -> int:
    """Installs, runs what users run, and says whether it worked."""
    mine = ("VIRTUAL_ENV", "PYO3_PYTHON", "PYTHONPATH", "JUNCTURA_PROGRAM", "MAKEFLAGS", "MAKELEVEL")
    kept = {name: value for name, value in os.environ.items() if name not in mine}
    passed = 0
    with tempfile.TemporaryDirectory(prefix="install-") as folder:
        try:
            for line in check(Path(folder), kept):
                print(f"install: {line}", flush=True)
                passed += 1
        except StepError as failed:
            print(f"failed: install: {failed}")
            print(f"install: {passed} passed, 1 failed")
            return 1
    print(f"install: {passed} passed, 0 failed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
