"""Unmodified programs of ADIOS2: what goes through a pool is what BP5 writes into a file and reads from it."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import junctura

Program = Callable[..., subprocess.Popen[str]]


def output(process: subprocess.Popen[str]) -> list[str]:
    """The lines of a program that succeeds."""
    text, error = process.communicate(timeout=300)
    assert process.returncode == 0, error
    return text.splitlines()


@pytest.fixture
def expected(program: Program, tmp_path: Path) -> list[str]:
    """What the reader prints of four steps in a file."""
    file = tmp_path / "heat.bp"
    output(program("heat_writer.py", file, 4, engine="BP5"))
    lines = output(program("heat_reader.py", file, engine="BP5"))
    assert len(lines) == 5
    return lines


@pytest.mark.usefixtures("pool")
def test_a_stream_is_what_a_file_is(program: Program, expected: list[str]) -> None:
    output(program("heat_writer.py", "heat", 4))
    # More than once: steps stay.
    for _ in range(2):
        assert output(program("heat_reader.py", "heat")) == expected


@pytest.mark.usefixtures("pool")
def test_a_reader_waits_for_steps(program: Program, expected: list[str]) -> None:
    reader = program("heat_reader.py", "heat")
    writer = program("heat_writer.py", "heat", 4, "stepwise")
    assert reader.stdout is not None and writer.stdin is not None
    for step in range(4):
        writer.stdin.write("\n")
        writer.stdin.flush()
        assert reader.stdout.readline().rstrip("\n") == expected[step]
    writer.stdin.close()
    assert reader.stdout.read().rstrip("\n") == expected[4]


def test_a_killed_writer_leaves_whole_steps(pool: junctura.Pool, program: Program, expected: list[str]) -> None:
    writer = program("heat_writer.py", "heat", 4, "exit-in=2")
    assert writer.wait(timeout=120) == -signal.SIGKILL
    lines = output(program("heat_reader.py", "heat", "timeout=0"))
    assert lines == [*expected[:2], '{"status": "StepStatus.NotReady"}']
    assert [entry["column"] for entry in pool.list("row=contents")] == ["0", "1"]


def test_a_variable_is_an_array_of_the_pool(pool: junctura.Pool, program: Program) -> None:
    output(program("heat_writer.py", "heat", 2))
    found = pool.demand_array({"bucket": "heat", "row": "1", "column": "T"}, "shape=12x10", 0, timeout=0)
    np.testing.assert_array_equal(found, np.arange(120.0).reshape(12, 10) / 7 + 1)
    # Two ranks divide what was written in two blocks of rows by columns.
    for rank in range(2):
        part = pool.demand_array({"bucket": "heat", "row": "1", "column": "fields/u"}, "shape=12x10 grid=1x2", rank)
        whole = ((np.arange(120.0).reshape(12, 10) / 7 + 1) * 3).astype("f4")
        np.testing.assert_array_equal(part, whole[:, 5 * rank : 5 * rank + 5])


@pytest.mark.usefixtures("pool")
def test_streams_have_names(program: Program) -> None:
    output(program("heat_writer.py", "x", 1, Stream="first"))
    output(program("heat_writer.py", "x", 2, Stream="second"))
    assert len(output(program("heat_reader.py", "x", Stream="first"))) == 2
    assert len(output(program("heat_reader.py", "x", Stream="second"))) == 3
    # A stream is written once.
    again = program("heat_writer.py", "x", 1, Stream="first")
    _, error = again.communicate(timeout=120)
    assert again.returncode != 0
    assert "stream first, step 0: AlreadyExists" in error


@pytest.mark.usefixtures("pool")
def test_options_of_offers(program: Program) -> None:
    output(program("heat_writer.py", "heat", 1, Options="retention=released:1"))
    reader = program("heat_reader.py", "heat")
    _, error = reader.communicate(timeout=120)
    # It gets T twice.
    assert reader.returncode != 0
    assert "stream heat, step 0, variable T: Gone" in error


def test_a_step_that_was_removed(pool: junctura.Pool, program: Program) -> None:
    output(program("heat_writer.py", "heat", 2))
    pool.withdraw_all("row=contents,column=0")
    assert output(program("heat_reader.py", "heat")) == ['{"status": "StepStatus.OtherError"}']


@pytest.mark.usefixtures("pool")
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("hole", "step 0: variable a: InvalidArgument"),
        ("local", "variable a: local arrays with several blocks are not supported"),
        ("append", "only the modes Write and Read are supported"),
        ("twice", "BeginStep is called twice"),
        ("end", "EndStep without BeginStep"),
    ],
)
def test_what_is_not_supported_is_named(name: str, said: str, program: Program) -> None:
    wrong = program("wrong_use.py", name)
    text, error = wrong.communicate(timeout=120)
    assert wrong.returncode != 0, text
    assert said in error


@pytest.mark.usefixtures("pool")
@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"Pool": ""}, "no pool is named: set the parameter Pool, or the environment variable JUNCTURA_POOL"),
        ({"Pool": "unix:nowhere"}, "Unavailable"),
        ({"Ranks": "4"}, 'the parameter Ranks is "4"; expected mpi'),
        ({"Timeout": "soon"}, 'the parameter Timeout is "soon"; expected a number of seconds'),
        ({"Order": "B"}, 'the parameter Order is "B"; expected C or F'),
    ],
)
def test_wrong_parameters(parameters: dict[str, str], said: str, program: Program) -> None:
    wrong = program("heat_writer.py", "heat", 1, **parameters)
    _, error = wrong.communicate(timeout=120)
    assert wrong.returncode != 0
    assert said in error


def test_a_program_without_steps(pool: junctura.Pool, program: Program) -> None:
    output(program("wrong_use.py", "stepless"))
    assert [entry["row"] for entry in pool.list("column=a")] == ["0"]


def test_local_and_column_major_arrays(pool: junctura.Pool, program: Program) -> None:
    output(program("wrong_use.py", "stepless", Order="F"))
    found = pool.demand_array({"bucket": "heat", "row": "0", "column": "a"}, "shape=2x3", 0)
    np.testing.assert_array_equal(found, np.arange(6.0).reshape(2, 3, order="F"))
    lines = output(program("wrong_use.py", "read-local"))
    assert lines == ["[0.0, 1.0, 2.0, 3.0]"]


def ranks_of(program: Program, ranks: int, *words: object, **parameters: str) -> list[subprocess.Popen[str]]:
    """Starts the ranks of a program, whose launcher states which each is; they begin together."""
    launchers = [{"PMI_RANK": str(rank), "PMI_SIZE": str(ranks)} for rank in range(ranks)]
    started = [
        program("heat_ranks.py", *words, environment=launcher, Ranks="mpi", **parameters) for launcher in launchers
    ]
    for rank in started:
        assert rank.stdout is not None
        assert rank.stdout.readline() == "ready\n"
    for rank in started:
        assert rank.stdin is not None
        rank.stdin.write("\n")
        rank.stdin.flush()
    return started


def test_ranks_write_one_stream(pool: junctura.Pool, program: Program) -> None:
    writers = ranks_of(program, 3, 2)
    for writer in writers:
        output(writer)
    whole = np.arange(84.0).reshape(12, 7)
    for step in range(2):
        found = pool.demand_array({"bucket": "heat", "row": str(step), "column": "T"}, "shape=12x7", 0, timeout=0)
        np.testing.assert_array_equal(found, whole + step)
        # Columns, of which a rank has none, and another one has two blocks.
        found = pool.demand_array({"bucket": "heat", "row": str(step), "column": "columns"}, "shape=12x7", 0, timeout=0)
        np.testing.assert_array_equal(found, whole * 2)
    lines = [json.loads(line) for line in output(program("heat_reader.py", "heat"))]
    assert [line.get("step") for line in lines] == [0, 1, None]
    assert lines[-1] == {"status": "StepStatus.EndOfStream"}
    variables = lines[1]["variables"]
    assert variables["T"] == [[12, 7], ["float64", [12, 7], (whole + 1).tobytes().hex()]]
    assert sorted(variables) == ["T", "columns", "mean", "of 1", "part of T"]
    # Ranks leave nothing of what they tell each other.
    assert pool.list("row=ranks") == []


def test_a_rank_that_is_killed(pool: junctura.Pool, program: Program) -> None:
    writers = ranks_of(program, 2, 3, "killed=1", Timeout="5")
    assert writers[1].wait(timeout=120) == -signal.SIGKILL
    _, error = writers[0].communicate(timeout=120)
    assert writers[0].returncode != 0
    assert "stream heat, step 1: rank 1 of 2 has not ended the step within 5 s" in error
    assert [entry["column"] for entry in pool.list("row=contents")] == ["0"]


@pytest.mark.usefixtures("pool")
@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("wrong=shape", "variable T: rank 1 has another kind, type or shape than an earlier rank"),
        ("wrong=overlap", "variable T: InvalidArgument"),
        ("wrong=local", "variable T: local values and arrays of several ranks are not supported; give it a shape"),
    ],
)
def test_ranks_that_do_not_fit(word: str, said: str, program: Program) -> None:
    writers = ranks_of(program, 2, 1, word, Timeout="5")
    errors = [writer.communicate(timeout=120)[1] for writer in writers]
    assert said in errors[0]
