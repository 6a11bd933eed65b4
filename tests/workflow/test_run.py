"""Runs of workflows with real processes: each ends as it should, and nothing is left of it."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from run_real import LIMIT_S, Real, interrupt, marked

HEAD = "workflow: test\npool: {schema: free, memory: 16MiB}\ntasks:\n"
PRODUCER = "  produce:\n    run: [python, produce.py, a, '3']\n"
PICTURE = "  picture:\n    run: [python, consume.py, '{object}']\n    start: {each: kind=field}\n"


def opened(path: Path) -> None:
    """Waits until a task opens a pipe: then it hangs."""
    with path.open() as pipe:
        pipe.read()


def hanging(real: Real, name: str = "hang") -> str:
    os.mkfifo(real.folder / name)
    return f"  {name}:\n    run: [python, hang.py, '{{here}}/{name}']\n"


def test_producers_services_and_consumers_of_each_object(tmp_path: Path) -> None:
    real = Real(
        tmp_path,
        HEAD
        + "  produce:\n    run: [python, produce.py, '{member}', '3']\n    matrix: {member: 0/to/2}\n"
        + "    start: {joined: [serv*]}\n"
        + "  service:\n    service: [python, serve.py]\n"
        + PICTURE
        + "  last:\n    run: [echo, well, '{run}']\n    start: {after: [picture]}\n",
    )
    real.run(0)
    outcomes = real.outcomes()
    assert set(outcomes.values()) == {"done"}
    assert sorted(real.log(f"picture-{number}.1") for number in range(1, 10)) == sorted(
        f"{member}-{number} 7\n" for member in range(3) for number in range(3)
    )
    assert real.log("service.1") == "asked to end\n"
    assert real.log("last.1").startswith("well /")
    lines = real.record()
    end = lines[-1]
    assert (end["status"], end["code"], end["done"]) == ("done", 0, 14)
    begun = next(line for line in lines if line["kind"] == "begin")
    assert begun["task"] == "service" and begun["identity"].startswith("process ")
    reason = next(line["reason"] for line in lines if line["kind"] == "ready" and line["task"] == "picture-1")
    assert reason["kind"] == "object" and reason["attributes"]["kind"] == "field"


def test_a_task_for_an_object_runs_while_its_producer_goes_on(tmp_path: Path) -> None:
    answer = "  answer:\n    run: [python, answer.py]\n    start: {each: kind=field}\n"
    real = Real(tmp_path, HEAD + "  ask:\n    run: [python, ask.py]\n" + answer)
    real.run(0)
    assert set(real.outcomes().values()) == {"done"}


def test_an_object_and_a_bundle_start_a_task_each(tmp_path: Path) -> None:
    real = Real(
        tmp_path,
        HEAD
        + "  whole:\n    run: [python, consume.py, 'name=part-1']\n    start: {bundle: step/0}\n"
        + "  first:\n    run: [echo, well]\n    start: {on: kind=field}\n"
        + "  parts:\n    run: [python, bundle.py]\n"
        + PRODUCER,
    )
    real.run(0)
    reasons = {line["task"]: line["reason"] for line in real.record() if line["kind"] == "ready"}
    assert reasons["whole"] == {"kind": "bundle", "bundle": "step/0"}
    assert (reasons["first"]["kind"], reasons["first"]["selector"]) == ("object", "kind=field")
    assert (real.log("whole.1"), real.log("first.1")) == ("part-1 7\n", "well\n")


def test_what_an_object_says_leads_to_no_other_folder(tmp_path: Path) -> None:
    real = Real(
        tmp_path,
        HEAD
        + "  produce:\n    run: [python, produce.py, ../../.., '1']\n"
        + "  picture:\n    run: [pwd]\n    folder: 'of/{of}/{name}'\n    start: {each: kind=field}\n",
    )
    real.run(0)
    assert real.log("picture-1.1") == f"{tmp_path}/run/of/.._.._../.._.._..-0\n"


def test_who_fails_and_who_waits_for_it(tmp_path: Path) -> None:
    real = Real(
        tmp_path,
        HEAD
        + "  bad:\n    run: [python, die.py]\n    attempts: 2\n"
        + "  waits:\n    run: [echo]\n    start: {after: [bad]}\n"
        + "  other:\n    run: [python, once.py, '{here}/there']\n    attempts: 2\n"
        + "  nothing:\n    run: [./nothing]\n    may_fail: true\n".replace("./nothing", "/bin/false"),
    )
    document = json.loads(real.run(1, "--json", "--quiet"))
    assert real.outcomes() == {"bad": "failed", "waits": "skipped", "other": "done", "nothing": "failed"}
    assert "signal 9" in document["failures"]["bad"]
    assert document["failures"]["waits"] == "bad did not end well"
    assert (document["done"], document["failed"], document["skipped"]) == (1, 2, 1)


def test_a_program_that_cannot_be_found_is_told_before_anything_starts(tmp_path: Path) -> None:
    real = Real(tmp_path, HEAD + "  one:\n    run: [no-such-program]\n")
    assert "no-such-program" in real.run(2)
    assert not (tmp_path / "run/record.jsonl").exists()


def test_a_pool_that_cannot_be_reached_is_told_before_anything_starts(tmp_path: Path) -> None:
    real = Real(tmp_path, f"workflow: test\npool: unix:{tmp_path}/no.sock\ntasks:\n  one:\n    run: [echo]\n")
    assert "no.sock" in real.run(2)
    assert not (tmp_path / "run/record.jsonl").exists()


def test_what_hangs_is_ended_by_its_limit(tmp_path: Path) -> None:
    real = Real(tmp_path, HEAD + "  one:\n    run: [sleep, '1000']\n    limit: 1s\n")
    real.run(1)
    end = next(line for line in real.record() if line["kind"] == "end")
    assert "longer" in end["cause"]


def test_the_limit_of_the_run(tmp_path: Path) -> None:
    real = Real(
        tmp_path, f"limit: 1s\n{HEAD}" + "  one:\n    run: [sleep, '1000']\n  two:\n    service: [sleep, '1000']\n"
    )
    assert "limit" in real.run(1)
    asked = [line["task"] for line in real.record() if line["kind"] == "end_asked"]
    assert asked == ["one", "two"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_tasks_then_services(tmp_path: Path, number: int) -> None:
    os.mkfifo(tmp_path / "begun")
    real = Real(
        tmp_path,
        HEAD
        + "  one:\n    run: [sh, -c, 'echo > \"{here}/begun\"; exec sleep 1000']\n"
        + "  two:\n    run: [echo]\n    start: {after: [one]}\n"
        + "  service:\n    service: [python, serve.py]\n",
    )
    process = real.start()
    opened(tmp_path / "begun")
    interrupt(process, number)
    real.end(process, 130)
    assert real.outcomes()["one"] == real.outcomes()["two"] == "cancelled"
    lines = real.record()
    ended = [line["task"] for line in lines if line["kind"] == "end"]
    assert ended == ["one", "service"]
    assert lines[-1]["status"] == "interrupted"


def test_a_second_interrupt_ends_all_at_once(tmp_path: Path) -> None:
    real = Real(tmp_path, "")
    (tmp_path / "flow.yaml").write_text(HEAD + hanging(real) + "  service:\n    service: [python, serve.py]\n")
    process = real.start("--json")
    opened(tmp_path / "hang")
    interrupt(process)
    assert process.stderr is not None
    # Two signals that are not told apart are one.
    while "interrupted" not in process.stderr.readline():
        pass
    interrupt(process)
    real.end(process, 130)
    assert [line for line in real.record() if line["kind"] == "end_asked" and line["at_once"]]


def test_of_a_run_that_is_killed_nothing_is_left_and_it_can_go_on(tmp_path: Path) -> None:
    real = Real(tmp_path, "")
    (tmp_path / "flow.yaml").write_text(
        HEAD
        + "  first:\n    run: [sh, -c, 'echo once >> \"{here}/first\"']\n"
        + hanging(real).replace("hang.py, '{here}/hang'", "once.py, '{here}/there'")
        + "    start: {after: [first]}\n"
        + '  blocked:\n    run: [sh, -c, \'echo > "{here}/hang"; test -e "{here}/there-too" || exec sleep 1000\']\n'
        + "    start: {after: [first]}\n    attempts: 2\n"
    )
    process = real.start()
    opened(tmp_path / "hang")
    process.kill()
    process.communicate(timeout=LIMIT_S)
    wait_until_gone(real.mark)
    (tmp_path / "there").touch()
    (tmp_path / "there-too").touch()
    with (tmp_path / "run/record.jsonl").open("a") as record:
        record.write('{"kind": "torn')
    again = real.start("--resume", "run")
    opened(tmp_path / "hang")
    real.end(again, 0)
    assert (tmp_path / "first").read_text() == "once\n"
    lines = [json.loads(line) for line in (tmp_path / "run/record.jsonl").read_text().splitlines()]
    attempts = [line["attempt"] for line in lines if line["kind"] == "start" and line["task"] == "blocked"]
    assert attempts == [1, 2]
    assert [line["resumed"] for line in lines if line["kind"] == "run"] == [False, True]
    assert "there is no record" in real.run(2, "--resume", "nowhere")
    assert "a run is there already" in real.run(2)


def wait_until_gone(mark: str) -> None:
    """Waits for the processes of a run that was killed: those who keep them end them."""
    for process in marked(mark):
        # One that has ended by now has no descriptor.
        with contextlib.suppress(OSError):
            descriptor = os.pidfd_open(process)
            try:
                assert select.select([descriptor], [], [], LIMIT_S)[0]
            finally:
                os.close(descriptor)
    assert marked(mark) == {}


def test_resume_makes_no_picture_twice(tmp_path: Path) -> None:
    real = Real(
        tmp_path,
        HEAD
        + "  produce:\n    run: [sh, -c, 'python produce.py a 3 && test -e \"{here}/good\"']\n".replace(
            "python produce.py", f'"{sys.executable}" "{{here}}/produce.py"'
        )
        + PICTURE,
    )
    real.run(1)
    assert list(real.outcomes().values()).count("done") == 4
    (tmp_path / "good").touch()
    real.run(0, "--resume", "run")
    lines = [json.loads(line) for line in (tmp_path / "run/record.jsonl").read_text().splitlines()]
    started = [line["task"] for line in lines if line["kind"] == "start"]
    assert sorted(started) == ["picture-1", "picture-2", "picture-3", "produce", "produce"]


def test_two_cannot_go_on_with_one_run(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "begun")
    real = Real(tmp_path, HEAD + "  one:\n    run: [sh, -c, 'echo > \"{here}/begun\"; exec sleep 1000']\n")
    process = real.start()
    opened(tmp_path / "begun")
    other = real.start("--resume", "run")
    _, said = other.communicate(timeout=LIMIT_S)
    assert other.returncode == 2 and "in another process" in said
    interrupt(process)
    real.end(process, 130)


def test_a_record_that_cannot_be_written_any_more_ends_the_run_in_order(tmp_path: Path) -> None:
    # Without a pool: its memory is a file, too.
    real = Real(
        tmp_path,
        "workflow: test\ntasks:\n"
        + "  fill:\n    run: [echo]\n    matrix: {number: 0/to/99}\n"
        + "  service:\n    service: [sleep, '1000']\n",
    )
    command = [sys.executable, "-m", "junctura.workflow", "flow.yaml", "--run-dir", "run", "--json", "-q"]
    limited = "import resource, signal, os, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
    limited += "resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000)); os.execv(sys.argv[1], sys.argv[1:])"
    done = subprocess.run(
        [sys.executable, "-c", limited, *command],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == 1, done
    assert "the record cannot be written" in json.loads(done.stdout)["cause"]
    text = (tmp_path / "run/record.jsonl").read_text()
    assert text.endswith("}\n") and len(text) <= 20000
    real.check_nothing_is_left()


def test_a_folder_that_cannot_be_made_is_an_error_before(tmp_path: Path) -> None:
    real = Real(tmp_path, HEAD + "  one:\n    run: [echo]\n")
    (tmp_path / "run").write_text("a file")
    assert "a run cannot be kept there" in real.run(2)


def test_the_folder_of_a_task_that_cannot_be_made_fails_the_task(tmp_path: Path) -> None:
    real = Real(tmp_path, HEAD + "  one:\n    run: [echo]\n    folder: logs/one.1.log/x\n  two:\n    run: [echo]\n")
    (tmp_path / "run/logs").mkdir(parents=True)
    (tmp_path / "run/logs/one.1.log").write_text("")
    real.run(1)
    assert real.outcomes() == {"one": "failed", "two": "done"}


def test_runs_have_folders_of_their_own_and_the_latest_is_linked(tmp_path: Path) -> None:
    (tmp_path / "flow.yaml").write_text("workflow: test\ntasks:\n  one:\n    run: [echo, '{task}', '{attempt}']\n")
    for _ in range(2):
        command = [sys.executable, "-m", "junctura.workflow", "flow.yaml", "-q"]
        assert subprocess.run(command, cwd=tmp_path, timeout=LIMIT_S, check=False, capture_output=True).returncode == 0
    folder = tmp_path / "runs/test"
    made = sorted(path.name for path in folder.iterdir())
    assert len(made) == 3 and made[-1] == "latest"
    assert (folder / "latest").resolve().name == made[1]
    assert (folder / "latest/logs/one.1.log").read_text() == "one 1\n"
