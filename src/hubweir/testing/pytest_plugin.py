"""A plugin of pytest, which finds it by itself where hubweir is installed: fixtures for tests of your own.

`hubweir_namespace` is a namespace for one test alone, on `hubweir_server`, which starts when the first test asks for
it and ends with the session. Nothing else of hubweir is imported before. The page is docs/testing.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from hubweir.testing.hubweir_server import HubweirServer
    from hubweir.testing.namespace_on_demand import NamespaceOnDemand


@pytest.fixture(scope="session")
def hubweir_server() -> Iterator[HubweirServer]:
    """A server for the whole session (HubweirServer); with pytest-xdist each worker has one."""
    from hubweir.testing.hubweir_server import HubweirServer

    with HubweirServer() as server:
        yield server


@pytest.fixture
def hubweir_namespace(hubweir_server: HubweirServer) -> Iterator[NamespaceOnDemand]:
    """A namespace that nobody else has (NamespaceOnDemand); it is deleted with all that it holds behind the test."""
    with hubweir_server.namespace() as namespace:
        yield namespace
