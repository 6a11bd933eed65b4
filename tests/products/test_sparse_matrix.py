"""Sparse matrices of weights: each value is that of SciPy, in the last bit, and missing values follow MIR's rule."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from junctura import errors
from junctura._native import _weighted_sums
from junctura.products._regrid.sparse_matrix import SparseMatrix


def _random(rows: int, columns: int, seed: int) -> tuple[SparseMatrix, Any]:
    random = np.random.default_rng(seed)
    counts = random.integers(0, 6, rows)
    starts = np.concatenate([[0], np.cumsum(counts)])
    places = random.integers(0, columns, starts[-1])
    # Of a few values, so that several are the greatest.
    weights = random.integers(1, 4, starts[-1]) / 7
    parts = (weights, places, starts)
    return SparseMatrix.of(*parts, (rows, columns)), csr_array(parts, shape=(rows, columns))


def _expected(scipy: Any, values: Any) -> Any:
    """Row by row: the first of the greatest weights decides, and weights of present values are divided by their sum."""
    made = scipy @ values
    for row in range(scipy.shape[0]):
        links = slice(scipy.indptr[row], scipy.indptr[row + 1])
        weights, given = scipy.data[links], values[scipy.indices[links]]
        if not len(weights) or np.isnan(given[np.argmax(weights)]):
            made[row] = np.nan
        elif np.isnan(given).any():
            total = sum(weights[~np.isnan(given)], 0.0)
            terms = [one * (1 / total) * value for one, value in zip(weights, given, strict=True) if value == value]
            made[row] = sum(terms, 0.0)
    return made


@pytest.mark.parametrize("missing", [0.0, 0.1, 0.6, 1.0])
def test_values_are_those_of_scipy_with_the_rule_of_mir(missing: float) -> None:
    for seed in range(20):
        matrix, scipy = _random(200, 90, seed)
        random = np.random.default_rng(seed)
        values = random.normal(size=90)
        values[random.random(90) < missing] = np.nan
        expected = _expected(scipy, values)
        assert np.array_equal(matrix.applied(values), expected, equal_nan=True)


def test_rows_are_taken_and_spread() -> None:
    matrix, scipy = _random(50, 30, 1)
    values, wanted = np.random.default_rng(2).normal(size=30), np.array([7, 7, 49, 0, 12])
    taken = matrix.rows(wanted)
    assert taken.shape == (5, 30)
    assert np.array_equal(taken.applied(values), _expected(scipy, values)[wanted], equal_nan=True)
    spread = taken.spread(np.array([1, 2, 5, 6, 9]), 11).applied(values)
    assert np.array_equal(spread[[1, 2, 5, 6, 9]], taken.applied(values), equal_nan=True)
    assert np.isnan(spread[[0, 3, 4, 7, 8, 10]]).all()
    assert np.isnan(SparseMatrix.empty((3, 30)).applied(values)).all()


def test_parts_that_do_not_fit_are_refused() -> None:
    matrix, _ = _random(5, 9, 3)
    with pytest.raises(ValueError, match="8 values for 9 columns"):
        matrix.applied(np.zeros(8))
    with pytest.raises(ValueError, match="read-only"):
        matrix.data[0] = 1
    starts, columns, weights = np.array([0, 1]), np.array([4], np.uint32), np.ones(1)
    with pytest.raises(errors.InvalidArgument, match="do not fit together"):
        _weighted_sums(np.empty(1), (starts, columns, weights), np.zeros(4))
    with pytest.raises(errors.InvalidArgument, match="do not fit together"):
        _weighted_sums(np.empty(2), (starts, columns, weights), np.zeros(5))
    with pytest.raises(errors.InvalidArgument, match="expected 64-bit starts"):
        _weighted_sums(np.empty(1), (starts, columns.astype(np.uint16), weights), np.zeros(5))
    values = np.zeros(5)
    with pytest.raises(errors.InvalidArgument, match="do not overlap"):
        _weighted_sums(values[:1], (starts, columns, weights), values)
