"""Every driver test runs on the loop of the standard library and, where it exists, on uvloop."""

import datetime
import functools
import gc
import ssl
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

from hubweir.drivers import garbage_collector
from hubweir.drivers.development_certificate import development_certificate
from hubweir.drivers.garbage_collector import GarbageCollector
from hubweir.drivers.tls import client_context, server_context
from hubweir.testing.event_loops import LOOPS, run_on


@pytest.fixture(params=sorted(LOOPS))
def run(request: pytest.FixtureRequest) -> Callable[[Coroutine[Any, Any, Any]], Any]:
    """Run a coroutine on a fresh loop, 60 s at most; a callback that fails fails the test."""
    return functools.partial(run_on, request.param)


@pytest.fixture(scope="session")
def contexts(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """TLS of a server on 127.0.0.1, and of a client that trusts it."""
    files = development_certificate(tmp_path_factory.mktemp("tls"), ["127.0.0.1"], datetime.datetime.now(datetime.UTC))
    return server_context(files), client_context(files.ca)


@pytest.fixture
def interpreters_own_collections(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The collector as a new process has it, put back afterwards. Services of other tests do not collect meanwhile."""
    thresholds, callbacks, running = gc.get_threshold(), list(gc.callbacks), list(GarbageCollector._running)
    monkeypatch.setattr(garbage_collector, "gc", gc)  # tests/frozen_items.py has another one in its place
    for each in running:
        monkeypatch.setattr(each, "beat", lambda: None)
    gc.callbacks.clear()
    GarbageCollector._running.clear()
    gc.set_threshold(700, 10, 10)
    gc.collect()
    gc.unfreeze()
    try:
        yield
    finally:
        gc.callbacks[:] = callbacks
        GarbageCollector._running[:] = running
        gc.set_threshold(*thresholds)
        gc.freeze()
