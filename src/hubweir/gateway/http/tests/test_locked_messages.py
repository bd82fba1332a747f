"""Locks over HTTP: given up, renewed, completed; and lost."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

import pytest

from hubweir.broker.commands.fragment import LocksRenewed, RenewLocks, SettleMessages
from hubweir.broker.commands.process import Refusal
from hubweir.errors import INTERNAL_ERROR, NOT_FOUND
from hubweir.gateway.amqp.tests.world import World
from hubweir.gateway.http.tests.service import Http
from hubweir.gateway.http.tests.test_send_messages import said
from hubweir.gateway.http.tests.world_requests import LOCK_MS, ask_all, counts, queue_world

NewQueue = Callable[..., str]


def locked(http: Http, queue: str) -> str:
    """Send a message and lock it; the address of the lock."""
    assert http.call("POST", f"/{queue}/messages", "x").status == 201
    return http.call("POST", f"/{queue}/messages/head?timeout=0").headers["location"]


def locked_there(world: World) -> str:
    """The same on a world, at the queue `orders`; the path of the lock."""
    ask_all(world, "POST", "/orders/messages", b"x")
    (answer,) = ask_all(world, "POST", "/orders/messages/head")
    assert answer is not None and answer.status == 201
    return answer.headers["location"].removeprefix("http://localhost")


def statuses(world: World, *calls: tuple[str, str]) -> list[int | None]:
    """What requests of a method and a path are answered with, one after the other."""
    answers = [ask_all(world, method, path)[0] for method, path in calls]
    return [None if answer is None else answer.status for answer in answers]


def test_a_completed_message_is_gone() -> None:
    world = queue_world()
    lock = locked_there(world)
    assert counts(world).active == 1
    assert statuses(world, ("DELETE", lock)) == [200]
    assert counts(world).active == 0


def test_an_unlocked_message_comes_again_at_once_and_counts(http: Http, new_queue: NewQueue) -> None:
    queue = new_queue()
    assert http.call("PUT", locked(http, queue)).status == 200
    again = http.call("POST", f"/{queue}/messages/head?timeout=0")
    assert (again.status, said(again)["DeliveryCount"]) == (201, 2)


def test_a_renewed_lock_lasts_as_long_again_and_no_longer() -> None:
    world = queue_world()
    lock = locked_there(world)
    for _ in range(3):
        world.run_for(LOCK_MS - 5_000)
        assert statuses(world, ("POST", lock)) == [200]
    world.run_for(LOCK_MS)
    assert statuses(world, ("POST", lock), ("DELETE", lock), ("PUT", lock)) == [404, 404, 404]
    assert counts(world).active == 1


@pytest.mark.parametrize("last", ["PUT", "DELETE"])
def test_a_lock_that_is_over_is_404_whatever_is_asked(http: Http, new_queue: NewQueue, last: str) -> None:
    queue = new_queue()
    lock = locked(http, queue)
    assert http.call(last, lock).status == 200
    for method in ("PUT", "POST", "DELETE"):
        answer = http.call(method, lock)
        assert answer.status == 404 and "The lock supplied is invalid" in answer.text


@pytest.mark.parametrize("token", [str(UUID(int=0)), str(UUID(int=2**127 + 5)), "no-uuid", "1"])
def test_what_is_no_token_is_a_lost_lock(http: Http, new_queue: NewQueue, token: str) -> None:
    queue = new_queue()
    locked(http, queue)
    for method in ("PUT", "POST", "DELETE"):
        answer = http.call(method, f"/{queue}/messages/1/{token}")
        assert answer.status == 404 and "The lock supplied is invalid" in answer.text


def test_the_token_alone_decides_at_its_own_queue(http: Http, new_queue: NewQueue) -> None:
    queue, other = new_queue(), new_queue()
    token = locked(http, queue).rpartition("/")[2]
    assert http.call("DELETE", f"/{other}/messages/1/{token}").status == 404
    assert http.call("POST", f"/{queue}/$DeadLetterQueue/messages/1/{token}").status == 200
    assert http.call("DELETE", f"/{queue}/messages/any-message-id/{token.upper()}").status == 200


def test_what_is_not_there_is_410(http: Http, new_queue: NewQueue) -> None:
    for path in ("absent", f"{new_queue()}/$Other"):
        for method in ("PUT", "POST", "DELETE"):
            answer = http.call(method, f"/{path}/messages/1/{UUID(int=1)}")
            assert answer.status == 410 and "could not be found" in answer.text


# With a broker that refuses


@pytest.mark.parametrize(
    ("refusal", "status", "words"),
    [
        (Refusal(NOT_FOUND, "It was deleted."), 410, "It was deleted."),
        (Refusal(INTERNAL_ERROR, "The broker went away.", known=False), 504, "is not known: The broker went away."),
    ],
)
@pytest.mark.parametrize("method", ["PUT", "POST", "DELETE"])
def test_a_refusal_of_the_broker_is_told(refusal: Refusal, status: int, words: str, method: str) -> None:
    world = queue_world()
    world.gate.refuse[SettleMessages] = world.gate.refuse[RenewLocks] = refusal
    (answer,) = ask_all(world, method, f"/orders/messages/1/{UUID(int=1)}")
    assert answer is not None and answer.status == status and words in answer.text


def test_the_token_goes_to_the_broker_as_the_uuid_is_written() -> None:
    world = queue_world()
    world.gate.refuse[RenewLocks] = LocksRenewed(bytes(8))  # type: ignore[assignment]  # an answer of any kind
    token = UUID("00010203-0405-0607-0809-0a0b0c0d0e0f")
    (answer,) = ask_all(world, "POST", f"/orders/messages/1/{token}")
    assert answer is not None and answer.status == 404
    assert [command.tokens for command in world.gate.sent(RenewLocks)] == [bytes(range(16))]
