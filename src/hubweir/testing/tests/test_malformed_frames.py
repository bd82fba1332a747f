"""Every case of the corpus against a server: right condition, right scope, little memory, neighbours unaffected."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from time import process_time

import pytest

from hubweir.amqp.endpoint import Endpoint, EndpointSettings, Role
from hubweir.amqp.transport.connection import Connection
from hubweir.amqp.transport.events import Closed, LinkDetached, SessionEnded
from hubweir.amqp.transport.performatives import Close, Detach, End
from hubweir.testing.endpoint_pair import Side
from hubweir.testing.frames import attached, transfer, written
from hubweir.testing.malformed_frames import BadFrame, malformed_corpus

CORPUS = malformed_corpus()
MAX_MEMORY = 1 << 20
MAX_SECONDS = 1.0


def serve(data: bytes, *, piece: int | None = None) -> Side:
    side = Side(Endpoint(Role.SERVER, EndpointSettings("server"), now_ms=0))
    feed(side, data, piece=piece)
    return side


def feed(side: Side, data: bytes, *, piece: int | None = None) -> None:
    step = piece or len(data) or 1
    for start in range(0, len(data), step):
        side.take(side.endpoint.receive_data(memoryview(bytearray(data[start : start + step])), 0))
        if side.endpoint.next_deadline_ms() == 0:
            side.take(side.endpoint.on_time(0))
    side.drain()


def complaint(case: BadFrame, neighbour: Side) -> str | None:
    """What is wrong with how a server took the case; None when all is well."""
    side = serve(b"" if case.from_start else attached())
    begun = len(side.written)
    events = len(side.events)
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    start = process_time()
    feed(side, case.data)
    if process_time() - start > MAX_SECONDS:
        return "took too long"
    if tracemalloc.is_tracing() and tracemalloc.get_traced_memory()[1] - before > MAX_MEMORY:
        return f"took {tracemalloc.get_traced_memory()[1] - before} bytes"
    frames = [performative for _, performative in written(side.written[begun:])]
    told = [performative for performative in frames if isinstance(performative, (Close, End, Detach))]
    errors = [performative.error for performative in told if performative.error is not None]
    wanted = {"connection": Close, "session": End, "link": Detach, "none": None}[case.scope]
    if wanted is None:
        if errors or side.endpoint.is_closed:
            return f"is legal, but was answered {told}"
    elif len(errors) != 1 or not isinstance(told[-1], wanted):
        return f"was answered {frames}, not by one {wanted.__name__} with an error"
    elif case.conditions and errors[0].condition not in case.conditions:
        return f"was told {errors[0].condition}: {errors[0].description}"
    elif not errors[0].description:
        return "was told no reason"
    reported = Counter(type(event) for event in side.events[events:])
    kind = {"connection": Closed, "session": SessionEnded, "link": LinkDetached}.get(case.scope)
    if kind is not None and reported[kind] != 1:
        return f"reported {reported}"
    if side.endpoint.is_closed != (case.scope == "connection"):
        return "left the connection in the wrong state"
    if case.scope in ("session", "link"):
        return _rest_works(side, case)
    return _neighbour_works(neighbour)


def _rest_works(side: Side, case: BadFrame) -> str | None:
    """After a session or a link ended, another one on the same connection works."""
    from hubweir.amqp.transport.performatives import Begin
    from hubweir.testing.frames import BEGIN, SEND_LINK, frame

    assert isinstance(BEGIN, Begin)
    seen = len(side.deliveries())
    feed(side, frame(BEGIN, channel=9) + frame(SEND_LINK, channel=9))
    body = transfer(77)
    feed(side, body[:6] + (9).to_bytes(2, "big") + body[8:])
    return None if len(side.deliveries()) == seen + 1 else "hurt another session of the connection"


def _neighbour_works(neighbour: Side) -> str | None:
    seen = len(neighbour.deliveries())
    feed(neighbour, transfer(seen, settled=True))
    return None if len(neighbour.deliveries()) == seen + 1 else "hurt a neighbour"


@pytest.fixture(scope="module")
def neighbour() -> Side:
    return serve(attached())


def test_the_corpus_has_cases_enough_with_names_of_their_own() -> None:
    assert len(CORPUS) >= 400
    assert len({case.name for case in CORPUS}) == len(CORPUS)
    assert {case.scope for case in CORPUS} == {"connection", "session", "link", "none"}


@pytest.mark.parametrize("group", range(20))
def test_every_malformed_case_is_answered_as_it_should(group: int, neighbour: Side) -> None:
    tracemalloc.start()
    try:
        complaints = {case.name: complaint(case, neighbour) for case in CORPUS[group::20]}
    finally:
        tracemalloc.stop()
    assert {name: text for name, text in complaints.items() if text is not None} == {}


def test_the_checker_notices_an_engine_that_ignores_faults(monkeypatch: pytest.MonkeyPatch, neighbour: Side) -> None:
    monkeypatch.setattr(Connection, "_handle", lambda self, fault, channel: None)
    monkeypatch.setattr(Connection, "fail_for", lambda self, fault: None)
    for case in CORPUS:
        assert (complaint(case, neighbour) is None) == (case.scope == "none"), case.name


def test_the_checker_notices_a_wrong_scope(monkeypatch: pytest.MonkeyPatch, neighbour: Side) -> None:
    """An engine that closes the connection for everything."""
    monkeypatch.setattr(Connection, "_handle", lambda self, fault, channel: self.fail(self._error(fault)))
    narrow = [case for case in CORPUS if case.scope in ("session", "link")]
    assert narrow
    for case in narrow:
        assert complaint(case, neighbour) is not None, case.name


@pytest.mark.parametrize("piece", [1, 3, 8])
def test_the_cut_of_the_bytes_changes_no_answer(piece: int) -> None:
    for case in CORPUS[::7]:
        start = b"" if case.from_start else attached()
        whole, cut = serve(start), serve(start)
        feed(whole, case.data)
        feed(cut, case.data, piece=piece)
        assert cut.written == whole.written, case.name
