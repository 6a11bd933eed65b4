"""MPI-IO of an unmodified program through the pool, beside the real library with files in /dev/shm, in the same run.

    benches/intercept_mpi.py [--family openmpi|mpich] [--out FILE]

Three questions, each with the program of benches/simulations/mpi_io.c: how long 4 ranks write an array by columns, and
3 ranks read it by rows; what the plan of 3,670,016 rows costs; and what a program loses that does nothing of interest.
Prints one JSON document. State the load of the machine with the figures.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILT = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / os.environ.get("JUNCTURA_PROFILE", "release")
LAUNCH = {"openmpi": ["mpirun.openmpi", "--oversubscribe"], "mpich": ["mpiexec.mpich"]}
AS_ROOT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_btl": "self,vader",
}
ROUNDS = 7


def build(family: str, folder: Path) -> tuple[Path, str]:
    """The program, and what is preloaded."""
    subprocess.run([str(ROOT / "c/intercept/mpi_io/build.sh"), str(folder)], check=True)
    (folder / "libjunctura.so.0").symlink_to(BUILT / "libjunctura_c.so")
    program = folder / "mpi_io"
    source = ROOT / "benches/simulations/mpi_io.c"
    subprocess.run([f"mpicc.{family}", "-O2", "-std=c11", str(source), "-o", str(program)], check=True)
    return program, str(folder / f"libjunctura-mpiio-{family}.so")


def plan(family: str, program: Path, environment: dict[str, str]) -> dict[str, float]:
    """The share of the plan in an exchange whose ranks have a run in each of 3,670,016 rows."""
    shares = []
    for turn in range(3):
        command = [*LAUNCH[family], "-n", "2", str(program), "rows", "3670016", f"rows-{turn}.array"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=300)
        shares.append([float(word) for word in done.stdout.split()[-2:]])
    planned, whole = min(shares, key=lambda each: each[1])
    return {"plan ms": round(planned * 1e3, 3), "whole ms": round(whole * 1e3, 2), "share": planned / whole}


def seconds(family: str, ranks: int, words: list[str], environment: dict[str, str]) -> float:
    """The time that the slowest rank of a program states."""
    command = [*LAUNCH[family], "-n", str(ranks), *words]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=300)
    return float(done.stdout.split()[-1])


def compare(family: str, program: Path, plain: dict[str, str], pooled: dict[str, str], size: int) -> dict[str, object]:
    """Writes and reads an array of size x size doubles both ways, in turns."""
    rows: dict[str, list[float]] = {}
    for turn in range(ROUNDS):
        for way, environment, name in (
            ("file", plain, f"/dev/shm/junctura-bench-{os.getpid()}-{turn}"),
            ("array", pooled, f"{turn}.array"),
            ("bytes", pooled, f"{turn}.bytes"),
        ):
            rows.setdefault(f"write {way}", []).append(
                seconds(family, 4, [str(program), "write", str(size), name], environment)
            )
            rows.setdefault(f"read {way}", []).append(
                seconds(family, 3, [str(program), "read", str(size), name], environment)
            )
            Path(name).unlink(missing_ok=True)
    times = {name: round(statistics.median(each) * 1e3, 2) for name, each in rows.items()}
    whole = {way: times[f"write {way}"] + times[f"read {way}"] for way in ("file", "array", "bytes")}
    return {
        "size": size,
        "ms": times,
        "array / file": round(whole["array"] / whole["file"], 3),
        "bytes / file": round(whole["bytes"] / whole["file"], 3),
    }


def overhead(family: str, program: Path, plain: dict[str, str], preloaded: dict[str, str]) -> dict[str, float]:
    """A program that writes a file that no rule matches, many small writes, with and without the library."""
    ways: dict[str, list[float]] = {"without": [], "with": []}
    for turn in range(ROUNDS):
        name = f"/dev/shm/junctura-bench-{os.getpid()}-{turn}"
        for way, environment in (("without", plain), ("with", preloaded)):
            ways[way].append(seconds(family, 1, [str(program), "small", "400000", name], environment))
            Path(name).unlink(missing_ok=True)
    least = {way: min(each) for way, each in ways.items()}
    return {
        **{f"{way} ms": round(value * 1e3, 2) for way, value in least.items()},
        "ratio": least["with"] / least["without"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--family", choices=sorted(LAUNCH), default="mpich")
    parser.add_argument("--size", type=int, default=2048)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mpi-") as made:
        folder = Path(made)
        program, preload = build(asked.family, folder)
        plain = {**os.environ, **AS_ROOT, "XDG_RUNTIME_DIR": made}
        serve = [str(BUILT / "junctura"), "pool", "serve", "--pool", f"unix:{made}/pool", "--schema", "free"]
        with subprocess.Popen(
            [*serve, "--budget", "4GiB", "--announce"], env=plain, stdout=subprocess.PIPE, text=True
        ) as server:
            assert server.stdout is not None
            url = server.stdout.readline().strip()
            rules = "*.array=array,*.bytes=bytes"
            pooled = {**plain, "LD_PRELOAD": preload, "JUNCTURA_POOL": url, "JUNCTURA_MPI_IO": rules}
            pooled["JUNCTURA_MPI_IO_RETENTION"] = "released:3"
            os.chdir(folder)
            result = {
                "family": asked.family,
                "load": os.getloadavg()[0],
                "cores": os.cpu_count(),
                "exchange": compare(asked.family, program, plain, pooled, asked.size),
                "plan": plan(asked.family, program, pooled),
                "overhead": overhead(asked.family, program, plain, pooled),
            }
            server.terminate()
    text = json.dumps(result, indent=1)
    if asked.out:
        asked.out.write_text(text + "\n")
    sys.stdout.write(text + "\n")


if __name__ == "__main__":
    main()
