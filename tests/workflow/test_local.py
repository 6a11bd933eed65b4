"""Jobs as processes of this machine: how they begin, how they end, and that nothing is left of them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from jobs_told import Jobs, Processes, Told, are_gone

from junctura.errors import Closed
from junctura.workflow._executors import supervisor
from junctura.workflow._executors.jobs import Ended, Resources
from junctura.workflow._executors.local import Local

GOOD = Ended(0)
GRACE_S = 0.2
# Tells its number through a fifo, and sleeps on whatever one says to it.
# A shell would do, but a child that it has just forked may take a signal that was the shell's.
TIDY = """
import os, pathlib, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
pathlib.Path(sys.argv[1]).write_text(str(os.getpid()))
{first}
signal.sigwait([signal.SIGTERM])
print("tidy")
sys.exit(5)
"""
STUBBORN = "trap '' TERM; echo $$ >{fifo}; while :; do sleep 100; done"


@pytest.fixture
def jobs(tmp_path: Path) -> Iterator[Jobs]:
    executor = Local(grace_s=GRACE_S)
    yield Jobs(executor, tmp_path)
    executor.close()


@pytest.fixture
def patient(tmp_path: Path) -> Iterator[Jobs]:
    """Nobody is killed for being slow."""
    executor = Local(grace_s=1000)
    yield Jobs(executor, tmp_path)
    executor.close()


def number(fifo: Path) -> int:
    """What a process tells of itself, when it does."""
    return int(fifo.read_text())


def parent(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


def test_a_job_begins_and_ends(jobs: Jobs) -> None:
    told = jobs.start("true")
    assert told.ended() == GOOD
    assert told.order == ["begin", "end"]
    assert told.running.identity.startswith("process ")


def test_its_exit_status_is_told(jobs: Jobs) -> None:
    assert jobs.run("sh", "-c", "exit 3") == Ended(3)
    assert jobs.run("sh", "-c", "exit 137") == Ended(137)


def test_a_signal_is_told_by_number_and_name(jobs: Jobs) -> None:
    assert jobs.run("sh", "-c", "kill -SEGV $$") == Ended(None, 11, "ended by signal 11 (SIGSEGV)")


def test_both_outputs_are_appended_to_the_log(jobs: Jobs) -> None:
    log = jobs.folder / "log"
    log.write_text("before\n")
    assert jobs.run("sh", "-c", "echo one; echo two >&2; echo three", log=log) == GOOD
    assert log.read_text() == "before\none\ntwo\nthree\n"


def test_it_has_its_folder_environment_and_session_and_no_input(jobs: Jobs) -> None:
    folder = jobs.folder / "some where"
    folder.mkdir()
    log = folder / "log"
    program = (
        "import os, sys; print(os.getcwd(), os.environ['WORD'], 'PATH' in os.environ, len(sys.stdin.read()), "
        "os.getsid(0) == os.getpid(), sorted(os.listdir('/proc/self/fd'))[:-1])"
    )
    environment = {"WORD": "müller\nx"}
    assert jobs.run(sys.executable, "-c", program, folder=folder, log=log, environment=environment) == GOOD
    assert log.read_text() == f"{folder} müller\nx True 0 True ['0', '1', '2']\n"


def test_signals_are_as_usual_in_a_job(jobs: Jobs) -> None:
    log = jobs.folder / "log"
    assert jobs.run("cat", "/proc/self/status", log=log) == GOOD
    said = dict(line.split(":\t") for line in log.read_text().splitlines())
    # Two belong to the C library, which ignores them for others while it starts a program.
    of_the_library = 1 << (32 - 1) | 1 << (33 - 1)
    assert int(said["SigBlk"], 16) == 0
    assert int(said["SigIgn"], 16) & ~of_the_library == 0


def test_arguments_may_be_anything(jobs: Jobs) -> None:
    log = jobs.folder / "log"
    arguments = ["", " ", "a'b\"c\n", "\udcff", "x" * 120_000]
    assert jobs.run("printf", "%s|", *arguments, log=log) == GOOD
    assert log.read_bytes() == b"".join(os.fsencode(argument) + b"|" for argument in arguments)


@pytest.mark.parametrize(
    ("command", "cause"),
    [
        (["swell"], "there is no program swell"),
        (["./swell"], "there is no program ./swell"),
        (["/etc/passwd"], "/etc/passwd is no program: it may not be executed"),
        (["/etc"], "there is no program /etc"),
        (["./empty"], "./empty: Exec format error"),
        (["true", "x" * 200_000], "Argument list too long"),
        (["true", "\0"], "embedded null byte"),
    ],
)
def test_what_cannot_be_run_is_an_end_with_its_cause(jobs: Jobs, command: list[str], cause: str) -> None:
    (jobs.folder / "empty").touch(mode=0o755)
    told = jobs.start(*command)
    ended = told.ended()
    assert ended.code is None and ended.signal is None
    assert cause in ended.cause
    assert told.running.identity == "no process"
    assert told.order == ["end"]
    told.running.end()


def test_a_program_is_looked_for_with_the_path_of_the_job(jobs: Jobs) -> None:
    program = jobs.folder / "bin/swell"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nexit 7\n")
    program.chmod(0o755)
    assert jobs.run("swell", environment={"PATH": "bin:/bin"}) == Ended(7)


def test_a_folder_or_log_that_cannot_be_is_an_end_with_its_cause(jobs: Jobs) -> None:
    there = jobs.folder
    assert jobs.run("true", folder=there / "no") == Ended(None, cause=f"{there}/no: No such file or directory")
    assert jobs.run("true", log=there / "no/log") == Ended(None, cause=f"{there}/no/log: No such file or directory")


ON_A_FULL_DISK = """
import json, sys
from pathlib import Path
from jobs_told import Jobs
from junctura.workflow._executors.local import Local

