"""Sphinx extension for the pages of docs/python: the reference of the Python package.

```text
  package, imported ──► docstrings ── napoleon ──┐
  stubs, sources ── ast ──► members, signatures ─┴─► py:class, py:method, … ──► docs/python/*.html
  stubs ── ast ──► aliases ────────────────────────► docs/python/types.html
```
The compiled module has no types, and autodoc expands the aliases of sources. So members and signatures are the text of
stubs and sources, in their order, and docstrings are those that `help` shows.
"""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.ext.napoleon import Config
from sphinx.ext.napoleon.docstring import NumpyDocstring
from sphinx.util.docutils import SphinxDirective
from sphinx.util.nodes import make_refnode

import junctura

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef

STUBS = sorted((Path(__file__).resolve().parent.parent / "python/junctura").glob("_native*.pyi"))
# The meaning of each alias of the stubs, without its underscore.
ALIASES = {
    "Age": "A time: seconds, a text such as `30s` or `7d`, or a `timedelta`.",
    "Archived": "A payload for a store: as for a pool, or an object of a pool.",
    "Attributes": "Attributes by name. Their values are as in `Given`.",
    "Awaited": "Something that `Pool.wait` can wait for.",
    "Communicator": "A communicator of mpi4py.",
    "Data": "A payload: a buffer, an array of any library, an allocation of the pool, or a labeled array.",
    "Extents": "Numbers of elements, one for each dimension: a text such as `181x360`, a number, or a sequence.",
    "Given": "The value of an attribute, as a program passes it. None leaves the attribute out.",
    "Kind": "The kind of an event.",
    "OnDevice": "An array with the DLPack protocol.",
    "Scalar": "A value that is not a list.",
    "SchemaSource": "A schema: the name of a built-in one, the path of a file, or the schema itself.",
    "Shape": "The shape of an array.",
    "Value": "The value of an attribute, in the type of its schema.",
}
DATA = {"junctura.__version__": "The version of the package."}
# The public modules.
PUBLIC = ("", ".aio", ".dask", ".errors", ".mesh", ".products", ".remap")
# Modules of others in annotations, and names that stubs and sources import from them.
EXTERNAL = re.compile(
    r"(asyncio|builtins|collections\.abc|dask|datetime|decimal|distributed|io|numpy|os|pandas|pathlib|pyvista|pyarrow|xarray|Image)\.\w"
)
IMPORTED = {"ArrayLike", "Buffer", "DTypeLike", "NDArray", "Path", "TracebackType"}
NAPOLEON: Any = Config(
    napoleon_use_param=False,
    napoleon_use_rtype=False,
    napoleon_use_keyword=False,
    napoleon_custom_sections=[("Attributes", "params_style")],
)


@dataclass(frozen=True)
class Place:
    """Where a docstring is: names in it are looked up from there."""

    module: str
    owner: str = ""
    parameters: frozenset[str] = frozenset()

    def target(self, name: str) -> str | None:
        """Returns the full name of something public that the docstring names."""
        if name.removesuffix("()") in self.parameters:
            return None
        for prefix in (f"{self.module}.{self.owner}.", f"{self.module}.", "junctura.", ""):
            full = prefix.replace("..", ".").replace(".errors.", ".") + name.removesuffix("()")
            if full.startswith("junctura.") and is_public(full):
                return full
        return None


@functools.cache
def is_public(full: str) -> bool:
    """Whether a name leads by public names alone to a module, a class, a function, a method or a property."""
    thing: Any = importlib.import_module("junctura")
    for part in full.split(".")[1:]:
        if part.startswith("_") or not hasattr(thing, part):
            return False
        if isinstance(thing, type):
            member = inspect.getattr_static(thing, part)
            if not (inspect.isroutine(member) or inspect.isdatadescriptor(member)):
                return False
        thing = getattr(thing, part)
        if isinstance(thing, ModuleType) and thing.__name__.removeprefix("junctura") not in PUBLIC:
            return False
    return True


# Members and signatures.


@functools.cache
def statements() -> list[ast.stmt]:
    return [node for stub in STUBS for node in ast.parse(stub.read_text()).body]


@functools.cache
def stub_classes() -> dict[str, ast.ClassDef]:
    return {node.name: node for node in statements() if isinstance(node, ast.ClassDef)}


