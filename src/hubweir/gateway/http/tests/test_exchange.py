"""Reading a body within its limit, and a place in the byte budget."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from hubweir.errors import NOT_FOUND, SERVER_BUSY, ServiceError
from hubweir.gateway.byte_budget import ProcessBudget
from hubweir.gateway.http import exchange
from hubweir.gateway.http.exchange import ClientGone, Request, Room, answer_of
from hubweir.gateway.http.problem import HttpRefusal


def request(*pieces: bytes | None, headers: dict[bytes, bytes] | None = None) -> Request:
    """A request whose body comes in these pieces; None: its peer goes away."""
    waiting = list(pieces)

    async def receive() -> Any:
        piece = waiting.pop(0)
        if piece is None:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": piece, "more_body": bool(waiting)}

    return Request("POST", ("hub",), "", headers or {}, [], "http://h", receive)


def test_a_body_is_joined_up_to_its_limit() -> None:
    assert asyncio.run(request(b"ab", b"", b"c").body(3, "It")) == b"abc"
    assert asyncio.run(request(b"").body(3, "It")) == b""
    with pytest.raises(HttpRefusal, match="It is larger than the limit of 3 bytes") as refusal:
        asyncio.run(request(b"ab", b"cd", b"never read").body(3, "It"))
    assert refusal.value.status == 413
    with pytest.raises(ClientGone):
        asyncio.run(request(b"ab", None).body(3, "It"))


def test_a_peer_is_gone_when_it_is_and_not_when_something_comes() -> None:
    asked: list[None] = []
    coming = request(b"a", b"b", None)

    async def receive() -> Any:
        asked.append(None)
        return await coming.receive()

    asyncio.run(Request("POST", (), "", {}, [], "http://h", receive).gone())
    assert len(asked) == 3


def test_the_size_of_a_body_is_its_length_or_the_limit() -> None:
    assert request().body_size(10, "It") == 0
    assert request(headers={b"content-length": b"10"}).body_size(10, "It") == 10
    assert request(headers={b"transfer-encoding": b"chunked"}).body_size(10, "It") == 10
    with pytest.raises(HttpRefusal):
        request(headers={b"content-length": b"11"}).body_size(10, "It")


def test_a_header_that_is_no_utf_8_is_refused() -> None:
    assert request(headers={b"a": b"\xc3\xa9"}).header(b"a") == "\u00e9"
    assert request().header(b"a") is None
    with pytest.raises(HttpRefusal):
        request(headers={b"a": b"\xff"}).header(b"a")


def test_room_is_taken_once_and_given_back_once() -> None:
    budget = ProcessBudget(100)
    room = Room(budget)
    asyncio.run(room.take(60))
    assert budget.used == 60
    room.give_back()
    room.give_back()
    assert budget.used == 0


def test_who_finds_no_room_in_time_is_told_that_the_service_is_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "ROOM_WAIT_S", 0.01)
    budget = ProcessBudget(100)
    budget.take_bytes(100)
    with pytest.raises(ServiceError) as refusal:
        asyncio.run(Room(budget).take(1))
    assert refusal.value.condition is SERVER_BUSY
    budget.give_back_bytes(100)
    assert budget.used == 0


def test_of_many_that_wait_no_more_go_on_than_there_is_room_for() -> None:
    async def scenario() -> None:
        budget = ProcessBudget(100)
        budget.take_bytes(100)
        rooms = [Room(budget) for _ in range(4)]
        tasks = [asyncio.ensure_future(room.take(100)) for room in rooms]
        await asyncio.sleep(0)
        budget.give_back_bytes(100)
        for done in range(1, 5):
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED, timeout=30)
            assert sum(task.done() for task in tasks) == done
            assert budget.used == 100
            next(room for room, task in zip(rooms, tasks, strict=True) if task.done() and room._taken).give_back()
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        assert budget.used == 0

    asyncio.run(scenario())


def test_a_completion_is_waited_for_and_its_error_raised() -> None:
    assert asyncio.run(answer_of(lambda on_done: on_done(5))) == 5
    with pytest.raises(ServiceError, match="not there"):
        asyncio.run(answer_of(lambda on_done: on_done(ServiceError(NOT_FOUND, "not there"))))
