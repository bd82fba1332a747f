"""Messages from a queue over HTTP: locked or taken away, waited for, and given up."""

from __future__ import annotations

import http.client
import json
import socket
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

import pytest

from hubweir.errors import ServiceError
from hubweir.gateway.http.receive_messages import DEFAULT_TIMEOUT_S, TIMEOUT_LIMIT_S, timeout_s
from hubweir.gateway.http.tests.service import Http, token
from hubweir.gateway.http.tests.test_send_messages import said
from hubweir.namespace.entity import Availability
from hubweir.namespace.rights import Rights

NewQueue = Callable[..., str]


def send(http: Http, queue: str, *bodies: str) -> None:
    for body in bodies:
        assert http.call("POST", f"/{queue}/messages", body).status == 201


def wait_until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
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
    assert 1 <= time.monotonic() - begun < 20  # of the minute that it would wait by itself
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
        waiting = pool.submit(http.call, "POST", f"/{queue}/messages/head?timeout=50")
        wait_until(lambda: http.namespace.service.process.receive_slots.used == 1)
        begun = time.monotonic()
        send(http, queue, "awaited")
        answer = waiting.result(50)
    assert (answer.status, answer.body) == (201, b"awaited")
    assert time.monotonic() - begun < 20


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
    return http.client.HTTPConnection(http_.namespace.host, http_.namespace.port, timeout=30)


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