jobs = Jobs(Local(), Path(sys.argv[1]))
fills = jobs.run("sh", "-c", "head -c 1M /dev/zero")
comes_later = jobs.run("true")
jobs.executor.close()
print(json.dumps([fills.code, fills.cause, comes_later.cause]))
"""


def test_a_full_disk_of_logs_is_an_end_with_its_cause(tmp_path: Path) -> None:
    mounted = f'mount -t tmpfs -o size=64k none {tmp_path} && exec "$@"'
    command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", mounted, "sh"]
    if subprocess.run([*command, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("no user namespaces here: a small disk cannot be made")
    path = f"{Path(__file__).parent}:{os.environ.get('PYTHONPATH', '')}"
    done = subprocess.run(
        [*command, sys.executable, "-c", ON_A_FULL_DISK, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    code, cause, later = json.loads(done.stdout)
    assert code == 1 and cause == "the disk of its log is full"
    assert later == f"{tmp_path}/job-2.1.log: the disk is full"


def is_stopped(process: int) -> bool:
    # Behind the name, which may have brackets of its own.
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "T"


@pytest.mark.parametrize("first", ["", "signal.raise_signal(signal.SIGSTOP)"], ids=["running", "stopped"])
def test_a_job_that_is_told_to_end_may_tidy_up(patient: Jobs, first: str) -> None:
    fifo = patient.fifo("fifo")
    told = patient.start(sys.executable, "-c", TIDY.format(first=first), str(fifo))
    process = number(fifo)
    while first and not is_stopped(process):
        os.sched_yield()
    told.running.end()
    assert told.ended() == Ended(5, cause="cancelled")
    assert (patient.folder / "job-1.1.log").read_text() == "tidy\n"
    told.running.end()


def test_a_job_that_does_not_end_is_killed_after_the_grace(jobs: Jobs) -> None:
    fifo = jobs.fifo("fifo")
    told = jobs.start("sh", "-c", STUBBORN.format(fifo=fifo))
    process = number(fifo)
    told.running.end()
    told.running.end()
    assert told.ended() == Ended(None, 9, "cancelled")
    assert are_gone(process)


def test_at_once_nobody_is_asked(patient: Jobs) -> None:
    fifo = patient.fifo("fifo")
    told = patient.start("sh", "-c", STUBBORN.format(fifo=fifo))
    number(fifo)
    told.running.end()
    told.running.end(at_once=True)
    assert told.ended() == Ended(None, 9, "cancelled")


def test_a_job_may_be_ended_before_it_has_begun(jobs: Jobs) -> None:
    tolds = [jobs.start("sleep", "1000") for _ in range(20)]
    for told in tolds:
        told.running.end()
    assert {told.ended().cause for told in tolds} == {"cancelled"}


def test_the_limit_ends_a_job(jobs: Jobs) -> None:
    assert jobs.run("sleep", "1000", limit_s=0.1) == Ended(None, 15, "ran longer than 0.1 s")


def test_a_limit_may_be_far_away(jobs: Jobs) -> None:
    fifo = jobs.fifo("fifo")
    told = jobs.start("sh", "-c", f"read line <{fifo}", limit_s=10 * 365.25 * 86_400).begun()
    fifo.write_text("go on\n")
    assert told.ended() == GOOD


def test_a_job_over_its_limit_is_not_good_even_when_it_ends_well(tmp_path: Path) -> None:
    attempt = supervisor.RunningAttempt({"job": 1, "grace_s": GRACE_S, "limit_s": 0.0}, 0)
    attempt.is_late, attempt.cause = True, "ran longer than 0 s"
    attempt.has_ended(0)
    with (tmp_path / "log").open("w") as log:
        ended = supervisor.ended(attempt, log.fileno())
    assert ended == {"job": 1, "code": None, "signal": None, "cause": "ran longer than 0 s"}


DAEMONS = {
    "in the background": "(sleep 1000) & echo $! >{fifo}",
    "of a session of its own": "setsid sh -c 'echo $$ >{fifo}; exec sleep 1000' &",
    "of a job in a new session twice": "setsid sh -c 'setsid sh -c \"echo \\$\\$ >{fifo}; exec sleep 1000\" &' &",
    "without an environment": "env -i setsid sh -c 'echo $$ >{fifo}; exec sleep 1000' >/dev/null 2>&1 &",
    "that will not hear": "setsid sh -c 'trap \"\" TERM; echo $$ >{fifo}; while :; do sleep 1000; done' &",
}


@pytest.mark.parametrize("daemon", DAEMONS.values(), ids=DAEMONS.keys())
def test_nothing_is_left_of_a_job_that_ended_by_itself(jobs: Jobs, daemon: str) -> None:
    fifo, go_on = jobs.fifo("fifo"), jobs.fifo("go-on")
    told = jobs.start("sh", "-c", f"{daemon.format(fifo=fifo)}\nread line <{go_on}; exit 4")
    process = number(fifo)
    go_on.write_text("go on\n")
    assert told.ended() == Ended(4)
    assert are_gone(process)


@pytest.mark.parametrize("daemon", DAEMONS.values(), ids=DAEMONS.keys())
def test_nothing_is_left_of_a_job_that_was_ended(jobs: Jobs, daemon: str) -> None:
    fifo = jobs.fifo("fifo")
    told = jobs.start("sh", "-c", daemon.format(fifo=fifo) + "\nsleep 1000")
    process = number(fifo)
    told.running.end()
    assert told.ended() == Ended(None, 15, "cancelled")
    assert are_gone(process)


def test_what_ends_by_itself_is_left_to_do_so(jobs: Jobs) -> None:
    """A job has ended when what it started has: here somebody writes its last line."""
    log = jobs.folder / "log"
    fifo = jobs.fifo("fifo")
    told = jobs.start("sh", "-c", f"(read line <{fifo}; echo $line) & exit 0", log=log)
    fifo.write_text("last\n")
    assert told.ended() == GOOD
    assert log.read_text() == "last\n"


def test_the_end_of_one_is_not_the_end_of_another(jobs: Jobs) -> None:
    fifos = [jobs.fifo(f"fifo-{index}") for index in range(3)]
    first, second, third = [jobs.start("sh", "-c", STUBBORN.format(fifo=fifo)) for fifo in fifos]
    processes = [number(fifo) for fifo in fifos]
    second.running.end(at_once=True)
    assert second.ended().cause == "cancelled"
    assert jobs.run("true") == GOOD
    assert [are_gone(process) for process in processes] == [False, True, False]
    for told in first, third:
        told.running.end(at_once=True)
        told.ended()


def test_close_ends_all_at_once_and_waits(patient: Jobs) -> None:
    fifos = [patient.fifo(f"fifo-{index}") for index in range(3)]
    tolds = [patient.start("sh", "-c", STUBBORN.format(fifo=fifo)) for fifo in fifos]
    processes = [number(fifo) for fifo in fifos]
    worker = parent(processes[0])
    supervisor = parent(worker)
    patient.executor.close()
    patient.executor.close()
    assert are_gone(*processes, worker, supervisor)
    assert {told.ended() for told in tolds} == {Ended(None, 9, "cancelled")}
    with pytest.raises(Closed):
        patient.start("true")


def test_close_of_one_that_ran_nothing() -> None:
    Local().close()


RUNNER = """
import signal, sys
from pathlib import Path
from jobs_told import Jobs
from junctura.workflow._executors.local import Local

