"""Seeds of the walks that are played to the code."""

from __future__ import annotations

import os

import pytest


@pytest.fixture(scope="session")
def first_seed() -> int:
    """Where seeds start: fresh ones in every run, or at HUBWEIR_FIRST_SEED to play a failure again."""
    given = os.environ.get("HUBWEIR_FIRST_SEED")
    return int(given) if given else int.from_bytes(os.urandom(4), "big")
