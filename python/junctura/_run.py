"""``junctura run``: a workflow, or products from recipes or a plan, according to the files.

Each has its own command line; an option that does not apply to the files is an error that names the option.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from junctura._document.located_yaml import files_of, read
from junctura._limits import ONE_THREAD
from junctura._progress import say, status_of, worded
from junctura.errors import Error, InvalidArgument, NotFound

# Options without a value are None here.
_OF_WORKFLOWS = {"--dry-run": None, "--resume": "RUN", "--run-dir": "FOLDER", "--parallel": "N"}
_OF_PRODUCTS = {
    "--pool": "URL",
    "--as": "NAME",
    "--behind": "URL",
    "--out": "FOLDER",
    "--workers": "N",
    "--dask": "ADDRESS",
    "--until-gone": "NAME",
    "--now": None,
    "--patience": "TIME",
    "--announce": "URL",
    "--keep-going": None,
}
_OF_BOTH = {"--check": None, "--json": None, "--quiet": None}
# Schemas of files, for editors.
_SCHEMAS = {
    "workflow": "workflow/workflow.schema.json",
    "recipe": "products/recipe.schema.json",
    "plan": "products/_plan/plan.schema.json",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns the exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    given = _parser().parse_args(words)
    if given.schema:
        sys.stdout.write((Path(__file__).parent / _SCHEMAS[given.schema]).read_text("utf-8"))
        return 0
    try:
        files = _files(given.files)
        said = set[Any]().union(*map(_keys, files))
        # With --keep-going, a workflow among recipes is one more invalid file.
        is_workflow = "tasks" in said and not (given.keep_going and len(files) > 1)
        _check(given, files, is_workflow)
    except (Error, ImportError) as error:
        say(f"junctura: {worded(error)}", sys.stderr)
        return 2
    # Each needs packages that may not be installed for the other.
    if is_workflow:
        from junctura.workflow.__main__ import main as run_workflow

        # A pattern may match the name.
        return run_workflow([files[0] if word in given.files else word for word in words])
    if "sources" not in said:
        # A plan computes in this process; workers for products are forked from it if it has one thread.
        for name, count in ONE_THREAD.items():
            os.environ.setdefault(name, count)
    from junctura.products.__main__ import main as run_products

    return run_products(words, forks=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("junctura run", add_help=False, allow_abbrev=False)
    of_files = parser.add_mutually_exclusive_group(required=True)
    of_files.add_argument("files", nargs="*", metavar="FILE", default=[])
    of_files.add_argument("--schema", type=_kind, choices=_SCHEMAS)
    for option, value in {**_OF_WORKFLOWS, **_OF_PRODUCTS, **_OF_BOTH}.items():
        short = ["-q"] if option == "--quiet" else []
        # Only its presence is checked here; its value is parsed by the command line that it belongs to.
        if value is None:
            parser.add_argument(*short, option, action="store_true", default=None)
        else:
            parser.add_argument(option, metavar=value)
    return parser


def _kind(word: str) -> str:
    """A kind of files with a schema; ``requirement`` is the earlier name of ``recipe``."""
    return "recipe" if word == "requirement" else word


def _files(paths: Sequence[str]) -> list[str]:
    """Returns the files that exist; missing ones are reported with all other errors when recipes are read."""
    found: list[str] = []
    for path in paths:
        with contextlib.suppress(NotFound):
            found += files_of([path])
    return found


def _keys(file: str) -> set[Any]:
    """Returns the top-level keys of a file's documents; an unreadable file is treated as a missing one."""
    try:
        documents = read(file)
    except Error:
        return set()
    return {key for document in documents if isinstance(document.value, dict) for key in document.value}


def _check(given: argparse.Namespace, files: Sequence[str], is_workflow: bool) -> None:
    if is_workflow and len(files) > 1:
        raise InvalidArgument(files[1], "a workflow runs alone: a task of it may run others")
    foreign = _OF_PRODUCTS if is_workflow else _OF_WORKFLOWS
    for option in foreign:
        if getattr(given, option.removeprefix("--").replace("-", "_")) is not None:
            _read_all(given.files)
            kind = "a workflow, and this is for products" if is_workflow else "no workflow, and this is for one"
            raise InvalidArgument(option, f"{files[0]} is {kind}")


def _read_all(paths: Sequence[str]) -> None:
    """Raises the errors of unreadable files, whose kind is unknown."""
    for file in files_of(paths):
        read(file)


if __name__ == "__main__":
    sys.exit(status_of(main))
