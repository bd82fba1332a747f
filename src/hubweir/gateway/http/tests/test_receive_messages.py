"""Messages from a queue over HTTP: locked or taken away, waited for, and given up."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID

import pytest
from msgspec.structs import replace

from hubweir.broker.commands.fragment import (
    CloseReceiver,
    OpenReceiver,
    ReceiveMessages,
    SettleMessages,
)
from hubweir.broker.commands.process import Refusal
from hubweir.errors import NOT_FOUND, ServiceError
from hubweir.gateway.amqp.tests.world import World
from hubweir.gateway.http import receive_messages
from hubweir.gateway.http.receive_messages import DEFAULT_TIMEOUT_S, TIMEOUT_LIMIT_S, timeout_s
from hubweir.gateway.http.tests.service import Answer, Http, token
from hubweir.gateway.http.tests.test_send_messages import said
from hubweir.gateway.http.tests.world_requests import Asking, ask_all, let_run, queue_world
from hubweir.gateway.receive_slots import ReceiveSlots
from hubweir.namespace.entity import Availability
from hubweir.namespace.queue_description import QueueDescription
from hubweir.namespace.rights import Rights
from hubweir.queue.settle_outcome import SettleOutcome

NewQueue = Callable[..., str]
HEAD = "/orders/messages/head"


def send(http: Http, queue: str, *bodies: str) -> None:
    for body in bodies:
        assert http.call("POST", f"/{queue}/messages", body).status == 201


def wait_until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_peek_lock_answers_201_with_the_lock_and_its_address(http: Http, new_queue: NewQueue) -> None:
    queue = new_queue(lock_duration_ms=30_000)
    send(http, queue, "first", "second")
    before = time.time()
    answer = http.call("POST", f"/{queue}/messages/head?timeout=0")
    assert (answer.status, answer.body) == (201, b"first")
    properties = said(answer)
    lock = UUID(properties["LockToken"])
    assert answer.headers["location"] == f"http://{http.namespace.host}:{http.namespace.port}/{queue}/messages/1/{lock}"
    until = time.strptime(properties["LockedUntilUtc"], "%a, %d %b %Y %H:%M:%S GMT")
    assert before + 28 <= time.mktime(until) - time.timezone <= time.time() + 31
    assert (properties["DeliveryCount"], properties["SequenceNumber"], properties["State"]) == (1, 1, "Active")
    assert (properties["EnqueuedSequenceNumber"], "TimeToLive" in properties) == (0, False)
    assert len(properties["MessageId"]) == 32
    assert http.call("POST", f"/{queue}/messages/head?timeout=0").body == b"second"
    assert http.call("POST", f"/{queue}/messages/head?timeout=0").status == 204


def test_receive_and_delete_answers_200_without_a_lock(http: Http, new_queue: NewQueue) -> None:
    queue = new_queue()
    send(http, queue, "first")
    answer = http.call("DELETE", f"/{queue}/Messages/HEAD?timeout=0")
    assert (answer.status, answer.body) == (200, b"first")
    assert "location" not in answer.headers
    assert not {"LockToken", "LockedUntilUtc"} & said(answer).keys()
    assert http.call("DELETE", f"/{queue}/messages/head?timeout=0").status == 204


@pytest.mark.parametrize("method", ["POST", "DELETE"])
def test_when_nothing_comes_in_time_it_is_204_without_a_body_or_a_length(
    http: Http, new_queue: NewQueue, method: str
) -> None:
    queue = new_queue()
    begun = time.monotonic()
    answer = http.call(method, f"/{queue}/messages/head?timeout=1&api-version=2015-01")
    assert 1 <= time.monotonic() - begun < 5
    assert (answer.status, answer.body) == (204, b"")
    assert not {"content-length", "content-type", "transfer-encoding", "location"} & answer.headers.keys()


def test_a_connection_goes_on_behind_a_receive(http: Http, new_queue: NewQueue) -> None:
    queue = new_queue()
    connection = _connected(http)
    head = {"Authorization": token()}
    statuses = []
    for method, path, body in (
        ("DELETE", f"/{queue}/messages/head?timeout=0", b""),
        ("POST", f"/{queue}/messages", b"one"),
        ("DELETE", f"/{queue}/messages/head?timeout=0", b"nobody reads this"),
        ("POST", f"/{queue}/messages/head?timeout=0", b""),
    ):
        connection.request(method, path, body, head)
        response = connection.getresponse()
        response.read()
        statuses.append(response.status)
    connection.close()
    assert statuses == [204, 201, 200, 204]


def test_a_waiting_receive_is_answered_as_soon_as_there_is_a_message(http: Http, new_queue: NewQueue) -> None:
    queue = new_queue()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(http.call, "POST", f"/{queue}/messages/head?timeout=9")
        wait_until(lambda: http.namespace.service.process.receive_slots.used == 1)
        begun = time.monotonic()
        send(http, queue, "awaited")
        answer = waiting.result(9)
    assert (answer.status, answer.body) == (201, b"awaited")
    assert time.monotonic() - begun < 3


@pytest.mark.parametrize("method", ["POST", "DELETE"])
def test_who_goes_away_while_it_waits_takes_nothing_along(http: Http, new_queue: NewQueue, method: str) -> None:
    queue = new_queue()
    slots = http.namespace.service.process.receive_slots
    head = f"{method} /{queue}/messages/head?timeout=60 HTTP/1.1\r\nhost: localhost\r\nauthorization: {token()}\r\n\r\n"
    with socket.create_connection((http.namespace.host, http.namespace.port), 10) as connection:
        connection.sendall(head.encode())
        wait_until(lambda: slots.used == 1)
    wait_until(lambda: slots.used == 0)
    send(http, queue, "for others")
    answer = http.call("POST", f"/{queue}/messages/head?timeout=0")
    assert (answer.body, said(answer)["DeliveryCount"]) == (b"for others", 1)


def test_dead_letters_are_received_under_their_address(http: Http, new_queue: NewQueue) -> None:
    queue = new_queue(max_delivery_count=1)
    send(http, queue, "cannot be handled")
    location = http.call("POST", f"/{queue}/messages/head?timeout=0").headers["location"]
    assert http.call("PUT", location).status == 200
    dead = http.call("POST", f"/{queue}/$deadletterQUEUE/messages/head?timeout=9")
    assert (dead.status, dead.body) == (201, b"cannot be handled")
    assert dead.headers["deadletterreason"] == '"MaxDeliveryCountExceeded"'
    assert f"/{queue}/$deadletterQUEUE/messages/1/" in dead.headers["location"]
    assert http.call("DELETE", dead.headers["location"]).status == 200
    for path in ("$DeadLetterQueue", "$Transfer/$DeadLetterQueue"):
        assert http.call("DELETE", f"/{queue}/{path}/messages/head?timeout=0").status == 204


def test_sessions_are_not_received_over_http_but_their_dead_letters_are(http: Http, new_queue: NewQueue) -> None:
    queue = new_queue(requires_session=True)
    for method in ("POST", "DELETE"):
        answer = http.call(method, f"/{queue}/messages/head?timeout=0")
        assert answer.status == 400 and "requires sessions" in answer.text
    assert http.call("POST", f"/{queue}/$DeadLetterQueue/messages/head?timeout=0").status == 204


@pytest.mark.parametrize(
    "path", ["absent", "absent/$DeadLetterQueue", "{queue}/$Other", "{queue}/$management", "{queue}/x", "$management"]
)
def test_what_is_not_there_is_410(http: Http, new_queue: NewQueue, path: str) -> None:
    path = path.format(queue=new_queue())
    for method in ("POST", "DELETE"):
        answer = http.call(method, f"/{path}/messages/head?timeout=0")
        assert answer.status == 410 and "could not be found" in answer.text


def test_event_hubs_and_topics_give_no_messages_out(http: Http, new_hub: Callable[..., str]) -> None:
    answer = http.call("POST", f"/{new_hub()}/messages/head?timeout=0")
    assert answer.status == 400 and "read events over AMQP" in answer.text


def test_the_right_to_listen_is_needed(http: Http, new_queue: NewQueue) -> None:
    queue = new_queue()
    send(http, queue, "x")
    key = "its own key"
    http.set_rule(None, "sends", Rights.SEND)
    http.set_rule(None, "listens", Rights.LISTEN)
    for path in (f"/{queue}/messages/head?timeout=0", f"/{queue}/messages/1/{UUID(int=1)}"):
        for method in ("POST", "DELETE"):
            assert http.call(method, path, auth=None).status == 401
            assert http.call(method, path, auth=token(rule="sends", key=key)).status == 401
            assert http.call(method, path, auth=token("other", rule="listens", key=key)).status == 401
    assert (
        http.call("DELETE", f"/{queue}/messages/head?timeout=0", auth=token(queue, rule="listens", key=key)).status
        == 200
    )


def test_the_status_of_the_queue_counts(http: Http, new_queue: NewQueue) -> None:
    queue = new_queue(availability=Availability.RECEIVE_DISABLED)
    answer = http.call("POST", f"/{queue}/messages/head?timeout=0")
    assert answer.status == 403 and "ReceiveDisabled" in answer.text


def test_the_timeout_is_a_number_of_seconds() -> None:
    assert timeout_s("") == timeout_s("api-version=1") == DEFAULT_TIMEOUT_S == 60
    assert timeout_s("api-version=1&Timeout=7") == 7
    assert timeout_s("timeout=0") == 0
    assert timeout_s(f"timeout={TIMEOUT_LIMIT_S}") == TIMEOUT_LIMIT_S
    for wrong in ("timeout=", "timeout=-1", "timeout=1.5", f"timeout={TIMEOUT_LIMIT_S + 1}", "timeout=\u0661"):
        with pytest.raises(ServiceError, match="timeout is a whole number"):
            timeout_s(wrong)


def _connected(http_: Http) -> http.client.HTTPConnection:
    return http.client.HTTPConnection(http_.namespace.host, http_.namespace.port, timeout=10)


# With a broker whose answers a test decides on


def asked(world: World, scenario: Callable[[Asking], Any], path: str = HEAD) -> Answer | None:
    """One receive; scenario is a coroutine function that is told of it, and ends before it is cancelled."""

    async def run() -> Answer | None:
        asking = Asking(world, "POST", path)
        task = asyncio.ensure_future(asking.run())
        await let_run(world)
        await scenario(asking)
        await let_run(world)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return asking.answer

    return asyncio.run(run())


def test_a_message_that_comes_as_its_peer_goes_is_active_again_and_was_not_delivered() -> None:
    world = queue_world()
    ask_all(world, "POST", "/orders/messages", b"x")
    world.gate.hold[ReceiveMessages] = []

    async def scenario(asking: Asking) -> None:
        asking.gone.set()
        world.gate.release(ReceiveMessages)
        world.run_for(10)  # the message is there before the request hears of either

    assert asked(world, scenario) is None
    assert [command.outcome for command in world.gate.sent(SettleMessages)] == [SettleOutcome.RELEASE]
    (answer,) = ask_all(world, "POST", f"{HEAD}?timeout=0")
    assert answer is not None and said(answer)["DeliveryCount"] == 1
    assert world.gateway.receive_slots.used == 0


def test_a_request_that_is_cancelled_leaves_no_receiver_and_no_lock() -> None:
    """As the service does at its end."""
    world = queue_world()
    assert ask_all(world, "POST", HEAD) == [None]
    assert len(world.gate.sent(CloseReceiver)) == len(world.gate.sent(OpenReceiver)) == 1
    ask_all(world, "POST", "/orders/messages", b"x")
    (answer,) = ask_all(world, "DELETE", HEAD)
    assert answer is not None and answer.status == 200
    assert world.gateway.receive_slots.used == 0


def test_a_queue_that_is_switched_off_meanwhile_gives_nothing_out() -> None:
    world = queue_world()

    async def scenario(asking: Asking) -> None:
        def disabled(known: QueueDescription, context: object) -> QueueDescription:
            return replace(known, availability=Availability.RECEIVE_DISABLED)

        world.wait(lambda done: world.gateway.keeper.change("orders", QueueDescription, disabled, done))
        await Asking(world, "POST", "/orders/messages", b"x").run()

    async def send_and_wait(asking: Asking) -> None:
        task = asyncio.ensure_future(scenario(asking))
        await let_run(world)
        await task

    answer = asked(world, send_and_wait)
    assert answer is not None and answer.status == 403
    assert [command.outcome for command in world.gate.sent(SettleMessages)] == [SettleOutcome.RELEASE]


def test_a_queue_that_is_deleted_meanwhile_is_gone() -> None:
    world = queue_world()

    async def scenario(asking: Asking) -> None:
        world.wait(lambda done: world.gateway.keeper.delete("orders", QueueDescription, done))

    answer = asked(world, scenario)
    assert answer is not None and answer.status == 410 and "could not be found" in answer.text


def test_a_refusal_of_the_broker_is_told() -> None:
    world = queue_world()
    world.gate.refuse[OpenReceiver] = Refusal(NOT_FOUND, "The messaging entity could not be found.")
    (answer,) = ask_all(world, "POST", HEAD)
    assert answer is not None and answer.status == 410
    assert world.gateway.receive_slots.used == 0


def test_more_receives_than_the_process_takes_are_told_to_come_again() -> None:
    world = queue_world()
    world.gateway.receive_slots = ReceiveSlots(limit=3)
    answers = ask_all(world, "POST", HEAD, count=4)
    assert answers[:3] == [None, None, None]
    assert answers[3] is not None and answers[3].status == 503
    assert "retry-after" in answers[3].headers and "3 receives wait" in answers[3].text
    assert len(world.gate.sent(OpenReceiver)) == 3
    assert world.gateway.receive_slots.used == 0


def test_an_answer_counts_until_its_peer_has_read_it() -> None:
    world = queue_world()
    slots = world.gateway.receive_slots
    ask_all(world, "POST", "/orders/messages", b"x" * 1_000)
    seen: list[tuple[int, int]] = []

    class Slow(Asking):
        async def _send(self, message: Any) -> None:
            seen.append((slots.used, slots.used_bytes))
            await super()._send(message)

    async def run() -> Answer | None:
        asking = Slow(world, "DELETE", HEAD)
        task = asyncio.ensure_future(asking.run())
        await let_run(world)
        await task
        return asking.answer

    answer = asyncio.run(run())
    assert answer is not None and len(answer.body) == 1_000
    assert seen == [(1, 1_000)] * 3  # its head, its body, and what is sent when that was read
    assert (slots.used, slots.used_bytes) == (0, 0)


def test_an_answer_that_cannot_be_sent_counts_no_longer() -> None:
    world = queue_world()
    ask_all(world, "POST", "/orders/messages", b"x")

    class Broken(Asking):
        async def _send(self, message: Any) -> None:
            raise ConnectionError("the transport is gone")

    async def run() -> None:
        task = asyncio.ensure_future(Broken(world, "DELETE", HEAD).run())
        await let_run(world)
        with pytest.raises(ConnectionError):
            await task

    asyncio.run(run())
    assert (world.gateway.receive_slots.used, world.gateway.receive_slots.used_bytes) == (0, 0)


def test_a_receive_that_is_answered_leaves_no_task_behind() -> None:
    world = queue_world()
    ask_all(world, "POST", "/orders/messages", b"x")

    async def run() -> set[Any]:
        await asyncio.gather(Asking(world, "DELETE", HEAD).run(), let_run(world))
        await asyncio.sleep(0)
        return asyncio.all_tasks() - {asyncio.current_task()}

    assert asyncio.run(run()) == set()


def test_a_broker_that_gives_no_answer_at_all_ends_with_504(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receive_messages, "ANSWER_WAIT_S", 0.05)
    world = queue_world()
    world.gate.hold[OpenReceiver] = []

    async def scenario(asking: Asking) -> None:
        await asyncio.sleep(0.4)

    answer = asked(world, scenario, f"{HEAD}?timeout=0")
    assert answer is not None and answer.status == 504
    world.gate.release(OpenReceiver)
    assert len(world.gate.sent(CloseReceiver)) == 1


def test_what_is_received_can_be_sent_again(http: Http, new_queue: NewQueue) -> None:
    queue = new_queue()
    sent = {
        "BrokerProperties": json.dumps({"Label": "l", "CorrelationId": "c", "TimeToLive": 60}),
        "N": "7",
        "S": '"7"',
    }
    assert http.call("POST", f"/{queue}/messages", "x", **sent).status == 201
    first = http.call("DELETE", f"/{queue}/messages/head?timeout=0")
    again = {"BrokerProperties": first.headers["brokerproperties"], "N": first.headers["n"], "S": first.headers["s"]}
    assert http.call("POST", f"/{queue}/messages", first.body, **again).status == 201
    second = http.call("DELETE", f"/{queue}/messages/head?timeout=0")
    same = {"Label", "CorrelationId", "TimeToLive", "MessageId", "DeliveryCount"}
    assert {name: said(second)[name] for name in same} == {name: said(first)[name] for name in same}
    assert (second.headers["n"], second.headers["s"], second.body) == ("7", '"7"', b"x")
    assert said(second)["SequenceNumber"] == 2
