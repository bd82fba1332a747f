"""One live service for a module of tests; each test makes a hub or a queue of its own."""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from hubweir.gateway.http.tests.messaging_forms import atom
from hubweir.gateway.http.tests.service import Http
from hubweir.testing.running_namespace import running_namespace

_numbers = itertools.count()


@pytest.fixture(scope="module")
def http() -> Iterator[Http]:
    with running_namespace() as namespace:
        yield Http(namespace)


@pytest.fixture
def new_hub(http: Http) -> Callable[..., str]:
    """Make a hub and return its name."""

    def make(partition_count: int = 1) -> str:
        name = f"hub-{next(_numbers)}"
        http.namespace.create_event_hub(name, partition_count=partition_count)
        return name

    return make


@pytest.fixture
def clean(http: Http) -> Iterator[Http]:
    """The service, without the queues and topics of the test behind it."""
    yield http
    for path in ("$Resources/Queues", "$Resources/Topics"):
        for uri in atom(http.call("GET", f"/{path}").body, "title")[1:]:
            assert http.call("DELETE", f"/{uri}").status == 200


@pytest.fixture
def new_queue(http: Http) -> Callable[..., str]:
    """Make a queue, with the settings of RunningNamespace.create_queue, and return its name."""

    def make(**settings: Any) -> str:
        name = f"queue-{next(_numbers)}"
        http.namespace.create_queue(name, **settings)
        return name

    return make
