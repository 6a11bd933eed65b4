"""Jobs of a batch system: a real Slurm of four nodes; where there is none, PSI/J's own processes."""

from __future__ import annotations

import itertools
import os
import queue
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("psij")

from jobs_told import LIMIT_S, Jobs, Told
from slurm import CORES, NODES, Slurm

from junctura.errors import Closed, InvalidArgument
from junctura.workflow._executors.batch import BatchExecutor
from junctura.workflow._executors.jobs import Ended, Resources

GOOD = Ended(0)
POLL_S = 0.1


@pytest.fixture
def jobs(slurm: Slurm, tmp_path: Path) -> Iterator[Jobs]:
    executor = BatchExecutor("slurm", slurm.folder / "scripts", poll_s=POLL_S)
    yield Jobs(executor, tmp_path)
    executor.close()
    assert list((slurm.folder / "scripts").iterdir()) == []


@pytest.fixture
def local_jobs(tmp_path: Path) -> Iterator[Jobs]:
    executor = BatchExecutor("local", tmp_path / "scripts")
    yield Jobs(executor, tmp_path)
    executor.close()


def number(told: Told) -> str:
    return told.running.identity.removeprefix("slurm job ")


def test_a_job_begins_and_ends(jobs: Jobs) -> None:
    told = jobs.start("true")
    assert told.ended() == GOOD
    assert told.order == ["begin", "end"]
    assert number(told).isdigit()


def test_its_exit_status_is_told(jobs: Jobs) -> None:
    assert jobs.run("sh", "-c", "exit 3") == Ended(3)


def test_a_signal_is_told_by_number_and_name(jobs: Jobs) -> None:
    assert jobs.run("sh", "-c", "kill -SEGV $$") == Ended(None, 11, "ended by signal 11 (SIGSEGV)")


def test_a_job_whose_script_is_killed_has_not_ended_well(jobs: Jobs) -> None:
    """It leaves no file with an exit status: that is asked of the batch system."""
    told = jobs.start("sh", "-c", 'kill -KILL $(ps -o ppid= -p "$PPID") $PPID; sleep 1000')
    ended = told.ended()
    assert not ended.is_good and ended.signal == 9


def test_both_outputs_are_appended_to_the_log_in_a_folder_of_any_name(jobs: Jobs) -> None:
    folder = jobs.folder / "some 'where' $HOME {{x}}"
    folder.mkdir()
    log = folder / "log"
    log.write_text("before\n")
    words = ["a b", "'\"\n", "{{job}}", "$HOME"]
    script = 'echo "$PWD" "$WORD"; printf "%s|" "$@" >&2'
    ended = jobs.run("sh", "-c", script, "sh", *words, folder=folder, log=log, environment={"WORD": "it's\nso"})
    assert ended == GOOD
    assert log.read_text() == f"before\n{folder} it's\nso\n" + "".join(f"{word}|" for word in words)