@functools.cache
def definitions() -> dict[str, str]:
    """Returns the text of each alias of the stubs, by its name without the underscore; empty for a protocol."""
    found = {}
    for node in statements():
        if isinstance(node, ast.ClassDef) and any(ast.unparse(base) == "Protocol" for base in node.bases):
            found[node.name[1:]] = ""
        elif isinstance(node, ast.AnnAssign) and node.value and ast.unparse(node.annotation) == "TypeAlias":
            found[ast.unparse(node.target)[1:]] = ast.unparse(node.value)
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            bounds = [ast.unparse(word.value) for word in node.value.keywords if word.arg == "bound"]
            found |= {ast.unparse(node.targets[0])[1:]: bound for bound in bounds}
    return found


@functools.cache
def iterators() -> dict[str, str]:
    """Returns, for each private iterator of the stubs, its type in general terms."""
    found = {}
    for name, node in stub_classes().items():
        for step in functions(node):
            if name.startswith("_") and step.name == "__next__" and step.returns:
                found[name] = f"Iterator[{ast.unparse(step.returns)}]"
    return found


def functions(node: ast.ClassDef) -> Iterator[Function]:
    return (step for step in node.body if isinstance(step, Function))


def marks(function: Function) -> set[str]:
    return {ast.unparse(mark).rpartition(".")[2] for mark in function.decorator_list}


def readable(text: str, module: str = "junctura._native") -> str:
    """Returns an annotation or a signature of a module without what only stubs and sources import."""
    for name, general in {**iterators(), **aliases(module)}.items():
        text = re.sub(rf"(?<![\w.'\"]){name}\b(?!['\"])", general, text)
    text = re.sub(r"(?<![\w.])_Path\b", definitions()["Path"], text)
    text = re.sub(rf"(?<![\w.])_({'|'.join(ALIASES)})\b", r"\1", text)
    text = re.sub(r"\b(junctura\.)?_native(_\w+)?\.", "junctura.", text)
    text = re.sub(r"\bnpt\.|\bnumpy\.typing\.", "", text)
    return re.sub(r"\bnp\.", "numpy.", text)


@functools.cache
def aliases(module: str) -> dict[str, str]:
    """Returns the aliases of a source, and those that it imports, by name."""
    found = own_aliases(module)
    for node in ast.walk(tree_of(module)):
        if not isinstance(node, ast.ImportFrom) or not node.module:
            continue
        if re.match(r"junctura\.\w+\._", node.module):
            known = own_aliases(node.module)
            found |= {name.name: known[name.name] for name in node.names if name.name in known}
        elif re.fullmatch(r"junctura(\._native\w*)?", node.module):
            found |= {name.name: f"junctura.{name.name}" for name in node.names if name.name in junctura.__all__}
    return found


def own_aliases(module: str) -> dict[str, str]:
    found = {}
    for node in ast.walk(tree_of(module)):
        if isinstance(node, ast.AnnAssign) and node.value and ast.unparse(node.annotation) == "TypeAlias":
            found[ast.unparse(node.target)] = ast.unparse(node.value).strip("'\"")
        elif isinstance(node, ast.Assign) and re.match(r"(npt\.NDArray|Literal)\[", ast.unparse(node.value)):
            found[ast.unparse(node.targets[0])] = ast.unparse(node.value)
    return found


@functools.cache
def tree_of(module: str) -> ast.Module:
    """Returns a source as a tree; an empty one for a compiled module."""
    path = Path(inspect.getsourcefile(importlib.import_module(module)) or "compiled")
    return ast.parse(path.read_text() if path.suffix == ".py" else "")


@functools.cache
def internal() -> set[str]:
    """Returns the names of all classes of the package."""
    sources = (Path(__file__).resolve().parent.parent / "python/junctura").rglob("*.py")
    return {name for source in sources for name in re.findall(r"^class (\w+)", source.read_text(), re.MULTILINE)}


def signature(function: Function, module: str, is_bound: bool, returns: bool = True) -> str:
    """Returns parameters and result; `is_bound` leaves out the first parameter."""
    parsed = ast.parse(ast.unparse(function)).body[0]
    assert isinstance(parsed, Function)
    arguments = parsed.args
    if is_bound:
        (arguments.posonlyargs or arguments.args).pop(0)
    result = f" -> {ast.unparse(parsed.returns)}" if returns and parsed.returns else ""
    return readable(f"({ast.unparse(arguments)}){result}", module)


def parameters(function: Function) -> frozenset[str]:
    given = function.args
    every = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
    return frozenset(one.arg for one in every if one)


def class_nodes(thing: type) -> list[ast.ClassDef]:
    """Returns the definition of a class, then those of its bases that have no page."""
    found = []
    for each in thing.__mro__:
        if not each.__module__.startswith("junctura") or (each is not thing and has_page(each)):
            continue
        if source_of(each) == "junctura._native":
            found.append(stub_classes()[each.__name__])
        else:
            node = ast.parse(textwrap.dedent(inspect.getsource(each))).body[0]
            assert isinstance(node, ast.ClassDef)
            found.append(node)
    return found


