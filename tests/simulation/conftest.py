"""Seeds of the simulated histories; makes the worlds beside the tests importable (this folder is no package)."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def first_seed() -> int:
    """Where seeds start: fresh ones in every run, or at HUBWEIR_FIRST_SEED to play a failure again."""
    given = os.environ.get("HUBWEIR_FIRST_SEED")
    return int(given) if given else int.from_bytes(os.urandom(4), "big")
