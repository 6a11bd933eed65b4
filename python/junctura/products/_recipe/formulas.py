"""Formulas between fields, such as ``sqrt(u*u + v*v)``: parsed once, validated, never evaluated as Python code.

A formula has numbers, names of parameters (``2t`` is one, too), ``+ - * / **``, comparisons, ``and``, ``or``, ``not``,
and the functions of `FUNCTIONS`. A comparison results in 1 or 0. Missing values propagate: if an operand is NaN, so is
the result; and results that are not finite, as of ``log(-1)`` or ``1/0``, are NaN, too.
"""

from __future__ import annotations

import ast
import functools
import re
import warnings
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from junctura._document.located_yaml import Wrong, nearest
from junctura.products._regrid.floats import Floats

_Value: TypeAlias = "Floats | np.float64"
_LENGTH_MAX = 1000
_NODES_MAX = 300
_DEPTH_MAX = 40
# A name that is not an identifier in Python, such as 2t or 10u.
_DIGIT_FIRST = re.compile(r"(?<![\w.])(?!\d+[eE][-+]?\d+(?![\w.]))\d+[A-Za-z_]\w*(?![\w.])")
_PREFIX = "digit_first_"


def _truth(holds: Any, *of: _Value) -> _Value:
    """Returns 1 or 0, and NaN if one of the values is NaN."""
    made: _Value = np.where(_any_missing(*of), np.nan, holds)
    return made


def _any_missing(*of: _Value) -> Any:
    return functools.reduce(np.logical_or, [np.isnan(value) for value in of])


def _where(condition: _Value, then: _Value, otherwise: _Value) -> _Value:
    made: _Value = np.where(np.isnan(condition), np.nan, np.where(condition != 0, then, otherwise))
    return made


# Each with its number of arguments: exact, or a minimum if negative.
FUNCTIONS: dict[str, tuple[Callable[..., Any], int]] = {
    "sqrt": (np.sqrt, 1),
    "abs": (np.abs, 1),
    "exp": (np.exp, 1),
    "log": (np.log, 1),
    "sin": (np.sin, 1),
    "cos": (np.cos, 1),
    "hypot": (np.hypot, 2),
    "where": (_where, 3),
    "min": (lambda *values: functools.reduce(np.minimum, values), -2),
    "max": (lambda *values: functools.reduce(np.maximum, values), -2),
}
_BINARY: dict[type[ast.operator], Callable[..., Any]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.divide,
    ast.Pow: np.float_power,
}
_COMPARE: dict[type[ast.cmpop], Callable[..., Any]] = {
    ast.Lt: np.less,
    ast.LtE: np.less_equal,
    ast.Gt: np.greater,
    ast.GtE: np.greater_equal,
    ast.Eq: np.equal,
    ast.NotEq: np.not_equal,
}
_Run: TypeAlias = Callable[[Mapping[str, Floats]], _Value]


