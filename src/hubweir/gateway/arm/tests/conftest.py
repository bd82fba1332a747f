"""A live service for the tests of a module, and a client that asks it for resources."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hubweir.gateway.arm.tests.arm_client import ArmClient
from hubweir.testing.running_namespace import RunningNamespace, running_namespace


@pytest.fixture(scope="module")
def running() -> Iterator[RunningNamespace]:
    with running_namespace() as started:
        yield started


@pytest.fixture
def client(running: RunningNamespace) -> ArmClient:
    return ArmClient(running)
