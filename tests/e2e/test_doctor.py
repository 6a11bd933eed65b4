"""`junctura doctor`: what is wrong is found, with what follows and what to do."""

from __future__ import annotations

import json
import re
import subprocess
from typing import Any

import pytest
from e2e_shell import JUNCTURA, Shell

Findings = dict[str, dict[str, Any]]


def look(shell: Shell, before: str = "true", **environment: str) -> tuple[int, Findings]:
    """Findings by their names, in a shell that has something done to it."""
    done = subprocess.run(
        ["bash", "-c", f'{before}; exec "$0" doctor --json', str(JUNCTURA)],
        env={**shell.environment, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    documents = [json.loads(line) for line in done.stdout.splitlines()]
    summary = documents.pop()
    assert summary["checks"] == len(documents)
    assert summary["failed"] == sum(finding["level"] == "fail" for finding in documents)
    for finding in documents:
        assert bool(finding["remedy"]) == bool(finding["consequence"]) == (finding["level"] != "ok"), finding
    return done.returncode, {finding["check"]: finding for finding in documents}


def test_a_machine_that_is_in_order(shell: Shell) -> None:
    status, findings = look(shell)
    assert status == 0, findings
    assert findings["hand-over"]["level"] == "ok"
    assert findings["servers"]["found"].startswith("test in ")
    assert "stale sockets" not in findings
    said = shell.text("doctor")
    assert "hand-over" in said
    assert "hand-over" not in shell.text("doctor", "--quiet")
    # It leaves nothing.
    assert {path.suffix for path in (shell.folder / "junctura").iterdir()} <= {
        ".sock",
        ".lock",
        ".incarnation",
        ".start",
    }


@pytest.mark.parametrize(
    ("limit", "check", "level", "status"),
    [
        ("ulimit -n 200", "open files", "warn", 0),
        ("ulimit -n 40", "open files", "fail", 1),
        ("ulimit -f 100", "file size", "fail", 1),
        ("ulimit -f 1000000", "file size", "warn", 0),
        ("ulimit -v 900000", "address space", "fail", 1),
    ],
)
def test_limits_of_the_process(shell: Shell, limit: str, check: str, level: str, status: int) -> None:
    found, findings = look(shell, limit)
    assert findings[check]["level"] == level
    assert found == status, findings


def test_what_fails_is_named_for_people(shell: Shell) -> None:
    done = subprocess.run(
        ["bash", "-c", 'ulimit -n 40; exec "$0" doctor --quiet', str(JUNCTURA)],
        env=shell.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "fail  open files" in done.stdout
    assert "so: " in done.stdout
    assert "do: " in done.stdout
    assert re.search(r"doctor: \d+ checks? failed; each line that begins with `fail`", done.stderr)


def test_the_folder_of_sockets(bare: Shell) -> None:
    assert look(bare)[1]["socket folder"]["level"] == "ok"
    folder = bare.folder / "junctura"
    folder.mkdir(mode=0o755)
    status, findings = look(bare)
    assert (status, findings["socket folder"]["level"]) == (1, "fail")
    assert f"chmod 700 {folder}" in findings["socket folder"]["remedy"]
    folder.chmod(0o700)
    assert look(bare)[0] == 0


def test_variables(bare: Shell) -> None:
    status, findings = look(bare, JUNCTURA_POOL="nonsense")
    assert (status, findings["address"]["level"]) == (1, "fail")
    assert look(bare, XDG_RUNTIME_DIR="/nowhere")[1]["XDG_RUNTIME_DIR"]["level"] == "warn"
    status, findings = look(bare, JUNCTURA_POOL=f"unix:{bare.folder}/missing/pool.sock")
    assert (status, findings["socket folder"]["level"]) == (1, "fail")


def test_what_a_dead_server_left(bare: Shell) -> None:
    server = bare.serve()
    server.kill()
    status, findings = look(bare)
    assert status == 0
    assert findings["stale sockets"]["level"] == "warn"
    assert findings["stale sockets"]["found"].startswith("test:")
    # The remedy is true: the next server takes the place.
    bare.serve()
    assert "stale sockets" not in look(bare)[1]
