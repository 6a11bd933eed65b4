"""`junctura run` takes workflows, requirements and plans, and says which options do not fit."""

from __future__ import annotations

from pathlib import Path

import pytest

from junctura._run import main

WORKFLOW = "workflow: test\ntasks:\n  one:\n    run: [echo]\n"
REQUIREMENT = "product: one\nfrom: {param: t, step: 6}\nto: {format: grib2, name: one.grib2}\n"


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    for name, text in (("flow", WORKFLOW), ("wanted", REQUIREMENT)):
        (tmp_path / f"{name}.yaml").write_text(text)
    return str(tmp_path / "flow.yaml"), str(tmp_path / "wanted.yaml")


def test_each_file_is_taken_for_what_it_is(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    flow, wanted = files
    assert main(["--check", "--", flow]) == 0
    assert "test: 1 task" in capsys.readouterr().out
    assert main(["--check", "--pool=unix:x", "--", wanted]) == 0
    assert "one: 1 files" in capsys.readouterr().out


@pytest.mark.parametrize("option", ["--pool=unix:x", "--as=me", "--out=x", "--workers=2", "--until-gone=x"])
def test_options_of_products_do_not_fit_a_workflow(
    files: tuple[str, str], option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--check", option, "--", files[0]]) == 2
    said = capsys.readouterr().err
    assert option.partition("=")[0] in said and "flow.yaml is a workflow" in said


@pytest.mark.parametrize("option", ["--dry-run", "--resume=x", "--run-dir=x", "--parallel=2"])
def test_options_of_workflows_fit_nothing_else(
    files: tuple[str, str], option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--check", option, "--", files[1]]) == 2
    said = capsys.readouterr().err
    assert option.partition("=")[0] in said and "wanted.yaml is no workflow" in said


def test_a_workflow_runs_alone(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--check", *files]) == 2
    assert "a workflow runs alone" in capsys.readouterr().err
    assert main(["nowhere.yaml"]) == 2
    assert "nowhere.yaml" in capsys.readouterr().err
