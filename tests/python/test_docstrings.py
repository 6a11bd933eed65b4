"""The examples of docstrings: pytest collects every one, and runs all of its lines."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy
import pytest

import junctura

ROOT = Path(__file__).resolve().parents[2]


def modules() -> Iterator[object]:
    yield junctura
    for found in pkgutil.walk_packages(junctura.__path__, "junctura."):
        if not found.name.endswith("__main__"):
            yield importlib.import_module(found.name)


def documented(module: object) -> Iterator[tuple[str, str]]:
    """Each thing of a module, or of a class in it, with its docstring."""
    for value in vars(module).values():
        if not callable(value) or not getattr(value, "__module__", "").startswith("junctura"):
            continue
        name = f"{value.__module__}.{value.__qualname__}"
        yield name, value.__doc__ or ""
        if inspect.isclass(value):
            for member, what in vars(value).items():
                if inspect.isroutine(what) or inspect.isdatadescriptor(what):
                    yield f"{name}.{member}", what.__doc__ or ""


# doctest does not look at attributes of classes that are written in Rust; these have examples.
ATTRIBUTES = {"junctura.Stored.location"}
PARSER = doctest.DocTestParser()


def with_examples() -> dict[str, str]:
    return {name: text for module in modules() for name, text in documented(module) if PARSER.get_examples(text)}


def test_all_examples_run(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "--doctest-modules", "python/junctura"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    collected = {line.partition("::")[2] for line in listed.splitlines() if "::" in line}
    texts = with_examples()
    assert len(texts) > 70
    for name in sorted(texts.keys() - collected):
        path = tmp_path / name
        path.mkdir()
        names = {"folder": path, "junctura": junctura, "numpy": numpy}
        example = PARSER.get_doctest(texts[name], names, name, None, None)
        assert name in ATTRIBUTES, f"{name} has examples that pytest does not collect"
        assert doctest.DocTestRunner().run(example).failed == 0, name


def test_every_public_name_has_an_example() -> None:
    without = [name for name in dir(junctura) if not PARSER.get_examples(getattr(junctura, name).__doc__ or "")]
    assert without == ["__version__"]


@pytest.mark.parametrize("name", ["aio", "dask", "mesh", "products", "remap"])
def test_public_names_of_modules_have_examples(name: str) -> None:
    module = importlib.import_module(f"junctura.{name}")
    assert [one for one in module.__all__ if not PARSER.get_examples(getattr(module, one).__doc__ or "")] == []


def test_no_line_is_skipped() -> None:
    for name, text in with_examples().items():
        for example in PARSER.get_examples(text):
            assert not example.options.get(doctest.SKIP), f"{name}: {example.source}"
