"""The suites of ``tests/run.py``: what each runs, what it needs, and whether it builds or waits.

A suite that *builds* keeps all cores busy; one that *waits* starts processes and leaves the cores idle for much of
its time. One builder and some waiters run at the same time. All of Rust is compiled once, by ``compile``, with the
profile ``ci``, while ``setup`` installs what the suites use. Suites run what was built, directly, so that none waits
for cargo's lock.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
PYTHON = str(ROOT / ".venv/bin/python")
# The profile of Cargo.toml that everything is tested with.
PROFILE = "ci"
# Of all that is random: `PROPTEST_RNG_SEED=… cargo test` and `pytest --hypothesis-seed=…` repeat it.
SEED = "20261121"
PYTEST = [PYTHON, "-m", "pytest", "-q", f"--hypothesis-seed={SEED}"]


@dataclass(frozen=True)
class Suite:
    """A command, and the suites that must have passed before."""

    name: str
    command: list[str]
    needs: list[str] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)
    builds: bool = False
    limit_s: int = 3600
    # No process of the suite may have more address space. AddressSanitizer reserves more than any machine has.
    memory_is_limited: bool = True
    # The tests of other suites, by another route or with other instructions: run last, while there is time.
    repeats: bool = False
    # Files without which the suite makes no sense.
    there: list[str] = field(default_factory=list)

    def exists(self) -> bool:
        return all(any(ROOT.glob(pattern)) for pattern in self.there)


# Every pool is reached over TCP, through a gate of the client's own.
OVER_TCP = {"JUNCTURA_TEST_DETOUR": "tcp"}
# As before, and from there by an upstream of the client's own.
BY_UPSTREAM = {"JUNCTURA_TEST_DETOUR": "upstream"}
# Over TCP, with three streams for each connection.
OVER_STREAMS = {**OVER_TCP, "JUNCTURA_STREAMS": "3"}
# Tests of the facade whose clients open upstreams of their own, by any route.
OWN_UPSTREAMS = "upstream::"
# Tests that give the same result by any route to a pool: of texts, conversions, decoders and stores. `make soak` has
# them over TCP, too.
OF_ANY_ROUTE = (
    "test_board",
    "test_command",
    "test_coordinates",
    "test_dask_selector",
    "test_docstrings",
    "test_doctor",
    "test_errors",
    "test_explain",
    "test_field_[cfgstv]*",
    "test_form",
    "test_full",
    "test_import",
    "test_json_output",
    "test_keys",
    "test_keywords",
    "test_labels",
    "test_lessons",
    "test_load_store",
    "test_masked",
    "test_messages",
    "test_metrics",
    "test_mistakes",
    "test_model",
    "test_remap*",
    "test_store*",
    "test_structure",
    "test_stub",
    "test_top",
    "test_usage",
    "test_user_program",
    "test_xarray*",
)
OF_ROUTES = [f"--ignore-glob=*/{name}.py" for name in OF_ANY_ROUTE]


def builds(name: str, *command: str, needs: tuple[str, ...] = ("setup",), memory_is_limited: bool = True) -> Suite:
    """A suite that keeps all cores busy."""
    return Suite(name, list(command), needs=list(needs), builds=True, memory_is_limited=memory_is_limited)


def of_rust(name: str, *what: str, **environment: str) -> Suite:
    """Test programs of Rust that ``build`` has made: see ``tests/rust.py``."""
    return Suite(name, [PYTHON, "tests/rust.py", *what], needs=["build"], environment=environment)


def of_processes(
    name: str, *command: str, needs: tuple[str, ...] = (), environment: dict[str, str] | None = None
) -> Suite:
    """A suite of processes that use what ``build`` has made."""
    return Suite(name, list(command), needs=["build", *needs], environment=environment or {})


def repeat(suite: Suite) -> Suite:
    """A suite that continuous integration leaves out, by name, where time is short."""
    return replace(suite, repeats=True)


def with_instructions(level: str) -> Suite:
    """Copies, checksums and products without the newer instructions of this processor."""
    limited = {"JUNCTURA_ISA": level, "NPY_DISABLE_CPU_FEATURES": NUMPY_WITHOUT[level]}
    return repeat(of_processes(f"isa-{level}", PYTHON, "tests/isa.py", level, environment=limited))


# Instruction sets that NumPy must not use at these levels, by NumPy's names.
NUMPY_WITHOUT = {
    "portable": "X86_V3 X86_V4 AVX512_ICL AVX512_SPR",
    "avx2": "X86_V4 AVX512_ICL AVX512_SPR",
}
GUIDE = sorted(map(str, ROOT.glob("docs/guide/*.md")))
TOURS = ("README.md", "docs/guide/first-steps.md")

# Builders run in this order; among waiters, the longest first, and then those that repeat tests of others.
SUITES = [
    # apt-get closes as many descriptors as it may have open, whenever it starts a program.
    Suite("setup", ["bash", "-c", "ulimit -Sn 4096; exec tools/setup.sh dev"], memory_is_limited=False),
    builds("compile", "make", "compile-ci", needs=()),
    builds("build", "make", "build-ci", needs=("compile", "setup")),
    builds("servers", "tools/setup.sh", "servers"),
    builds("sanitizers", "tools/asan.sh", memory_is_limited=False),
    builds("lint", "make", "lint"),
    builds("doc", "cargo", "test", "--profile", PROFILE, "--no-fail-fast", "--workspace", "--doc", needs=("build",)),
    builds("reference", "make", "reference"),
    builds("features", "cargo", "xtask", "features", "--profile", PROFILE),
    builds("install", PYTHON, "tests/install/run.py", needs=("build",)),
    of_processes("products", *PYTEST, "tests/products"),
    # A browser reserves more address space than any machine has memory.
    Suite("site-browser", [*PYTEST, "tests/site/test_browser.py"], needs=["build"], memory_is_limited=False),
    of_rust("unit", "unit", JUNCTURA_SEEDS="all"),
    of_processes("e2e", *PYTEST, "tests/e2e"),
    of_rust("integration", "integration", JUNCTURA_SEEDS="all"),
    of_processes("python", *PYTEST, "--doctest-modules", "python/junctura", "tests/python"),
    of_processes("workflow", *PYTEST, "tests/workflow"),
    of_rust("integration-tcp", "facade", **OVER_TCP),
    of_processes("guide", PYTHON, "tests/readme/run.py", *GUIDE),
    of_processes("examples", *PYTEST, "tests/examples"),
    of_processes("store-s3", PYTHON, "tests/store/s3.py", needs=("servers",)),
    of_processes("fdb", PYTHON, "tests/fdb/run.py"),
    of_processes("adios2", PYTHON, "tests/adios2/run.py"),
    of_processes("link", *PYTEST, "tests/link", needs=("servers",)),
    of_processes("storm", *PYTEST, "tests/storm"),
    of_processes("grib", *PYTEST, "tests/grib"),
    of_processes("meshes", *PYTEST, "tests/meshes"),
    of_processes("c", *PYTEST, "tests/c"),
    of_processes("intercept", *PYTEST, "tests/intercept"),
    of_processes("catalyst", *PYTEST, "tests/catalyst"),
    of_processes("mistakes", *PYTEST, "tests/mistakes"),
    of_processes("fortran", *PYTEST, "tests/fortran"),
    of_processes("intercept-mpi", *PYTEST, "tests/intercept_mpi"),
    of_processes("surroundings", PYTHON, "tests/surroundings.py"),
    of_processes("readme", PYTHON, "tests/readme/run.py"),
    of_processes("site", *PYTEST, "tests/site/test_pages.py", needs=("reference",)),
    Suite("runner", [*PYTEST, "tests/runner"], needs=["setup"]),
    of_processes("cli-page", PYTHON, "tests/readme/run.py", "docs/cli.md"),
    repeat(of_processes("e2e-tcp", *PYTEST, *OF_ROUTES, "tests/e2e", "tests/python", environment=OVER_TCP)),
    repeat(of_rust("integration-upstream", "facade", "--skip", OWN_UPSTREAMS, **BY_UPSTREAM)),
    repeat(of_rust("integration-streams", "facade", "--skip", OWN_UPSTREAMS, **OVER_STREAMS)),
    with_instructions("portable"),
    with_instructions("avx2"),
    repeat(of_processes("tours-twice", PYTHON, "tests/readme/run.py", "--together", *TOURS, *TOURS)),
]
