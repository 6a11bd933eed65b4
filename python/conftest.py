"""What the examples in docstrings may use without importing it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import junctura


@pytest.fixture(autouse=True)
def _names(doctest_namespace: dict[str, Any], tmp_path: Path) -> None:
    doctest_namespace["folder"] = tmp_path
    doctest_namespace["asyncio"] = asyncio
    doctest_namespace["junctura"] = junctura
    doctest_namespace["numpy"] = np
