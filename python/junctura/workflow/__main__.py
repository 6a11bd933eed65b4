"""Runs a workflow: services, producers and consumers, each when what it needs is there.

``junctura run`` does the same: ``python -m junctura.workflow FILE``.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from junctura._progress import say, status_of, worded
from junctura.errors import Error, InvalidArgument
from junctura.workflow._engine.run import RunOutcome, run
from junctura.workflow._executors.choice import executors
from junctura.workflow._record.history import RECORD, Line, lines
from junctura.workflow._record.run_folder import drop, fresh, lead_to
from junctura.workflow._spec.check import check_document, check_text, dry_run_text
from junctura.workflow._spec.reading import load
from junctura.workflow._spec.tasks import Workflow
from junctura.workflow._view.status_table import StatusView
from junctura.workflow._view.text_format import clean, count, last_lines
from junctura.workflow.timeline import timeline

# Maximum number of failures shown; --json and the record have all.
_SHOWN = 20
# Maximum length of a reason there: hints have values of objects, which are external.
_CAUSE_MAX = 1000


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns the exit status."""
    given = _parser().parse_args(arguments)
    try:
        workflow = load(given.file)
        if given.check or given.dry_run:
            _tell(workflow, given)
            return 0
        return _run(workflow, given)
    except (Error, ImportError) as error:
        # Errors that are known before anything starts are errors of the file or the command line.
        say(f"junctura: {worded(error)}", sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("junctura run", description=__doc__.splitlines()[0], allow_abbrev=False)
    add = parser.add_argument
    add("file", type=Path, metavar="FILE", help="a workflow, in YAML")
    add("--check", action="store_true", help="reads the workflow, and says what waits for what")
    add("--dry-run", action="store_true", help="says each command as it would be run")
    where = parser.add_mutually_exclusive_group()
    text = "go on with the run in this folder: what is done is not done again"
    where.add_argument("--resume", type=Path, metavar="RUN", help=text)
    where.add_argument("--run-dir", type=Path, metavar="FOLDER", help="the folder of the run (runs/NAME/TIME)")
    add("--parallel", type=_count, metavar="N", help="how many cores local tasks may have at once")
    add("--json", action="store_true", help="what became of it, for programs")
    add("-q", "--quiet", action="store_true", help="no progress")
    return parser


def _count(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) <= 100_000:
        raise argparse.ArgumentTypeError(f"{text!r}: expected 1 or more")
    return int(text)


def _tell(workflow: Workflow, given: argparse.Namespace) -> None:
    if given.json:
        print(json.dumps(check_document(workflow), indent=1))
    else:
        print(dry_run_text(workflow) if given.dry_run else check_text(workflow))


def _run(workflow: Workflow, given: argparse.Namespace) -> int:
    if given.parallel is not None:
        _check_room(workflow, given.parallel)
    by = executors(workflow)
    # The target of `latest` may change during a run.
    named = given.resume.resolve() if given.resume else given.run_dir
    folder = named or fresh(workflow.name)
    options: dict[str, Any] = {"resume": given.resume is not None, "parallel": given.parallel}
    try:
        with StatusView(given.quiet, folder) as view:
            view.recall(_said_before(folder) if given.resume else ())
            told = _Told(view, latest=None if named else folder)
            ran = run(workflow, folder, executors=by, told=told.take, **options)
    except Error:
        if not named:
            drop(folder)
        raise
    picture = _drawn(ran)
    # The status of the run is its result, even if the output cannot be written.
    result = (ran, picture, _resuming(ran, given))
    say(json.dumps(_document(*result), indent=1) if given.json else _in_words(*result), sys.stdout)
    return ran.code


def _drawn(ran: RunOutcome) -> Path | None:
    """Draws the timeline of the run; a full disk does not change the result of the run."""
    try:
        return timeline(ran.folder)
    except Error as error:
        say(f"junctura: there is no timeline: {worded(error)}", sys.stderr)
        return None


def _check_room(workflow: Workflow, cores: int) -> None:
    for task in workflow.tasks:
        if task.executor == "local" and task.resources.cores > cores:
            cause = f'"{task.of}" needs {task.resources.cores} cores ({workflow.path}:{task.line})'
            raise InvalidArgument("--parallel", cause)


def _said_before(folder: Path) -> list[Line]:
    """Returns the record of the run to resume; the engine reports a missing record."""
    try:
        with (folder / RECORD).open("rb") as file:
            return [line for line in lines(file) if line is not None]
    except OSError:
        return []


class _Told:
    """Shows each line of the record, and explains how to interrupt the run."""

    def __init__(self, view: StatusView, latest: Path | None) -> None:
        self._view, self._latest = view, latest
        self._is_ending = False

    def take(self, line: Line) -> None:
        self._view.take(line)
        if line["kind"] == "run" and self._latest is not None:
            lead_to(self._latest)
        if line.get("cause") == "interrupted" and not self._is_ending:
            self._is_ending = True
            say("junctura: interrupted: tasks end in order; once more ends all at once", sys.stderr)


def _document(ran: RunOutcome, picture: Path | None, resuming: str | None) -> dict[str, Any]:
    words: dict[str, Any] = {"status": ran.status, "code": ran.code, "cause": ran.cause, "run": str(ran.folder)}
    words |= {"timeline": str(picture) if picture else None}
    words |= {"seconds": ran.seconds, **ran.counts, "failures": dict(ran.failures), "warnings": dict(ran.warnings)}
    return {**words, "resume": resuming}


def _resuming(ran: RunOutcome, given: argparse.Namespace) -> str | None:
    """Returns the command that resumes the run from this folder, quoted for a shell; None: it cannot be resumed."""
    if not ran.can_resume:
        return None
    program = ["junctura", "run"] if shutil.which("junctura") else [sys.executable, "-m", "junctura.workflow"]
    cores = ["--parallel", str(given.parallel)] if given.parallel is not None else []
    return shlex.join([*program, _no_option(given.file), "--resume", _no_option(os.path.relpath(ran.folder)), *cores])


def _no_option(path: str | Path) -> str:
    """Returns a path as an argument that is no option."""
    return f"./{path}" if str(path).startswith("-") else str(path)


def _in_words(ran: RunOutcome, picture: Path | None, resuming: str | None) -> str:
    counted = [f"{some} {word}" for word, some in ran.counts.items() if some or word == "done"]
    counted += [count(len(ran.warnings), "warning")] if ran.warnings else []
    lines = [f"{ran.status}: {', '.join(counted)}, in {ran.seconds:.1f} s; {os.path.relpath(ran.folder)}"]
    lines += [ran.cause] if ran.cause and ran.status == "failed" else []
    failures = list(ran.failures.items())
    for task, cause in failures[:_SHOWN]:
        said = last_lines(ran.logs[task], 1) if task in ran.logs else []
        lines.append(": ".join([f"  {task}", clean(cause, _CAUSE_MAX), *said]))
    if len(failures) > _SHOWN:
        lines.append(f"  and {len(failures) - _SHOWN} more, which --json names")
    warnings = list(ran.warnings.items())
    lines += [f"  warning: {task}: {clean(cause, _CAUSE_MAX)}" for task, cause in warnings[:_SHOWN]]
    if len(warnings) > _SHOWN:
        lines.append(f"  and {count(len(warnings) - _SHOWN, 'more warning')}, which --json names")
    lines += [f"timeline: {os.path.relpath(picture)}"] if picture else []
    lines += [f"resume it with: {resuming}"] if resuming else []
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(status_of(main))
