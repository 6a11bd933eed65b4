"""A Slurm of this machine alone: four nodes that are processes, in a folder of its own.

Nothing of it is shared with a Slurm that this machine may have, and nothing is left of it. It needs the programs of
Debian's packages slurmctld, slurmd, slurm-client and munge (``tools/setup.sh`` installs them where it can), and neither
root, systemd nor cgroups. ``slurm.py COMMAND...`` runs a command with such a Slurm.
"""

from __future__ import annotations

import contextlib
import getpass
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

NODES = [f"n{index}" for index in range(1, 5)]
CORES = 2
MEMORY_MIB = 1000
_LIMIT_S = 60

_CONFIGURATION = """
ClusterName=junctura
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
SlurmctldPort={control}
SlurmctldPidFile={folder}/slurmctld.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdPidFile={folder}/%n.pid
SlurmdLogFile={folder}/%n.log
SlurmdSpoolDir={folder}/%n
TmpFS={folder}/%n
StateSaveLocation={folder}/state
PlugStackConfig={folder}/none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerParameters=batch_sched_delay=0,sched_interval=1,bf_interval=1
ReturnToService=2
KillWait=2
{nodes}
PartitionName=all Nodes={names} Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO
"""


class NoSlurmError(Exception):
    """There is no Slurm to be had here; it says why."""


class Slurm:
    """A Slurm that runs; `environment` is what its commands need."""

    def __init__(self) -> None:
        # Not below a test's own folder: a socket's path is short.
        self.folder = Path(tempfile.mkdtemp(prefix="slurm-"))
        self.environment = {"SLURM_CONF": str(self.folder / "slurm.conf")}
        self._started: list[subprocess.Popen[bytes]] = []
        try:
            self._start()
        except BaseException:
            self.close()
            raise

    def _start(self) -> None:
        self.folder.chmod(0o755)
        self._configure()
        key = self.folder / "munge.key"
        key.write_bytes(secrets.token_bytes(128))
        key.chmod(0o600)
        files = [f"--{what}-file={self.folder}/munge.{what}" for what in ("key", "pid", "log", "seed")]
        self._begin("munged", "--foreground", f"--socket={self.folder}/munge.socket", *files)
        self._begin("slurmctld", "-D")
        for node in NODES:
            self._begin("slurmd", "-D", "-N", node)
        self._wait_for_nodes()

    def _configure(self) -> None:
        control, *ports = _free_ports(1 + len(NODES))
        host = socket.gethostname().partition(".")[0]
        nodes = [
            f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs={CORES} RealMemory={MEMORY_MIB}"
            for name, port in zip(NODES, ports, strict=True)
        ]
        for name in ("state", *NODES):
            (self.folder / name).mkdir()
        (self.folder / "none").touch()
        text = _CONFIGURATION.format(
            host=host,
            user=getpass.getuser(),
            folder=self.folder,
            control=control,
            nodes="\n".join(nodes),
            names=",".join(NODES),
        )
        (self.folder / "slurm.conf").write_text(text)

    def _begin(self, program: str, *arguments: str) -> None:
        path = shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
        if path is None:
            raise NoSlurmError(f"{program} is not installed here: tools/setup.sh does so where it can")
        with (self.folder / "output").open("ab") as output:
            self._started.append(
                subprocess.Popen(
                    [path, *arguments],
                    env={**os.environ, **self.environment},
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    start_new_session=True,
                )
            )

    def _wait_for_nodes(self) -> None:
        """Until all nodes take jobs: each runs one."""
        command = ["srun", f"--nodes={len(NODES)}", "--ntasks-per-node=1", f"--immediate={_LIMIT_S}", "true"]
        done = self.run(*command)
        if done.returncode != 0:
            said = (self.folder / "output").read_text()[-2000:]
            raise NoSlurmError(f"Slurm does not run here: {done.stderr}\n{said}")

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """One of its commands."""
        environment = {**os.environ, **self.environment}
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    def close(self) -> None:
        """Ends it, with its jobs."""
        self.run("scancel", "--signal=KILL", f"--user={getpass.getuser()}")
        for process in reversed(self._started):
            process.terminate()
        for process in reversed(self._started):
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_LIMIT_S)
            process.kill()
            process.wait()
        for orphan in self._orphans():
            with contextlib.suppress(ProcessLookupError):
                os.kill(orphan, signal.SIGKILL)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _orphans(self) -> Iterator[int]:
        """What jobs left: without cgroups Slurm loses sight of who has lost its parent."""
        mark = "".join(f"{name}={value}" for name, value in self.environment.items()).encode()
        for folder in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if folder.name.isdigit() and mark in (folder / "environ").read_bytes().split(b"\0"):
                    yield int(folder.name)


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        listeners = [stack.enter_context(socket.socket()) for _ in range(count)]
        for listener in listeners:
            listener.bind(("127.0.0.1", 0))
        return [listener.getsockname()[1] for listener in listeners]


def main(command: list[str]) -> int:
    slurm = Slurm()
    try:
        return subprocess.run(command, env={**os.environ, **slurm.environment}, check=False).returncode
    finally:
        slurm.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