def source_of(thing: type) -> str:
    """Returns the module with the source of a class; for a compiled one, that with the stub."""
    return "junctura._native" if thing.__module__ == "junctura" else thing.__module__


def has_page(thing: type) -> bool:
    """Whether a class belongs to a public module."""
    modules = (importlib.import_module(f"junctura{name}") for name in PUBLIC)
    return any(getattr(module, thing.__name__, None) is thing for module in modules)


# Text.


def literals(text: str, place: Place) -> str:
    """Returns a docstring in which `this` is literal text, or a link if it names something public."""

    def literal(found: re.Match[str]) -> str:
        name = " ".join(found[1].split())
        target = place.target(name)
        after = "\\ " if found[2] and found[2].isalnum() else ""
        return (f":py:obj:`{name} <{target}>`" if target else f"``{name}``") + after + found[2]

    code = re.compile(r"^\s*(>>>|\.\.\. |```)", re.MULTILINE)
    word = re.compile(r"(?<![`:\w])`([^`]+)`(?!`)(\w?)")
    paragraphs = re.split(r"(\n[ \t]*\n|^[ \t]*```\w+\n.*?^[ \t]*```$)", text, flags=re.MULTILINE | re.DOTALL)
    return "".join(part if code.search(part) else word.sub(literal, part) for part in paragraphs)


def fences(text: str) -> str:
    """Returns a docstring with the blocks of Markdown as those of reStructuredText."""

    def block(found: re.Match[str]) -> str:
        lines = textwrap.indent(textwrap.dedent(found[3]).rstrip(), found[1] + "   ")
        return f"{found[1]}.. code-block:: {found[2]}\n\n{lines}\n"

    return re.sub(r"^([ \t]*)```(\w+)\n(.*?)^[ \t]*```$", block, text, flags=re.MULTILINE | re.DOTALL)


def docstring(thing: Any, place: Place) -> list[str]:
    """Returns a docstring as reStructuredText."""
    # A compiled function may begin with its signature.
    text = re.sub(r"\A\w+\(.*\)\n--\n\n", "", inspect.cleandoc(thing.__doc__ or ""))
    text = fences(literals(text, place))
    return list(raised("\n".join(NumpyDocstring(text, NAPOLEON).lines()).split("\n")))


def raised(lines: list[str]) -> Iterator[str]:
    """Yields the lines; errors become a list, since one entry may name several."""
    is_inside = False
    for line in lines:
        found = re.match(r":raises ([\w., ]+):(.*)", line)
        if found:
            names = ", ".join(literals(f"`{name}`", Place("junctura")) for name in found[1].split(", "))
            yield from ([] if is_inside else [":Raises:"])
            yield f"   * {names}:{found[2]}"
        else:
            yield f"     {line.strip()}" if is_inside and line.startswith("    ") else line
        is_inside = bool(found) or (is_inside and line.startswith("    "))


# Directives.


def described(full: str) -> Iterator[str]:
    """Yields the directives of something public."""
    module, _, name = full.rpartition(".")
    if full in DATA:
        yield from (f".. py:data:: {name}", f"   :module: {module}", "", f"   {DATA[full]}", "")
        return
    if full.removeprefix("junctura") in PUBLIC:
        yield from (f".. py:module:: {full}", "", *docstring(importlib.import_module(full), Place(full)), "")
        return
    # Types in the signature are looked up from there.
    yield from (f".. py:currentmodule:: {module}", "")
    thing = getattr(importlib.import_module(module), name)
    if isinstance(thing, type):
        yield from of_class(module, name, thing)
    else:
        function = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(thing)))).body[0]
        assert isinstance(function, Function)
        yield from (
            f".. py:function:: {name}{signature(function, thing.__module__, is_bound=False)}",
            f"   :module: {module}",
            "",
        )
        yield from indented(docstring(thing, Place(module, parameters=parameters(function))))


def of_class(module: str, name: str, thing: type) -> Iterator[str]:
    """Yields a class, with its members in the order of the stub or source."""
    found = class_nodes(thing)
    is_error = issubclass(thing, BaseException)
    makers = [step for node in found for step in functions(node) if step.name in ("__new__", "__init__")]
    makers = makers[:1]
    source = source_of(thing)
    signatures = [signature(maker, source, is_bound=True, returns=False) for maker in makers]
    # Nothing but the package makes an object from its own parts.
    signatures = [text for text in signatures if not re.search(r"\b(_Answer|Switchboard)\b", text)] or [""]
    yield from (f".. py:{'exception' if is_error else 'class'}:: {name}{signatures[0]}", f"   :module: {module}", "")
    place = Place(module, name, frozenset().union(*map(parameters, makers)))
    yield from indented(docstring(thing, place))
    bases = [base for base in thing.__bases__ if base.__module__ == "builtins" or has_page(base)]
    shown = [literals(f"`{base.__name__}`", Place("junctura")) for base in bases if base not in (object, tuple)]
    yield from (["   Bases: " + ", ".join(shown), ""] if shown else [])
    yield from indented(members(Place(module, name), thing, found))


