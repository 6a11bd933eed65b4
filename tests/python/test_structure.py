"""The structure of the Python package: no module uses private names of another one, and no two classes share a name."""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import junctura

PACKAGE = Path(junctura.__file__).parent
MODULES = {path.relative_to(PACKAGE.parent).as_posix(): ast.parse(path.read_text()) for path in PACKAGE.rglob("*.py")}
STUBS = [ast.parse(path.read_text()) for path in PACKAGE.glob("_native*.pyi")]
# Named tuples have these, `os` and `asyncio` document theirs, and PSI/J has no public table of the states of Slurm.
OF_LIBRARIES = {"_asdict", "_exit", "_fields", "_get_running_loop", "_replace", "_STATE_MAP"}
# The modules of a folder that are one client share these.
SHARED = {"junctura/aio": {"_board", "_get", "_offer", "_offer_many"}}
# Public in `junctura.field` or `junctura.errors`, and in `junctura.products`.
PUBLIC_TWICE = {"Field", "Grid"}


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def is_module(imported: str) -> bool:
    path = PACKAGE.parent / imported.replace(".", "/")
    return path.is_dir() or path.with_suffix(".py").exists() or path.with_suffix(".pyi").exists()


def defined(tree: ast.Module) -> set[str]:
    """The names that a module defines, of its own and in its classes."""
    found = set()
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                found.add(node.name)
            case ast.Attribute(ctx=ast.Store()):
                found.add(node.attr)
            case ast.Name(ctx=ast.Store()):
                found.add(node.id)
    return found


# The extension is private to the package: its stubs declare what its modules may use.
NATIVE = set().union(*map(defined, STUBS))


def private_names(tree: ast.Module, shared: set[str]) -> Iterator[tuple[int, str]]:
    """The lines where a module uses private names of another one, and these names."""
    own = defined(tree) | shared
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module=str(module)) if not module.startswith("junctura._native"):
                for name in node.names:
                    if is_private(name.name) and not is_module(f"{module}.{name.name}"):
                        yield node.lineno, f"{module}.{name.name}"
            case ast.Attribute(value=value, attr=name) if is_private(name) and name not in OF_LIBRARIES | NATIVE:
                # What a class has inherited is its own.
                is_own = isinstance(value, ast.Name) and value.id in ("self", "cls")
                if not is_own and name not in own:
                    yield node.lineno, ast.unparse(node)


def test_no_module_uses_private_names_of_another_one() -> None:
    found = [
        f"{path}:{line}: {name}"
        for path, tree in MODULES.items()
        for line, name in private_names(tree, SHARED.get(str(Path(path).parent), set()))
    ]
    assert not found, "\n".join(["give them public names:", *found])


# Modules that only a program with these packages imports: xarray and fsspec import theirs; maps ask for Pillow before.
WITH_PACKAGES = {
    "junctura/_store/filesystem.py": {"fsspec"},
    "junctura/_xarray/backend.py": {"xarray"},
    "junctura/_xarray/described_attributes.py": {"xarray"},
    "junctura/products/_map/lettering.py": {"PIL"},
    "junctura/products/_map/lines/ink.py": {"PIL"},
    "junctura/products/_map/lines/isolines.py": {"PIL"},
    "junctura/products/_map/page.py": {"PIL"},
    "junctura/products/_map/picture.py": {"PIL"},
    "junctura/products/_map/sheet.py": {"PIL"},
}


def test_modules_import_numpy_and_no_other_package_when_they_are_loaded() -> None:
    """Optional packages are imported where they are used, by `needed`, which names what to install."""
    has = sys.stdlib_module_names | {"junctura", "numpy"}
    for path, tree in MODULES.items():
        plain = [alias.name for node in tree.body if isinstance(node, ast.Import) for alias in node.names]
        parts = [str(node.module) for node in tree.body if isinstance(node, ast.ImportFrom)]
        packages = {name.partition(".")[0] for name in plain + parts} - has
        assert packages == WITH_PACKAGES.get(path, set()), path


def test_no_two_classes_share_a_name() -> None:
    places = defaultdict(list)
    for path, tree in MODULES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and node.name not in PUBLIC_TWICE:
                places[node.name].append(f"{path}:{node.lineno}")
    shared = {name: where for name, where in places.items() if len(where) > 1}
    assert not shared, "\n".join(f"{name}: {', '.join(where)}" for name, where in shared.items())


def test_no_property_takes_a_lock_that_a_forked_child_may_wait_for() -> None:
    """``functools.cached_property`` does before Python 3.12."""
    wrong = [
        f"{path}:{node.lineno}"
        for path, tree in MODULES.items()
        for node in ast.walk(tree)
        if (isinstance(node, ast.Attribute) and node.attr == "cached_property")
        or (isinstance(node, ast.ImportFrom) and any(name.name == "cached_property" for name in node.names))
    ]
    assert wrong == []


def test_completion_shows_the_public_names_alone() -> None:
    shown = dir(junctura)
    assert set(junctura.__all__) <= set(shown)
    assert {"Exchange", "aio", "dask", "remap"} <= set(shown)
    assert not [
        name for name in shown if is_private(name) or name in ("Any", "TYPE_CHECKING", "annotations", "imported")
    ]
    assert all(getattr(junctura, name) is not None for name in shown)