class Formula:
    """A parsed formula.

    Attributes
    ----------
    text
        The source text.
    names
        Its parameters, in order of their names.

    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._names: set[str] = set()
        self._left = _NODES_MAX
        self._run = self._made(_parsed(text), 0)
        self.names = tuple(sorted(self._names))

    def __call__(self, fields: Mapping[str, Floats]) -> Floats:
        """Returns its values from those of its parameters, all of one shape.

        Without parameters, the result has no dimensions.
        """
        with np.errstate(all="ignore"):
            values = np.asarray(self._run(fields), np.float64)
            return np.where(np.isfinite(values), values, np.nan)

    def _made(self, node: ast.expr, depth: int) -> _Run:
        self._left -= 1
        if self._left < 0 or depth > _DEPTH_MAX:
            raise Wrong(f"the formula has more than {_NODES_MAX} parts, or is nested deeper than {_DEPTH_MAX}")
        make = _MAKERS.get(type(node))
        if make is None:
            raise Wrong(f"{_source(node)} has no meaning in a formula")
        return make(self, node, depth + 1)

    def _constant(self, node: ast.Constant, _: int) -> _Run:
        if not isinstance(node.value, int | float) or isinstance(node.value, bool):
            raise Wrong(f"{_source(node)} is no number")
        try:
            number = np.float64(node.value)
        except OverflowError as error:
            raise Wrong("a number is too large") from error
        return lambda _: number

    def _name(self, node: ast.Name, _: int) -> _Run:
        name = node.id.removeprefix(_PREFIX)
        self._names.add(name)
        return lambda fields: fields[name]

    def _binary(self, node: ast.BinOp, depth: int) -> _Run:
        act = _BINARY.get(type(node.op))
        if act is None:
            raise Wrong(f"{_source(node)}: known are + - * / **")
        left, right = self._made(node.left, depth), self._made(node.right, depth)
        return lambda fields: act(left(fields), right(fields))

    def _unary(self, node: ast.UnaryOp, depth: int) -> _Run:
        of = self._made(node.operand, depth)
        if isinstance(node.op, ast.USub):
            return lambda fields: np.negative(of(fields))
        if isinstance(node.op, ast.Not):
            return lambda fields: _not(of(fields))
        if isinstance(node.op, ast.UAdd):
            return of
        raise Wrong(f"{_source(node)}: known are - and not")

    def _compare(self, node: ast.Compare, depth: int) -> _Run:
        if len(node.ops) != 1 or type(node.ops[0]) not in _COMPARE:
            raise Wrong(f"{_source(node)}: known are < <= > >= == !=, one at a time, joined by and")
        act = _COMPARE[type(node.ops[0])]
        left, right = self._made(node.left, depth), self._made(node.comparators[0], depth)

        def run(fields: Mapping[str, Floats]) -> _Value:
            one, other = left(fields), right(fields)
            return _truth(act(one, other), one, other)

        return run

    def _both(self, node: ast.BoolOp, depth: int) -> _Run:
        sides = [self._made(side, depth) for side in node.values]
        join = np.logical_and if isinstance(node.op, ast.And) else np.logical_or

        def run(fields: Mapping[str, Floats]) -> _Value:
            values = [side(fields) for side in sides]
            return _truth(functools.reduce(join, values), *values)

        return run

    def _call(self, node: ast.Call, depth: int) -> _Run:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name not in FUNCTIONS or node.keywords:
            raise Wrong(f'"{name or _source(node.func)}" is no function{nearest(name, FUNCTIONS)}')
        act, count = FUNCTIONS[name]
        if len(node.args) != count if count > 0 else len(node.args) < -count:
            raise Wrong(f"{name} has {'at least ' if count < 0 else ''}{abs(count)} arguments, not {len(node.args)}")
        arguments = [self._made(argument, depth) for argument in node.args]
        return lambda fields: act(*(argument(fields) for argument in arguments))


def _not(value: _Value) -> _Value:
    return _truth(np.equal(value, 0), value)


_MAKERS: dict[type[ast.expr], Callable[..., _Run]] = {
    ast.Constant: Formula._constant,
    ast.Name: Formula._name,
    ast.BinOp: Formula._binary,
    ast.UnaryOp: Formula._unary,
    ast.Compare: Formula._compare,
    ast.BoolOp: Formula._both,
    ast.Call: Formula._call,
}


@functools.lru_cache(maxsize=1024)
def formula(text: str) -> Formula:
    """Parses a formula.

    Raises
    ------
    Wrong
        The text is not a formula; the error names the unknown word.

    Examples
    --------
    >>> import numpy
    >>> formula("where(2t > 273.15, 1, 0)").names
    ('2t',)
    >>> formula("hypot(u, v)")({"u": numpy.array([3.0]), "v": numpy.array([4.0])})
    array([5.])

    """
    return Formula(text)


def _parsed(text: str) -> ast.expr:
    if len(text) > _LENGTH_MAX:
        raise Wrong(f"a formula has at most {_LENGTH_MAX} characters")
    if _PREFIX in text:
        raise Wrong(f'"{_PREFIX}" has no meaning in a formula')
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(_DIGIT_FIRST.sub(_renamed, " ".join(text.split())), mode="eval").body
    except SyntaxError as error:
        raise Wrong(f'"{_short(text)}" is no formula: {error.msg}') from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise Wrong(f'"{_short(text)}" is no formula') from error


def _renamed(found: re.Match[str]) -> str:
    try:
        float(found[0])
    except ValueError:
        return _PREFIX + found[0]
    return found[0]


def _source(node: ast.expr) -> str:
    try:
        return f'"{_short(ast.unparse(node).replace(_PREFIX, ""))}"'
    except RecursionError:
        return "what is nested so deeply"


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."