def members(place: Place, thing: type, found: list[ast.ClassDef]) -> Iterator[str]:
    """Yields the public members: those of the class, then those of the bases that have no page."""
    seen: set[str] = set()
    for node in found:
        for step in node.body:
            if isinstance(step, ast.AnnAssign):
                yield from constant(step)
        own = [step for step in functions(node) if not step.name.startswith("_") and step.name not in seen]
        for name in dict.fromkeys(step.name for step in own):
            steps = [step for step in own if step.name == name and not marks(step) & {"setter", "deleter"}]
            yield from of_member(place, source_of(thing), inspect.getattr_static(thing, name), name, steps)
            seen.add(name)


def constant(step: ast.AnnAssign) -> Iterator[str]:
    if ast.unparse(step.annotation).startswith("ClassVar") and ast.unparse(step.target).isupper():
        yield from (
            f".. py:attribute:: {ast.unparse(step.target)}",
            f"   :type: {ast.unparse(step.annotation)[9:-1]}",
            "",
        )


def of_member(place: Place, source: str, thing: Any, name: str, steps: list[Function]) -> Iterator[str]:
    """Yields a property or a method, with all its overloads."""
    overloads = [step for step in steps if "overload" in marks(step)] or steps
    first = overloads[0]
    if marks(first) & {"property", "cached_property"}:
        returns = readable(ast.unparse(first.returns), source) if first.returns else "Any"
        yield from (f".. py:property:: {name}", f"   :type: {returns}", "")
    else:
        is_static = "staticmethod" in marks(first)
        kind = "staticmethod" if is_static else "classmethod" if "classmethod" in marks(first) else "method"
        head = f".. py:{kind}:: "
        lines = [name + signature(step, source, is_bound=not is_static) for step in overloads]
        yield head + lines[0]
        yield from (" " * len(head) + line for line in lines[1:])
        yield from (["   :async:"] if isinstance(first, ast.AsyncFunctionDef) else [])
        yield ""
    inside = Place(place.module, place.owner, parameters(overloads[-1]))
    yield from indented(docstring(getattr(thing, "__func__", thing), inside))


def indented(lines: Iterator[str] | list[str]) -> Iterator[str]:
    yield from (f"   {line}".rstrip() for line in lines)
    yield ""


class PythonApi(SphinxDirective):
    """Describes modules, classes and functions of the package, in the given order."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        lines = [line for full in self.arguments[0].split() for line in described(full)]
        for stub in STUBS:
            self.env.note_dependency(stub)
        self.env.note_dependency(__file__)
        return self.parse_text_to_nodes("\n".join(lines))


class PythonAliases(SphinxDirective):
    """Describes the aliases of the stubs."""

    def run(self) -> list[nodes.Node]:
        lines: list[str] = []
        for name, text in ALIASES.items():
            definition = definitions()[name]
            definition = re.sub(rf"\b({'|'.join(junctura.__all__)})\b", r"junctura.\1", readable(definition))
            canonical = [f"   :canonical: {definition}"] if definition else []
            meaning = literals(text, Place("junctura"))
            lines += [f".. py:type:: {name}", *canonical, "", f"   {meaning}", ""]
        return self.parse_text_to_nodes("\n".join(lines))


def resolve(app: Sphinx, env: BuildEnvironment, node: pending_xref, shown: nodes.Element) -> nodes.Element | None:
    """Resolves a name of the package in a module below it, and leaves types of others as text."""
    if node.get("refdomain") != "py":
        return None
    target = str(node["reftarget"])
    found = env.domains.python_domain.objects.get(f"junctura.{target}")
    if found:
        return make_refnode(app.builder, node["refdoc"], found.docname, found.node_id, shown, target)
    is_text = EXTERNAL.match(target) or target in IMPORTED or target in internal()
    return shown if is_text else None


def setup(app: Sphinx) -> dict[str, bool]:
    """Registers directives and the resolution of names."""
    for module in PUBLIC:
        importlib.import_module(f"junctura{module}")
    app.add_directive("python-api", PythonApi)
    app.add_directive("python-aliases", PythonAliases)
    app.connect("missing-reference", resolve)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
