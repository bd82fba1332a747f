"""Every driver test runs on the loop of the standard library and, where it exists, on uvloop."""

import datetime
import functools
import ssl
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from hubweir.drivers.development_certificate import development_certificate
from hubweir.drivers.tls import client_context, server_context
from hubweir.testing.event_loops import LOOPS, run_on


@pytest.fixture(params=sorted(LOOPS))
def run(request: pytest.FixtureRequest) -> Callable[[Coroutine[Any, Any, Any]], Any]:
    """Run a coroutine on a fresh loop, 20 s at most; a callback that fails fails the test."""
    return functools.partial(run_on, request.param)


@pytest.fixture(scope="session")
def contexts(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """TLS of a server on 127.0.0.1, and of a client that trusts it."""
    files = development_certificate(tmp_path_factory.mktemp("tls"), ["127.0.0.1"], datetime.datetime.now(datetime.UTC))
    return server_context(files), client_context(files.ca)
