"""Typical mistakes of users, and the messages that they get: ``mistakes.py`` prints all of them, for a review.

Each table is a YAML file beside this one. An entry names the mistake, what is run, its exit status or exception, and
three parts of the message: *what* went wrong, *where*, and what to *do*. See ``README.md``.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

sys.path.insert(0, str(Path(__file__).parent))

from mistaken_surroundings import Surroundings

HERE = Path(__file__).parent
# Parts of a message that no user should see.
FOREIGN = re.compile(
    r"Traceback|panicked|BACKTRACE|\bErr\(|\bSome\(|\bNone\b|PyErr|<class |object at 0x|\x1b|_native|unwrap|errno"
)
PARTS = ("what", "where", "do")
LINES_MAX = 12


@dataclass(frozen=True)
class Mistake:
    """An entry of a table."""

    table: str
    said: dict[str, Any]

    @property
    def name(self) -> str:
        return f"{self.table}: {self.said['mistake']}"

    @property
    def expected(self) -> str:
        """The exit status of a command, or the name of an exception or code."""
        return str(self.said.get("raises", self.said.get("status", 2)))

    @property
    def shown(self) -> str:
        """What the user wrote."""
        return str(self.said.get("run") or self.said.get("text") or self.said.get("call"))


@dataclass(frozen=True)
class Outcome:
    """An exit status, exception or code, and the message."""

    ended: str
    message: str


def all_mistakes() -> list[Mistake]:
    """The entries of all tables."""
    tables = sorted(HERE.glob("*.yaml"))
    return [Mistake(table.stem, said) for table in tables for said in yaml.safe_load(table.read_text())]


def outcome(mistake: Mistake, around: Surroundings) -> Outcome:
    """Makes the mistake."""
    return {"shell": _shell, "files": _file, "python": _python, "rust": _program, "c": _program}[mistake.table](
        mistake, around
    )


def faults(mistake: Mistake, found: Outcome) -> list[str]:
    """What is wrong with a message."""
    wrong = []
    if found.ended != mistake.expected:
        wrong.append(f"ended with {found.ended}, not {mistake.expected}")
    needed = PARTS[:-1] if mistake.said.get("is_final") else PARTS
    wrong += [f"lacks {part}: {mistake.said.get(part)!r}" for part in needed if not _has(mistake, part, found.message)]
    wrong += [f"contains {word!r}" for word in FOREIGN.findall(found.message)]
    if found.message.count("\n") >= LINES_MAX:
        wrong.append("is too long")
    if re.search(r"\b([A-Z][a-z]+[A-Z]?[a-z]+): (.*: )?\1: ", found.message):
        wrong.append("repeats its own name")
    return wrong


def proposed_commands(message: str) -> list[str]:
    """The commands between backticks: without names in capital letters, which stand for values, without servers, and
    without the names of commands in place of one that does not exist.
    """
    if "unrecognized subcommand" in message:
        return []
    found = re.findall(r"`(junctura [^`]+)`", message)
    return [command for command in found if not re.search(r"\b[A-Z]{3,}\b| serve\b", command)]


def _has(mistake: Mistake, part: str, message: str) -> bool:
    words = str(mistake.said.get(part) or "")
    return bool(words) and words in message


def _shell(mistake: Mistake, around: Surroundings) -> Outcome:
    done = around.shell(mistake.said["run"], around.folder)
    return Outcome(str(done.returncode), done.stderr.strip())


def _file(mistake: Mistake, around: Surroundings) -> Outcome:
    file = mistake.said.get("file", "recipe.yaml")
    folder = around.empty_folder()
    (folder / file).write_text(mistake.said["text"])
    commands = {
        "schema.yaml": "junctura schema check schema.yaml",
        "requirements.yaml": "junctura pool require --file requirements.yaml",
    }
    if file in commands:
        done = around.shell(commands[file], folder)
        return Outcome(str(done.returncode), done.stderr.strip())
    # In this process: it starts only once.
    from junctura._run import main

    said = io.StringIO()
    environment = dict(os.environ)
    with contextlib.chdir(folder), contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
        status = main(["--check", file])
    os.environ.clear()
    os.environ.update(environment)
    return Outcome(str(status), said.getvalue().strip())


def _python(mistake: Mistake, around: Surroundings) -> Outcome:
    import numpy

    import junctura

    with contextlib.chdir(around.folder), junctura.Pool(schema="free") as pool, junctura.Pool(schema="mars") as mars:
        names = {"junctura": junctura, "np": numpy, "pool": pool, "mars": mars}
        with _without(mistake.said.get("without")), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                exec(compile(mistake.said["run"], "<the user's program>", "exec"), names)
            except Exception as error:
                # The last lines of the traceback.
                return Outcome(type(error).__name__, "".join(traceback.format_exception_only(error)).strip())
    return Outcome("", "nothing is raised")


@contextlib.contextmanager
def _without(package: str | None) -> Iterator[None]:
    """Within the block, this package cannot be imported."""
    if package is None:
        yield
        return
    kept = {name: module for name, module in sys.modules.items() if name.partition(".")[0] == package}
    sys.modules.update(dict.fromkeys([*kept, package]))  # type: ignore[arg-type]
    try:
        yield
    finally:
        del sys.modules[package]
        sys.modules.update(kept)


def _program(mistake: Mistake, around: Surroundings) -> Outcome:
    """A program makes all mistakes of its table at once, and prints a line for each."""
    message = around.told(mistake.table)[mistake.said["call"]]
    return Outcome(message.partition(":")[0], message)


def main() -> int:
    """Prints a table of all messages, in Markdown; with words, of the mistakes whose name contains one of them."""
    wanted = sys.argv[1:]
    wrong = count = 0
    with Surroundings() as around:
        for mistake in all_mistakes():
            if wanted and not any(word in mistake.name for word in wanted):
                continue
            found = outcome(mistake, around)
            told = faults(mistake, found)
            count += 1
            wrong += bool(told)
            shown = mistake.shown.rstrip().replace("\n", "\n    ")
            message = around.without_places(found.message).replace("\n", "\n    ")
            print(f"### {mistake.name}\n\n    {shown}\n\n{found.ended}:\n\n    {message}\n")
            print("".join(f"- {fault}\n" for fault in told))
    print(f"mistakes: {count - wrong} passed, {wrong} failed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
