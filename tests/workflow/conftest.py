"""What the tests of workflows share lies beside them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from slurm import NoSlurmError, Slurm


@pytest.fixture(scope="module")
def slurm() -> Iterator[Slurm]:
    """A Slurm of this machine alone, to which all commands of Slurm go meanwhile."""
    try:
        slurm = Slurm()
    except NoSlurmError as error:
        pytest.skip(str(error))
    with pytest.MonkeyPatch.context() as patch:
        for name, value in slurm.environment.items():
            patch.setenv(name, value)
        yield slurm
    slurm.close()
