"""The load: its figures, and its records before an independent judge of histories (where that is at hand)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from e2e_shell import ROOT, Shell

JUDGE = ROOT.parent / "shared/check/history.py"
SMALL = ["--members", "4", "--steps", "3", "--levels", "3", "--params", "3", "--warmup", "0s", "--json"]


def run_load(shell: Shell, *arguments: str) -> dict[str, object]:
    """Runs a short load, which must lose nothing; gives its figures."""
    figures: dict[str, object] = json.loads(shell.run("load", "pool", *SMALL, *arguments).stdout)
    assert figures["lost"] == figures["duplicates"] == figures["damaged"] == figures["gaps"] == 0
    assert figures["objects"]
    return figures


@pytest.mark.parametrize("mode", ["metadata", "transfer", "touch", "verify"])
@pytest.mark.parametrize("size", ["1KiB", "100KiB"])
def test_every_mode_hands_all_over(bare: Shell, mode: str, size: str) -> None:
    figures = run_load(bare, "--mode", mode, "--size", size, "--duration", "300ms", "--window", "16")
    for name in ("objects_per_s", "gib_per_s", "server_cpu_us_per_object", "peak_rss_mib"):
        assert isinstance(figures[name], float)
    for name in ("offer_us", "delivery_us"):
        assert set(figures[name]) == {"p50", "p99", "p999"}  # type: ignore[call-overload]


@pytest.mark.parametrize(("producers", "consumers"), [(1, 1), (4, 4), (2, 3)])
def test_what_a_group_of_each_consumer_has_released_is_gone(bare: Shell, producers: int, consumers: int) -> None:
    """Whoever is lost or left behind would be in `lost`, too."""
    people = ["--producers", str(producers), "--consumers", str(consumers), "--retention", "group"]
    figures = run_load(bare, *people, "--size", "10KiB", "--mode", "verify", "--duration", "300ms", "--window", "16")
    assert figures["redelivered"] == 0
    assert figures["run"]["retention"] == "group"  # type: ignore[index]
    memory: dict[str, dict[str, float]] = figures["memory"]  # type: ignore[assignment]
    for when in ("begin", "middle", "end"):
        assert memory[when]["rss_anon_mib"] > 0


@pytest.mark.parametrize(
    ("status", "arguments", "cause"),
    [
        (2, ["--size", "1048576TiB"], "a payload has at most 1099511627776 bytes"),
        (2, ["--members", "4294967295"], "4294967295 is not in 0..=1000000"),
        (2, ["--levels", "1000001"], "1000001 is not in 0..=1000000"),
        (2, ["--producers", "1000000"], "1000000 is not in 0..=4096"),
        (2, ["--window", "4294967295"], "4294967295 is not in 0..=1048576"),
        (2, ["--bundle", "18446744073709551615"], "18446744073709551615 is not in 1..=100000"),
        (6, ["--producers", "4096", "--consumers", "1"], "4097 processes in all"),
        (6, ["--kills", "consumers=100000"], "100002 processes in all"),
    ],
)
def test_numbers_that_no_machine_has_start_nothing(bare: Shell, status: int, arguments: list[str], cause: str) -> None:
    assert cause in bare.error(status, "load", "pool", *arguments)


def test_subscriptions_of_others_change_nothing(bare: Shell) -> None:
    figures = run_load(bare, "--size", "1KiB", "--duration", "300ms", "--subscriptions", "2000")
    assert figures["run"]["subscriptions"] == 2000  # type: ignore[index]


@pytest.mark.parametrize("bundle", [[], ["--bundle", "40"]], ids=["plain", "bundles"])
@pytest.mark.parametrize(("producers", "consumers", "size"), [(1, 1, "100KiB"), (3, 2, "1KiB"), (2, 3, "10KiB")])
def test_the_judge_finds_nothing(
    bare: Shell, tmp_path: Path, producers: int, consumers: int, size: str, bundle: list[str]
) -> None:
    counts = ["--producers", str(producers), "--consumers", str(consumers), "--size", size, *bundle]
    run_load(bare, *counts, "--mode", "verify", "--duration", "500ms", "--rate", "1000", "--history", str(tmp_path))
    records = sorted(path.name for path in tmp_path.iterdir())
    names = [f"c{i}.jsonl" for i in range(consumers)] + [f"p{i}.jsonl" for i in range(producers)]
    assert records == names
    judge(tmp_path)


def judge(directory: Path) -> dict[str, object]:
    """What an independent judge says of the records of a run."""
    if not JUDGE.exists():
        pytest.skip("the judge of histories is not at hand")
    asked = [sys.executable, str(JUDGE), str(directory), "--json"]
    judged = subprocess.run(asked, capture_output=True, text=True, check=False)
    assert judged.returncode == 0, judged.stdout + judged.stderr
    verdict: dict[str, object] = json.loads(judged.stdout)
    return verdict


@pytest.mark.parametrize(("groups", "consumers", "kills"), [(1, 3, 2), (3, 7, 4)])
def test_groups_complete_everything_once_though_members_are_killed(
    bare: Shell, tmp_path: Path, groups: int, consumers: int, kills: int
) -> None:
    counts = ["--producers", "2", "--consumers", str(consumers), "--groups", str(groups), "--kills", str(kills)]
    load = ["--size", "1KiB", "--mode", "verify", "--duration", "1s", "--rate", "500"]
    figures = run_load(bare, *counts, *load, "--history", str(tmp_path))
    assert figures["killed"] == kills
    assert figures["run"]["kills"] == {"producers": 0, "consumers": 0, "members": kills}  # type: ignore[index]
    assert len(list(tmp_path.glob("c*.jsonl"))) == consumers + kills
    verdict = judge(tmp_path)
    assert (verdict["groups_judged"], verdict["groups_not_judged"], verdict["broken"]) == (groups, 0, {})


def test_a_load_ends_though_its_producers_end_before_some_are_killed(bare: Shell) -> None:
    """Two hundred members are killed one after the other: that takes longer than the load."""
    counts = ["--producers", "2", "--consumers", "2", "--groups", "1", "--kills", "producers=20,members=200"]
    figures = run_load(bare, *counts, "--size", "1KiB", "--duration", "50ms", "--rate", "500")
    killed = figures["killed"]
    assert isinstance(killed, int)
    assert 200 <= killed < 220


def test_wrong_arguments_are_refused(bare: Shell) -> None:
    for wrong in (
        ["--kills", "1"],
        ["--kills", "consumers=1", "--groups", "1"],
        ["--kills", "servers=1"],
        ["--followers", "1"],
        ["--retention", "group", "--groups", "1"],
        ["--retention", "group", "--kills", "producers=1"],
        ["--retention", "forever"],
        ["--groups", "2", "--kills", "1", "--consumers", "2"],
        ["--producers", "0"],
        ["--rate", "-1"],
        ["--size", "three"],
        ["--levels", "0"],
        ["--bundle", "0"],
    ):
        bare.error(2, "load", "pool", *wrong)