jobs = Jobs(Local(), Path(sys.argv[1]))
for command in sys.argv[2:]:
    jobs.start("sh", "-c", command)
signal.pause()
"""


def test_nothing_is_left_when_the_runner_is_killed(tmp_path: Path) -> None:
    fifos = [tmp_path / f"fifo-{index}" for index in range(1 + len(DAEMONS))]
    for fifo in fifos:
        os.mkfifo(fifo)
    scripts = [STUBBORN, *(f"{daemon}\nsleep 1000" for daemon in DAEMONS.values())]
    commands = [script.format(fifo=fifo) for script, fifo in zip(scripts, fifos, strict=True)]
    path = f"{Path(__file__).parent}:{os.environ.get('PYTHONPATH', '')}"
    runner = subprocess.Popen(
        [sys.executable, "-c", RUNNER, str(tmp_path), *commands], env={**os.environ, "PYTHONPATH": path}
    )
    processes = [number(fifo) for fifo in fifos]
    worker = parent(processes[0])
    left = Processes(*processes, worker, parent(worker))
    runner.kill()
    runner.wait()
    left.wait_until_gone()


@pytest.mark.parametrize("daemon", DAEMONS.values(), ids=DAEMONS.keys())
def test_a_worker_that_is_killed_leaves_nothing_and_is_replaced(jobs: Jobs, daemon: str) -> None:
    other = jobs.fifo("other")
    beside = jobs.start("sh", "-c", STUBBORN.format(fifo=other))
    stays = number(other)
    fifo, of_daemon = jobs.fifo("fifo"), jobs.fifo("daemon")
    told = jobs.start("sh", "-c", f"{daemon.format(fifo=of_daemon)}\n{STUBBORN.format(fifo=fifo)}")
    left = Processes(number(of_daemon))
    process = number(fifo)
    os.kill(parent(process), signal.SIGKILL)
    assert told.ended() == Ended(None, cause="the process that keeps it was killed")
    left.wait_until_gone()
    assert are_gone(process)
    assert jobs.run("true") == GOOD
    assert not are_gone(stays)
    beside.running.end(at_once=True)
    beside.ended()


def test_an_idle_worker_that_is_killed_just_as_it_gets_a_job_is_told(jobs: Jobs) -> None:
    fifo, go_on = jobs.fifo("fifo"), jobs.fifo("go-on")
    told = jobs.start("sh", "-c", f"echo $$ >{fifo}; read line <{go_on}")
    worker = parent(number(fifo))
    supervisor = parent(worker)
    go_on.write_text("go on\n")
    assert told.ended() == GOOD
    # Its end and the next job are there when the supervisor looks.
    left = Processes(worker)
    os.kill(supervisor, signal.SIGSTOP)
    os.kill(worker, signal.SIGKILL)
    left.wait_until_gone()
    lost = jobs.start("true")
    os.kill(supervisor, signal.SIGCONT)
    assert lost.ended() == Ended(None, cause="the process that keeps it was killed")
    assert jobs.run("true") == GOOD


def test_a_keeper_that_is_killed_leaves_nothing_and_is_replaced(jobs: Jobs) -> None:
    fifo = jobs.fifo("fifo")
    told = jobs.start("sh", "-c", STUBBORN.format(fifo=fifo))
    process = number(fifo)
    left = Processes(process)
    os.kill(parent(parent(process)), signal.SIGKILL)
    assert told.ended() == Ended(None, 9, "the process that keeps it was killed")
    left.wait_until_gone()
    assert jobs.run("true") == GOOD


def test_many_jobs_each_have_their_own_end(jobs: Jobs) -> None:
    tolds: list[Told] = [jobs.start("sh", "-c", f"exit {index}") for index in range(64)]
    assert [told.ended().code for told in tolds] == list(range(64))


@pytest.mark.parametrize(
    ("resources", "cause"),
    [
        (Resources(cores=10_000), "needs 10000 cores, this machine has"),
        (Resources(memory_bytes=1 << 60), "needs 1073741824.0 GiB of memory, this machine has"),
        (Resources(nodes=2), "needs 2 nodes, local processes have one"),
    ],
)
def test_resources_that_cannot_be_had_are_known_before(jobs: Jobs, resources: Resources, cause: str) -> None:
    assert cause in jobs.executor.check(jobs.job("true", resources=resources))


def test_a_missing_program_is_known_before(jobs: Jobs) -> None:
    check = jobs.executor.check
    assert check(jobs.job("swell")) == "there is no program swell"
    assert check(jobs.job("/no/swell")) == "there is no program /no/swell"
    assert check(jobs.job("true", environment={"PATH": "/no"})) == "there is no program true"
    assert check(jobs.job("true")) == ""
    # Another job may make it.
    assert check(jobs.job("build/swell")) == ""


def test_ranks_are_started_by_mpirun(jobs: Jobs) -> None:
    program = jobs.folder / "mpirun"
    program.write_text("#!/bin/sh\nprintf '%s|' \"$@\"\n")
    program.chmod(0o755)
    log = jobs.folder / "log"
    job = jobs.job("swell", "x", log=log, resources=Resources(ranks=3), environment={"PATH": str(jobs.folder)})
    assert jobs.executor.check(job) == "there is no program swell"
    assert Told(jobs.executor, job).ended() == GOOD
    assert log.read_text() == "-n|3|swell|x|"
