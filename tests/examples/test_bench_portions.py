"""A benchmark in portions: figures of contenders that are not measured now are kept, and compared with new ones."""

import importlib
import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benches"))
harness = importlib.import_module("harness")

MS = harness.Measure("ms", "ms", more_is_better=False)


def cases(made: dict[str, str], ran: list[str], limit: float = 2.0) -> list:
    """Two cases of three contenders, each with what it makes."""

    def contender(case: str, name: str, kind: str):
        def run() -> dict[str, object]:
            ran.append(f"{case}/{name}")
            return {"ms": float(len(ran)), "made": made[name]}

        return harness.Contender(name, kind, "", "none", ["x"], run)

    kinds = {"ours": "us", "files": "rival", "store": "rival"}
    return [
        harness.Case(
            case,
            "How long?",
            MS,
            [contender(case, name, kind) for name, kind in kinds.items()],
            [harness.Check("ours", at_most=limit, times="files")],
            same="made",
        )
        for case in ("short", "long")
    ]


def run(monkeypatch: pytest.MonkeyPatch, out: Path, made: dict[str, str], *options: str) -> tuple[int, list[str], dict]:
    ran: list[str] = []
    monkeypatch.setattr(sys, "argv", ["bench", "--out", str(out), "--rounds", "1", *options])
    status = harness.begin("portions", "").run(cases(made, ran))
    return status, ran, json.loads((out / "portions.json").read_text())


def measured(document: dict) -> dict[str, list[str]]:
    """By case, the contenders that have figures."""
    return {case["name"]: [one["name"] for one in case["contenders"] if "best" in one] for case in document["cases"]}


SAME = dict.fromkeys(("ours", "files", "store"), "a")


def test_portions_are_put_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    status, ran, document = run(monkeypatch, tmp_path, SAME, "--only", "long", "--contender", "ours")
    assert (status, ran, measured(document)) == (0, ["long/ours"], {"long": ["ours"]})
    assert [check["value_text"] for check in document["cases"][0]["checks"]] == ["not measured"]
    status, ran, document = run(monkeypatch, tmp_path, SAME, "--only", "long", "--contender", "files", "--add")
    assert (status, ran, measured(document)) == (0, ["long/files"], {"long": ["ours", "files"]})
    assert [check["value"] for check in document["cases"][0]["checks"]] == [1.0]
    status, ran, document = run(monkeypatch, tmp_path, SAME, "--only", "short", "--add")
    assert measured(document) == {"short": ["ours", "files", "store"], "long": ["ours", "files"]}
    _, _, document = run(monkeypatch, tmp_path, SAME, "--only", "short")
    assert measured(document) == {"short": ["ours", "files", "store"]}, "nothing is kept unless it is asked for"


def test_who_makes_something_else_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(monkeypatch, tmp_path, SAME, "--only", "long", "--contender", "ours")
    other = {**SAME, "files": "b"}
    _, _, document = run(monkeypatch, tmp_path, other, "--only", "long", "--contender", "files", "--add")
    assert measured(document) == {"long": ["ours"]}
    (files,) = [one for one in document["cases"][0]["contenders"] if one["name"] == "files"]
    assert files["left_out"] == "made: others than those of ours"


def test_the_status_says_whether_ours_ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(samples) -> None:
        samples.left_out = "not built"

    monkeypatch.setattr(harness, "take_sample", fail)
    assert run(monkeypatch, tmp_path, SAME, "--only", "long", "--contender", "ours")[0] == 1
    assert run(monkeypatch, tmp_path, SAME, "--only", "long", "--contender", "files")[0] == 0
