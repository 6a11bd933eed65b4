"""The guide's workflows are read as they stand there, and drawn as they are drawn there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from junctura import _limits
from junctura._document.located_yaml import documents
from junctura.workflow._spec.check import check_text
from junctura.workflow._spec.reading import workflow_of
from junctura.workflow._spec.schema import RESOURCES, START, TASK, WORKFLOW

PAGE = (Path(__file__).resolve().parents[2] / "docs/guide/workflows.md").read_text()
FILES = re.findall(r"^workflow: .*?(?=^(?:END|```)$)", PAGE, re.M | re.S)


@pytest.mark.parametrize("text", FILES, ids=lambda text: text.split()[1])
def test_the_workflows_of_the_guide_are_drawn_as_it_says(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_limits, "memory_bytes", lambda: 16 << 30)
    (document,) = documents(text.encode(), "guide.yaml")
    assert f"```text\n{check_text(workflow_of(document))}\n```" in PAGE


def test_the_guide_has_every_key() -> None:
    assert len(FILES) == 2
    keys = {key for record in (WORKFLOW, TASK, START, RESOURCES) for key in record.keys}
    assert {key for key in keys if f"`{key}`" not in PAGE} == set()
