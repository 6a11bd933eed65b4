"""Submits jobs to a batch system through PSI/J, which supports Slurm, PBS, LSF, Flux and others.

The status of jobs is polled; batch systems send no notifications. This module compensates for limitations of PSI/J: its
default time limit of ten minutes, missing quotes of file names, jobs that the batch system has forgotten (which count
as completed), and an unknown state of Slurm, which fails every job.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

from junctura._document.located_yaml import nearest
from junctura._xarray.label_attributes import needed
from junctura.errors import Closed, InvalidArgument
from junctura.workflow._executors.jobs import Ended, Job, Resources, Running

# Both outputs are appended to the log. The folder is set here, because PSI/J does not quote it.
_SCRIPT = 'exec >>"$0" 2>&1; cd -- "$1" || exit 126; shift; exec "$@"'
# Exit statuses with which a shell reports a missing program, and the offset for signal numbers.
_NOT_THERE, _BY_SIGNAL = 127, 128
# The limit for the batch system is longer than the task's, so that the origin of a termination is known.
_MARGIN_S = 60
_PROGRAMS = {
    "slurm": ("sbatch", "squeue", "scancel"),
    "pbs": ("qsub", "qstat", "qdel"),
    "pbs_classic": ("qsub", "qstat", "qdel"),
    "lsf": ("bsub", "bjobs", "bkill"),
    "cobalt": ("qsub", "qstat", "qdel"),
}
# A batch system that fails to answer this many times may be restarting; its jobs continue.
_ERRORS_MAX = 100
# Number of attempts to cancel a job.
_CANCELS_MAX = 20
# Time in which a canceled job must end: a busy node reports late.
_ENDING_S = 120
_DOES_NOT_END = "it does not end"


class BatchExecutor:
    """Jobs of a batch system; an `Executor`.

    A job that is stopped has the grace period of the batch system, even if it should end at once. Jobs survive a kill
    of this process.

    Jobs inherit the environment of this process. If a pool is served beyond this host, they need its address and the
    name of a token file (``JUNCTURA_POOL``, ``JUNCTURA_TOKEN_FILE``), which no other user can read from a command line.
    Further requests of a job are set in the batch system's own variables, as ``SBATCH_PARTITION``.

    Parameters
    ----------
    name
        The PSI/J name: ``slurm``, ``pbs``, ``lsf``, ``flux``, …
    folder
        The parent of a temporary folder for job scripts; must be visible to the nodes.
    poll_s
        Polling interval.

    Raises
    ------
    ImportError
        PSI/J is not installed.
    InvalidArgument
        The batch system is unknown, or batch scripts cannot contain the name of the folder.

    """

    def __init__(self, name: str, folder: Path | None = None, *, poll_s: float = 2.0) -> None:
        self._name, self._poll_s = name, poll_s
        self._psij = _psij()
        names = self._psij.JobExecutor.get_executor_names()
        if name not in names:
            raise InvalidArgument(name, f"there is no such batch system{nearest(name, sorted(names))}")
        self._folder = _scripts(folder or Path.home() / ".psij")
        self._executor = _executor(self._psij, name, self._folder, poll_s)
        self._jobs: set[_BatchJob] = set()
        self._changed = threading.Condition()
        self._is_closed = False
        # Sends requests to the batch system, which may be slow, in order.
        self._talker = ThreadPoolExecutor(1, thread_name_prefix=name)

    def start(
        self,
        job: Job,
        on_begin: Callable[[], None],
        on_end: Callable[[Ended], None],
        on_taken: Callable[[str], None] | None = None,
    ) -> Running:
        if self._is_closed:
            raise Closed(job.name, f"what hands jobs to {self._name} was closed")
        batch_job = _BatchJob(self, job, on_begin, on_end, on_taken)
        with self._changed:
            self._jobs.add(batch_job)
        self._talker.submit(batch_job.submit)
        return batch_job

    def check(self, job: Job) -> str:
        missing = [program for program in _PROGRAMS.get(self._name, ()) if shutil.which(program) is None]
        if missing:
            return f"there is no program {missing[0]}, which belongs to {self._name}"
        try:
            self.described(job)
        except self._psij.InvalidJobException as error:
            return str(error)
        return self._refused(job)

    def end_left(self, identities: Sequence[str]) -> Mapping[str, str]:
        jobs = {identity: self._attached(identity) for identity in identities}
        until = time.monotonic() + _ENDING_S
        for tries in itertools.count(1):
            left = {identity: _refusal(job) for identity, job in jobs.items()}
            for identity, job in jobs.items():
                if job.wait(timedelta(seconds=2 * self._poll_s)) is not None:
                    del left[identity]
            is_refused = _DOES_NOT_END not in left.values()
            if not left or (tries >= _CANCELS_MAX and (is_refused or time.monotonic() > until)):
                break
        return left

    def _attached(self, identity: str) -> Any:
        job = self._psij.Job(self._psij.JobSpec(executable="/bin/true"))
        self._executor.attach(job, identity.rpartition(" ")[2])
        return job

    def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        with self._changed:
            for job in self._jobs:
                job.end()
            self._changed.wait_for(lambda: not self._jobs)
        self._talker.shutdown()
        if poller := getattr(self._executor, "_queue_poll_thread", None):
            poller.done = True
        shutil.rmtree(self._folder, ignore_errors=True)

    def described(self, job: Job) -> Any:
        """Returns a job for PSI/J."""
        psij, resources = self._psij, job.resources
        processes = resources.ranks or resources.nodes
        cores = max(1, -(-resources.cores // processes))
        attributes = psij.JobAttributes()
        attributes.duration = None if job.limit_s is None else timedelta(seconds=int(job.limit_s) + _MARGIN_S)
        if self._name == "slurm":
            attributes.set_custom_attribute("slurm.job-name", re.sub(r"[^\w.=-]", "_", job.name))
        spec = psij.JobSpec(
            executable="/bin/sh",
            arguments=["-c", _SCRIPT, str(job.log.absolute()), str(job.folder.absolute()), *job.command],
            # `srun` does not request the cores of its job by itself.
            environment={**job.environment, **({"SRUN_CPUS_PER_TASK": str(cores)} if resources.ranks else {})},
            attributes=attributes,
            resources=psij.ResourceSpecV1(
                node_count=resources.nodes,
                process_count=processes,
                cpu_cores_per_process=cores,
                memory=self._memory(resources),
            ),
            launcher=self._launcher(resources),
        )
        return psij.Job(spec)

    def _memory(self, resources: Resources) -> int | None:
        if resources.memory_bytes is None or self._name != "slurm":
            return resources.memory_bytes
        # For Slurm this is per node.
        return max(1 << 20, -(-resources.memory_bytes // resources.nodes))

    def _launcher(self, resources: Resources) -> str:
        if resources.ranks is None:
            return "single"
        return "srun" if self._name == "slurm" else "mpirun"

    def _refused(self, job: Job) -> str:
        # It may accept a job that it can never start, and leave it pending.
        return _refused_by_slurm(job.resources) if self._name == "slurm" else ""

    def submit(self, job: Job, described: Any) -> str:
        """Submits a job, and returns its external name."""
        if refused := self._refused(job):
            raise self._psij.SubmitException(refused)
        self._executor.submit(described)
        return f"{self._name} job {described.native_id}"

    def forget(self, job: _BatchJob) -> None:
        with self._changed:
            self._jobs.discard(job)
            self._changed.notify_all()

    def talk(self, what: Callable[[], None]) -> None:
        # Once all jobs have ended, there is nothing to report.
        with contextlib.suppress(RuntimeError):
            self._talker.submit(what)

    def talk_later(self, what: Callable[[], None]) -> None:
        timer = threading.Timer(self._poll_s, self.talk, [what])
        timer.daemon = True
        timer.start()


class _BatchJob:
    """A submitted job."""

    def __init__(
        self,
        batch: BatchExecutor,
        job: Job,
        on_begin: Callable[[], None],
        on_end: Callable[[Ended], None],
        on_taken: Callable[[str], None] | None,
    ) -> None:
        self._batch = batch
        self._job = job
        self._on_begin = on_begin
        self._on_end = on_end
        self._on_taken = on_taken
        self._described: Any = None
        self._identity = "no job"
        self._is_known = threading.Event()
        self._lock = threading.RLock()
        self._has_begun = self._has_ended = False
        self._cause = ""
        self._limit: threading.Timer | None = None

    @property
    def identity(self) -> str:
        """``slurm job 12``; waits until the batch system has accepted or rejected it."""
        self._is_known.wait()
        return self._identity

    def end(self, *, at_once: bool = False) -> None:  # noqa: ARG002 - the batch system has a grace of its own
        self._end("cancelled")

    def _end(self, cause: str) -> None:
        with self._lock:
            if self._has_ended:
                return
            self._cause = self._cause or cause
        self._batch.talk(self._cancel)

    def submit(self) -> None:
        """Runs in the thread that communicates with the batch system; so do the following methods."""
        try:
            # The log always exists, even for a job that never started.
            with self._job.log.open("ab"):
                pass
            self._described = self._batch.described(self._job)
            self._described.set_job_status_callback(lambda _, status: self._tell(status))
            self._identity = self._batch.submit(self._job, self._described)
            if self._on_taken is not None:
                self._on_taken(self._identity)
        except Exception as error:
            self._tell_end(Ended(None, cause=_words(error)))
        finally:
            self._is_known.set()

    def _cancel(self, tries: int = 1) -> None:
        if self._has_ended:
            return
        try:
            self._described.cancel()
        except Exception as error:
            # It continues, or has just ended, which is reported.
            if tries < _CANCELS_MAX:
                self._batch.talk_later(functools.partial(self._cancel, tries + 1))
            else:
                cause = f"{self._identity} may run still, it cannot be cancelled: {_words(error)}"
                self._tell_end(Ended(None, cause=cause))

    def _tell(self, status: Any) -> None:
        if status.state.final:
            ended = _ended(self._job, status, self._cause)
            if ended.code is not None:
                self._tell_begin()
            self._tell_end(ended)
        elif status.state.name == "ACTIVE":
            self._tell_begin()

    def _tell_begin(self) -> None:
        with self._lock:
            if self._has_begun or self._has_ended:
                return
            self._has_begun = True
            if self._job.limit_s is not None:
                self._limit = threading.Timer(self._job.limit_s, self._be_late)
                self._limit.daemon = True
                self._limit.start()
        self._on_begin()

    def _be_late(self) -> None:
        self._end(f"ran longer than {self._job.limit_s:g} s")

    def _tell_end(self, ended: Ended) -> None:
        with self._lock:
            if self._has_ended:
                return
            self._has_ended = True
            if self._limit is not None:
                self._limit.cancel()
        self._on_end(ended)
        self._batch.forget(self)


def _psij() -> Any:
    """PSI/J; on import it handles SIGCHLD, and starts a thread for each signal."""
    before = signal.getsignal(signal.SIGCHLD)
    psij = needed("psij", "jobs")
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGCHLD, before or signal.SIG_DFL)
    return psij


def _scripts(folder: Path) -> Path:
    folder = folder.absolute()
    if shlex.quote(str(folder)) != str(folder):
        raise InvalidArgument(
            str(folder), "batch scripts cannot say this name: letters, digits and @%+=:,./-_ are good"
        )
    folder.mkdir(parents=True, exist_ok=True)
    return Path(tempfile.mkdtemp(prefix="junctura-", dir=folder))


def _executor(psij: Any, name: str, folder: Path, poll_s: float) -> Any:
    if name not in _PROGRAMS:
        return psij.JobExecutor.get_instance(name, config=psij.JobExecutorConfig(work_directory=folder))
    batch = needed("psij.executors.batch.batch_scheduler_executor", "jobs")
    config = batch.BatchSchedulerExecutorConfig(
        work_directory=folder,
        queue_polling_interval=poll_s,
        initial_queue_polling_delay=poll_s,
        queue_polling_error_threshold=_ERRORS_MAX,
    )
    executor = psij.JobExecutor.get_instance(name, config=config)
    if name == "slurm":
        executor.get_status_command = lambda _: ["squeue", "--me", "--noheader", "--states=all", _SQUEUE]
        executor.parse_status_output = lambda code, said: _states_of_slurm(psij, executor, code, said)
    return executor


_SQUEUE = "--Format=JobID:|,StateCompact:|,exit_code:|,Reason:"


def _states_of_slurm(psij: Any, executor: Any, code: int, said: str) -> dict[str, Any]:
    if code != 0:
        raise RuntimeError(f"squeue: {said.strip()}")
    states = {}
    for line in said.splitlines():
        number, short, raw, reason = (word.strip() for word in line.split("|", 3))
        # An unknown state is not final.
        state = executor._STATE_MAP.get(short, psij.JobState.QUEUED)
        states[number] = psij.JobStatus(state, message=reason, metadata={"raw": int(raw)})
    return states


def _ended(job: Job, status: Any, cause: str) -> Ended:
    code, number = _exit(status)
    if cause:
        # A job that exits with 0 after the request to stop has exceeded its limit nevertheless.
        return Ended(code if code or cause == "cancelled" else None, number, cause)
    if status.state.name == "CANCELED":
        return Ended(None, number, "cancelled by others")
    if number is not None:
        return Ended(None, number, f"ended by signal {number} ({_named(number)})")
    if code == _NOT_THERE:
        return Ended(code, cause=f"exit status {code}, as of a program that is not there: {job.command[0]}")
    if code is None:
        return Ended(None, cause=_without_status(status))
    return Ended(code)


def _exit(status: Any) -> tuple[int | None, int | None]:
    """Returns the exit status or the signal, from the job's script, or the batch system."""
    code = status.exit_code
    raw = (status.metadata or {}).get("raw")
    # If the batch system has ended the job, 0 has no meaning.
    if code is None and raw is not None and (raw > 0 or status.state.name == "COMPLETED"):
        code = os.waitstatus_to_exitcode(raw)
    if code is not None and code < 0:
        return None, -code
    if code is not None and _BY_SIGNAL < code <= _BY_SIGNAL + 64:
        return None, code - _BY_SIGNAL
    return code, None


