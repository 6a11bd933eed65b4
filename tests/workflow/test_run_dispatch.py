"""`junctura run` takes workflows, recipes and plans, and says which options do not fit."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import pytest

from junctura._run import main

WORKFLOW = "workflow: test\ntasks:\n  one:\n    run: [echo]\n"
RECIPE = "product: one\nfrom: {param: t, step: 6}\nto: {format: grib2, name: one.grib2}\n"


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    for name, text in (("flow", WORKFLOW), ("wanted", RECIPE)):
        (tmp_path / f"{name}.yaml").write_text(text)
    return str(tmp_path / "flow.yaml"), str(tmp_path / "wanted.yaml")


def test_each_file_is_taken_for_what_it_is(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    flow, wanted = files
    assert main(["--check", "--", flow]) == 0
    assert "test: 1 task" in capsys.readouterr().out
    assert main(["--check", "--pool=unix:x", "--", wanted]) == 0
    assert "one: 1 file" in capsys.readouterr().out


OF_PRODUCTS = (
    "--pool=unix:x",
    "--as=me",
    "--behind=x",
    "--out=x",
    "--workers=2",
    "--dask=tcp://x:1",
    "--until-gone=x",
    "--announce=unix:x",
    "--now",
    "--patience=1h",
    "--keep-going",
)
OF_WORKFLOWS = ("--dry-run", "--resume=x", "--run-dir=x", "--parallel=1")
OF_BOTH = ("--check", "--json", "--quiet")


@pytest.mark.parametrize("option", OF_PRODUCTS)
def test_options_of_products_do_not_fit_a_workflow(
    files: tuple[str, str], option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--check", option, "--", files[0]]) == 2
    said = capsys.readouterr().err
    assert option.partition("=")[0] in said and "flow.yaml is a workflow" in said


@pytest.mark.parametrize("option", OF_WORKFLOWS)
def test_options_of_workflows_fit_nothing_else(
    files: tuple[str, str], option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--check", option, "--", files[1]]) == 2
    said = capsys.readouterr().err
    assert option.partition("=")[0] in said and "wanted.yaml is no workflow" in said


@pytest.mark.parametrize(
    ("kind", "needs"), [("workflow", "tasks"), ("recipe", "product"), ("requirement", "product"), ("plan", "sinks")]
)
def test_editors_are_told_what_files_may_say(kind: str, needs: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([f"--schema={kind}", "--"]) == 0
    schema = json.loads(capsys.readouterr().out)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["$schema"].endswith("2020-12/schema") and needs in schema["required"]


@pytest.mark.parametrize("wrong", [[], ["--schema=diagram"], ["--schema=plan", "plan.yaml"]])
def test_a_schema_needs_no_file_and_all_else_does(wrong: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(wrong)
    assert ended.value.code == 2 and "--schema" in capsys.readouterr().err


def test_a_workflow_runs_alone(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--check", *files]) == 2
    assert "a workflow runs alone" in capsys.readouterr().err
    assert main(["nowhere.yaml"]) == 2
    assert "nowhere.yaml" in capsys.readouterr().err


def test_each_option_of_the_command_is_known_where_it_belongs(files: tuple[str, str]) -> None:
    """What the command in Rust hands on, and nothing else."""
    folder = Path(__file__).parents[2] / "crates/junctura-cli/src"
    command, pool = (folder / "run.rs").read_text(), (folder / "python_program.rs").read_text()
    command = command[command.index("fn words(") : command.index("mod tests")]
    assert ".pool.values()" in command
    handed_on = re.findall(r'"(--[a-z-]+)"', command + pool)
    known = {option.partition("=")[0] for option in (*OF_PRODUCTS, *OF_WORKFLOWS, *OF_BOTH)}
    assert set(handed_on) - {"--schema"} == known
    for option in (*OF_WORKFLOWS, *OF_BOTH):
        assert main(["--check", option, "--", files[0]]) == 0
    for option in (*OF_PRODUCTS, *OF_BOTH):
        assert main(["--check", option, "--", files[1]]) == 0


@pytest.mark.usefixtures("files")
def test_a_pattern_stands_for_its_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["--check", f"{tmp_path}/want*.yaml"]) == 0
    assert "one: 1 file" in capsys.readouterr().out
    assert main(["--check", f"{tmp_path}/fl?w.yaml"]) == 0
    assert "test: 1 task" in capsys.readouterr().out
    assert main(["--check", f"{tmp_path}/*.yaml"]) == 2
    assert "a workflow runs alone" in capsys.readouterr().err
    monkeypatch.chdir(tmp_path)
    assert main(["--check", "no*.yaml"]) == 2
    assert "no*.yaml: no file is found" in capsys.readouterr().err