def test_where_a_pool_is_goes_by_the_environment(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUNCTURA_TOKEN_FILE", "/a/token")
    log = jobs.folder / "log"
    script = 'echo "$JUNCTURA_POOL $JUNCTURA_TOKEN_FILE"'
    assert jobs.run("sh", "-c", script, log=log, environment={"JUNCTURA_POOL": "tcp://model:7000"}) == GOOD
    assert log.read_text() == "tcp://model:7000 /a/token\n"


def test_ranks_are_spread_over_nodes(jobs: Jobs) -> None:
    log = jobs.folder / "log"
    script = "echo $SLURM_PROCID of $SLURM_NTASKS on $SLURMD_NODENAME"
    assert jobs.run("sh", "-c", script, log=log, resources=Resources(nodes=2, ranks=4, cores=4)) == GOOD
    lines = [line.split(" on ") for line in sorted(log.read_text().splitlines())]
    assert [rank for rank, _ in lines] == [f"{index} of 4" for index in range(4)]
    nodes = [node for _, node in lines]
    assert nodes[0] == nodes[1] != nodes[2] == nodes[3] and set(nodes) < set(NODES)


def test_the_exit_status_of_a_rank_is_that_of_the_job(jobs: Jobs) -> None:
    assert jobs.run("sh", "-c", "exit $SLURM_PROCID", resources=Resources(ranks=2)) == Ended(1)


def test_a_job_has_its_resources_and_name(jobs: Jobs, slurm: Slurm) -> None:
    told = jobs.start("sleep", "1000", resources=Resources(cores=2, memory_bytes=300 << 20), limit_s=600).begun()
    said = slurm.run(
        "squeue", "--noheader", f"--jobs={number(told)}", "--Format=Name:|,NumCPUs:|,MinMemory:|,TimeLimit:"
    )
    assert said.stdout.strip() == "job-1.1|2|300M|11:00"
    told.running.end()
    told.ended()


def test_a_job_that_is_told_to_end_is_cancelled(jobs: Jobs, slurm: Slurm) -> None:
    told = jobs.start("sleep", "1000").begun()
    told.running.end()
    ended = told.ended()
    assert not ended.is_good and ended.cause == "cancelled"
    told.running.end()
    assert slurm.run("squeue", "--noheader").stdout == ""


def test_a_job_that_waits_may_be_cancelled(jobs: Jobs) -> None:
    full = [jobs.start("sleep", "1000", resources=Resources(cores=CORES)).begun() for _ in NODES]
    waits = jobs.start("true")
    assert number(waits).isdigit()
    waits.running.end()
    assert waits.ended().cause == "cancelled"
    assert waits.order == ["end"]
    for told in full:
        told.running.end(at_once=True)
        told.ended()


def test_a_job_that_others_cancel_says_so(jobs: Jobs, slurm: Slurm) -> None:
    told = jobs.start("sleep", "1000").begun()
    slurm.run("scancel", number(told))
    ended = told.ended()
    assert not ended.is_good and ended.cause == "cancelled by others"


def test_the_limit_ends_a_job(jobs: Jobs) -> None:
    ended = jobs.run("sleep", "1000", limit_s=0.1)
    assert not ended.is_good and ended.cause == "ran longer than 0.1 s"


def test_a_program_that_is_not_there_is_an_end_with_its_cause(jobs: Jobs) -> None:
    ended = jobs.run("swell")
    assert ended == Ended(127, cause="exit status 127, as of a program that is not there: swell")
    assert "swell" in (jobs.folder / "job-1.1.log").read_text()


IMPOSSIBLE = [
    (Resources(nodes=len(NODES) + 1), "Requested node configuration is not available"),
    (Resources(cores=1000), "Requested node configuration is not available"),
    (Resources(memory_bytes=1 << 50), "Requested node configuration is not available"),
    (Resources(nodes=2, ranks=3), "The process_count (3) must be an integral multiple of node_count (2)"),
]


@pytest.mark.parametrize(("resources", "words"), IMPOSSIBLE)
def test_what_is_refused_is_told_in_the_words_of_the_batch_system(jobs: Jobs, resources: Resources, words: str) -> None:
    job = jobs.job("true", resources=resources)
    assert words in jobs.executor.check(job)
    told = Told(jobs.executor, job)
    ended = told.ended()
    assert ended.code is None and words in ended.cause
    assert told.running.identity == "no job"


def test_what_can_be_is_not_refused(jobs: Jobs) -> None:
    assert jobs.executor.check(jobs.job("true", resources=Resources(nodes=2, ranks=4, memory_bytes=1 << 28))) == ""


def test_a_log_that_cannot_be_is_an_end_with_its_cause(jobs: Jobs) -> None:
    log = jobs.folder / "no/log"
    assert jobs.run("true", log=log) == Ended(None, cause=f"{log}: No such file or directory")


def test_a_batch_system_that_does_not_answer_is_an_end_with_its_cause(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = jobs.folder / "bin/sbatch"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho 'sbatch: error: nobody answers' >&2; exit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    assert jobs.run("true") == Ended(None, cause="nobody answers")


def test_close_cancels_all(slurm: Slurm, tmp_path: Path) -> None:
    jobs = Jobs(BatchExecutor("slurm", slurm.folder / "scripts", poll_s=POLL_S), tmp_path)
    tolds = [jobs.start("sleep", "1000").begun() for _ in range(3)]
    jobs.executor.close()
    jobs.executor.close()
    assert {told.ended().cause for told in tolds} == {"cancelled"}
    assert slurm.run("squeue", "--noheader").stdout == ""
    with pytest.raises(Closed):
        jobs.start("true")


def test_processes_of_psij_are_a_batch_system_too(local_jobs: Jobs) -> None:
    assert local_jobs.run("sh", "-c", "echo out; echo err >&2") == GOOD
    assert (local_jobs.folder / "job-1.1.log").read_text() == "out\nerr\n"
    assert local_jobs.run("sh", "-c", "exit 3") == Ended(3)
    told = local_jobs.start("sleep", "1000").begun()
    told.running.end()
    assert told.ended().cause == "cancelled"


def refusing(job: Any, times: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Has the batch system refuse to cancel a job so often."""
    refusals = itertools.repeat("nobody answers", times)
    cancel = job.cancel

    def refuse() -> None:
        if refusal := next(refusals, None):
            raise OSError(refusal)
        cancel()

    monkeypatch.setattr(job, "cancel", refuse)


@pytest.mark.parametrize("times", [3, 10_000])
def test_what_cannot_be_cancelled_at_first_is_cancelled_later_and_at_last_named(
    tmp_path: Path, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = Jobs(BatchExecutor("local", tmp_path / "scripts", poll_s=0.01), tmp_path)
    fifo = jobs.fifo("fifo")
    told = jobs.start("sh", "-c", f"read line <{fifo}").begun()
    refusing(told.running._described, times, monkeypatch)  # type: ignore[attr-defined]
    told.running.end()
    ended = told.ended()
    if times == 3:
        assert ended.cause == "cancelled"
    else:
        assert ended.cause == f"{told.running.identity} may run still, it cannot be cancelled: nobody answers"
        fifo.write_text("go on\n")
    jobs.executor.close()


def test_a_job_is_told_when_it_is_taken_and_ended_by_another_process(jobs: Jobs, slurm: Slurm, tmp_path: Path) -> None:
    taken: queue.SimpleQueue[str] = queue.SimpleQueue()
    told = Told(jobs.executor, jobs.job("sleep", "1000"), taken.put)
    identity = taken.get(timeout=LIMIT_S)
    assert identity == told.running.identity
    told.begun()
    other = BatchExecutor("slurm", tmp_path / "scripts", poll_s=POLL_S)
    # The second one is of a job that nobody knows any more.
    assert other.end_left([identity, "slurm job 4000000"]) == {}
    assert slurm.run("squeue", "--noheader").stdout == ""
    other.close()
    assert told.ended().cause == "cancelled by others"


def test_a_missing_batch_system_is_known_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = Jobs(BatchExecutor("slurm", tmp_path), tmp_path)
    monkeypatch.setenv("PATH", "/no")
    assert jobs.executor.check(jobs.job("true")) == "there is no program sbatch, which belongs to slurm"
    assert jobs.run("true").cause != ""
    jobs.executor.close()


def test_an_unknown_batch_system_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match='no such batch system; did you mean "slurm"'):
        BatchExecutor("slrum", tmp_path)
    with pytest.raises(InvalidArgument, match="batch scripts cannot say this"):
        BatchExecutor("slurm", tmp_path / "a b")
