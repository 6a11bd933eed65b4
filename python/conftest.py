"""What the examples in docstrings may use without importing it."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest

import junctura


@pytest.fixture(autouse=True)
def _names(doctest_namespace: dict[str, Any]) -> None:
    doctest_namespace["asyncio"] = asyncio
    doctest_namespace["junctura"] = junctura
    doctest_namespace["numpy"] = np