def _without_status(status: Any) -> str:
    said = (status.message or "").strip()
    if said and said != "None":
        return f"the batch system ended it: {said}"
    return "the batch system knows it no more, and it has left no exit status"


def _named(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "of real time"


def _refused_by_slurm(resources: Resources) -> str:
    processes = resources.ranks or resources.nodes
    asked = [f"--nodes={resources.nodes}", f"--ntasks={processes}"]
    asked.append(f"--cpus-per-task={max(1, -(-resources.cores // processes))}")
    if resources.memory_bytes is not None:
        asked.append(f"--mem={max(1, resources.memory_bytes // resources.nodes >> 10)}K")
    return _said_by(["sbatch", "--test-only", *asked, "--wrap=true"])


def _said_by(command: list[str]) -> str:
    """Returns the error message of a command; empty if it succeeded."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else _clean(done.stderr)


def _refusal(job: Any) -> str:
    """Cancels a job unless it has ended; returns why that was rejected."""
    try:
        job.cancel()
    except Exception as error:
        return _words(error)
    return _DOES_NOT_END


def _words(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror is not None:
        return f"{error.filename}: {error.strerror}"
    return _clean(str(error)) or type(error).__name__


def _clean(said: str) -> str:
    """Returns the output of a command, without its name before each line."""
    lines = [re.sub(r"^(\w+: )?(error|allocation failure): ", "", line.strip()) for line in said.splitlines()]
    return "; ".join(line for line in lines if line)
