"""The ensemble on a cluster: server, members and products are jobs of a real Slurm, on nodes of their own."""

from __future__ import annotations

import getpass
import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("psij")
pytest.importorskip("eccodes")

import eccodes
from run_real import Real
from slurm import NODES, Slurm

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
MEMBERS = [f"member-{number}" for number in range(1, 4)]
PRODUCTS = sorted(
    [f"height_{number}_{step:03}.grib2" for number in range(1, 4) for step in range(0, 25, 6)]
    + [f"wind_{step:03}.grib2" for step in range(0, 25, 6)]
)
SERVER = """\
workflow: test
executor: slurm
pool: {service: server}
tasks:
  server:
    service:
      - sh
      - -c
      - exec junctura pool serve --pool "tcp://$(hostname):0" --announce --security "$0"
      - "{here}/secrets"
"""


@pytest.fixture
def folder(slurm: Slurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the example's folder, where files may be made."""
    made = tmp_path / "13_workflows"
    shutil.copytree(EXAMPLES / "13_workflows", made, ignore=shutil.ignore_patterns("runs", "secrets", "__pycache__"))
    (tmp_path / "11_swell").symlink_to(EXAMPLES / "11_swell")
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=":")
    # Where the scripts of jobs go; nobody's own token lies there.
    monkeypatch.setenv("HOME", str(slurm.folder))
    # As between machines that share no memory.
    monkeypatch.setenv("JUNCTURA_TRANSPORTS", "tcp")
    return made


@pytest.fixture
def token(folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """What the server and those in its pool need is made as the example's page says; the token itself."""
    try:
        socket.gethostbyname(socket.gethostname())
    except OSError as error:
        pytest.skip(f"this machine, which is all nodes, does not know its own name: {error}")
    (block,) = re.findall(r"^```sh\n(.*?)^```$", (folder / "README.md").read_text(), re.M | re.S)
    *made, run = block.splitlines()
    assert run == "junctura run slurm.yaml"
    script = "\n".join([*made, "env --null"])
    environment = {**os.environ, "USER": getpass.getuser()}
    command = ["bash", "-euc", script]
    said = subprocess.run(command, cwd=folder, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout
    exported = dict(line.partition("=")[::2] for line in said.split("\0"))
    for name in ("JUNCTURA_CA_FILE", "JUNCTURA_TOKEN_FILE"):
        monkeypatch.setenv(name, exported[name])
    return Path(exported["JUNCTURA_TOKEN_FILE"]).read_text().strip()


def nodes(real: Real, slurm: Slurm) -> dict[str, str]:
    """Of each task that was a job, on which node that ran, as Slurm says it."""
    found = {}
    for line in real.record():
        if line["kind"] == "begin" and line["identity"].startswith("slurm job "):
            said = slurm.run("scontrol", "--oneliner", "show", "job", line["identity"].removeprefix("slurm job "))
            words = dict(word.partition("=")[::2] for word in said.stdout.split())
            assert words["JobName"] == f"{line['task']}.{line['attempt']}"
            found[line["task"]] = words["NodeList"]
    return found


def check_no_job_is_left(slurm: Slurm) -> None:
    assert slurm.run("squeue", "--noheader").stdout == ""
    assert list((slurm.folder / ".psij").iterdir()) == []


def files_with(text: str, *folders: Path) -> list[Path]:
    """The files below folders in which a text stands."""
    files = [file for folder in folders for file in folder.rglob("*") if file.is_file()]
    return [file for file in files if text.encode() in file.read_bytes()]


def test_an_ensemble_runs_as_jobs_and_they_know_pool_and_token(folder: Path, token: str, slurm: Slurm) -> None:
    real = Real(folder, (folder / "slurm.yaml").read_text())
    said = real.run(0)
    check_no_job_is_left(slurm)
    tasks = {"server", *MEMBERS, "products", "listing"}
    assert real.outcomes() == dict.fromkeys(tasks, "done")
    where = nodes(real, slurm)
    assert where.keys() == tasks - {"listing"} and set(where.values()) <= set(NODES)
    assert where["server"] not in {node for task, node in where.items() if task != "server"}
    check_products(folder / "run/products")
    assert "20 products in" in real.log("products.1") and "90 objects" in real.log("listing.1")
    check_all_met_where_the_server_said(real)
    # Slurm has kept the scripts and the environments of its jobs: these name the token's file.
    assert files_with(str(folder / "secrets/token"), slurm.folder) != []
    assert files_with(token, folder, slurm.folder) == [folder / "secrets/token"]
    assert token not in said


def check_products(made: Path) -> None:
    assert sorted(file.name for file in made.glob("*.grib2")) == PRODUCTS
    for name in PRODUCTS:
        with (made / name).open("rb") as file:
            # Of the wind mean and maximum.
            assert eccodes.codes_count_in_file(file) == (1 if name.startswith("height") else 2)


def check_all_met_where_the_server_said(real: Real) -> None:
    lines = real.record()
    (pool,) = [line["pool"] for line in lines if line.get("event") == "served"]
    assert pool.startswith("tcp://") and real.log("server.1").startswith(f"{pool}\n")
    commands = {line["task"]: line["command"] for line in lines if line["kind"] == "start"}
    assert all(pool in commands[member] for member in MEMBERS)
    joined = {line["client"] for line in lines if line.get("event") == "joined"}
    assert joined >= {"swell-1", "swell-2", "swell-3", "products", "listing"}


def test_a_job_without_the_token_is_refused(folder: Path, token: str, slurm: Slurm) -> None:
    assert token
    text = SERVER + '  without:\n    run: [sh, -c, "unset JUNCTURA_TOKEN_FILE; exec junctura ls"]\n'
    real = Real(folder, text + "  with:\n    run: [junctura, ls, --count, name=none]\n")
    real.run(1)
    check_no_job_is_left(slurm)
    assert real.outcomes() == {"without": "failed", "with": "done", "server": "done"}
    assert "Denied" in real.log("without.1") and real.log("with.1") == "0\n"
