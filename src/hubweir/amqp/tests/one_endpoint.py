"""One endpoint, given bytes and read by hand: for tests of what it does before there are two."""

from __future__ import annotations

from hubweir.amqp.endpoint import Endpoint, EndpointSettings, Role
from hubweir.amqp.transport.events import Closed, Event


def server(**settings: object) -> Endpoint:
    """A server begun at 0."""
    return Endpoint(Role.SERVER, EndpointSettings("server", **settings), now_ms=0)


def give(endpoint: Endpoint, data: bytes, now_ms: int = 0) -> list[Event]:
    """Give it bytes; the events."""
    return endpoint.receive_data(memoryview(data), now_ms)


def sent(endpoint: Endpoint) -> bytes:
    """All that it wants to write."""
    return b"".join(bytes(piece) for piece in endpoint.data_to_send())


def closed_with(events: list[Event]) -> str:
    """The condition of the last event, which must be Closed."""
    assert isinstance(events[-1], Closed), events
    assert events[-1].error is not None
    return str(events[-1].error.condition)
